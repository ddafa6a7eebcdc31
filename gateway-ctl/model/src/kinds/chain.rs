//! Traffic chains: named lists of two to four hops, from entry to exit.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use super::hops::{Hop, HopMode, check_hops, hop_refs};
use super::routing_policy::admit_indirect;
use crate::edit::EditError;
use crate::id_or_name::keep_name;
use crate::problem::{Problems, code};
use crate::references::Ref;
use crate::resource::{Keys, Meta, Resource};
use crate::state::State;
use crate::validated::{check_name, text_enum};

text_enum! {
    /// The worst of its hops.
    #[derive(Default)]
    pub enum ChainStatus {
        Disabled = "disabled",
        Up = "up",
        Degraded = "degraded",
        /// A hop cannot be used.
        Down = "down",
        #[default]
        Unknown = "unknown",
    }
}

/// Traffic chain. Policies and profiles can name it instead of hops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Chain {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    /// Unique; policies name the chain by it, or by its id.
    pub name: String,
    /// Two to four, each reached through the one before.
    pub hops: Vec<Hop>,
    /// A disabled chain leads nowhere: the failure policy of those who name it applies.
    pub enabled: bool,
}

impl Default for Chain {
    fn default() -> Chain {
        Chain { meta: Meta::default(), name: String::new(), hops: Vec::new(), enabled: true }
    }
}

/// Live state of a chain, shown beside the stored fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ChainLive {
    pub status: ChainStatus,
    /// Largest inner packet in bytes: the minimum of the hops. Null while it is not known.
    pub mtu_effective: Option<u16>,
    /// Null: this version does not measure it.
    pub latency_ms: Option<f64>,
}

impl Chain {
    /// Its hops, while it is enabled.
    pub fn way(&self) -> Vec<Hop> {
        if self.enabled { self.hops.clone() } else { Vec::new() }
    }
}

impl Resource for Chain {
    const NOUN: &'static str = "chain";
    const COLLECTION: &'static str = "chains";
    const READ_ONLY: &'static [&'static str] = &["status", "mtu_effective", "latency_ms"];
    const REQUIRED: &'static [&'static str] = &["name", "hops"];

    fn label(&self) -> &str {
        &self.name
    }

    fn alias(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn validate(&self, state: &State, problems: &mut Problems) {
        check_name("name", &self.name, problems);
        if !(2..=4).contains(&self.hops.len()) {
            problems.add(code::RANGE, "hops", "A chain has two to four hops, from entry to exit.");
        }
        check_hops(&self.hops, HopMode::Path, false, state, problems);
    }

    fn admit(&self, before: Option<&Self>, state: &State) -> Result<(), EditError> {
        keep_name(self, before, false, state)
    }

    fn apply_consequences(self, state: &mut State) -> Result<(), EditError> {
        admit_indirect::<Chain>(&self, state)
    }

    fn refs(&self) -> Vec<Ref> {
        hop_refs(&self.hops).collect()
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", self.name.as_str());
    }

    fn shown_schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(ChainLive::json_schema(generator))
    }
}
