//! Clients whose names the gateway resolves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::Problems;
use crate::settings::group::Group;
use crate::state::State;
use crate::validated::text_enum;

text_enum! {
    pub enum DnsMode {
        /// Each client chooses its resolver.
        Off = "off",
        /// Enforced for devices whose privacy class requires it.
        Device = "device",
        /// Enforced for all, the gateway itself included.
        System = "system",
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "PrivacyDnsMode")]
pub struct PrivacyMode {
    pub mode: DnsMode,
}

impl Default for PrivacyMode {
    fn default() -> Self {
        Self { mode: DnsMode::Device }
    }
}

impl Group for PrivacyMode {
    const KEY: &'static str = "privacy.dns_mode";
    const NOUN: &'static str = "privacy_dns_mode";

    fn validate(&self, _: &State, _: &mut Problems) {}
}
