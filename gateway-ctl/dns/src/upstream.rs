//! The asking half of the resolver: upstreams, the ways to them, and which one is asked.
//!
//! [`Plan`] says which upstreams there are for which names, [`Upstreams`] asks them. Each upstream by each path is a
//! line of its own, with its own connections, health and TLS sessions: nothing is shared between ways.

mod bootstrap;
mod client;
mod config;
mod connection;
mod context;
mod doh;
mod doq;
mod egress;
mod error;
mod fallback;
mod health;
pub mod message;
mod pipelined;
mod selection;
mod set;
mod stall;
mod status;
mod udp;
mod validate;
mod well_known;

pub use crate::hooks::{Place, Server};
pub(crate) use bootstrap::Addresses;
pub use config::{Given, Group, Plan, of_profile, secondaries};
pub use context::{Context, Event};
pub use egress::Called;
pub use error::Error;
pub(crate) use error::random;
pub use set::{Upstreams, Whom};
pub use status::UpstreamStatus;
pub use well_known::without_certificate_name;

#[cfg(test)]
mod tests;
