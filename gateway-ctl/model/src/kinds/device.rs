//! Devices of the LAN.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::device_group::DeviceGroup;
use super::exception::Exception;
use super::privacy_class::PrivacyClass;
use super::profile::Profile;
use super::trust_class::TrustClass;
use crate::bulk_edit::Names;
use crate::edit::EditError;
use crate::id::{Id, MacAddr};
use crate::id_or_name::{check_reference, reference};
use crate::problem::{Problems, code};
use crate::references::{Hold, Ref};
use crate::resource::{Keys, Meta, Resource};
use crate::state::State;
use crate::validated::{check_free_text, check_name, check_tags, is_host_name, text_enum};

text_enum! {
    /// Admission of a device.
    pub enum DeviceStatus {
        Known = "known",
        /// Observed, without a decision.
        New = "new",
        /// Treated like the trust class `quarantine`, whatever its own class.
        Quarantined = "quarantined",
        /// Nothing of it passes.
        Blocked = "blocked",
    }
}

/// Device, identified by the MAC addresses of its NICs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Device {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    pub name: String,
    pub mac: Option<MacAddr>,
    /// Further addresses of the same device: another card, a randomised address.
    pub macs: Vec<MacAddr>,
    pub hostname: Option<String>,
    /// Name of a trust class. Without one that of its groups counts, without those `standard`.
    pub trust_class: Option<String>,
    /// Id or name of a privacy class.
    pub privacy_class: Option<String>,
    /// Id or name of a route profile for traffic that no policy matches. It takes effect at once, without an apply.
    /// Default: that of the first group that has one, then that of the trust class.
    pub profile: Option<String>,
    pub status: DeviceStatus,
    /// Ids of the groups the device is a member of. Given in input it sets the memberships, left out it leaves them
    /// alone. The groups keep the memberships: see [`State::groups_of`].
    #[serde(skip_serializing)]
    pub groups: Option<Vec<Id>>,
    pub tags: Vec<String>,
    pub notes: String,
}

impl Default for Device {
    fn default() -> Device {
        Device {
            meta: Meta::default(),
            name: String::new(),
            mac: None,
            macs: Vec::new(),
            hostname: None,
            trust_class: None,
            privacy_class: None,
            profile: None,
            status: DeviceStatus::Known,
            groups: None,
            tags: Vec::new(),
            notes: String::new(),
        }
    }
}

/// Observed state of a device, shown beside the stored fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DeviceLive {
    /// IP addresses observed with it.
    pub ips: Vec<IpAddr>,
    /// A host with one of its MAC addresses was observed in the last four minutes; null if hosts are not observed.
    pub online: Option<bool>,
    /// Time of the first observation; null if it was never observed.
    pub first_seen: Option<Timestamp>,
    pub last_seen: Option<Timestamp>,
    /// Vendor by the prefix of its MAC address; null for a random or an unassigned one.
    pub vendor: Option<String>,
}

/// Fields of a shown device that follow from other rows or fields.
#[derive(JsonSchema)]
#[allow(dead_code)]
struct DeviceShown {
    #[serde(flatten)]
    live: DeviceLive,
    /// Ids of the groups the device is a member of.
    groups: Vec<Id>,
    /// The address was made up by software and may change.
    randomized_mac: bool,
}

impl Device {
    /// All addresses of the device, each once.
    pub fn all_macs(&self) -> BTreeSet<MacAddr> {
        self.mac.iter().chain(&self.macs).copied().collect()
    }
}

