//! REST API of the gateway: a table of endpoints, one dispatcher, and the documents generated from the table. The crate
//! also contains the binary of the daemon, because the code that composes the service needs all its parts.
//!
//! The crate makes no traffic decisions and uses no kernel interface. The engine in `gateway-ctl` does both.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use clocks and sockets of their own"))]

pub mod auth;
pub mod authorization;
pub mod blocking;
pub mod checks;
pub mod config;
pub mod context;
pub mod daemon;
pub mod dispatch;
pub mod effect;
pub mod endpoints;
pub mod error;
pub mod events;
pub mod gateway;
pub mod heavy;
pub mod host_info;
pub mod hot_reload;
pub mod initialise;
pub mod log;
pub mod openapi;
pub mod pages;
pub mod peer;
pub mod preflight;
pub mod query;
pub mod reply;
pub mod request;
pub mod serve;
mod service_manager;
mod services;
mod streamed;
mod system_alerts;
pub mod table;
pub mod tls;
pub mod user_command;
pub mod view_cache;
pub mod wipe;
