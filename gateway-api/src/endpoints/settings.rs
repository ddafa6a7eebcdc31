//! Settings at run time: configuration keys, groups, and internal values of the daemon.

use std::sync::Arc;

use gateway_ctl::configuration::Configuration;
use gateway_ctl::world::World;
use gateway_dns::upstream::without_certificate_name;
use gateway_model::problem::code;
use gateway_model::settings::bootstrap::Bootstrap;
use gateway_model::settings::group::{GROUPS, GroupKind};
use gateway_model::settings::keys::{self, ACCESS_POINT, Apply, INTERNAL, Shown, Source};
use gateway_model::{Deleted, EditError, Problems, State, Warning};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::authorization::Access;
use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::{ApiError, Code};
use crate::gateway::Open;
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::{Audit, Effect, Method, Table, expect};

const NOUN: &str = "setting";
const SET: Audit = Audit { action: "replace_setting", resource_type: NOUN };
const SET_ALL: Audit = Audit { action: "replace_settings", resource_type: "settings" };
const UNSET: Audit = Audit { action: "delete_setting", resource_type: NOUN };

pub(super) fn rows(t: &mut Table) {
    t.view("/settings", "get_settings", tree)
        .summary("All settings as a tree of {value, source, apply, pending_restart}")
        .doc("source: bootstrap (the configuration file), runtime (set here) or default. Secrets are masked.")
        .tagged();
    let row = t.action("/settings", SET_ALL.action, Effect::Stores(SET_ALL), replace_tree);
    row.summary("Change several settings, all or nothing")
        .doc("The tree of the GET response, with leaves {value} or bare values. Omitted and unchanged leaves stay unchanged.")
        .access(Access::Administer)
        .tagged();
    row.method = Method::Put;
    row.requires_input();
    t.view("/settings/{key}", "get_setting", one).summary("One setting by its dotted key").tagged();
    let row = t.action("/settings/{key}", SET.action, Effect::Stores(SET), replace);
    row.summary("Set one setting: {value}").access(Access::Administer).tagged();
    row.method = Method::Put;
    row.requires_input();
    let row = t.command("/settings/{key}", UNSET.action, Effect::Stores(UNSET), unset);
    row.summary("Remove a runtime value, so that the configuration file or the default applies")
        .access(Access::Administer)
        .tagged();
    row.method = Method::Delete;
}

/// Tree of [`Shown`] leaves, nested by the parts of their dotted keys.
#[derive(serde::Serialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct Tree(Map<String, Value>);

/// Value of a single setting. Other fields of the response may be sent back and are ignored.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "SettingRequest")]
pub(super) struct SettingInput {
    #[schemars(required)]
    #[serde(deserialize_with = "explicit_value")]
    pub value: Option<Value>,
    #[serde(rename = "key")]
    #[schemars(skip)]
    _key: Value,
    #[serde(rename = "source")]
    #[schemars(skip)]
    _source: Value,
    #[serde(rename = "apply")]
    #[schemars(skip)]
    _apply: Value,
    #[serde(rename = "pending_restart")]
    #[schemars(skip)]
    _pending_restart: Value,
}

/// Distinguishes an explicit `null`, which is a value, from a missing field.
fn explicit_value<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "SettingsRequest")]
pub(super) struct SettingsUpdate {
    #[serde(flatten)]
    tree: Map<String, Value>,
}

/// Inputs for showing settings.
struct SettingsContext<'a> {
    state: &'a State,
    file: &'a Bootstrap,
    in_force: Arc<Bootstrap>,
    wanted: Bootstrap,
    /// Both as they are shown.
    shown_in_force: Value,
    shown: Value,
}

impl<'a> SettingsContext<'a> {
    fn new(configuration: &'a Configuration, state: &'a State) -> Self {
        let file = configuration.file();
        let in_force = configuration.with(state).config;
        let (wanted, _) = file.overlaid_or_less(&state.settings);
        let shown_in_force = keys::shown(&in_force);
        let shown = keys::shown(&wanted);
        Self { state, file, in_force, wanted, shown_in_force, shown }
    }