impl Resource for Device {
    const NOUN: &'static str = "device";
    const COLLECTION: &'static str = "devices";
    const READ_ONLY: &'static [&'static str] =
        &["ips", "vendor", "first_seen", "last_seen", "online", "randomized_mac"];
    const REQUIRED: &'static [&'static str] = &["name"];

    fn label(&self) -> &str {
        &self.name
    }

    fn validate(&self, state: &State, problems: &mut Problems) {
        check_name("name", &self.name, problems);
        if let Some(mac) = self.mac {
            check_mac("mac", mac, problems);
        }
        if self.macs.len() > 32 {
            problems.add(code::RANGE, "macs", "At most 32 addresses.");
        }
        for (index, mac) in self.macs.iter().enumerate() {
            let path = format!("macs[{index}]");
            check_mac(&path, *mac, problems);
            if self.macs[..index].contains(mac) {
                problems.add(code::DUPLICATE, path, format!("{mac} is given twice."));
            }
        }
        if let Some(hostname) = &self.hostname
            && !is_host_name(hostname)
        {
            problems.add(
                code::FORMAT,
                "hostname",
                "Expected a host name: letters, digits and hyphens, parts separated by dots.",
            );
        }
        check_reference::<TrustClass>("trust_class", &self.trust_class, state, problems);
        check_reference::<PrivacyClass>("privacy_class", &self.privacy_class, state, problems);
        check_reference::<Profile>("profile", &self.profile, state, problems);
        for (index, group) in self.groups.iter().flatten().enumerate() {
            if !state.device_groups.contains(*group) {
                problems.add(
                    code::UNKNOWN_REFERENCE,
                    format!("groups[{index}]"),
                    format!("There is no device group {group}."),
                );
            }
        }
        check_tags("tags", &self.tags, problems);
        check_free_text("notes", &self.notes, 4000, problems);
    }

    fn apply_consequences(mut self, state: &mut State) -> Result<(), EditError> {
        let Some(want) = self.groups.take() else { return Ok(()) };
        let id = self.meta.id;
        state.put(self)?;
        let have: Vec<Id> = state.groups_of(id).map(|group| group.meta.id).collect();
        for group in have.iter().filter(|group| !want.contains(group)) {
            state.edit_group(*group, |members| members.retain(|member| *member != id))?;
        }
        for (index, group) in want.iter().enumerate() {
            if !have.contains(group) && !want[..index].contains(group) {
                state.edit_group(*group, |members| members.push(id))?;
            }
        }
        Ok(())
    }

    fn release(&self, state: &mut State) -> Result<(), EditError> {
        let id = self.meta.id;
        let exceptions: Vec<Id> = state.exceptions_of(id).map(|exception| exception.meta.id).collect();
        state.forget::<Exception>(&exceptions);
        let groups: Vec<Id> = state.groups_of(id).map(|group| group.meta.id).collect();
        groups
            .into_iter()
            .try_for_each(|group| state.edit_group(group, |members| members.retain(|member| *member != id)))
    }

    fn refs(&self) -> Vec<Ref> {
        class_refs(&self.trust_class, &self.privacy_class, &self.profile).collect()
    }

    fn keys(&self, keys: &mut Keys) {
        for mac in self.all_macs() {
            let field = if self.mac == Some(mac) {
                "mac".to_owned()
            } else {
                let index = self.macs.iter().position(|have| *have == mac).unwrap_or_default();
                format!("macs[{index}]")
            };
            keys.unique(field, mac.to_string());
        }
    }

    fn resolve(input: &mut Map<String, Value>, names: &Names<'_>) {
        names.resolve_all(DeviceGroup::NOUN, input.get_mut("groups"));
    }

    fn add_derived(&self, state: &State, shown: &mut Map<String, Value>) {
        let groups: Vec<Value> =
            state.groups_of(self.meta.id).map(|group| group.meta.id.to_string().into()).collect();
        shown.insert("groups".into(), groups.into());
        shown.insert("randomized_mac".into(), self.mac.is_some_and(MacAddr::is_local).into());
    }

    fn shown_schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(DeviceShown::json_schema(generator))
    }
}

impl State {
    /// The class that governs a device: `quarantine` by status, else its own, else the one of least trust
    /// among its groups, else `standard`.
    pub fn trust_class_of(&self, device: &Device) -> Option<&Arc<TrustClass>> {
        let own = || self.referred::<TrustClass>(&device.trust_class);
        let of_groups = || {
            let groups = self.groups_of(device.meta.id);
            groups
                .filter_map(|group| self.referred::<TrustClass>(&group.trust_class))
                .min_by_key(|class| class.level)
        };
        match device.status {
            DeviceStatus::Quarantined => self.trust_class_by_name(TrustClass::QUARANTINE),
            DeviceStatus::Known | DeviceStatus::New | DeviceStatus::Blocked => {
                own().or_else(of_groups).or_else(|| self.trust_class_by_name(TrustClass::DEFAULT))
            }
        }
    }

    /// Reports whether a trust class is given to the device, by itself, a group or its status.
    pub fn has_own_class(&self, device: &Device) -> bool {
        let by_group = || self.groups_of(device.meta.id).any(|group| group.trust_class.is_some());
        device.status == DeviceStatus::Quarantined || device.trust_class.is_some() || by_group()
    }

    /// The privacy class of a device: its own, else that of the first group that has one, else that of its
    /// trust class.
    pub fn privacy_class_of(&self, device: &Device) -> Option<&Arc<PrivacyClass>> {
        let of_groups =
            || self.groups_of(device.meta.id).find_map(|group| self.referred(&group.privacy_class));
        let of_class = || self.referred(&self.trust_class_of(device)?.privacy_class);
        self.referred(&device.privacy_class).or_else(of_groups).or_else(of_class)
    }

    /// Returns the profile for traffic that no policy matches: the device's own, else that of the first group that has
    /// one, else that of its trust class.
    pub fn profile_of(&self, device: &Device) -> Option<&Arc<Profile>> {
        let of_groups = || self.groups_of(device.meta.id).find_map(|group| self.referred(&group.profile));
        let of_class = || self.referred(&self.trust_class_of(device)?.default_profile);
        self.referred(&device.profile).or_else(of_groups).or_else(of_class)
    }

    fn edit_group(&mut self, id: Id, edit: impl FnOnce(&mut Vec<Id>)) -> Result<(), EditError> {
        let mut group: DeviceGroup = self.expect::<DeviceGroup>(id, None)?.as_ref().clone();
        edit(&mut group.members);
        self.put(group)
    }
}

/// Returns the references of devices and groups.
pub(super) fn class_refs(
    trust_class: &Option<String>,
    privacy_class: &Option<String>,
    profile: &Option<String>,
) -> impl Iterator<Item = Ref> + use<> {
    let refs = [
        reference::<TrustClass>("trust_class", trust_class, Hold::Firm),
        reference::<PrivacyClass>("privacy_class", privacy_class, Hold::Firm),
        reference::<Profile>("profile", profile, Hold::Firm),
    ];
    refs.into_iter().flatten()
}

fn check_mac(path: &str, mac: MacAddr, problems: &mut Problems) {
    if mac.is_multicast() {
        problems.add(code::RANGE, path, "This is a group address; a device has an individual one.");
    } else if mac.0 == [0; 6] {
        problems.add(code::RANGE, path, "The address of all zeroes belongs to no device.");
    }
}
