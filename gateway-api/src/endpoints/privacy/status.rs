//! State of the blocks in numbers.

use std::collections::BTreeSet;

use gateway_core::doh_servers::{self, FeedServers};
use gateway_model::State;
use gateway_model::kinds::privacy_class::WebRtc;
use gateway_model::settings::groups::{DnsMode, HostBlocks, PrivacyBlocks, PrivacyMode};
use ipnet::IpNet;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Cx;
use crate::error::ApiError;
use crate::request::Req;

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PrivacyStatus {
    pub dns_mode: DnsMode,
    /// The gateway answers the DNS queries of all hosts.
    pub force_dns: bool,
    /// The gateway answers the NTP queries of all hosts.
    pub force_ntp: bool,
    pub block_doh: bool,
    pub block_dot: bool,
    pub block_ipv6: bool,
    pub webrtc: WebRtc,
    pub block_quic: bool,
    pub coverage: Coverage,
    pub lists: ResolverLists,
    pub risk: Risk,
}

/// Devices by their blocks.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Coverage {
    pub devices_total: usize,
    /// Devices that can query no resolver but the gateway, as far as blocks can tell.
    pub protected: usize,
    /// Devices without any block but `force_ntp`.
    pub exempt: usize,
}

/// Known public resolvers: the built-in ones, and those of the enabled feeds of the category `doh`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ResolverLists {
    /// Addresses and networks.
    pub doh_ips: usize,
    pub doh_domains: usize,
    /// Time at which the newest feed was downloaded; null without one.
    pub updated: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Risk {
    /// Every host is protected, devices that the gateway does not know included.
    Low,
    /// Every device has blocks.
    Medium,
    High,
}

pub(super) async fn show(cx: Cx, _: Req<()>) -> Result<PrivacyStatus, ApiError> {
    let world = cx.open()?.world();
    Ok(of(&world.state, &world.facts.doh_servers))
}

fn of(state: &State, listed: &FeedServers) -> PrivacyStatus {
    let blocks: PrivacyBlocks = state.group();
    let dns_mode = state.group::<PrivacyMode>().mode;
    let forces_all = dns_mode == DnsMode::System;
    let HostBlocks { force_dns, force_ntp, block_doh, block_dot, block_quic, block_ipv6, webrtc, ech: _ } =
        blocks.all;
    let devices: Vec<HostBlocks> = state.devices.iter().map(|device| blocks.of(device, state)).collect();
    let is_protected = |host: &HostBlocks| {
        let forces = forces_all || (host.force_dns && dns_mode != DnsMode::Off);
        forces && host.block_doh && host.block_dot
    };
    let protected = devices.iter().filter(|host| is_protected(host)).count();
    // Redirected NTP queries alone are hardly protection.
    let has_no_block = |host: &&HostBlocks| HostBlocks { force_ntp: false, ..**host }.is_empty();
    let exempt = if forces_all { 0 } else { devices.iter().filter(has_no_block).count() };
    let risk = match (exempt, protected == devices.len() && is_protected(&blocks.all)) {
        (_, true) => Risk::Low,
        (0, false) if !devices.is_empty() => Risk::Medium,
        _ => Risk::High,
    };
    let networks: BTreeSet<IpNet> = doh_servers::networks().chain(listed.networks.iter().copied()).collect();
    let listed_names = listed.names.iter().map(String::as_str);
    let names: BTreeSet<&str> = doh_servers::NAMES.iter().copied().chain(listed_names).collect();
    PrivacyStatus {
        dns_mode,
        force_dns: forces_all || (force_dns && dns_mode != DnsMode::Off),
        force_ntp,
        block_doh,
        block_dot,
        block_ipv6,
        webrtc,
        block_quic,
        coverage: Coverage { devices_total: devices.len(), protected, exempt },
        lists: ResolverLists { doh_ips: networks.len(), doh_domains: names.len(), updated: listed.updated },
        risk,
    }
}
