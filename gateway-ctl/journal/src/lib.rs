//! Records on disk that are only appended: journals of records in the order of time, with pages by filter and bounds of
//! size and age ([`Journal`]), and ledgers of the last value of each key, durable at once ([`Ledger`]).
//!
//! A file survives a crash at any byte: what was not whole is cut off when it is opened. What is erased is overwritten.

pub mod erase;
mod format;
mod forward;
mod journal;
mod ledger;
mod pages;
mod recent;
pub mod room;
mod scan;
mod seal;
mod segment;
#[cfg(test)]
mod tests;

pub use format::{Format, NoSummary, Summary, View};
pub use journal::{Journal, Settings};
pub use ledger::{Ledger, Recovered};
pub use pages::{Page, PageStart, Pages, Query, SearchEnd};
pub use scan::{Scan, Scanned, ScannedBlock};
pub use seal::SealingKey;
pub use segment::Block;
