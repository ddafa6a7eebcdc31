//! Privacy classes: visibility of a device's traffic, and its failure policy floor.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::routing_policy::FailPolicy;
use crate::edit::EditError;
use crate::id_or_name::{keep_builtin, keep_name};
use crate::problem::{Problems, code};
use crate::resource::{Keys, Meta, Resource};
use crate::state::State;
use crate::validated::{check_free_text, check_name, text_enum};

/// Number of the kind in the ids of built-in objects.
const KIND_NUMBER: u16 = 1;

text_enum! {
    /// Resolver of the devices of the class.
    #[derive(Default)]
    pub enum ClassDnsMode {
        /// The one that the device chooses, unless `force_dns` is set.
        #[default]
        Off = "off",
        /// The gateway: the same as `force_dns`.
        Device = "device",
        /// The gateway only: the same as `force_dns`, `block_doh` and `block_dot`.
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

impl QueryLog {
    /// Returns the one that keeps less.
    #[must_use]
    pub fn stricter(self, other: QueryLog) -> QueryLog {
        match (self, other) {
            (QueryLog::Off, _) | (_, QueryLog::Off) => QueryLog::Off,
            (QueryLog::Anonymous, _) | (_, QueryLog::Anonymous) => QueryLog::Anonymous,
            (QueryLog::Full, QueryLog::Full) => QueryLog::Full,
        }
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
    /// The gateway answers plain DNS queries to other resolvers, and rejects DNS over TLS and QUIC to them.
    pub force_dns: bool,
    /// The gateway answers NTP queries to other servers.
    pub force_ntp: bool,
    pub block_doh: bool,
    pub block_dot: bool,
    pub block_quic: bool,
    pub block_ipv6: bool,
    pub webrtc: WebRtc,
    pub ech: Ech,
    /// Policies fail at least as strictly: those of the class, and all others for devices of the class. `fail-open`
    /// demands nothing.
    pub fail_policy_floor: FailPolicy,
    /// Devices of the class may have exceptions that let them out directly.
    pub allow_exceptions: bool,
    pub query_log: QueryLog,
    /// Names of block lists that apply to devices of the class, although they are not enabled for all.
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
            force_ntp: false,
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

    fn validate(&self, state: &State, problems: &mut Problems) {
        check_name("name", &self.name, problems);
        check_free_text("description", &self.description, 1000, problems);
        if self.telemetry_lists.len() > 64 {
            problems.add(code::RANGE, "telemetry_lists", "At most 64 lists.");
        }
        for (index, list) in self.telemetry_lists.iter().enumerate() {
            let path = format!("telemetry_lists[{index}]");
            check_name(&path, list, problems);
            if !state.dns_blocklist.iter().any(|entry| entry.name.as_deref() == Some(list)) {
                problems.warn(&path, "No block list on the web has this name yet.");
            }
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
            force_ntp: true,
            block_doh: true,
            block_dot: true,
            webrtc: WebRtc::Tunnel,
            fail_policy_floor: FailPolicy::Degraded,
            query_log: QueryLog::Anonymous,
            ..class(3, "strict", "No resolver but the gateway's, and no plain exit when a tunnel fails.")
        },
        PrivacyClass {
            dns_mode: ClassDnsMode::Device,
            force_dns: true,
            force_ntp: true,
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
    fn unknown_telemetry_lists_are_reported() {
        let mut state = State::default().begin(Timestamp::UNIX_EPOCH);
        let list = json!({"name": "tv makers", "url": "https://example.com/tv.txt", "enabled": false});
        kind("dns_block").unwrap().create(&mut state, list).unwrap();
        let class = json!({"name": "mine", "telemetry_lists": ["tv makers", "phones"]});
        let written = kind("privacy_class").unwrap().create(&mut state, class).unwrap();
        let paths: Vec<&str> = written.warnings.iter().map(|warning| warning.path.as_str()).collect();
        assert_eq!(paths, ["telemetry_lists[1]"]);
    }
}
