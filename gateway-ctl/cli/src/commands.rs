//! Table of commands: their words, the API endpoints they call, their output.

mod bluetooth;
mod build;
mod flows;
mod network;
mod objects;
mod operations;
mod policy;
mod state;
mod storage;
pub(crate) mod unavailable;

pub use crate::grammar::{
    Arity, Bad, Call, Column, Command, Flag, Group, Kind, Method, Operand, ParameterKind, Prints, Special,
    Verdict, Work,
};

/// Returns all commands.
pub fn table() -> Vec<Kind> {
    let mut kinds = Vec::new();
    state::kinds(&mut kinds);
    policy::kinds(&mut kinds);
    objects::kinds(&mut kinds);
    network::kinds(&mut kinds);
    kinds.push(flows::kind());
    kinds.push(bluetooth::kind());
    operations::kinds(&mut kinds);
    kinds.push(storage::kind());
    kinds
}

#[cfg(test)]
mod tests;
