//! API keys: credentials of programs. The key itself is nowhere, only its hash.

use std::collections::BTreeSet;
use std::net::IpAddr;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ending;
use crate::problem::{Problems, code};
use crate::resource::{Keys, Meta, Resource};
use crate::role::Role;
use crate::secret::Secret;
use crate::state::State;
use crate::validated::{Cidr, check_name};

/// A key with a role, perhaps bound to networks and to a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ApiKey {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    pub name: String,
    pub role: Role,
    /// Text between the underscores of `gw_<prefix>_<secret>`.
    pub prefix: String,
    /// SHA-256 of the whole key in hexadecimal digits: the key is random, so a slow hash would add nothing.
    #[serde(rename(serialize = "has_key_hash", deserialize = "key_hash"))]
    pub key_hash: Secret,
    /// From then on the key is worth nothing.
    pub expires_at: Option<Timestamp>,
    /// Networks from which the key is accepted. Empty: all.
    pub cidrs: Vec<Cidr>,
    pub created_by: String,
    /// Time at which the key was recorded as expired. From then on no clock makes it valid again, unless `expires_at`
    /// changes.
    pub ended_at: Option<Timestamp>,
}

impl Default for ApiKey {
    fn default() -> ApiKey {
        ApiKey {
            meta: Meta::default(),
            name: String::new(),
            role: Role::Viewer,
            prefix: String::new(),
            key_hash: Secret::default(),
            expires_at: None,
            cidrs: Vec::new(),
            created_by: String::new(),
            ended_at: None,
        }
    }
}

impl ApiKey {
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.ended_at.is_some() || self.expires_at.is_some_and(|end| end <= now)
    }

    /// Reports whether the key is accepted from an address. `None` is this host.
    pub fn admits(&self, address: Option<IpAddr>) -> bool {
        let within = |address: IpAddr| self.cidrs.iter().any(|cidr| cidr.net().contains(&address));
        self.cidrs.is_empty() || address.is_none_or(|address| within(address.to_canonical()))
    }
}

impl Resource for ApiKey {
    const NOUN: &'static str = "api_key";
    const COLLECTION: &'static str = "api_keys";
    const SECRETS: &'static [&'static str] = &["key_hash"];
    const LOCAL_SECRETS: &'static [&'static str] = Self::SECRETS;
    const READ_ONLY: &'static [&'static str] = &["prefix", "created_by", "ended_at"];
    const REQUIRED: &'static [&'static str] = &["name", "role"];
    const SEALED: bool = false;
    const EXPORTED: bool = false;

    fn label(&self) -> &str {
        &self.name
    }

    fn validate(&self, state: &State, problems: &mut Problems) {
        check_name("name", &self.name, problems);
        let stored = state.api_keys.get(self.meta.id);
        let unchanged = stored.is_some_and(|stored| stored.expires_at == self.expires_at);
        if self.is_expired(state.now()) && !unchanged {
            problems.add(code::RANGE, "expires_at", "This time is over already.");
        }
        if self.cidrs.len() > 64 {
            problems.add(code::RANGE, "cidrs", "At most 64 networks.");
        }
        let mut seen = BTreeSet::new();
        for (index, cidr) in self.cidrs.iter().enumerate() {
            if !seen.insert(cidr) {
                problems.add(code::DUPLICATE, format!("cidrs[{index}]"), format!("{cidr} is given twice."));
            }
        }
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", self.name.as_str());
        if !self.prefix.is_empty() {
            keys.unique("prefix", prefix_key(&self.prefix));
        }
    }

    fn secrets(&mut self) -> Vec<(String, &mut Secret)> {
        vec![("/key_hash".to_owned(), &mut self.key_hash)]
    }

    fn carry_over(input: &mut Map<String, Value>, before: &Self) {
        if before.key_hash.is_set() && !input.contains_key("key_hash") {
            input.insert("key_hash".into(), before.key_hash.kept().into());
        }
        input.insert("prefix".into(), before.prefix.as_str().into());
        input.insert("created_by".into(), before.created_by.as_str().into());
        ending::carry_over(input, before.expires_at, before.ended_at);
    }
}

/// Names may look like prefixes, so both have separate key spaces.
fn prefix_key(prefix: &str) -> String {
    format!("prefix:{prefix}")
}

impl State {
    /// The key with this prefix.
    pub fn api_key_by_prefix(&self, prefix: &str) -> Option<&std::sync::Arc<ApiKey>> {
        self.api_keys.by_key(&prefix_key(prefix)).filter(|key| key.prefix == prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft() -> State {
        State::new("2026-11-20T12:00:00Z".parse().unwrap()).begin("2026-11-20T12:00:01Z".parse().unwrap())
    }

    #[test]
    fn a_key_is_bound_to_networks_and_time() {
        let key = ApiKey {
            cidrs: vec!["192.0.2.0/24".parse().unwrap(), "fd00::/64".parse().unwrap()],
            expires_at: Some("2026-11-21T00:00:00Z".parse().unwrap()),
            ..ApiKey::default()
        };
        for (address, fits) in [
            ("192.0.2.7", true),
            ("::ffff:192.0.2.7", true),
            ("192.0.3.7", false),
            ("fd00::1", true),
            ("fd00:0:0:1::1", false),
        ] {
            assert_eq!(key.admits(Some(address.parse().unwrap())), fits, "{address}");
        }
        assert!(key.admits(None) && ApiKey::default().admits(Some("203.0.113.1".parse().unwrap())));
        assert!(!key.is_expired("2026-11-20T23:59:59Z".parse().unwrap()));
        assert!(key.is_expired("2026-11-21T00:00:00Z".parse().unwrap()));
    }

    #[test]
    fn keys_are_found_by_their_prefix_and_not_by_a_name_that_looks_like_one() {
        let mut state = draft();
        let key = |name: &str, prefix: &str| ApiKey {
            name: name.into(),
            prefix: prefix.into(),
            key_hash: Secret::new("00"),
            ..ApiKey::default()
        };
        state.create(key("backup", "0a0b0c0d")).unwrap();
        state.create(key("prefix:ffffffff", "01010101")).unwrap();
        assert_eq!(state.api_key_by_prefix("0a0b0c0d").unwrap().name, "backup");
        assert!(state.api_key_by_prefix("backup").is_none());
        assert!(state.api_key_by_prefix("ffffffff").is_none());
    }

    #[test]
    fn a_key_that_is_expired_already_is_refused() {
        let over = ApiKey {
            name: "late".into(),
            expires_at: Some("2026-11-20T12:00:00Z".parse().unwrap()),
            ..ApiKey::default()
        };
        assert!(matches!(draft().create(over), Err(EditError::Invalid(_))));
    }

    use crate::edit::EditError;
}
