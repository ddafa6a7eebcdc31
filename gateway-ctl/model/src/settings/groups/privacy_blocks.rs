//! Blocks of protocols that reveal names or addresses: for all hosts, for single devices and for groups.
//!
//! Privacy classes block, too. Blocks add up: a device has those of all hosts, its own, those of its class, and those
//! of its groups and of their classes. So a group is a floor that a device cannot go below.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::edit::EditError;
use crate::id::Id;
use crate::kinds::privacy_class::{ClassDnsMode, Ech, PrivacyClass, WebRtc};
use crate::kinds::{Device, DeviceGroup};
use crate::problem::{Problems, code};
use crate::settings::group::Group;
use crate::state::State;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PrivacyBlocks {
    /// For all hosts of the LAN, known or not.
    pub all: HostBlocks,
    /// For single devices, by id.
    pub devices: BTreeMap<Id, HostBlocks>,
    /// For the members of groups, by id of the group.
    pub groups: BTreeMap<Id, HostBlocks>,
}

impl Default for PrivacyBlocks {
    /// Time is the same wherever it comes from, so a query for it need not leave.
    fn default() -> PrivacyBlocks {
        PrivacyBlocks {
            all: HostBlocks { force_ntp: true, ..HostBlocks::default() },
            devices: BTreeMap::new(),
            groups: BTreeMap::new(),
        }
    }
}

/// Blocks for a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HostBlocks {
    /// The gateway answers plain DNS queries to other resolvers, and rejects DNS over TLS and QUIC to them.
    pub force_dns: bool,
    /// The gateway answers NTP queries to other servers (RFC 5905).
    pub force_ntp: bool,
    /// DNS over HTTPS to known public resolvers, by name and by address.
    pub block_doh: bool,
    /// DNS over TLS (RFC 7858) and QUIC (RFC 9250).
    pub block_dot: bool,
    pub block_quic: bool,
    /// IPv6 to addresses outside the LAN, IPv6 in IPv4, and AAAA records.
    pub block_ipv6: bool,
    /// STUN and TURN: not restricted, not by the default route, or not at all.
    pub webrtc: WebRtc,
    /// Keys of Encrypted ClientHello in HTTPS and SVCB records: left there or removed.
    pub ech: Ech,
}

impl HostBlocks {
    /// Returns the blocks of both.
    #[must_use]
    pub fn and(self, other: HostBlocks) -> HostBlocks {
        HostBlocks {
            force_dns: self.force_dns || other.force_dns,
            force_ntp: self.force_ntp || other.force_ntp,
            block_doh: self.block_doh || other.block_doh,
            block_dot: self.block_dot || other.block_dot,
            block_quic: self.block_quic || other.block_quic,
            block_ipv6: self.block_ipv6 || other.block_ipv6,
            webrtc: self.webrtc.stricter(other.webrtc),
            ech: self.ech.stricter(other.ech),
        }
    }

    pub fn is_empty(self) -> bool {
        self == HostBlocks::default()
    }
}

impl From<&PrivacyClass> for HostBlocks {
    /// The blocks as they are set.
    fn from(class: &PrivacyClass) -> HostBlocks {
        HostBlocks {
            force_dns: class.force_dns,
            force_ntp: class.force_ntp,
            block_doh: class.block_doh,
            block_dot: class.block_dot,
            block_quic: class.block_quic,
            block_ipv6: class.block_ipv6,
            webrtc: class.webrtc,
            ech: class.ech,
        }
    }
}

impl PrivacyClass {
    /// Returns the blocks for devices of the class: those that are set, and those that its DNS mode means.
    pub fn blocks(&self) -> HostBlocks {
        let (resolves, only) = match self.dns_mode {
            ClassDnsMode::Off => (false, false),
            ClassDnsMode::Device => (true, false),
            ClassDnsMode::System => (true, true),
        };
        let of_mode =
            HostBlocks { force_dns: resolves, block_doh: only, block_dot: only, ..HostBlocks::default() };
        HostBlocks::from(self).and(of_mode)
    }
}

impl PrivacyBlocks {
    /// Returns the blocks of a device: those of all hosts included.
    pub fn of(&self, device: &Device, state: &State) -> HostBlocks {
        let own = [self.all].into_iter().chain(self.devices.get(&device.meta.id).copied());
        let groups = state.groups_of(device.meta.id);
        let groups = groups.filter_map(|group| self.groups.get(&group.meta.id).copied());
        let classes = state.privacy_classes_of(device).map(|class| class.blocks());
        own.chain(groups).chain(classes).fold(HostBlocks::default(), HostBlocks::and)
    }

    /// Removes the blocks of objects that are gone.
    pub fn prune(&mut self, state: &State) {
        self.devices.retain(|id, blocks| !blocks.is_empty() && state.devices.contains(*id));
        self.groups.retain(|id, blocks| !blocks.is_empty() && state.device_groups.contains(*id));
    }
}

/// Hosts that a change of blocks is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockScope {
    All,
    Device(Id),
    Group(Id),
    Class(Id),
}

