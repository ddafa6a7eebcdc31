//! Verdict on the gateway: does anything leak, in one word and one sentence, the same for API, client and dashboard.

mod hosts;
mod sentence;
mod word;

pub use hosts::{BlockCause, HostCounts, PresentHost, Share, TreatedHosts, Treatment, count, internet};
pub(crate) use hosts::{host_packets, packets, silent_records, treatment};
pub use sentence::{phrases, sentence};
pub use word::{Observed, Word, word};
