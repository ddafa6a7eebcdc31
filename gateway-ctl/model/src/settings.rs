//! Settings that are not resources: the bootstrap configuration.

pub mod bootstrap;
mod positions;
mod yaml;

pub use bootstrap::{Bootstrap, ConfigError, EXAMPLE, parse};
