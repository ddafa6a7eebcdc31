//! The asking half of the resolver: upstreams, the ways to them, and which one is asked.
//!
//! [`Plan`] says which upstreams there are for which names, [`Upstreams`] asks them. Each upstream by each path is a
//! line of its own, with its own connections, health and TLS sessions: nothing is shared between ways.

mod channel;
mod choice;
mod context;
mod datagram;
mod egress;
mod error;
mod health;
mod https;
mod known;
mod line;
mod lookup;
pub mod message;
mod pipe;
mod plan;
mod pulse;
mod quic;
mod race;
mod set;
mod status;
mod validate;

pub use crate::seam::{Place, Server};
pub use context::{Context, Event};
pub use egress::Called;
pub use error::Error;
pub(crate) use error::random;
pub use known::without_certificate_name;
pub(crate) use lookup::Addresses;
pub use plan::{Given, Group, Plan, of_profile, secondaries};
pub use set::{Upstreams, Whom};
pub use status::UpstreamStatus;

#[cfg(test)]
mod tests;
