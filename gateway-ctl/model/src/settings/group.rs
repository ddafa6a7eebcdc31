//! Groups of settings: one object under one key, replaced as a whole and validated like a resource, but without an id.
//! A group that was never set has its defaults.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::groups::{
    AlertEmail, AlertMqtt, AlertWebhook, AssistantConfig, BackupConfig, BluetoothFailover, BluetoothSettings,
    CaptiveCheck, CoverSettings, DeadmanSettings, DhcpConfig, DnsRotation, ExtFilterConfig, FederationBus,
    FlowExport, InterfacesConfig, LeakCheckSettings, PrivacyBlocks, PrivacyMode,
};
use crate::capability::Capability;
use crate::decode;
use crate::destination::{Destination, drop_if_elsewhere};
use crate::edit::EditError;
use crate::id::Revision;
use crate::problem::{Problems, Warning};
use crate::secret::Secret;
use crate::settings::keys;
use crate::state::State;

/// A group of settings.
///
/// Declared with `#[serde(default)]` on the type; secrets as in a resource.
pub trait Group:
    Clone + Default + PartialEq + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static
{
    /// `alerts.webhook`
    const KEY: &'static str;
    /// `alert_webhook`: in audit entries.
    const NOUN: &'static str;
    /// Fields that are secrets, as dotted paths: `passphrase`, `target.secret`.
    const SECRETS: &'static [&'static str] = &[];
    /// Those of [`Group::SECRETS`] that are sent to [`Group::destination`]. A change of it drops them.
    const SENT_SECRETS: &'static [&'static str] = &[];
    /// Those of [`Group::SECRETS`] that no change of another field sends anywhere. Each secret is in one of both lists.
    const LOCAL_SECRETS: &'static [&'static str] = &[];
    /// Capability without which the group has no effect, if any.
    const NEEDS: Option<Capability> = None;

    /// Reports every wrong field.
    fn validate(&self, state: &State, problems: &mut Problems);

    /// The destination of [`Group::SENT_SECRETS`].
    fn destination(&self) -> Destination {
        Destination::new()
    }

    /// Returns the secrets in the order of [`Group::SECRETS`].
    fn secrets(&mut self) -> Vec<&mut Secret> {
        Vec::new()
    }
}

/// All groups.
pub const GROUPS: &[GroupKind] = &[
    GroupKind::of::<AlertEmail>(),
    GroupKind::of::<AlertMqtt>(),
    GroupKind::of::<AlertWebhook>(),
    GroupKind::of::<AssistantConfig>(),
    GroupKind::of::<BackupConfig>(),
    GroupKind::of::<BluetoothFailover>(),
    GroupKind::of::<BluetoothSettings>(),
    GroupKind::of::<CaptiveCheck>(),
    GroupKind::of::<CoverSettings>(),
    GroupKind::of::<DeadmanSettings>(),
    GroupKind::of::<DhcpConfig>(),
    GroupKind::of::<DnsRotation>(),
    GroupKind::of::<ExtFilterConfig>(),
    GroupKind::of::<FederationBus>(),
    GroupKind::of::<FlowExport>(),
    GroupKind::of::<InterfacesConfig>(),
    GroupKind::of::<LeakCheckSettings>(),
    GroupKind::of::<PrivacyBlocks>(),
    GroupKind::of::<PrivacyMode>(),
];

/// A group as a table of functions.
#[derive(Clone, Copy, Debug)]
pub struct GroupKind {
    pub key: &'static str,
    pub noun: &'static str,
    pub secrets: &'static [&'static str],
    /// Secrets that a change of the destination drops, and those that go nowhere.
    pub sent_secrets: &'static [&'static str],
    pub local_secrets: &'static [&'static str],
    shown: fn(&State) -> Value,
    put: fn(&mut State, Value) -> Result<Vec<Warning>, EditError>,
}

impl GroupKind {
    pub const fn of<G: Group>() -> GroupKind {
        GroupKind {
            key: G::KEY,
            noun: G::NOUN,
            secrets: G::SECRETS,
            sent_secrets: G::SENT_SECRETS,
            local_secrets: G::LOCAL_SECRETS,
            shown: |state| plain(&state.group::<G>()),
            put: put::<G>,
        }
    }

