//! The engine of the gateway: the store, the effects on the kernel, the loop that reconciles them and the services.
//! It is not the HTTP side (that is `gateway-api`) and it decides nothing about packets (that is `gateway-core`).

pub mod clock;
pub mod configuration;
pub mod engine;
pub mod os;
pub mod panics;
pub mod reconcile;
mod secrets;
pub mod service;
pub mod services;
pub mod store;
pub mod supervise;
pub mod tls;
pub mod world;