impl State {
    /// Returns the blocks that are set for exactly this scope.
    pub fn blocks_at(&self, scope: BlockScope) -> HostBlocks {
        let blocks: PrivacyBlocks = self.group();
        let found = match scope {
            BlockScope::All => Some(blocks.all),
            BlockScope::Device(id) => blocks.devices.get(&id).copied(),
            BlockScope::Group(id) => blocks.groups.get(&id).copied(),
            BlockScope::Class(id) => {
                self.privacy_classes.get(id).map(|class| HostBlocks::from(class.as_ref()))
            }
        };
        found.unwrap_or_default()
    }

    /// Sets the blocks of this scope.
    pub fn set_blocks_at(&mut self, scope: BlockScope, set: HostBlocks) -> Result<(), EditError> {
        let mut blocks: PrivacyBlocks = self.group();
        match scope {
            BlockScope::All => blocks.all = set,
            BlockScope::Device(id) => drop(blocks.devices.insert(id, set)),
            BlockScope::Group(id) => drop(blocks.groups.insert(id, set)),
            BlockScope::Class(id) => {
                let HostBlocks {
                    force_dns,
                    force_ntp,
                    block_doh,
                    block_dot,
                    block_quic,
                    block_ipv6,
                    webrtc,
                    ech,
                } = set;
                let class = self.expect::<PrivacyClass>(id, None)?.as_ref().clone();
                let class = PrivacyClass {
                    force_dns,
                    force_ntp,
                    block_doh,
                    block_dot,
                    block_quic,
                    block_ipv6,
                    webrtc,
                    ech,
                    ..class
                };
                return self.put(class);
            }
        }
        blocks.prune(self);
        self.set_group(&blocks);
        Ok(())
    }
}

impl Group for PrivacyBlocks {
    const KEY: &'static str = "privacy.blocks";
    const NOUN: &'static str = "privacy_blocks";

    fn validate(&self, state: &State, problems: &mut Problems) {
        let before = state.group::<PrivacyBlocks>();
        for id in self.devices.keys().filter(|id| !before.devices.contains_key(id)) {
            if state.find::<Device>(&id.to_string()).is_none() {
                problems.add(code::UNKNOWN_REFERENCE, format!("devices.{id}"), "No such device.");
            }
        }
        for id in self.groups.keys().filter(|id| !before.groups.contains_key(id)) {
            if state.find::<DeviceGroup>(&id.to_string()).is_none() {
                problems.add(code::UNKNOWN_REFERENCE, format!("groups.{id}"), "No such group.");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::registry::kind;

    #[test]
    fn blocks_add_up_and_a_group_is_a_floor() {
        let mut state = State::new(Timestamp::UNIX_EPOCH).begin(Timestamp::UNIX_EPOCH);
        let create =
            |state: &mut _, kind_name: &str, body| kind(kind_name).unwrap().create(state, body).unwrap().id;
        let device = json!({"name": "tv", "mac": "02:00:00:00:00:01", "privacy_class": "open"});
        let device = create(&mut state, "device", device);
        let group = json!({"name": "kids", "members": [device.to_string()], "privacy_class": "strict"});
        let group = create(&mut state, "device_group", group);
        let blocks = PrivacyBlocks {
            all: HostBlocks { block_quic: true, ech: Ech::Strip, ..HostBlocks::default() },
            devices: BTreeMap::from([(device, HostBlocks { block_ipv6: true, ..HostBlocks::default() })]),
            groups: BTreeMap::from([(group, HostBlocks { webrtc: WebRtc::Block, ..HostBlocks::default() })]),
        };
        let device = state.devices.get(device).unwrap().clone();
        let expected = HostBlocks {
            force_dns: true,
            force_ntp: true,
            block_doh: true,
            block_dot: true,
            block_quic: true,
            block_ipv6: true,
            webrtc: WebRtc::Block,
            ech: Ech::Strip,
        };
        assert_eq!(blocks.of(&device, &state), expected);
        let nothing = PrivacyBlocks::default().of(&device, &state);
        assert_eq!((nothing.block_doh, nothing.block_quic, nothing.webrtc), (true, false, WebRtc::Tunnel));
    }

    #[test]
    fn dns_mode_of_a_class_means_blocks_that_are_not_set() {
        let mut state = State::new(Timestamp::UNIX_EPOCH).begin(Timestamp::UNIX_EPOCH);
        let class = kind("privacy_class").unwrap();
        let id = class.create(&mut state, json!({"name": "ours", "dns_mode": "system"})).unwrap().id;
        let shown = |state: &State| {
            let blocks = state.privacy_classes.get(id).unwrap().blocks();
            (blocks.force_dns, blocks.block_doh, blocks.block_dot)
        };
        assert_eq!(shown(&state), (true, true, true));
        assert_eq!(state.blocks_at(BlockScope::Class(id)), HostBlocks::default());
        class
            .replace(&mut state, &id.to_string(), None, json!({"name": "ours", "dns_mode": "device"}))
            .unwrap();
        assert_eq!(shown(&state), (true, false, false));
    }
}
