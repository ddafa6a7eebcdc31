//! Input of a capture, and the order that follows from it.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gateway_core::facts::{Link, LinkLayer};
use gateway_dissect::LinkType;
use gateway_model::problem::{Problems, code};
use schemars::JsonSchema;
use serde::Deserialize;

use super::presets::CapturePresetName;
use crate::os::capture::{CaptureOrder, OrderedInterface};
use crate::world::World;

const MAX_FILTER_CHARACTERS: usize = 4096;
const MAX_PACKETS: u64 = 50_000;
const MAX_SECONDS: u64 = 3600;
const MAX_SNAPLEN: u32 = 262_144;
/// The shortest snap length shows the addresses of an IPv6 packet.
const MIN_SNAPLEN: u32 = 64;
/// Maximum number of interfaces of a capture.
const MAX_INTERFACES: usize = 64;
/// All interfaces of LANs.
const LAN: &str = "lan";
/// All interfaces except loopback.
const ANY: &str = "any";

/// Order of a capture.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CaptureRequest {
    /// Name of an interface; `lan`: those of all LANs; `any`: all except loopback.
    #[schemars(length(min = 1, max = 15))]
    pub interface: String,
    /// Filter expression of pcap-filter(7), as tcpdump takes it, without names of hosts.
    #[schemars(length(max = 4096))]
    pub filter: String,
    /// Named filter. With `filter`, packets have to match both.
    pub preset: Option<CapturePresetName>,
    /// Number of packets after which the capture ends.
    #[schemars(range(min = 1, max = 50_000))]
    pub count: u64,
    /// Seconds after which the capture ends.
    #[schemars(range(min = 1, max = 3600))]
    pub duration_sec: u64,
    /// Maximum number of bytes that are kept of a packet. 96 keeps the headers.
    #[schemars(range(min = 64, max = 262_144))]
    pub snaplen: u32,
    /// Captures frames for other hosts as well.
    pub promiscuous: bool,
}

impl Default for CaptureRequest {
    fn default() -> Self {
        Self {
            interface: String::new(),
            filter: String::new(),
            preset: None,
            count: MAX_PACKETS,
            duration_sec: MAX_SECONDS,
            snaplen: MAX_SNAPLEN,
            promiscuous: false,
        }
    }
}

impl CaptureRequest {
    /// Returns the order of the child. Fails with all faults of the fields.
    pub fn order(&self, world: &World) -> Result<CaptureOrder, Problems> {
        let mut problems = Problems::new();
        let interfaces = self.interfaces(world, &mut problems);
        if self.filter.chars().count() > MAX_FILTER_CHARACTERS {
            problems.add(
                code::RANGE,
                "filter",
                format!("A filter has at most {MAX_FILTER_CHARACTERS} characters."),
            );
        }
        if !(1..=MAX_PACKETS).contains(&self.count) {
            problems.add(
                code::RANGE,
                "count",
                format!("The number of packets must be from 1 to {MAX_PACKETS}."),
            );
        }
        if !(1..=MAX_SECONDS).contains(&self.duration_sec) {
            problems.add(
                code::RANGE,
                "duration_sec",
                format!("The duration must be from 1 to {MAX_SECONDS} seconds."),
            );
        }
        if !(MIN_SNAPLEN..=MAX_SNAPLEN).contains(&self.snaplen) {
            let message = format!("The snap length must be from {MIN_SNAPLEN} to {MAX_SNAPLEN} bytes.");
            problems.add(code::RANGE, "snaplen", message);
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let port = world.config.listen.api_addr.port();
        let loopback = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
        let own = own_addresses(world);
        Ok(CaptureOrder {
            interfaces,
            filter: self.filter_in_force(&own),
            max_packets: self.count,
            max_seconds: self.duration_sec,
            snaplen: self.snaplen,
            promiscuous: self.promiscuous,
            left_out: own.into_iter().chain(loopback).map(|address| (address, port)).collect(),
        })
    }

    fn filter_in_force(&self, own: &[IpAddr]) -> String {
        let filter = self.filter.trim();
        match self.preset.map(|preset| preset.filter(own)) {
            Some(preset) if filter.is_empty() => preset,
            Some(preset) => format!("({preset}) and ({filter})"),
            None => filter.to_owned(),
        }
    }

    fn interfaces(&self, world: &World, problems: &mut Problems) -> Vec<OrderedInterface> {
        let links = &world.facts.links;
        let names: Vec<&String> = match &self.interface[..] {
            "" => {
                problems.required("interface");
                return Vec::new();
            }
            ANY => links
                .iter()
                .filter(|(_, link)| link.link_layer != LinkLayer::Loopback)
                .map(|(name, _)| name)
                .collect(),
            LAN => world.network.lan.iter().collect(),
            _ => vec![&self.interface],
        };
        let found: Vec<_> = names
            .iter()
            .filter_map(|name| links.get(*name).map(|link| ordered(name, link)))
            .take(MAX_INTERFACES)
            .collect();
        if found.is_empty() {
            let message = format!("There is no interface {:?}.", self.interface);
            problems.add(code::UNKNOWN_REFERENCE, "interface", message);
        }
        found
    }
}

/// Returns the addresses of the gateway.
pub fn own_addresses(world: &World) -> Vec<IpAddr> {
    let own: BTreeSet<IpAddr> = world.facts.addresses.values().flatten().map(ipnet::IpNet::addr).collect();
    own.into_iter().collect()
}

fn ordered(name: &str, link: &Link) -> OrderedInterface {
    OrderedInterface {
        name: name.to_owned(),
        index: link.index,
        link: if link.link_layer == LinkLayer::Other { LinkType::Raw } else { LinkType::Ethernet },
        loopback: link.link_layer == LinkLayer::Loopback,
    }
}
