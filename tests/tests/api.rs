//! Suites of the API: contract, authorization, OpenAPI description, TLS, and the client.
//!
//! Each module is a suite of `cargo xtask test`, in its own process.

mod assistant_model;
mod authz;
mod cli;
mod contract;
mod openapi;
mod tls;
