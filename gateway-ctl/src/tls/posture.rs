//! The mode in force, and the number by which configurations made for an earlier one are known.

use super::mode::PqMode;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Posture {
    pub mode: PqMode,
    /// Grows with every change, so that default, required, default makes three sets of tickets.
    pub generation: u64,
}
