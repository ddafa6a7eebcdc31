//! VLANs whose packets the programs of their parent leave alone, because they have an interface with programs of its own.
//!
//! Decision 0134 says why.

use std::collections::BTreeSet;

use super::attachments::{attachments, is_port, keeps_vlans_apart};
use crate::facts::Facts;
use crate::network::Network;

/// Returns index of the parent and id of each such VLAN. `egress` names the uplinks and tunnels.
///
/// A LAN interface leaves a VLAN alone that is a LAN interface or an uplink, or the port of one, and evaluates other VLANs
/// itself. Any other parent leaves a VLAN alone that has programs, is a port, or has nothing but such VLANs above it. It
/// need not have programs itself: if it gets the guard, that begins with the right entries.
pub(super) fn own_interfaces(
    network: &Network,
    facts: &Facts,
    egress: &BTreeSet<&str>,
) -> BTreeSet<(u32, u16)> {
    let lan: BTreeSet<&str> = network.lan.iter().map(String::as_str).collect();
    let attached = attachments(network, facts, egress);
    let is_evaluated = |name: &str| lan.contains(name) || egress.contains(name);
    let mut own = BTreeSet::new();
    for (name, link) in &facts.links {
        // Frames with a priority tag (id 0) are of no VLAN.
        let Some((parent, id)) = link.vlan.as_ref().filter(|(_, id)| *id != 0) else { continue };
        let Some(below) = facts.links.get(parent) else { continue };
        let is_own = if lan.contains(parent.as_str()) {
            facts.bridge_or_self(name, is_evaluated).is_some()
        } else {
            // With `reorder_hdr off`, packets of the parent have its tag there, and not that of a VLAN with the same id.
            let is_ambiguous = below.vlan.as_ref().is_some_and(|(_, other)| other == id);
            !is_ambiguous
                && (attached.contains_key(name)
                    || is_port(link, facts)
                    || keeps_vlans_apart(network, facts, egress, name))
        };
        if is_own {
            own.insert((below.index, *id));
        }
    }
    own
}
