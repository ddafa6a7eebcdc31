//! Limits of all hosts of a LAN interface: those of the guests of the access point, and the trust class of its segment.
//!
//! They are in the entry of the interface, so they hold from the first packet of a host on, which no one has observed yet.
//! A trust class of a segment is for hosts that have none: those that are no device, and devices without a class of their
//! own or by a group. It adds to the class `standard`, and gives no access that this class refuses. Guests of the access
//! point are limited whatever their class is, because a host may forge the address of a trusted one.

use gateway_common::wire::device_flags;
use gateway_model::kinds::Segment;
use gateway_model::kinds::trust_class::TrustClass;

use super::Input;
use super::devices::{class_flags, restricts_administration};
use crate::facts::Link;

/// Returns the flags of all hosts of an interface, and those of its hosts without a trust class of their own.
pub(super) fn flags_of(input: &Input<'_>, interface: &str, link: &Link) -> (u16, u16) {
    let is_guest = input.network.access_point.iter().any(|net| net.is_guest && net.interface == interface);
    let all = if is_guest { device_flags::NO_LAN | device_flags::NO_ADMIN } else { 0 };
    let class = segment_on(input, interface, link)
        .and_then(|segment| input.state.referred::<TrustClass>(&segment.trust_class));
    let of_class = class.map_or(0, |class| {
        let is_denied = restricts_administration(input) && !class.admin_access;
        class_flags(class) | if is_denied { device_flags::NO_ADMIN } else { 0 }
    });
    (low(all), low(of_class))
}

/// Flags of an interface are among the low bits.
fn low(flags: u32) -> u16 {
    u16::try_from(flags & u32::from(u16::MAX)).unwrap_or_default()
}

/// Returns the segment on an interface: by its name, or by its parent and its VLAN.
pub fn segment_on<'a>(input: &'a Input<'_>, interface: &str, link: &Link) -> Option<&'a Segment> {
    let is_here = |segment: &&Segment| {
        let Some(of) = segment.interface.as_ref().map(|name| name.as_str()) else { return false };
        match (segment.vlan_id, &link.vlan) {
            (None, _) => of == interface,
            (Some(id), Some((parent, vlan))) => of == parent && id == *vlan,
            (Some(_), None) => false,
        }
    };
    input.state.segments.iter().find(is_here)
}
