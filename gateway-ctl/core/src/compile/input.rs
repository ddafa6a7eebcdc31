//! Input of the compiler: state, network, facts and time.

use gateway_model::State;
use jiff::Timestamp;

use crate::facts::Facts;
use crate::network::Network;

/// Input of the compiler.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    pub state: &'a State,
    pub network: &'a Network,
    pub facts: &'a Facts,
    pub now: Timestamp,
}

impl Input<'_> {
    /// A point in time as a deadline of the dataplane ([`gateway_common::wire::deadline`]).
    pub fn deadline(&self, end: Timestamp) -> u32 {
        let since_boot = end.as_nanosecond() - i128::from(self.facts.booted_at);
        gateway_common::wire::deadline(u64::try_from(since_boot.max(0)).unwrap_or(u64::MAX))
    }
}
