//! Mode in force, and the generation that identifies configurations of an earlier mode.

use std::sync::Arc;

use parking_lot::Mutex;

use super::mode::PqMode;

/// Last configuration and its generation.
pub(super) type CachedConfig<C> = Mutex<Option<(u64, Arc<C>)>>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Posture {
    pub mode: PqMode,
    /// Generation that grows with every change: default, required, default results in three sets of tickets.
    pub generation: u64,
}