    fn show(&self, key: &str) -> Option<Shown> {
        if let Some(apply) = keys::apply_of(key) {
            let value = keys::at(&self.shown, key).cloned().unwrap_or(Value::Null);
            // A secret is not shown, so another one is no other value.
            let has_other_secret =
                !keys::secrets_of(key).is_empty() && self.in_force.differs_in(&self.wanted, key);
            let pending_restart = has_other_secret || keys::at(&self.shown_in_force, key) != Some(&value);
            let source = self.file.source(&self.state.settings, key);
            return Some(Shown { key: key.to_owned(), value, source, apply, pending_restart });
        }
        if let Some(group) = GroupKind::find(key) {
            return Some(self.of_runtime(key, group.shown(self.state)));
        }
        if INTERNAL.contains(&key) {
            let setting = self.state.settings.setting(key);
            let masked = setting.is_some_and(|setting| setting.is_secret());
            let value = setting.map_or(Value::Null, |setting| setting.value.clone());
            let value = if masked || key == keys::SECRETS_PASSPHRASE { mask(&value) } else { value };
            return Some(self.of_runtime(key, value));
        }
        None
    }

    fn of_runtime(&self, key: &str, value: Value) -> Shown {
        let source = if self.state.settings.get(key).is_some() { Source::Runtime } else { Source::Default };
        Shown { key: key.to_owned(), value, source, apply: Apply::Live, pending_restart: false }
    }
}

fn mask(value: &Value) -> Value {
    if value.is_null() { Value::Null } else { json!("***") }
}

fn all_keys() -> impl Iterator<Item = &'static str> {
    keys::keys().chain(GROUPS.iter().map(|group| group.key)).chain(INTERNAL.iter().copied())
}

async fn tree(cx: Cx, _: Req<()>) -> Result<WithHeaders<Tree>, ApiError> {
    let Open { store, worlds, .. } = cx.open()?;
    Ok(tree_of(worlds.configuration(), &store.current()))
}

fn tree_of(configuration: &Configuration, state: &State) -> WithHeaders<Tree> {
    let scene = SettingsContext::new(configuration, state);
    let mut tree = Map::new();
    for shown in all_keys().filter_map(|key| scene.show(key)) {
        let Shown { key, value, source, apply, pending_restart } = shown;
        let leaf =
            json!({"value": value, "source": source, "apply": apply, "pending_restart": pending_restart});
        insert_at(&mut tree, &key, leaf);
    }
    WithHeaders { etag: Some(state.settings.revision().to_string()), ..WithHeaders::new(Tree(tree)) }
}

/// Inserts a leaf at its dotted key. A key may be a leaf and the parent of others (`bluetooth`). The children are then
/// siblings of `value`.
fn insert_at(tree: &mut Map<String, Value>, key: &str, leaf: Value) {
    match key.split_once('.') {
        None => match (tree.get_mut(key), leaf) {
            (Some(Value::Object(there)), Value::Object(leaf)) => there.extend(leaf),
            (_, leaf) => drop(tree.insert(key.to_owned(), leaf)),
        },
        Some((head, rest)) => {
            let inner = tree.entry(head).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                insert_at(inner, rest, leaf);
            }
        }
    }
}

async fn one(cx: Cx, request: Req<()>) -> Result<WithHeaders<Shown>, ApiError> {
    let Open { store, worlds, .. } = cx.open()?;
    let (state, key) = (store.current(), request.params.get("key"));
    let shown = SettingsContext::new(worlds.configuration(), &state).show(key).ok_or_else(|| unknown(key))?;
    Ok(tagged(&state, shown, Vec::new()))
}

fn tagged(state: &State, shown: Shown, warnings: Vec<Warning>) -> WithHeaders<Shown> {
    let etag = Some(state.settings.revision().to_string());
    WithHeaders { etag, warnings, ..WithHeaders::new(shown) }
}

fn unknown(key: &str) -> ApiError {
    EditError::NotFound { resource_type: NOUN, id: key.to_owned() }.into()
}

/// Checks that the key may be set through the API.
fn check_key(key: &str) -> Result<(), ApiError> {
    if INTERNAL.contains(&key) {
        let message = format!("{key} is managed by the daemon and cannot be set here.");
        return Err(ApiError::new(Code::Forbidden, message).detail("key", key));
    }
    match keys::apply_of(key) {
        Some(Apply::File) => {
            let message = format!(
                "{key} can be set in the configuration file only, and needs a restart of the daemon."
            );
            Err(ApiError::new(Code::InvalidState, message).detail("key", key).detail("apply", "file"))
        }
        None if GroupKind::find(key).is_none() => Err(unknown(key)),
        _ => Ok(()),
    }
}

