//! Suites of components of the gateway: kernel programs, kernel objects, store, parsers.
//!
//! Each module is a suite of `cargo xtask test`, in its own process.

mod fuzz;
mod kernel;
mod store;
mod vm;
