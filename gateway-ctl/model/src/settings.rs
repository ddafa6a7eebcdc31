//! Settings that are not resources: the bootstrap configuration, and settings at runtime.

pub mod bootstrap;
pub mod group;
pub mod groups;
mod key_secrets;
pub mod keys;
mod positions;
pub(crate) mod references;
mod stored;
pub mod uplink;
pub mod virtual_link;
mod yaml;

pub use bootstrap::{Bootstrap, ConfigError, EXAMPLE, parse};
pub use stored::{SECRET_KEY, Setting, Settings};