async fn replace(cx: Cx, request: Req<SettingInput>) -> Result<WithHeaders<Shown>, ApiError> {
    let key = request.params.get("key").to_owned();
    check_key(&key)?;
    let Some(value) = request.input.value else {
        let mut problems = Problems::new();
        problems.required("value");
        return Err(ApiError::validation(&problems));
    };
    let if_match = request.if_match;
    blocking(move || {
        let Open { store, worlds, .. } = cx.open()?;
        let configuration = worlds.configuration();
        let warnings = cx.commit_blocking(|draft| {
            expect(NOUN, draft.settings.revision(), if_match.as_deref())?;
            set(draft, &worlds.last(), configuration.file(), &key, value)
        })?;
        let state = store.current();
        let shown = SettingsContext::new(configuration, &state).show(&key).ok_or_else(|| unknown(&key))?;
        Ok(tagged(&state, shown, warnings))
    })
    .await?
}

/// Sets one key and checks the whole configuration.
fn set(
    draft: &mut State,
    world: &World,
    file: &Bootstrap,
    key: &str,
    value: Value,
) -> Result<Vec<Warning>, EditError> {
    if let Some(group) = GroupKind::find(key) {
        return group.put(draft, value).map_err(|error| below(key, error));
    }
    draft.set_key(key, value);
    let config = file.overlaid(&draft.settings).map_err(EditError::Invalid)?;
    if key == ACCESS_POINT {
        check_access_point(&config, world).map_err(EditError::Invalid)?;
    }
    Ok(advice(&config, draft.now(), &[key.to_owned()]))
}

