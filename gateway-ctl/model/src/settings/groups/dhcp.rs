//! The DHCP server of the LAN (RFC 2131).

mod address_range;
mod option_value;

use std::net::Ipv4Addr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check_range;
use crate::id::IfName;
use crate::problem::{Problems, code};
use crate::settings::group::Group;
use crate::state::State;
use crate::validated::{check_free_text, is_host_name};

pub use address_range::AddressRange;

/// Largest range of addresses.
pub(super) const MAX_RANGE: u32 = 1 << 20;
/// Most exclusions.
const MAX_EXCLUSIONS: usize = 256;

/// A further option for clients (RFC 2132).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DhcpOption {
    /// 1 to 254.
    pub code: u8,
    /// Addresses, numbers, domains (119) and routes (121, each a network and its router) are separated by commas. Bytes
    /// of other options are hexadecimal digits after `0x`.
    pub value: String,
}

impl DhcpOption {
    /// Returns the bytes of the value, or a sentence about the expected text.
    pub fn wire(&self) -> Result<Vec<u8>, &'static str> {
        option_value::wire(self.code, &self.value)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DhcpConfig {
    pub enabled: bool,
    pub interface: Option<IfName>,
    pub range_start: Option<Ipv4Addr>,
    pub range_end: Option<Ipv4Addr>,
    /// Addresses of the range that are not given out, such as 192.168.1.20 or 192.168.1.20-192.168.1.29.
    pub exclusions: Vec<String>,
    pub mask: Ipv4Addr,
    /// Default router of the clients. Without one, the address of the interface.
    pub gateway: Option<Ipv4Addr>,
    /// Resolvers of the clients. Without one, the address of the interface.
    pub dns: Vec<Ipv4Addr>,
    /// 60 to 31 536 000.
    pub lease_sec: u64,
    pub domain: String,
    pub options: Vec<DhcpOption>,
    /// This is the only server of the network: a client with a wrong address is refused at once.
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
            exclusions: Vec::new(),
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
const OWN_OPTIONS: [u8; 18] = [1, 3, 6, 12, 15, 50, 51, 52, 53, 54, 55, 56, 57, 61, 80, 81, 82, 118];
/// Renewal and rebinding time (RFC 2132, sections 9.11 and 9.12).
const RENEWAL: u8 = 58;
const REBINDING: u8 = 59;

impl DhcpConfig {
    /// Reports whether an address is in the network of the range. `None` without a network.
    pub fn contains(&self, address: Ipv4Addr) -> Option<bool> {
        let (mask, start) = (u32::from(self.mask), u32::from(self.range_start?));
        Some(u32::from(address) & mask == start & mask)
    }

    /// Returns the valid exclusions.
    pub fn excluded(&self) -> impl Iterator<Item = AddressRange> {
        self.exclusions.iter().filter_map(|text| text.parse().ok())
    }

    fn check_exclusions(&self, problems: &mut Problems) {
        if self.exclusions.len() > MAX_EXCLUSIONS {
            problems.add(code::RANGE, "exclusions", format!("Expected at most {MAX_EXCLUSIONS} entries."));
        }
        for (index, text) in self.exclusions.iter().enumerate() {
            let path = format!("exclusions[{index}]");
            match text.parse::<AddressRange>() {
                Err(expected) => {
                    problems.add(code::FORMAT, path, expected);
                }
                Ok(range)
                    if self.contains(range.first) == Some(false)
                        || self.contains(range.last) == Some(false) =>
                {
                    problems.add(code::RANGE, path, format!("{range} is not in the network of range_start."));
                }
                Ok(_) => {}
            }
        }
    }

    fn check_options(&self, problems: &mut Problems) {
        for (index, option) in self.options.iter().enumerate() {
            let path = format!("options[{index}]");
            if !(1..=254).contains(&option.code) {
                problems.add(code::RANGE, format!("{path}.code"), "Must be from 1 to 254.");
            } else if OWN_OPTIONS.contains(&option.code) {
                let message = "This option follows from other fields or belongs to the protocol.";
                problems.add(code::CONFLICT, format!("{path}.code"), message);
            } else if self.options[..index].iter().any(|other| other.code == option.code) {
                problems.add(code::DUPLICATE, format!("{path}.code"), "This option is given twice.");
            } else if let Err(expected) = option.wire() {
                problems.add(code::FORMAT, format!("{path}.value"), expected);
            }
            check_free_text(&format!("{path}.value"), &option.value, 255, problems);
        }
        let seconds = |code: u8| {
            let index = self.options.iter().position(|option| option.code == code)?;
            Some((index, self.options[index].value.trim().parse::<u64>().ok()?))
        };
        let (renewal, rebinding) = (seconds(RENEWAL), seconds(REBINDING));
        let limit = rebinding.map_or(self.lease_sec, |(_, seconds)| seconds.min(self.lease_sec));
        for (found, limit) in [(renewal, limit), (rebinding, self.lease_sec)] {
            if let Some((index, seconds)) = found
                && seconds >= limit
            {
                let message = format!(
                    "Must be less than {limit}: renewal, rebinding and end of a lease follow each other."
                );
                problems.add(code::RANGE, format!("options[{index}].value"), message);
            }
        }
    }
}

impl Group for DhcpConfig {
    const KEY: &'static str = "dhcp";
    const NOUN: &'static str = "dhcp_config";

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
        } else if let (Some(start), Some(end)) = (self.range_start, self.range_end)
            && u32::from(end) - u32::from(start) >= MAX_RANGE
        {
            problems.add(code::RANGE, "range_end", format!("The range has more than {MAX_RANGE} addresses."));
        }
        check_range("lease_sec", self.lease_sec, 60..=31_536_000, problems);
        if !is_host_name(&self.domain) {
            problems.add(code::FORMAT, "domain", "Expected a domain such as lan or home.arpa.");
        }
        self.check_exclusions(problems);
        self.check_options(problems);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(config: serde_json::Value) -> Vec<String> {
        let config: DhcpConfig = serde_json::from_value(config).unwrap();
        let mut problems = Problems::new();
        config.validate(&State::default(), &mut problems);
        problems.iter().map(|problem| format!("{} {}", problem.path, problem.code)).collect()
    }

    #[test]
    fn options_and_exclusions_are_checked_one_by_one() {
        let config = json!({
            "range_start": "192.168.1.100", "range_end": "192.168.1.200",
            "exclusions": ["192.168.1.110-192.168.1.120", "192.168.2.1", "x"],
            "options": [
                {"code": 42, "value": "192.168.1.1"}, {"code": 42, "value": "192.168.1.1"},
                {"code": 6, "value": "192.168.1.1"}, {"code": 121, "value": "10.0.0.0/8"},
            ],
        });
        let expected = [
            "exclusions[1] range",
            "exclusions[2] format",
            "options[1].code duplicate",
            "options[2].code conflict",
            "options[3].value format",
        ];
        assert_eq!(problems(config), expected);
    }

    #[test]
    fn times_of_a_lease_follow_each_other() {
        let with = |renewal: &str, rebinding: &str| {
            problems(json!({"lease_sec": 600, "options": [
                {"code": 58, "value": renewal}, {"code": 59, "value": rebinding},
            ]}))
        };
        assert_eq!(with("300", "500"), [""; 0]);
        assert_eq!(with("500", "500"), ["options[0].value range"]);
        assert_eq!(with("300", "600"), ["options[1].value range"]);
    }

    #[test]
    fn a_range_has_a_limit() {
        let range =
            |end: &str| problems(json!({"range_start": "10.0.0.1", "range_end": end, "mask": "255.0.0.0"}));
        assert_eq!(range("10.16.0.0"), [""; 0]);
        assert_eq!(range("10.16.0.1"), ["range_end range"]);
    }
}
