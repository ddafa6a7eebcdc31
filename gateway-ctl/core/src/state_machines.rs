//! State machines without input or output: they are told what happened and when, and say what to do.

pub mod deadman;
pub mod liveness;
pub mod tunnel_health;
