//! Names and prefixes of a map, as the member shows and uses them. No I/O.

use std::collections::BTreeSet;

use gateway_mesh::network_map::NetworkMap;
use ipnet::IpNet;

/// Returns the offered prefixes that the coordinator has approved.
pub(super) fn approved(map: &NetworkMap, offered: &BTreeSet<IpNet>) -> BTreeSet<IpNet> {
    let allowed = map.node.iter().flat_map(|node| &node.allowed_ips);
    allowed.map(IpNet::trunc).filter(|net| offered.contains(net)).collect()
}

/// Returns the label of a name below the domain of the mesh.
pub(super) fn label(name: &str, domain: &str) -> String {
    let name = name.trim_end_matches('.');
    let below = name.strip_suffix(domain).and_then(|name| name.strip_suffix('.'));
    below.filter(|label| !label.is_empty()).unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_without_the_domain() {
        assert_eq!(label("phone.mesh.internal.", "mesh.internal"), "phone");
        assert_eq!(label("phone.other.", "mesh.internal"), "phone.other");
        assert_eq!(label("phone", ""), "phone");
    }
}
