//! The DHCP server of the LAN (RFC 2131).

use std::net::Ipv4Addr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check_range;
use crate::capability::Capability;
use crate::id::IfName;
use crate::problem::{Problems, code};
use crate::settings::group::Group;
use crate::state::State;
use crate::validated::{check_free_text, is_host_name};

/// A further option for clients (RFC 2132).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DhcpOption {
    /// 1 to 254.
    pub code: u8,
    pub value: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DhcpConfig {
    pub enabled: bool,
    pub interface: Option<IfName>,
    pub range_start: Option<Ipv4Addr>,
    pub range_end: Option<Ipv4Addr>,
    pub mask: Ipv4Addr,
    pub gateway: Option<Ipv4Addr>,
    pub dns: Vec<Ipv4Addr>,
    /// 60 to 31 536 000.
    pub lease_sec: u64,
    pub domain: String,
    pub options: Vec<DhcpOption>,
    pub authoritative: bool,
    /// Probe an address before it is offered.
    pub ping_check: bool,
}

impl Default for DhcpConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            interface: None,
            range_start: None,
            range_end: None,
            mask: Ipv4Addr::new(255, 255, 255, 0),
            gateway: None,
            dns: Vec::new(),
            lease_sec: 43_200,
            domain: "lan".to_owned(),
            options: Vec::new(),
            authoritative: true,
            ping_check: true,
        }
    }
}

/// Options that other fields or the protocol itself set.
const OWN_OPTIONS: [u8; 12] = [1, 3, 6, 12, 15, 50, 51, 52, 53, 54, 55, 61];

impl DhcpConfig {
    /// Reports whether an address is in the network of the range. `None` without a network.
    pub fn contains(&self, address: Ipv4Addr) -> Option<bool> {
        let (mask, start) = (u32::from(self.mask), u32::from(self.range_start?));
        Some(u32::from(address) & mask == start & mask)
    }
}

impl Group for DhcpConfig {
    const KEY: &'static str = "dhcp";
    const NOUN: &'static str = "dhcp_config";
    const NEEDS: Option<Capability> = Some(Capability::Dhcp);

    fn validate(&self, _: &State, problems: &mut Problems) {
        if self.enabled {
            for (path, missing) in [
                ("interface", self.interface.is_none()),
                ("range_start", self.range_start.is_none()),
                ("range_end", self.range_end.is_none()),
            ] {
                if missing {
                    problems.required(path);
                }
            }
        }
        let mask = u32::from(self.mask);
        if mask.leading_ones() != mask.count_ones() || !(8..=30).contains(&mask.leading_ones()) {
            problems.add(code::RANGE, "mask", "Expected a network mask from 255.0.0.0 to 255.255.255.252.");
        } else {
            let network = |path: &str, address: Option<Ipv4Addr>, problems: &mut Problems| {
                let Some(address) = address else { return };
                let host = u32::from(address) & !mask;
                if self.contains(address) == Some(false) {
                    problems.add(
                        code::RANGE,
                        path,
                        format!("{address} is not in the network of range_start."),
                    );
                } else if host == 0 || host == !mask {
                    problems.add(
                        code::RANGE,
                        path,
                        format!("{address} is the network or its broadcast address."),
                    );
                }
            };
            network("range_start", self.range_start, problems);
            network("range_end", self.range_end, problems);
            network("gateway", self.gateway, problems);
        }
        if let (Some(start), Some(end)) = (self.range_start, self.range_end)
            && start > end
        {
            problems.add(code::ORDER, "range_end", "The range ends before it begins.");
        }
        check_range("lease_sec", self.lease_sec, 60..=31_536_000, problems);
        if !is_host_name(&self.domain) {
            problems.add(code::FORMAT, "domain", "Expected a domain such as lan or home.arpa.");
        }
        for (index, option) in self.options.iter().enumerate() {
            let path = format!("options[{index}]");
            if !(1..=254).contains(&option.code) {
                problems.add(code::RANGE, format!("{path}.code"), "Must be from 1 to 254.");
            } else if OWN_OPTIONS.contains(&option.code) {
                let message = "This option follows from other fields or belongs to the protocol.";
                problems.add(code::CONFLICT, format!("{path}.code"), message);
            }
            check_free_text(&format!("{path}.value"), &option.value, 255, problems);
        }
    }
}
