//! Suites about the API: its contract, who may do what, its description, its TLS, and the client.
//!
//! Each module is a suite of `cargo xtask test`, in a process of its own.

mod authz;
mod cli;
mod contract;
mod openapi;
mod tls;
