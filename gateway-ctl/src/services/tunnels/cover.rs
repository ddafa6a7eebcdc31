//! Cover traffic of tunnels.

use crate::os::wireguard::{Engine, WireGuard};
use crate::world::reports::tunnels::Cover;

/// Returns the cover traffic of the tunnel at an interface.
pub(super) async fn of(engine: &WireGuard, interface: &str) -> Cover {
    if engine.engine() == Engine::Kernel {
        return Cover::OfTheKernel;
    }
    engine.cover(interface).await.map_or(Cover::NoDevice, Cover::Here)
}
