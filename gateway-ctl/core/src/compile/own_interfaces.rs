//! VLANs whose packets the programs of their parent leave alone, because they have an interface with programs of its own.

use std::collections::BTreeSet;

use super::attachments::{attachments, is_port};
use crate::facts::Facts;
use crate::network::Network;

/// Returns index of the parent and id of each such VLAN. `egress` names the uplinks and tunnels.
///
/// A LAN interface leaves a VLAN alone that is one of the LAN, an uplink, or below one: the port of a bridge. It evaluates
/// other VLANs itself. Any other parent leaves a VLAN alone that has programs or is a port. It need not have programs itself:
/// if it gets the guard, that begins with the right entries.
pub fn own_interfaces(network: &Network, facts: &Facts, egress: &BTreeSet<&str>) -> BTreeSet<(u32, u16)> {
    let lan: BTreeSet<&str> = network.lan.iter().map(String::as_str).collect();
    let attached = attachments(network, facts, egress);
    let is_evaluated = |name: &str| lan.contains(name) || egress.contains(name);
    let mut own = BTreeSet::new();
    for (name, link) in &facts.links {
        let Some((parent, id)) = &link.vlan else { continue };
        let Some((parent, below)) = facts.links.get_key_value(parent) else { continue };
        // With `reorder_hdr off`, packets of the parent have its tag there, and not that of a VLAN with the same id.
        let is_ambiguous = below.vlan.as_ref().is_some_and(|(_, other)| other == id);
        let is_own = if lan.contains(parent.as_str()) {
            facts.find_above(name, is_evaluated).is_some()
        } else {
            attached.contains_key(name) || is_port(link, facts)
        };
        if is_own && !is_ambiguous {
            own.insert((below.index, *id));
        }
    }
    own
}
