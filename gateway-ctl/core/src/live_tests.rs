//! Live tests: definitions that are tried with packets, as their sources would send them.
//!
//! Nothing here sends anything. First the sources ask the gateway for the names of their definitions; then a packet goes to
//! each destination. The packets have a hop limit of 2, so the next router discards them: a live test shows where packets
//! leave, and not whether the remote end answers.

mod compare;
mod fate;
mod run;

pub use run::LiveTests;
