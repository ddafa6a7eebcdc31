//! Command-line client of the gateway: a client of its REST API and nothing else.
//!
//! Every command is one entry of the table in [`commands`]. Parsing, requests, output, help, the manual page and the
//! completions are generated from that table.
#![forbid(unsafe_code)]

pub(crate) mod address;
pub(crate) mod bundle;
pub(crate) mod candidates;
pub(crate) mod client;
pub(crate) mod command_line;
pub mod commands;
pub(crate) mod completion;
pub(crate) mod escape;
pub(crate) mod failure;
pub(crate) mod grammar;
pub(crate) mod help;
pub(crate) mod input;
pub(crate) mod manual;
pub(crate) mod output;
pub(crate) mod program;
pub(crate) mod request;
pub(crate) mod special;
pub(crate) mod tabular;

pub use program::main;
