//! Settings that are not resources: the bootstrap configuration.

pub mod bootstrap;
