//! Verdict on the gateway: does anything leak, in one word and one sentence, the same for API, client and dashboard.

mod devices;
mod sentence;
mod word;

pub use devices::{DeviceCounts, Devices, Treatment, count};
pub(crate) use devices::{internet, packets, treatment};
pub use sentence::sentence;
pub use word::{Observed, Word, word};
