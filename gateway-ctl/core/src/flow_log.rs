//! Flow log: records of the flows that the gateway forwarded or denied, and what is asked about them.
//!
//! A record has what the dataplane did with a flow, and the packet key by which the same decision can be asked for again.
//! What was not observed is `None`, never zero.

mod bytes;
mod codec;
mod filter;
mod record;
mod top;

pub use codec::{FlowView, encode, views};
pub use filter::{ClientCondition, DomainCondition, FlowFilter};
pub use record::{
    Client, Decision, FlowEnd, FlowId, FlowPath, FlowRecord, MAX_NAMES, MAX_PATHS, PacketKey, Traffic,
};
pub use top::{TopKey, TopRow, TopTable};

#[cfg(test)]
mod tests;
