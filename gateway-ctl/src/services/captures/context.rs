//! Parts of the daemon that captures use, and the errors of a start.

use std::io;
use std::sync::Arc;

use gateway_model::Problems;

use super::captured_interfaces::CapturedInterfaces;
use super::metrics::CaptureTotals;
use crate::clock::SharedClock;
use crate::os::capture::{CaptureFailure, SpawnError};
use crate::reconcile::KernelDataplane;
use crate::world::Worlds;

/// Maximum number of captures that run.
pub const MAX_RUNNING: usize = 3;

/// Parts of the daemon that a capture uses.
#[derive(Clone)]
pub struct CaptureContext {
    pub worlds: Arc<Worlds>,
    pub dataplane: KernelDataplane,
    pub captured: CapturedInterfaces,
    pub clock: SharedClock,
    pub totals: CaptureTotals,
}

/// Error of a start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("{MAX_RUNNING} captures run already")]
    LimitReached,
    #[error("captures wait for the encrypted storage")]
    Waiting,
    /// Faults of the request.
    #[error("the request is not valid")]
    Invalid(Problems),
    #[error("{0}")]
    Failed(#[from] CaptureFailure),
    #[error("{0}")]
    Spawn(#[from] SpawnError),
    #[error("{0}")]
    Io(#[from] io::Error),
}
