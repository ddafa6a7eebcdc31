//! REST API of the gateway: a table of endpoints, one dispatcher, and the documents generated from the table. The crate
//! also contains the binary of the daemon, because the code that composes the service needs all its parts.
//!
//! The crate makes no traffic decisions and uses no kernel interface. The engine in `gateway-ctl` does both.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use clocks and sockets of their own"))]

pub mod auth;
pub(crate) mod authorization;
pub(crate) mod blocking;
pub(crate) mod checks;
pub mod config;
pub mod context;
pub mod daemon;
pub mod dispatch;
pub(crate) mod effect;
pub mod endpoints;
pub mod error;
pub(crate) mod events;
pub mod gateway;
pub(crate) mod heavy;
pub(crate) mod host_info;
pub(crate) mod hot_reload;
pub mod initialise;
pub mod log;
pub mod openapi;
pub mod pages;
pub mod peer;
pub mod preflight;
pub(crate) mod query;
pub(crate) mod reply;
pub mod request;
pub mod serve;
mod service_manager;
mod services;
mod streamed;
mod support_bundle;
mod system_alerts;
pub mod table;
pub mod tls;
pub mod user_command;
pub(crate) mod view_cache;
pub(crate) mod wipe;
