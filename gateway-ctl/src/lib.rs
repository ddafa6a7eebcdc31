//! Engine of the gateway: the store, the drivers for kernel and processes, the reconcile loop and the services. The
//! crate contains no HTTP server (see `gateway-api`) and no decisions about packets (see `gateway-core`).
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use clocks and sockets of their own"))]

pub mod clock;
pub mod configuration;
pub mod engine;
pub mod engines;
pub mod handles;
pub mod metrics;
pub mod os;
pub mod panics;
pub mod parallel;
mod random;
pub mod readings;
pub mod reconcile;
mod secrets;
pub mod service;
pub mod services;
pub mod store;
pub mod supervise;
pub mod tls;
pub mod world;
