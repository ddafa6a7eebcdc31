//! Privacy classes: visibility of a device's traffic, and its failure policy floor.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::routing_policy::FailPolicy;
use crate::capability::Capability;
use crate::edit::EditError;
use crate::id_or_name::{keep_builtin, keep_name};
use crate::problem::{Problems, code};
use crate::resource::{Keys, Meta, Resource};
use crate::state::State;
use crate::validated::{check_free_text, check_name, text_enum};

/// Number of the kind in the ids of built-in objects.
const KIND_NUMBER: u16 = 1;

text_enum! {
    /// Selection of the resolver for devices of the class.
    #[derive(Default)]
    pub enum ClassDnsMode {
        /// The device itself.
        #[default]
        Off = "off",
        /// The gateway, for devices of the class.
        Device = "device",
        /// The gateway, for everything and itself.
        System = "system",
    }
}

text_enum! {
    #[derive(Default)]
    pub enum WebRtc {
        #[default]
        Off = "off",
        /// STUN goes where the policy of the device sends it.
        Tunnel = "tunnel",
        Block = "block",
    }
}

impl WebRtc {
    /// Returns the stricter of two.
    #[must_use]
    pub fn stricter(self, other: WebRtc) -> WebRtc {
        match (self, other) {
            (WebRtc::Block, _) | (_, WebRtc::Block) => WebRtc::Block,
            (WebRtc::Tunnel, _) | (_, WebRtc::Tunnel) => WebRtc::Tunnel,
            (WebRtc::Off, WebRtc::Off) => WebRtc::Off,
        }
    }
}

text_enum! {
    /// Keys of Encrypted ClientHello (RFC 9848) in HTTPS and SVCB records.
    #[derive(Default)]
    pub enum Ech {
        #[default]
        Allow = "allow",
        Strip = "strip",
    }
}

impl Ech {
    #[must_use]
    pub fn stricter(self, other: Ech) -> Ech {
        if self == Ech::Strip { self } else { other }
    }
}

text_enum! {
    /// Fields of the query log that are kept for a device.
    #[derive(Default)]
    pub enum QueryLog {
        #[default]
        Full = "full",
        Anonymous = "anonymous",
        Off = "off",
    }
}

/// A privacy class. Policies, profiles, devices, groups and trust classes name it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PrivacyClass {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    pub name: String,
    pub description: String,
    pub dns_mode: ClassDnsMode,
    pub force_dns: bool,
    pub block_doh: bool,
    pub block_dot: bool,
    pub block_quic: bool,
    pub block_ipv6: bool,
    pub webrtc: WebRtc,
    pub ech: Ech,
    /// Policies of the class fail at least as strictly; `fail-open` demands nothing.
    pub fail_policy_floor: FailPolicy,
    /// Devices of the class may have exceptions that let them out directly.
    pub allow_exceptions: bool,
    pub query_log: QueryLog,
    /// Names of block lists against telemetry.
    pub telemetry_lists: Vec<String>,
    /// Came with the service: cannot be deleted or renamed.
    #[schemars(extend("readOnly" = true))]
    pub builtin: bool,
}

impl Default for PrivacyClass {
    fn default() -> PrivacyClass {
        PrivacyClass {
            meta: Meta::default(),
            name: String::new(),
            description: String::new(),
            dns_mode: ClassDnsMode::Off,
            force_dns: false,
            block_doh: false,
            block_dot: false,
            block_quic: false,
            block_ipv6: false,
            webrtc: WebRtc::Off,
            ech: Ech::Allow,
            fail_policy_floor: FailPolicy::Open,
            allow_exceptions: true,
            query_log: QueryLog::Full,
            telemetry_lists: Vec::new(),
            builtin: false,
        }
    }
}

impl PrivacyClass {
    /// Returns the fields that this version stores without effect, as far as they are set.
    fn not_enforced(&self) -> impl Iterator<Item = &'static str> {
        [
            ("dns_mode", self.dns_mode != ClassDnsMode::Off),
            ("telemetry_lists", !self.telemetry_lists.is_empty()),
        ]
        .into_iter()
        .filter_map(|(field, asks)| asks.then_some(field))
    }
}

