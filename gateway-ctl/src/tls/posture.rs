//! The mode in force, and the number by which configurations made for an earlier one are known.

use std::sync::{Arc, Mutex};

use super::mode::PqMode;

/// The configuration that was made last, and for which generation.
pub(super) type Made<C> = Mutex<Option<(u64, Arc<C>)>>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Posture {
    pub mode: PqMode,
    /// Grows with every change, so that default, required, default makes three sets of tickets.
    pub generation: u64,
}
