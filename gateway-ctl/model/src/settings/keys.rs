//! The keys of the configuration at runtime: which there are, when a change takes hold, and the configuration that
//! file and store make together.
//!
//! A key is the dotted path of a leaf of the configuration file. A value set at runtime wins over the file, the file
//! over the default.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::Settings;
use super::bootstrap::{Bootstrap, SECRETS};
use super::stored::Setting;
use crate::decode;
use crate::problem::{Problems, code};
use crate::validated::text_enum;

text_enum! {
    /// Time at which a changed value takes effect.
    pub enum Apply {
        /// At once.
        Live = "live",
        /// At the next start of the daemon.
        Restart = "restart",
        /// Only the configuration file sets it.
        File = "file",
    }
}

text_enum! {
    /// Source of a value.
    pub enum Source {
        /// The configuration file.
        Bootstrap = "bootstrap",
        /// Set through the API.
        Runtime = "runtime",
        Default = "default",
    }
}

/// Keys that only the configuration file sets.
const FILE_KEYS: &[&str] = &["state_dir", "runtime_dir", "marker", "auth.api_keys", "bpf.pin_dir"];

/// Keys whose changed values wait for a restart of the daemon. All others take effect at once.
const RESTART_KEYS: &[&str] = &[
    "listen.api_addr",
    "network.ap",
    "dns.tls_listen_addrs",
    "auth.enabled",
    "auth.local_net",
    "tls.enabled",
    "tls.cert",
    "tls.key",
];

/// Every key of the configuration with the time at which a changed value takes effect: the leaves of [`Bootstrap`], in
/// its order. Tunnels of the file are no key; they are created at the first start.
static KEYS: LazyLock<Vec<(String, Apply)>> = LazyLock::new(|| {
    let mut keys = Vec::new();
    leaves(&shown(&Bootstrap::default()), "", &mut keys);
    keys.retain(|key| key != "tunnels");
    let apply = |key: &str| match key {
        _ if FILE_KEYS.contains(&key) => Apply::File,
        _ if RESTART_KEYS.contains(&key) => Apply::Restart,
        _ => Apply::Live,
    };
    keys.into_iter()
        .map(|key| {
            let when = apply(&key);
            (key, when)
        })
        .collect()
});

/// Collects the dotted paths of the leaves of a tree. An empty map is a leaf.
fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
    for (key, value) in value.as_object().into_iter().flatten() {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match value {
            Value::Object(map) if !map.is_empty() => leaves(value, &path, found),
            _ => found.push(path),
        }
    }
}

/// Returns every key of the configuration, in the order of the file.
pub fn keys() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|(key, _)| key.as_str())
}

fn keys_of(apply: impl Fn(Apply) -> bool) -> impl Iterator<Item = &'static str> {
    KEYS.iter().filter(move |(_, of)| apply(*of)).map(|(key, _)| key.as_str())
}

/// Access point and its network.
pub const ACCESS_POINT: &str = "network.ap";

/// Keys whose values have secrets, with the paths of the secrets in the value. Each is a setting of its own below the key.
const KEY_SECRETS: &[(&str, &[&str])] = &[(ACCESS_POINT, &["passphrase", "guest.passphrase"])];

/// Returns the paths of the secrets in the value of a key.
pub fn secrets_of(key: &str) -> &'static [&'static str] {
    KEY_SECRETS.iter().find(|(known, _)| *known == key).map_or(&[], |(_, secrets)| secrets)
}

/// Returns the keys of the settings that hold the secrets of a key.
pub(super) fn secret_keys(key: &str) -> impl Iterator<Item = String> {
    secrets_of(key).iter().map(move |name| format!("{key}.{name}"))
}

/// The compiler reads it as well.
pub const DNS_UPSTREAM_SERVERS: &str = "dns.upstream_servers";

/// Keys that the daemon itself manages: shown, never set by hand.
pub const INTERNAL: &[&str] = &[NODE_ID, SECRETS_PASSPHRASE, PQ_CRYPTO_MODE, AI_DEFAULT_MODEL, AI_LLM_URL];

/// Stable id of this installation.
pub const NODE_ID: &str = "node_id";
pub const SECRETS_PASSPHRASE: &str = "secrets_passphrase";
pub const PQ_CRYPTO_MODE: &str = "pq_crypto_mode";
pub const AI_DEFAULT_MODEL: &str = "ai_default_model";
pub const AI_LLM_URL: &str = "ai_llm_url";

