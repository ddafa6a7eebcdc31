//! Suites with a running gateway among hosts and servers: real packets, real peers. All need root.
//!
//! Each module is a suite of `cargo xtask test`, in its own process.

mod backup;
mod deliveries;
mod dns_stress;
mod e2e;
mod harness;
mod journeys;
mod nothing_past;
mod soak;