    /// The group with this key.
    pub fn find(key: &str) -> Option<&'static GroupKind> {
        GROUPS.iter().find(|group| group.key == key)
    }

    /// Returns the group in its shown form.
    pub fn shown(&self, state: &State) -> Value {
        (self.shown)(state)
    }

    /// Returns the revision of the last change; 0 while the group has its defaults.
    pub fn revision(&self, state: &State) -> Revision {
        state.settings.setting(self.key).map_or(Revision(0), |setting| setting.revision)
    }

    /// Replaces the group. Omitted secrets stay.
    pub fn put(&self, draft: &mut State, input: Value) -> Result<Vec<Warning>, EditError> {
        (self.put)(draft, input)
    }
}

impl State {
    /// A group as it is set, else with its defaults. A stored value that cannot be read counts as not set.
    pub fn group<G: Group>(&self) -> G {
        let value = self.settings.get(G::KEY);
        let mut group = value.and_then(|value| decode::from_value::<G>(value).ok()).unwrap_or_default();
        for (name, secret) in G::SECRETS.iter().zip(group.secrets()) {
            *secret = self.settings.secret(&secret_key::<G>(name));
        }
        group
    }

    /// Sets a group that is valid already. Secrets that stay the same are not written again.
    pub fn set_group<G: Group>(&mut self, group: &G) {
        let mut value = plain(group);
        for (name, secret) in G::SECRETS.iter().zip(group.clone().secrets()) {
            take_mark(&mut value, name);
            let key = secret_key::<G>(name);
            if self.settings.secret(&key) != *secret {
                self.set_secret(&key, secret.clone());
            }
        }
        self.set(G::KEY, value);
    }
}

/// Each secret of a group is a separate setting.
fn secret_key<G: Group>(name: &str) -> String {
    format!("{}.{name}", G::KEY)
}

/// Path of the mark of a secret in the shown form: `target.secret` has `has_secret` in `target`.
pub fn mark_of(secret: &str) -> (&str, String) {
    let (parent, leaf) = secret.rsplit_once('.').unwrap_or(("", secret));
    (parent, format!("has_{leaf}"))
}

/// The object of the shown form that holds a secret or its mark.
pub fn parent_of<'v>(value: &'v mut Value, parent: &str) -> Option<&'v mut Map<String, Value>> {
    let mut steps = parent.split('.').filter(|step| !step.is_empty());
    steps.try_fold(value, |value, step| value.get_mut(step))?.as_object_mut()
}

fn take_mark(value: &mut Value, secret: &str) -> Option<Value> {
    let (parent, mark) = mark_of(secret);
    parent_of(value, parent)?.shift_remove(&mark)
}

fn put<G: Group>(draft: &mut State, input: Value) -> Result<Vec<Warning>, EditError> {
    let mut problems = Problems::new();
    let mut input = input;
    if !input.is_object() {
        problems.add(crate::problem::code::TYPE, "", "Expected a JSON object.");
        return Err(EditError::Invalid(problems));
    }
    for name in G::SECRETS {
        take_mark(&mut input, name);
    }
    let kept: Vec<bool> = G::SECRETS.iter().map(|name| keys::at(&input, name).is_none()).collect();
    let Some(mut decoded) = decode::decode::<G>(input, G::SECRETS, &mut problems) else {
        return Err(EditError::Invalid(problems));
    };
    let mut before = draft.group::<G>();
    let (old, new) = (before.destination(), decoded.value.destination());
    let mut dropped = Vec::new();
    let secrets = G::SECRETS.iter().zip(decoded.value.secrets());
    for (((name, secret), kept), before) in secrets.zip(kept).zip(before.secrets()) {
        if kept {
            *secret = before.clone();
            if G::SENT_SECRETS.contains(name) {
                dropped.extend(drop_if_elsewhere(name, secret, &old, &new));
            }
        }
    }
    let mut found = Problems::new();
    decoded.value.validate(draft, &mut found);
    let mut warnings: Vec<Warning> =
        decoded.unknown.iter().map(|path| Warning::new(path.as_str(), "Unknown field, ignored.")).collect();
    warnings.extend(dropped);
    warnings.extend(found.warnings().iter().cloned());
    decoded.merge(&mut problems, found);
    if !problems.is_empty() {
        return Err(EditError::Invalid(problems));
    }
    let lacking = G::NEEDS.and_then(|capability| capability.warning(""));
    warnings.extend(lacking.map(|message| Warning::new("", message)));
    draft.set_group(&decoded.value);
    Ok(warnings)
}

