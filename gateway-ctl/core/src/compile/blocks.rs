//! Blocks of privacy classes and switches, as flags of hosts.
//!
//! Queries to other resolvers and time servers are marked at ingress, and nftables redirects what has the mark. A
//! redirect of the port alone would come too late: a policy that rejects or drops has decided before. No rule routes
//! the mark, so without the nftables table such a query goes nowhere.

use gateway_common::wire::{ServerNames, block_flags, device_flags, plan_flags};
use gateway_model::kinds::privacy_class::WebRtc;
use gateway_model::settings::groups::{DnsMode, HostBlocks, PrivacyMode};

use super::Input;
use crate::doh_servers;
use crate::plan::Dataplane;

/// Returns the flags of a host. Whether the gateway answers for other resolvers is up to the DNS mode.
pub(super) fn flags(input: &Input<'_>, blocks: HostBlocks, mode: DnsMode) -> u32 {
    let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
    let forces = blocks.force_dns && mode != DnsMode::Off && input.network.dns_port != 0;
    flag(forces, device_flags::FORCED_DNS)
        | flag(blocks.force_ntp, device_flags::FORCED_NTP)
        | flag(blocks.block_doh, block_flags::DOH)
        | flag(blocks.block_dot, block_flags::DOT)
        | flag(blocks.block_quic, block_flags::QUIC)
        | flag(blocks.block_ipv6, block_flags::IPV6)
        | match blocks.webrtc {
            WebRtc::Off => 0,
            WebRtc::Tunnel => block_flags::STUN_DIRECT,
            WebRtc::Block => block_flags::STUN,
        }
}

/// Reports whether the resolver here answers in place of all others: for every host of the LAN, and for this host.
pub(super) fn forces_dns_of_all(input: &Input<'_>) -> bool {
    input.state.group::<PrivacyMode>().mode == DnsMode::System && input.network.dns_port != 0
}

/// Adds the addresses and the names of public resolvers if anything of the plan blocks them.
pub(super) fn lower(input: &Input<'_>, dataplane: &mut Dataplane) {
    let devices = dataplane.devices_by_mac.values().map(|device| device.flags);
    let flags = devices.fold(dataplane.header.flags, |all, flags| all | flags);
    if flags & block_flags::DOH != 0 {
        dataplane.header.flags |= plan_flags::SERVER_NAMES;
        let listed = &input.facts.doh_servers;
        let networks = doh_servers::networks().chain(listed.networks.iter().copied());
        dataplane.doh_servers = networks.map(|network| (network, 1)).collect();
        let names = doh_servers::NAMES.iter().copied().chain(listed.names.iter().map(String::as_str));
        let key = |name: &str| Some((ServerNames::key(name)?, name.to_owned()));
        dataplane.doh_names = names.filter_map(key).collect();
    }
}
