//! The pure core: from state and facts to a plan, and every view of it.
//!
//! Time, randomness and what was observed are arguments. Nothing here fails, waits or touches the
//! world: what is wrong with the input comes back as findings.

pub mod facts;
pub mod plan;
