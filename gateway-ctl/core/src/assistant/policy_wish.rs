//! Policy that a model makes of a request in words, as a flat object that small models can fill in.

use gateway_model::kinds::policy_source::SourceType;
use gateway_model::kinds::routing_policy::{FailPolicy, HopType};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::server_error::ReplyFormError;

/// Maximum number of names in the schema.
const MAX_NAMES: usize = 100;
/// Word for a policy without a hop.
const NO_HOP: &str = "none";
/// Maximum length of an explanation, in characters.
const MAX_EXPLANATION: usize = 2000;

/// Names of objects that a policy may refer to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyNames {
    pub devices: Vec<String>,
    pub device_groups: Vec<String>,
    pub interfaces: Vec<String>,
    pub tunnels: Vec<String>,
    pub proxies: Vec<String>,
    pub uplinks: Vec<String>,
}

/// Policy in the words of a model.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PolicyWish {
    pub explanation: String,
    pub name: String,
    pub source_type: SourceType,
    pub source_value: String,
    /// Type of the hop, or `none`.
    pub hop_type: String,
    pub hop_target: String,
    pub fail_policy: FailPolicy,
}

/// Returns the schema of a policy. Targets are those that exist.
pub fn schema(names: &PolicyNames) -> Value {
    let sources: Vec<&str> = SourceType::ALL.iter().map(|source| source.as_str()).collect();
    let hops: Vec<&str> = [HopType::Vpn, HopType::Interface, HopType::Proxy]
        .iter()
        .map(|hop| hop.as_str())
        .chain([NO_HOP])
        .collect();
    let targets: Vec<&str> = [&names.tunnels, &names.uplinks, &names.proxies]
        .into_iter()
        .flatten()
        .take(MAX_NAMES)
        .map(String::as_str)
        .chain([""])
        .collect();
    let fail: Vec<&str> = FailPolicy::ALL.iter().map(|fail| fail.as_str()).collect();
    json!({
        "type": "object",
        "properties": {
            "explanation": {"type": "string"},
            "name": {"type": "string"},
            "source_type": {"type": "string", "enum": sources},
            "source_value": {"type": "string"},
            "hop_type": {"type": "string", "enum": hops},
            "hop_target": {"type": "string", "enum": targets},
            "fail_policy": {"type": "string", "enum": fail},
        },
        "required": ["explanation", "name", "source_type", "source_value", "hop_type", "hop_target", "fail_policy"],
    })
}

/// Reads the answer of a model.
pub fn read(text: &str) -> Result<PolicyWish, ReplyFormError> {
    let mut wish: PolicyWish = serde_json::from_str(text.trim())?;
    wish.explanation = wish.explanation.chars().take(MAX_EXPLANATION).collect();
    Ok(wish)
}

impl PolicyWish {
    /// Returns the body of the policy for the API. `priority` is before all others.
    pub fn body(&self, priority: i64) -> Map<String, Value> {
        let hops = match self.hop_type.as_str() {
            NO_HOP => json!([]),
            hop => json!([{"type": hop, "target": self.hop_target}]),
        };
        let value = if self.source_type == SourceType::All { "" } else { self.source_value.as_str() };
        let body = json!({
            "name": self.name,
            "priority": priority,
            "source_type": self.source_type,
            "source_value": value,
            "hops": hops,
            "fail_policy": self.fail_policy,
        });
        match body {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }
}