/// Refuses a subnet that overlaps a network that an uplink has now.
fn check_access_point(config: &Bootstrap, world: &World) -> Result<(), Problems> {
    let Some(ap) = &config.network.ap else { return Ok(()) };
    let subnet = ap.subnet.net();
    let uplinks = config.uplinks();
    let networks = uplinks.iter().flat_map(|uplink| {
        let addresses = world.facts.addresses.get(uplink.as_str()).into_iter().flatten();
        addresses.map(move |net| (uplink, net))
    });
    let overlaps = |net: &ipnet::IpNet| subnet.contains(&net.trunc()) || net.contains(&subnet);
    let mut problems = Problems::new();
    for (uplink, net) in networks.filter(|(_, net)| overlaps(net)) {
        let message = format!("Overlaps {}, a network of the uplink {uplink}.", net.trunc());
        problems.add(code::CONFLICT, "network.ap.subnet", message);
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// Returns warnings about values that are valid but may not have the expected effect.
fn advice(config: &Bootstrap, now: Timestamp, keys: &[String]) -> Vec<Warning> {
    let is_set = |name: &str| keys.iter().any(|key| key.starts_with(name));
    let mut warnings = Vec::new();
    if is_set("dns.upstream_") {
        warnings.extend(without_certificate_name(&config.dns).into_iter().map(|address| {
            let message = format!(
                "{address} is not used: the mode {} requires its certificate name in dns.upstream_tls_names.",
                config.dns.upstream_mode
            );
            Warning::new("dns.upstream_servers", message)
        }));
    }
    if is_set("dns.blocking_paused_until") && config.dns.blocking_paused_until.is_some_and(|end| end <= now) {
        warnings.push(Warning::new(
            "dns.blocking_paused_until",
            "This time has passed, so blocking is not paused.",
        ));
    }
    warnings
}

/// Prefixes the paths of the errors of a group with its key.
fn below(key: &str, error: EditError) -> EditError {
    let EditError::Invalid(problems) = error else { return error };
    let mut moved = Problems::new();
    for problem in problems.list() {
        let path = if problem.path.is_empty() { key.to_owned() } else { format!("{key}.{}", problem.path) };
        moved.add(problem.code, path, problem.message.clone()).allowed = problem.allowed.clone();
    }
    EditError::Invalid(moved)
}

async fn unset(cx: Cx, request: Req<()>) -> Result<Deleted, ApiError> {
    let key = request.params.get("key").to_owned();
    check_key(&key)?;
    let if_match = request.if_match;
    blocking(move || {
        let file = cx.open()?.worlds.configuration().file();
        cx.commit_blocking(|draft| {
            expect(NOUN, draft.settings.revision(), if_match.as_deref())?;
            let mut was_set = draft.unset_key(&key);
            for secret in GroupKind::find(&key).map(|group| group.secrets).unwrap_or_default() {
                was_set |= draft.unset(&format!("{key}.{secret}"));
            }
            if !was_set {
                return Err(EditError::NotFound { resource_type: NOUN, id: key.clone() });
            }
            // The value of the file may conflict with other stored values.
            file.overlaid(&draft.settings).map_err(EditError::Invalid)?;
            Ok(())
        })?;
        Ok(Deleted { id: key, deleted: true })
    })
    .await?
}

async fn replace_tree(cx: Cx, request: Req<SettingsUpdate>) -> Result<WithHeaders<Tree>, ApiError> {
    let mut wishes = Vec::new();
    let mut warnings = Vec::new();
    flatten(&Value::Object(request.input.tree), "", &mut wishes, &mut warnings);
    let if_match = request.if_match;
    blocking(move || {
        let Open { store, worlds, .. } = cx.open()?;
        let configuration = worlds.configuration();
        let before = store.current();
        let scene = SettingsContext::new(configuration, &before);
        // An unmodified value is no change.
        wishes.retain(|(key, value)| scene.show(key).is_none_or(|shown| shown.value != *value));
        for (key, _) in &wishes {
            check_key(key)?;
        }
        let more = cx.commit_blocking(|draft| {
            expect("settings", draft.settings.revision(), if_match.as_deref())?;
            set_all(draft, &worlds.last(), configuration.file(), wishes)
        })?;
        warnings.extend(more);
        Ok(WithHeaders { warnings, ..tree_of(configuration, &store.current()) })
    })
    .await?
}

/// Sets all values, and reports all errors together.
fn set_all(
    draft: &mut State,
    world: &World,
    file: &Bootstrap,
    wishes: Vec<(String, Value)>,
) -> Result<Vec<Warning>, EditError> {
    let (mut problems, mut warnings) = (Problems::new(), Vec::new());
    let keys: Vec<String> = wishes.iter().map(|(key, _)| key.clone()).collect();
    for (key, value) in wishes {
        match GroupKind::find(&key) {
            None => draft.set_key(&key, value),
            Some(group) => match group.put(draft, value).map_err(|error| below(&key, error)) {
                Ok(more) => warnings.extend(more),
                Err(EditError::Invalid(found)) => problems.extend(found),
                Err(error) => return Err(error),
            },
        }
    }
    match file.overlaid(&draft.settings) {
        Ok(config) => {
            warnings.extend(advice(&config, draft.now(), &keys));
            if keys.iter().any(|key| key == ACCESS_POINT) {
                problems.extend(check_access_point(&config, world).err().unwrap_or_default());
            }
        }
        Err(found) => problems.extend(found),
    }
    if problems.is_empty() { Ok(warnings) } else { Err(EditError::Invalid(problems)) }
}

/// Collects the settings of a tree: a leaf is a node at a known key. Unknown keys become warnings.
fn flatten(tree: &Value, path: &str, wishes: &mut Vec<(String, Value)>, warnings: &mut Vec<Warning>) {
    let Value::Object(map) = tree else { return };
    for (name, value) in map {
        let key = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let known = all_keys().any(|known| known == key);
        let shown = value
            .get("value")
            .filter(|_| value.get("source").is_some() || value.as_object().is_some_and(|map| map.len() == 1));
        if known {
            wishes.push((key.clone(), shown.unwrap_or(value).clone()));
        }
        let is_parent = all_keys().any(|known| known.starts_with(&format!("{key}.")));
        if is_parent {
            flatten(value, &key, wishes, warnings);
        } else if !known && !["value", "source", "apply", "pending_restart"].contains(&name.as_str()) {
            warnings.push(Warning::new(key, "Unknown key, ignored."));
        }
    }
}
