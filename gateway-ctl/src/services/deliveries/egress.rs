//! Egress of a receiver: the default route, or a tunnel or uplink by its name. While that is not usable, nothing is sent.

use gateway_core::host_egress::{self, HostEgress};
use gateway_core::indexes::LegId;
use gateway_model::egress_name::AUTO;
use gateway_outbound::Egress;

use crate::world::World;

/// Returns the egress with this name, or the human-readable reason why there is none now.
pub(crate) fn egress(world: &World, name: &str) -> Result<Egress, String> {
    if name == AUTO {
        return Ok(Egress::DEFAULT);
    }
    match host_egress::by_name(&world.input(), world.live(), name) {
        HostEgress::Legs(legs) => match legs.first() {
            Some(leg) => Ok(Egress::marked(LegId::host_mark(Some(*leg)))),
            None => Err(format!("{name} has no leg")),
        },
        HostEgress::Blocked(reason) => Err(reason),
        HostEgress::Default | HostEgress::Proxy { .. } => Err(format!("{name} is no tunnel and no uplink")),
    }
}
