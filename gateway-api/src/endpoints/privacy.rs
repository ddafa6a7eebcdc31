//! DNS enforcement, blocks of DoH, IPv6 and WebRTC, and leak checks.

pub(super) mod leak_check;
mod leak_monitor;
mod status;
mod switch;

use gateway_model::settings::group::Group as _;
use gateway_model::settings::groups::{PrivacyBlocks, PrivacyMode};

use crate::authorization::Access;
use crate::table::{Audit, Effect, Table};

pub(super) fn rows(t: &mut Table) {
    t.group::<PrivacyMode>("/privacy/dns-mode", "replace_privacy_dns_mode", Access::Operate);
    t.view("/privacy/status", "get_privacy_status", status::show)
        .summary("Show the blocks for all hosts, and how many devices have blocks")
        .doc("Blocks of single devices, groups and classes are not in the switches, but in the coverage and the risk.");
    let stores = |action| Effect::Stores(Audit { action, resource_type: PrivacyBlocks::NOUN });
    t.action("/privacy/force-dns", "switch_force_dns", stores("switch_force_dns"), switch::force_dns)
        .summary("Force DNS queries of hosts to the gateway, or stop it")
        .doc(switch::DOC);
    t.action("/privacy/block-doh", "switch_block_doh", stores("switch_block_doh"), switch::block_doh)
        .summary("Block DNS over HTTPS, TLS and QUIC to other resolvers, or stop it")
        .doc(switch::DOC);
    t.action("/privacy/block-ipv6", "switch_block_ipv6", stores("switch_block_ipv6"), switch::block_ipv6)
        .summary("Block IPv6 to addresses outside the LAN, or stop it")
        .doc(switch::DOC);
    t.action(
        "/privacy/block-webrtc",
        "switch_block_webrtc",
        stores("switch_block_webrtc"),
        switch::block_webrtc,
    )
    .summary("Block STUN and TURN, keep them off the default route, or stop it")
    .doc(switch::DOC);
    t.view("/privacy/leak-monitor", "get_leak_monitor", leak_monitor::show)
        .summary("Count the packets that blocks and the egress guard stopped");
    t.action(
        "/privacy/leak-check",
        "run_leak_check",
        Effect::Acts(Audit { action: "run_leak_check", resource_type: "privacy" }),
        leak_check::run,
    )
    .summary("Send packets as a device would, and check where they leave")
    .doc(leak_check::DOC);
}
