//! Command-line client of the gateway: a client of its REST API and nothing else.
//!
//! Every command is one entry of the table in [`commands`]. Parsing, requests, output, help, the manual page and the
//! completions are generated from that table.
#![forbid(unsafe_code)]

pub mod address;
pub mod candidates;
pub mod client;
pub mod command_line;
pub mod commands;
pub mod completion;
pub mod escape;
pub mod failure;
pub mod grammar;
pub mod help;
pub mod input;
pub mod manual;
pub mod output;
pub mod program;
pub mod request;
pub mod special;
pub mod tabular;

pub use program::main;
