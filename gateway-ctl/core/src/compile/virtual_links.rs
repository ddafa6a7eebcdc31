//! VLAN interfaces that the gateway makes: those of the configuration, and those of segments.
//!
//! They are made down, and the run that makes one attaches its program. The next run knows the interface and sets it up, so
//! that no packet of it passes without a program.

use super::{Finding, Input};
use crate::plan::{LinkSettings, Plan, VirtualLink};
use crate::segment_links::{SegmentLinkState, state_of};

/// Adds the VLAN interfaces of segments.
pub(super) fn add_segments(input: &Input<'_>, plan: &mut Plan, findings: &mut Vec<Finding>) {
    for (name, link) in &input.network.segment_links {
        if plan.virtual_links.contains_key(name) {
            continue;
        }
        match state_of(input.facts, name, link) {
            SegmentLinkState::Made => {
                let link = VirtualLink::Vlan { parent: link.parent.clone(), id: link.id };
                plan.virtual_links.insert(name.clone(), link);
            }
            SegmentLinkState::OfHost(_) => {}
            SegmentLinkState::NoParent => findings.push(Finding {
                code: "segment_without_parent",
                policy: None,
                message: format!(
                    "the segment of VLAN {} has no interface: there is no Ethernet interface {}",
                    link.id, link.parent
                ),
            }),
        }
    }
}

/// Sets VLAN interfaces up that have no settings of their own.
pub(super) fn set_up(input: &Input<'_>, plan: &mut Plan) {
    let vlans = plan.virtual_links.iter().filter(|(_, link)| matches!(link, VirtualLink::Vlan { .. }));
    for (name, _) in vlans {
        if let Some(link) = input.facts.links.get(name) {
            plan.links.entry(name.clone()).or_insert(LinkSettings { up: true, mtu: link.mtu });
        }
    }
}
