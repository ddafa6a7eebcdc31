//! DNS enforcement, blocking of DoH, IPv6 and WebRTC, and leak checks.

use gateway_model::capability::Capability;
use gateway_model::settings::groups::PrivacyMode;

use crate::authorization::Access;
use crate::table::Method::{Get, Post};
use crate::table::Table;

pub fn rows(t: &mut Table) {
    t.group::<PrivacyMode>("/privacy/dns-mode", "replace_privacy_dns_mode", Access::Operate);
    t.unsupported(
        Capability::PrivacyServices,
        &[
            (Get, "/privacy/status"),
            (Get, "/privacy/leak-monitor"),
            (Post, "/privacy/force-dns"),
            (Post, "/privacy/block-doh"),
            (Post, "/privacy/block-ipv6"),
            (Post, "/privacy/block-webrtc"),
            (Post, "/privacy/leak-check"),
        ],
    );
}
