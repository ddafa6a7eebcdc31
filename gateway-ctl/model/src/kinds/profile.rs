//! Route profiles: hops with a failure policy, for many policies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::chain::Chain;
use super::dns_preset::DnsPreset;
use super::hops::{Hop, HopMode, check_hops, hop_refs};
use super::privacy_class::PrivacyClass;
use super::routing_policy::{FailPolicy, Sticky, admit_indirect};
use crate::capability::Capability;
use crate::edit::EditError;
use crate::id_or_name::{check_reference, keep_name, reference};
use crate::problem::{Problems, code};
use crate::references::{Hold, Ref};
use crate::resource::{Keys, Meta, Resource};
use crate::state::State;
use crate::upstream::Upstream;
use crate::validated::{check_free_text, check_name, text_enum};

text_enum! {
    /// Resolution of names for the traffic of a profile.
    #[derive(Default)]
    pub enum ProfileDnsMode {
        /// As for everything else.
        #[default]
        Inherit = "inherit",
        /// By the name servers in the settings of the tunnel in use. Without any, and if the last hop is a proxy, names
        /// are not resolved.
        Tunnel = "tunnel",
        /// By the upstreams named here. Forwarders of domains still apply.
        Custom = "custom",
    }
}

/// Name resolution of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProfileDns {
    pub mode: ProfileDnsMode,
    /// For the mode custom: addresses or names of plain resolvers, or `https://` URLs.
    pub upstreams: Vec<String>,
    /// For the mode custom: id or name of a preset instead of upstreams.
    pub preset: Option<String>,
}

/// Route profile. A policy that names it uses its hops, and all other fields that the policy itself does not set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Profile {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    /// Unique; policies name the profile by it, or by its id.
    pub name: String,
    pub description: String,
    pub hops: Vec<Hop>,
    /// Id or name of a chain instead of `hops`.
    pub chain: Option<String>,
    /// With several vpn hops: share new connections among them.
    pub splitting: bool,
    pub hop_mode: HopMode,
    pub fail_policy: FailPolicy,
    pub sticky: Sticky,
    pub dns: ProfileDns,
    /// Id or name of a privacy class.
    pub privacy_class: Option<String>,
    /// Bytes of a packet.
    pub mtu: Option<u16>,
}

impl Default for Profile {
    fn default() -> Profile {
        Profile {
            meta: Meta::default(),
            name: String::new(),
            description: String::new(),
            hops: Vec::new(),
            chain: None,
            splitting: false,
            hop_mode: HopMode::Path,
            fail_policy: FailPolicy::Closed,
            sticky: Sticky::Flow,
            dns: ProfileDns::default(),
            privacy_class: None,
            mtu: None,
        }
    }
}

impl Resource for Profile {
    const NOUN: &'static str = "profile";
    const COLLECTION: &'static str = "profiles";
    const REQUIRED: &'static [&'static str] = &["name"];

    fn label(&self) -> &str {
        &self.name
    }

    fn alias(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn validate(&self, state: &State, problems: &mut Problems) {
        check_name("name", &self.name, problems);
        check_free_text("description", &self.description, 1000, problems);
        check_hops(&self.hops, self.hop_mode, self.splitting, state, problems);
        if self.splitting && self.hop_mode == HopMode::Failover {
            problems.add(
                code::CONFLICT,
                "hop_mode",
                "Splitting shares traffic among the hops, failover takes one: choose one of them.",
            );
        }
        if self.chain.is_some() && !self.hops.is_empty() {
            problems.add(code::CONFLICT, "chain", "A chain stands in place of hops: give one of them.");
        }
        check_reference::<Chain>("chain", &self.chain, state, problems);
        check_reference::<PrivacyClass>("privacy_class", &self.privacy_class, state, problems);
        if self.mtu.is_some_and(|mtu| !(576..=9000).contains(&mtu)) {
            problems.add(code::RANGE, "mtu", "Must be from 576 to 9000; IPv6 needs at least 1280.");
        }
        if self.mtu.is_some() {
            problems.lacks("mtu", Capability::ProfileMtu);
        }
        self.dns.validate(state, problems);
    }

    fn admit(&self, before: Option<&Self>, state: &State) -> Result<(), EditError> {
        keep_name(self, before, false, state)
    }

    fn apply_consequences(self, state: &mut State) -> Result<(), EditError> {
        admit_indirect::<Profile>(&self, state)
    }

    fn refs(&self) -> Vec<Ref> {
        let class = reference::<PrivacyClass>("privacy_class", &self.privacy_class, Hold::Firm);
        let chain = reference::<Chain>("chain", &self.chain, Hold::Firm);
        let preset = reference::<DnsPreset>("dns.preset", &self.dns.preset, Hold::Firm);
        hop_refs(&self.hops).chain(class).chain(chain).chain(preset).collect()
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", self.name.as_str());
    }
}

impl ProfileDns {
    fn validate(&self, state: &State, problems: &mut Problems) {
        check_reference::<DnsPreset>("dns.preset", &self.preset, state, problems);
        if self.preset.is_some() && !self.upstreams.is_empty() {
            problems.add(
                code::CONFLICT,
                "dns.preset",
                "A preset stands in place of upstreams: give one of them.",
            );
        }
        if self.upstreams.len() > 16 {
            problems.add(code::RANGE, "dns.upstreams", "At most 16 resolvers.");
        }
        for (index, upstream) in self.upstreams.iter().enumerate() {
            if upstream.parse::<Upstream>().is_err() {
                let message =
                    "Expected an address or a name, with a port or without, or an https:// address.";
                problems.add(code::FORMAT, format!("dns.upstreams[{index}]"), message);
            }
        }
        let custom = self.mode == ProfileDnsMode::Custom;
        if custom && self.upstreams.is_empty() && self.preset.is_none() {
            let message = "The mode custom needs at least one resolver, or a preset.";
            problems.add(code::REQUIRED, "dns.upstreams", message);
        }
        if !custom && (!self.upstreams.is_empty() || self.preset.is_some()) {
            problems.warn("dns", "Not used: resolvers named here are asked in the mode custom only.");
        }
    }
}