fn plain<G: Group>(group: &G) -> Value {
    serde_json::to_value(group).expect("groups are structs with string keys")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    fn draft() -> State {
        State::default().begin("2026-11-20T12:00:00Z".parse().unwrap())
    }

    #[test]
    fn keys_and_nouns_are_unique_and_defaults_are_valid() {
        let keys: BTreeSet<&str> = GROUPS.iter().map(|group| group.key).collect();
        let nouns: BTreeSet<&str> = GROUPS.iter().map(|group| group.noun).collect();
        assert_eq!((keys.len(), nouns.len()), (GROUPS.len(), GROUPS.len()));
        for group in GROUPS {
            let mut state = draft();
            let shown = group.shown(&state);
            let warnings =
                group.put(&mut state, shown.clone()).unwrap_or_else(|error| panic!("{}: {error}", group.key));
            assert!(warnings.iter().all(|warning| warning.path.is_empty()), "{}: {warnings:?}", group.key);
            assert_eq!(group.shown(&state), shown, "{}", group.key);
            for secret in group.secrets {
                let (parent, mark) = mark_of(secret);
                let path = if parent.is_empty() { mark } else { format!("{parent}.{mark}") };
                assert_eq!(keys::at(&shown, &path), Some(&Value::Bool(false)), "{}", group.key);
            }
        }
    }

    #[test]
    fn an_omitted_secret_stays_null_clears_it_and_it_is_never_shown() {
        let mut state = draft();
        let webhook = GroupKind::find("alerts.webhook").unwrap();
        let body =
            json!({"enabled": true, "url": "https://alerts.example/hook", "secret": "s3cret-s3cret-s3cret"});
        webhook.put(&mut state, body).unwrap();
        let shown = webhook.shown(&state);
        assert_eq!(shown["has_secret"], true);
        assert!(!shown.to_string().contains("s3cret"));
        webhook.put(&mut state, shown.clone()).unwrap();
        assert_eq!(state.group::<AlertWebhook>().secret.expose(), "s3cret-s3cret-s3cret");
        let mut cleared = shown;
        cleared["secret"] = Value::Null;
        webhook.put(&mut state, cleared).unwrap();
        assert!(!state.group::<AlertWebhook>().secret.is_set());
    }

    #[test]
    fn a_nested_secret_stays_and_is_cleared_alike() {
        let mut state = draft();
        let backup = GroupKind::find("backup.config").unwrap();
        let target = json!({"type": "webdav", "url": "https://dav.example/", "username": "gw", "secret": "s3cret-of-dav"});
        backup.put(&mut state, json!({"target": target, "passphrase": "correct horse"})).unwrap();
        let shown = backup.shown(&state);
        assert_eq!((&shown["has_passphrase"], &shown["target"]["has_secret"]), (&json!(true), &json!(true)));
        assert!(!shown.to_string().contains("s3cret") && !shown.to_string().contains("horse"));
        assert!(!state.settings.get("backup.config").unwrap().to_string().contains("has_"));
        backup.put(&mut state, shown.clone()).unwrap();
        let kept: BackupConfig = state.group();
        assert_eq!(
            (kept.target.secret.expose(), kept.passphrase.expose()),
            ("s3cret-of-dav", "correct horse")
        );
        let mut cleared = shown;
        cleared["target"]["secret"] = Value::Null;
        backup.put(&mut state, cleared).unwrap();
        let kept: BackupConfig = state.group();
        assert!(!kept.target.secret.is_set() && kept.passphrase.is_set());
    }

    #[test]
    fn every_wrong_field_is_named_and_unknown_ones_are_warned_of() {
        let mut state = draft();
        let dhcp = GroupKind::find("dhcp").unwrap();
        let EditError::Invalid(problems) = dhcp
            .put(&mut state, json!({"lease_sec": 1, "mask": "255.0.255.0", "enabled": "yes"}))
            .unwrap_err()
        else {
            panic!("not a validation error")
        };
        for path in ["lease_sec", "mask", "enabled"] {
            assert!(problems.has(path), "{path}: {problems}");
        }
        let rotation = GroupKind::find("dns.rotation").unwrap();
        let warnings = rotation.put(&mut state, json!({"mode": "fastest", "modus": 1})).unwrap();
        assert!(warnings.iter().any(|warning| warning.path == "modus"), "{warnings:?}");
    }
}
