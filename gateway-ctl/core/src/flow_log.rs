//! Flow log: records of the flows that the gateway forwarded or denied, and what is asked about them.
//!
//! A record has what the dataplane did with a flow, and the packet key by which the same decision can be asked for again.
//! A field that was not observed is `None`, never zero.

mod active_flow;
mod bytes;
mod codec;
mod columns;
mod counted_places;
mod counted_words;
mod filter;
mod naming;
mod observation;
mod record;
mod rollup;
mod top;
mod tracker;
mod usage;

pub use active_flow::{AskedNames, Surroundings};
pub use codec::{FlowView, encode, views};
pub use columns::{RecordSelection, add_columns, from_columns, to_columns};
pub use counted_places::{CountedPlaces, CountedTraffic, PresentEntry, ReplacedEntry};
pub use counted_words::CountedWords;
pub use filter::{ClientCondition, CountryCondition, DomainCondition, FlowFilter};
pub use naming::FlowNames;
pub use observation::{Connection, EvaluatedFlow, Observation, TcpState, Tuple};
pub use record::{
    Client, Decision, FlowEnd, FlowId, FlowPath, FlowRecord, MAX_NAMES, MAX_PATHS, PacketKey, Traffic,
};
pub use rollup::{Rollup, RollupSpan, RollupView, rollup_views};
pub use top::{TopKey, TopRow, TopTable, Totals};
pub use tracker::{FlowChange, FlowNews, Losses, MAX_FLOWS, Tracker};
pub use usage::{
    PendingUsage, Usage, UsageGroup, UsageKey, UsageRow, UsageStep, UsageTable, UsageView, encode_usage,
    hour_of, usage_views,
};

#[cfg(test)]
mod rollup_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod totals_tests;
#[cfg(test)]
mod tracker_tests;