impl Resource for PrivacyClass {
    const NOUN: &'static str = "privacy_class";
    const COLLECTION: &'static str = "privacy_classes";
    const READ_ONLY: &'static [&'static str] = &["builtin"];
    const REQUIRED: &'static [&'static str] = &["name"];

    fn label(&self) -> &str {
        &self.name
    }

    fn builtin(now: Timestamp) -> Vec<PrivacyClass> {
        builtin(now)
    }

    fn alias(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn validate(&self, _state: &State, problems: &mut Problems) {
        check_name("name", &self.name, problems);
        check_free_text("description", &self.description, 1000, problems);
        if self.telemetry_lists.len() > 64 {
            problems.add(code::RANGE, "telemetry_lists", "At most 64 lists.");
        }
        for (index, list) in self.telemetry_lists.iter().enumerate() {
            check_name(&format!("telemetry_lists[{index}]"), list, problems);
        }
        for field in self.not_enforced() {
            problems.lacks(field, Capability::PrivacyServices);
        }
    }

    fn admit(&self, before: Option<&Self>, state: &State) -> Result<(), EditError> {
        keep_name(self, before, before.is_some_and(|before| before.builtin), state)
    }

    fn admit_delete(&self, _state: &State) -> Result<(), EditError> {
        keep_builtin(self, self.builtin)
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", self.name.as_str());
    }

    fn carry_over(input: &mut Map<String, Value>, before: &Self) {
        input.insert("builtin".into(), before.builtin.into());
    }
}

/// The classes every installation has.
fn builtin(now: Timestamp) -> Vec<PrivacyClass> {
    let class = |slot: u32, name: &str, description: &str| PrivacyClass {
        meta: Meta::builtin(KIND_NUMBER, slot, now),
        name: name.to_owned(),
        description: description.to_owned(),
        builtin: true,
        ..PrivacyClass::default()
    };
    vec![
        class(1, "open", "Nothing is enforced."),
        PrivacyClass {
            dns_mode: ClassDnsMode::Device,
            force_dns: true,
            ..class(2, "standard", "Names are resolved by the gateway.")
        },
        PrivacyClass {
            dns_mode: ClassDnsMode::Device,
            force_dns: true,
            block_doh: true,
            block_dot: true,
            webrtc: WebRtc::Tunnel,
            fail_policy_floor: FailPolicy::Degraded,
            query_log: QueryLog::Anonymous,
            ..class(3, "strict", "No resolver but the gateway's, and no plain way out when a tunnel fails.")
        },
        PrivacyClass {
            dns_mode: ClassDnsMode::Device,
            force_dns: true,
            block_doh: true,
            block_dot: true,
            block_quic: true,
            block_ipv6: true,
            webrtc: WebRtc::Block,
            fail_policy_floor: FailPolicy::Closed,
            allow_exceptions: false,
            query_log: QueryLog::Off,
            ..class(4, "isolated", "Blocked rather than exposed, without exceptions.")
        },
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry::kind;

    #[test]
    fn the_built_in_classes_are_there_from_lax_to_strict() {
        let state = State::new(Timestamp::UNIX_EPOCH);
        let floors: Vec<(&str, FailPolicy)> = state
            .privacy_classes
            .iter()
            .map(|class| (class.name.as_str(), class.fail_policy_floor))
            .collect();
        assert_eq!(
            floors,
            [
                ("open", FailPolicy::Open),
                ("standard", FailPolicy::Open),
                ("strict", FailPolicy::Degraded),
                ("isolated", FailPolicy::Closed)
            ]
        );
        let mut draft = state.begin(Timestamp::UNIX_EPOCH);
        let id = draft.find::<PrivacyClass>("strict").unwrap().meta.id.to_string();
        let kind = kind("privacy-class").unwrap();
        assert!(matches!(kind.delete(&mut draft, &id, None, true), Err(EditError::Protected { .. })));
        let renamed = kind.replace(&mut draft, &id, None, json!({"name": "lax"}));
        assert!(matches!(renamed, Err(EditError::Protected { .. })));
    }

    #[test]
    fn unenforced_settings_are_reported() {
        let mut state = State::default().begin(Timestamp::UNIX_EPOCH);
        let class = json!({"name": "mine", "block_doh": true, "ech": "strip", "dns_mode": "system"});
        let written = kind("privacy_class").unwrap().create(&mut state, class).unwrap();
        let paths: Vec<&str> = written.warnings.iter().map(|warning| warning.path.as_str()).collect();
        assert_eq!(paths, ["dns_mode"]);
    }
}
