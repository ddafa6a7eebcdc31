//! Upstreams of the resolver, the paths to them, and their selection.
//!
//! [`Plan`] holds the upstreams by name, [`Upstreams`] sends queries to them. Each pair of upstream and path has its
//! own client with its own connections, health and TLS sessions: paths share nothing.

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

pub use crate::hooks::{Server, ServerAddress};
pub(crate) use bootstrap::Addresses;
pub use config::{Group, Plan, PlanInput, of_profile, secondaries};
pub use context::{Context, Event};
pub use egress::EgressNames;
pub use error::Error;
pub(crate) use error::random;
pub use health::HealthStats;
pub use set::{UpstreamSelection, Upstreams};
pub use status::UpstreamStatus;
pub use well_known::without_certificate_name;

#[cfg(test)]
mod tests;