/// Nodes and pre-auth keys of the mesh that this gateway coordinates: not shown, in no snapshot. Exports with secrets have it.
pub const MESH_ROSTER: &str = "internal.mesh_roster";
/// Secret key of the coordinator of the mesh, in base64.
pub const MESH_IDENTITY: &str = "internal.mesh_identity";
/// Secret key of its relay, in base64.
pub const MESH_RELAY: &str = "internal.mesh_relay";

/// Key by which the encrypted storage opens at the start.
pub const ENCRYPTED_STORAGE_KEY: &str = "internal.encrypted_storage_key";
/// Membership of this gateway in a mesh of another coordinator: not shown, in no snapshot and in no export.
pub const MESH_MEMBERSHIP: &str = "internal.mesh_membership";
/// Domain of the names of that mesh, by its last map.
pub const MESH_DOMAIN: &str = "internal.mesh_domain";
/// Secret key of this machine at that coordinator, in base64.
pub const MESH_MACHINE_KEY: &str = "internal.mesh_machine_key";
/// Secret WireGuard key of this gateway as a node of that mesh, in base64.
pub const MESH_NODE_KEY: &str = "internal.mesh_node_key";

/// Returns when a change of this key takes effect. `None` for an unknown key.
pub fn apply_of(key: &str) -> Option<Apply> {
    KEYS.iter().find(|(known, _)| known == key).map(|(_, apply)| *apply)
}

/// The value at a dotted path.
pub fn at<'v>(tree: &'v Value, key: &str) -> Option<&'v Value> {
    key.split('.').try_fold(tree, |value, part| value.get(part))
}

/// The configuration as it would be shown: secrets as booleans.
pub fn shown(config: &Bootstrap) -> Value {
    serde_json::to_value(config).expect("the configuration is a struct with string keys")
}

impl Bootstrap {
    /// File and store together. Every value is checked by the rules of the file; a problem's path is the key.
    pub fn overlaid(&self, settings: &Settings) -> Result<Bootstrap, Problems> {
        let mut tree = Value::Object(self.given.0.clone());
        for key in keys_of(|apply| apply != Apply::File) {
            if let Some(value) = settings.get(key) {
                insert_at(&mut tree, key, value.clone());
            }
        }
        let mut problems = Problems::new();
        let Some(mut decoded) = decode::decode::<Bootstrap>(tree, SECRETS, &mut problems) else {
            return Err(problems);
        };
        decoded.value.take_secrets(self, settings);
        for path in &decoded.unknown {
            problems.add(code::UNKNOWN_KEY, path, "Unknown key.");
        }
        let mut found = Problems::new();
        decoded.value.validate(&mut found);
        decoded.merge(&mut problems, found);
        if !problems.is_empty() {
            return Err(problems);
        }
        decoded.value.tunnels.clone_from(&self.tunnels);
        decoded.value.given = self.given.clone();
        Ok(decoded.value)
    }

    /// [`Bootstrap::overlaid`] for a start: a stored value that is not valid any more (the file changed beside it) is
    /// left out, with its key and the reason.
    pub fn overlaid_or_less(&self, settings: &Settings) -> (Bootstrap, Vec<(String, String)>) {
        let mut settings = settings.clone();
        let mut left_out = Vec::new();
        loop {
            let problems = match self.overlaid(&settings) {
                Ok(config) => return (config, left_out),
                Err(problems) => problems,
            };
            let Some((key, why)) = offending_setting(&problems, &settings) else {
                // The file alone is valid: it was checked when it was read.
                return (self.clone(), left_out);
            };
            settings.take(&key, settings.revision());
            left_out.push((key, why));
        }
    }

    /// The configuration in force: with the settings that are stored now, but those of the start for keys that wait for a
    /// restart. Values that are not valid any more are left out, as in [`Bootstrap::overlaid_or_less`].
    pub fn in_force(&self, now: &Settings, at_start: &Settings) -> (Bootstrap, Vec<(String, String)>) {
        let mut settings = now.clone();
        let keys = keys_of(|apply| apply == Apply::Restart);
        for key in keys.flat_map(|key| secret_keys(key).chain([key.to_owned()])) {
            match at_start.setting(&key) {
                Some(setting) => settings.put(&key, Setting::clone(setting)),
                None => drop(settings.take(&key, now.revision())),
            }
        }
        self.overlaid_or_less(&settings)
    }

    /// Reports whether the file gives this key.
    pub fn is_given(&self, key: &str) -> bool {
        is_given(&self.given.0, key)
    }

    /// Returns the source of the value of a key.
    pub fn source(&self, settings: &Settings, key: &str) -> Source {
        if settings.get(key).is_some() {
            Source::Runtime
        } else if self.is_given(key) {
            Source::Bootstrap
        } else {
            Source::Default
        }
    }
}

