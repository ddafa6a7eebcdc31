//! The pure core: from state and facts to a plan, and every view of it.
//!
//! Time, randomness and what was observed are arguments. Nothing here fails, waits or touches the
//! world: what is wrong with the input comes back as findings.
#![forbid(unsafe_code)]

pub mod chain;
pub mod change;
pub mod compile;
pub mod conflicts;
pub mod dns;
pub mod domains;
pub mod environment;
pub mod evaluate;
pub mod expectation;
pub mod facts;
pub mod learned;
pub mod machines;
pub mod matrix;
pub mod name_servers;
pub mod network;
pub mod outgoing;
pub mod plan;
pub mod render;

pub use compile::{Compiled, Finding, Input, compile};
