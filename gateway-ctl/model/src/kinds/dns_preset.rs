//! Presets: public resolvers with their settings.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::DomainName;
use crate::edit::EditError;
use crate::id_or_name::{keep_builtin, keep_name};
use crate::problem::{Problems, code};
use crate::resource::{Keys, Meta, Resource};
use crate::state::State;
use crate::upstream::{DnsProtocol, check_upstreams, normalise_upstreams};
use crate::validated::{check_free_text, check_name, text_enum};

mod builtin;

text_enum! {
    /// Protocol for queries to the resolvers of a preset.
    #[derive(Default)]
    pub enum PresetMode {
        #[default]
        Plain = "plain",
        /// DNS over TLS.
        Dot = "dot",
        /// DNS over HTTPS.
        Doh = "doh",
    }
}

impl PresetMode {
    pub const fn protocol(self) -> DnsProtocol {
        match self {
            PresetMode::Plain => DnsProtocol::Udp,
            PresetMode::Dot => DnsProtocol::Tls,
            PresetMode::Doh => DnsProtocol::Https,
        }
    }
}

text_enum! {
    /// Names that the resolvers of a preset block.
    #[derive(Default)]
    pub enum Filtering {
        #[default]
        None = "none",
        Malware = "malware",
        /// Malware, advertisements and trackers.
        Ads = "ads",
        /// Also adult content.
        Family = "family",
    }
}

/// Preset: forwarders and profiles can name it instead of upstreams.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DnsPreset {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    pub name: String,
    /// Operator of the resolvers.
    pub provider: String,
    pub upstreams: Vec<String>,
    pub mode: PresetMode,
    /// Name on the certificates of resolvers that are given by address.
    pub tls_name: Option<DomainName>,
    pub filtering: Filtering,
    /// The provider's statement about its logs.
    pub privacy_note: String,
    /// Built in: cannot be changed or deleted. Create another preset for other values.
    #[schemars(extend("readOnly" = true))]
    pub builtin: bool,
}

impl Resource for DnsPreset {
    const NOUN: &'static str = "dns_preset";
    const COLLECTION: &'static str = "dns_presets";
    const READ_ONLY: &'static [&'static str] = &["builtin"];
    const REQUIRED: &'static [&'static str] = &["name", "upstreams"];

    fn label(&self) -> &str {
        &self.name
    }

    fn builtin(now: Timestamp) -> Vec<DnsPreset> {
        builtin::presets(now)
    }

    fn alias(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn prepare(&mut self) {
        normalise_upstreams(&mut self.upstreams);
    }

    fn validate(&self, _state: &State, problems: &mut Problems) {
        check_name("name", &self.name, problems);
        check_free_text("provider", &self.provider, 100, problems);
        check_free_text("privacy_note", &self.privacy_note, 1000, problems);
        if self.upstreams.is_empty() {
            problems.required("upstreams");
        }
        check_upstreams("upstreams", &self.upstreams, self.mode.protocol(), &self.tls_name, problems);
        if self.tls_name.is_some() && self.mode == PresetMode::Plain {
            problems.add(code::CONFLICT, "tls_name", "The mode plain has no certificates.");
        }
    }

    fn admit(&self, before: Option<&Self>, state: &State) -> Result<(), EditError> {
        keep_name(self, before, self.builtin, state)?;
        match before {
            Some(before) if before.builtin && self != before => Err(EditError::Protected {
                resource_type: Self::NOUN,
                id: before.meta.id,
                message: format!("The built-in preset {} cannot be changed; make another one.", before.name),
            }),
            _ => Ok(()),
        }
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
