//! Cover traffic of tunnels: configured and current state.

use crate::os::wireguard::{CoverStatus, Engine, WireGuard};

/// Cover traffic of a WireGuard tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cover {
    /// The kernel implementation of WireGuard, which has no cover traffic.
    OfTheKernel,
    /// The tunnel has no device.
    NoDevice,
    Here(CoverStatus),
}

impl Cover {
    pub(super) async fn of(engine: &WireGuard, interface: &str) -> Cover {
        if engine.engine() == Engine::Kernel {
            return Cover::OfTheKernel;
        }
        engine.cover(interface).await.map_or(Cover::NoDevice, Cover::Here)
    }

    pub fn status(&self) -> Option<CoverStatus> {
        match self {
            Cover::Here(status) => Some(*status),
            Cover::OfTheKernel | Cover::NoDevice => None,
        }
    }
}