fn is_given(map: &Map<String, Value>, key: &str) -> bool {
    match key.split_once('.') {
        None => map.contains_key(key),
        Some((head, rest)) => map.get(head).and_then(Value::as_object).is_some_and(|map| is_given(map, rest)),
    }
}

/// The runtime value that a problem is about; if none is named, the one that was set last.
fn offending_setting(problems: &Problems, settings: &Settings) -> Option<(String, String)> {
    let set = || keys().filter(|key| settings.get(key).is_some());
    let named = problems.iter().find_map(|problem| {
        let key = set().find(|key| {
            problem.path.strip_prefix(key).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })?;
        Some((key.to_owned(), problem.message.clone()))
    });
    named.or_else(|| {
        let last = set().max_by_key(|key| settings.setting(key).map(|setting| setting.revision))?;
        let why = problems.iter().map(|problem| format!("{}: {}", problem.path, problem.message)).collect();
        Some((last.to_owned(), why))
    })
}

/// Sets the value at a dotted path. Replaces values that are no objects on the path.
fn insert_at(tree: &mut Value, key: &str, value: Value) {
    let (parents, leaf) = key.rsplit_once('.').unwrap_or(("", key));
    let mut node = tree;
    for part in parents.split('.').filter(|part| !part.is_empty()) {
        let map = object(node);
        node = map.entry(part).or_insert_with(|| Value::Object(Map::new()));
    }
    object(node).insert(leaf.to_owned(), value);
}

fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("it was just made one")
}

/// One key as the API shows it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Shown {
    pub key: String,
    pub value: Value,
    pub source: Source,
    pub apply: Apply,
    /// The daemon runs with another value until it is started again.
    pub pending_restart: bool,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::settings::bootstrap::parse;
    use crate::state::State;

    #[test]
    fn the_exceptions_are_keys_of_the_configuration() {
        for key in FILE_KEYS.iter().chain(RESTART_KEYS) {
            assert!(keys().any(|known| known == *key), "{key}");
        }
        assert_eq!(apply_of("tls.cert"), Some(Apply::Restart));
        assert_eq!(apply_of("marker"), Some(Apply::File));
        assert_eq!(apply_of(DNS_UPSTREAM_SERVERS), Some(Apply::Live));
        assert_eq!(apply_of("tunnels"), None);
    }

    fn with(values: &[(&str, Value)]) -> Settings {
        let mut draft = State::default().begin("2026-11-20T12:00:00Z".parse().unwrap());
        for (key, value) in values {
            draft.set(key, value.clone());
        }
        draft.settings
    }

    #[test]
    fn the_store_wins_over_the_file_and_the_file_over_the_default() {
        let file = parse("reconcile: { interval_sec: 30 }\nlog: { level: warn }\n").unwrap();
        let settings = with(&[("reconcile.interval_sec", json!(10))]);
        let config = file.overlaid(&settings).unwrap();
        assert_eq!(config.reconcile.interval_sec, 10);
        assert_eq!(config.log.level.to_string(), "warn");
        assert_eq!(file.source(&settings, "reconcile.interval_sec"), Source::Runtime);
        assert_eq!(file.source(&settings, "log.level"), Source::Bootstrap);
        assert_eq!(file.source(&settings, "network.mode"), Source::Default);
    }

    #[test]
    fn a_bad_value_is_refused_under_its_key() {
        let problems = Bootstrap::default()
            .overlaid(&with(&[("reconcile.interval_sec", json!(4)), ("log.level", json!("loud"))]))
            .unwrap_err();
        let paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
        assert!(paths.contains(&"reconcile.interval_sec") && paths.contains(&"log.level"), "{paths:?}");
    }

    #[test]
    fn a_start_leaves_out_what_is_not_valid_any_more_and_keeps_the_rest() {
        // The file was edited: its uplink equals the LAN interface in the store.
        let file = parse("network: { wan_iface: eth1, lan_iface: eth2 }").unwrap();
        let settings = with(&[("network.lan_iface", json!("eth1")), ("reconcile.interval_sec", json!(7))]);
        let (config, left_out) = file.overlaid_or_less(&settings);
        assert_eq!(config.reconcile.interval_sec, 7);
        assert_eq!(config.lans()[0].to_string(), "eth2");
        assert_eq!(left_out.len(), 1);
        assert_eq!(left_out[0].0, "network.lan_iface");
    }

    #[test]
    fn keys_of_the_file_are_not_overlaid() {
        let config = Bootstrap::default().overlaid(&with(&[("state_dir", json!("/elsewhere"))])).unwrap();
        assert_eq!(config.state_dir, Bootstrap::default().state_dir);
    }
}
