//! Hosts that were observed on the LAN: a bounded table for each interface, fed by observations of any origin.
//!
//! A host is a MAC address at an interface. Any sender of frames can forge one, so memory is bounded for each interface.
//! A host that has answered the gateway is confirmed, and is never removed for one that has not.
//!
//! Decision 0140 says why.

mod host;
mod table;

pub use host::{Host, HostName, NameSource};
pub use table::{Evidence, Hosts, Observation, Retention};

#[cfg(test)]
mod tests;
