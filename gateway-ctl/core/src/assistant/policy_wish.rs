//! Policy that a model makes of a request in words, as a flat object that small models can fill in.

use gateway_model::kinds::policy_source::SourceType;
use gateway_model::kinds::routing_policy::{FailPolicy, HopType};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::server_error::ReplyFormError;

/// Maximum number of names in the schema.
const MAX_NAMES: usize = 100;
/// Word for a policy without a hop.
const NO_HOP: &str = "none";
/// Maximum lengths in characters. Without them a small model writes until its answer is cut off, and is no JSON.
const MAX_EXPLANATION: usize = 400;
const MAX_NAME: usize = 60;
const MAX_VALUE: usize = 253;

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

/// Policy in the words of a model. Small models write the fields in this order, so those that matter come first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyWish {
    pub source_type: SourceType,
    pub source_value: String,
    /// Type of the hop, or `none`.
    pub hop_type: String,
    pub hop_target: String,
    pub fail_policy: FailPolicy,
    pub name: String,
    pub explanation: String,
}

/// Returns requests with the policies for them, of names that no gateway has.
pub(super) fn examples() -> Vec<(&'static str, PolicyWish)> {
    let wish =
        |source_type, source_value: &str, hop: Option<&str>, fail_policy, name: &str, explanation: &str| {
            PolicyWish {
                source_type,
                source_value: source_value.to_owned(),
                hop_type: hop.map_or(NO_HOP, |_| HopType::Vpn.as_str()).to_owned(),
                hop_target: hop.unwrap_or_default().to_owned(),
                fail_policy,
                name: name.to_owned(),
                explanation: explanation.to_owned(),
            }
        };
    let (device, group, closed) = (SourceType::Device, SourceType::DeviceGroup, FailPolicy::Closed);
    vec![
        ("Block desk", wish(device, "desk", None, closed, "block desk", "Blocks all traffic of desk.")),
        (
            "Send 192.0.2.0/24 through exit-1",
            wish(
                SourceType::Subnet,
                "192.0.2.0/24",
                Some("exit-1"),
                closed,
                "192.0.2.0/24 by exit-1",
                "Sends the subnet through exit-1, and blocks it while the tunnel is down.",
            ),
        ),
        (
            "Block example.org",
            wish(SourceType::Domain, "example.org", None, closed, "block example.org", "Blocks the domain."),
        ),
        (
            "The group staff should use exit-1",
            wish(group, "staff", Some("exit-1"), closed, "staff by exit-1", "Sends staff through exit-1."),
        ),
        (
            "Route desk via exit-2, but let it out directly when the tunnel fails",
            wish(
                device,
                "desk",
                Some("exit-2"),
                FailPolicy::Open,
                "desk by exit-2",
                "Sends desk through exit-2, and directly while the tunnel is down.",
            ),
        ),
    ]
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
            "source_type": {"type": "string", "enum": sources},
            "source_value": {"type": "string", "maxLength": MAX_VALUE},
            "hop_type": {"type": "string", "enum": hops},
            "hop_target": {"type": "string", "enum": targets},
            "fail_policy": {"type": "string", "enum": fail},
            "name": {"type": "string", "maxLength": MAX_NAME},
            "explanation": {"type": "string", "maxLength": MAX_EXPLANATION},
        },
        "required": ["source_type", "source_value", "hop_type", "hop_target", "fail_policy", "name", "explanation"],
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
