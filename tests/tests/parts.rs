//! Suites about parts of the gateway: kernel programs, kernel objects, store, parsers.
//!
//! Each module is a suite of `cargo xtask test`, in a process of its own.

mod fuzz;
mod kernel;
mod store;
mod vm;
