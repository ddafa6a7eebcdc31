//! Verdict on the gateway: does anything leak, in one word and one sentence, the same for API, client and dashboard.

mod devices;
mod sentence;
mod word;

pub use devices::{DeviceCounts, Devices, count};
pub use sentence::sentence;
pub use word::{Observed, Word, word};
