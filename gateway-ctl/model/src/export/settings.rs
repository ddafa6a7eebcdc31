//! Settings of an export: what was set at run time, whatever key of the configuration file it shadows.
//!
//! The keys come from the registries, so none is forgotten; a test sets every one and restores it on a fresh gateway.
//! `complete` says that a document names every setting: only then does an import in place of the configuration take
//! others back. Values of the file are not imported, because they belong to the machine; those that differ are
//! warnings. A value that is valid with the file of the exporting gateway and not with the one here is left out with a
//! warning; one that is wrong with both is a fault. An applied form of a policy that is not valid here is a warning,
//! and the stored form is applied: without either, traffic of its devices would leave directly.

use serde_json::{Map, Value};

use super::{Document, join};
use crate::bulk_edit::Mode;
use crate::edit::EditError;
use crate::problem::{Problems, Warning, code};
use crate::settings::Bootstrap;
use crate::settings::group::{GROUPS, GroupKind, mark_of, parent_of};
use crate::settings::keys::{self, Apply};
use crate::state::State;

/// Settings that no export holds, beside the keys that only the configuration file sets; with the reason.
pub const NOT_EXPORTED: &[(&str, &str)] = &[
    (keys::NODE_ID, "identifies one installation"),
    (
        keys::SECRETS_PASSPHRASE,
        "seals the secrets of one store; an encrypted export has a passphrase of its own",
    ),
    (keys::AI_DEFAULT_MODEL, "is not set by this version"),
    (keys::AI_LLM_URL, "is not set by this version"),
];

/// Modes of [`keys::PQ_CRYPTO_MODE`].
pub const PQ_CRYPTO_MODES: &[&str] = &["default", "preferred", "required"];

/// Returns the keys of plain values that an export holds: all but the groups, which have secrets.
fn plain_keys() -> impl Iterator<Item = &'static str> {
    let of_file = keys::keys().filter(|key| keys::apply_of(key) != Some(Apply::File));
    let internal = keys::INTERNAL.iter().copied();
    of_file.chain(internal.filter(|key| !NOT_EXPORTED.iter().any(|(known, _)| known == key)))
}

/// Reports whether exports hold this setting.
pub(super) fn is_exported(key: &str) -> bool {
    GroupKind::find(key).is_some() || plain_keys().any(|known| known == key)
}

/// Returns all settings that were set at run time.
pub(super) fn set_at_run_time(state: &State, secrets: bool) -> Map<String, Value> {
    let plain = plain_keys().filter_map(|key| Some((key.to_owned(), state.exported_key(key, secrets)?)));
    let groups = GROUPS.iter().filter(|group| is_set(state, group));
    plain.chain(groups.map(|group| (group.key.to_owned(), group_form(state, group, secrets)))).collect()
}

/// Reports whether a group or one of its secrets is set.
fn is_set(state: &State, group: &GroupKind) -> bool {
    let has = |name: &&str| state.settings.secret(&format!("{}.{name}", group.key)).is_set();
    state.settings.get(group.key).is_some() || group.secrets.iter().any(has)
}

fn group_form(state: &State, group: &GroupKind, secrets: bool) -> Value {
    let mut shown = group.shown(state);
    for name in group.secrets.iter().filter(|_| secrets) {
        let (parent, mark) = mark_of(name);
        let Some(map) = parent_of(&mut shown, parent) else { continue };
        map.shift_remove(&mark);
        let secret = state.settings.secret(&format!("{}.{name}", group.key));
        if secret.is_set() {
            let leaf = name.rsplit('.').next().unwrap_or(name);
            map.insert(leaf.to_owned(), secret.expose().into());
        }
    }
    shown
}

/// Returns the values of the configuration file for keys that could be set at run time and are not.
pub(super) fn of_file(state: &State, file: &Bootstrap) -> Map<String, Value> {
    let shown = keys::shown(file);
    let given = plain_keys().filter(|key| file.is_given(key) && state.settings.get(key).is_none());
    given.filter_map(|key| Some((key.to_owned(), keys::at(&shown, key)?.clone()))).collect()
}

/// Imports the settings of a document. Returns the warnings.
pub(super) fn import(
    document: &Document,
    draft: &mut State,
    file: &Bootstrap,
    mode: Mode,
) -> Result<Vec<Warning>, Problems> {
    let (mut problems, mut warnings) = (Problems::new(), Vec::new());
    if document.complete && mode == Mode::Replace {
        take_back(document, draft);
    }
    for (key, value) in &document.settings {
        let path = format!("settings.{key}");
        if let Some(group) = GroupKind::find(key) {
            import_group(document, draft, group, value, &mut problems, &mut warnings);
        } else if is_exported(key) {
            if key == keys::PQ_CRYPTO_MODE && !PQ_CRYPTO_MODES.iter().any(|mode| value == mode) {
                problems.add(code::ENUM, &path, "Not a mode of post-quantum key exchange.").allowed =
                    Some(PQ_CRYPTO_MODES.iter().map(|mode| (*mode).to_owned()).collect());
                continue;
            }
            if keys::apply_of(key) == Some(Apply::Restart)
                && draft.exported_key(key, document.secrets).as_ref() != Some(value)
            {
                warnings.push(Warning::new(path, "Takes effect at the next start of the daemon."));
            }
            draft.set_key(key, value.clone());
            if !document.secrets {
                warnings.extend(draft.switch_off_without_secrets(key));
            }
        } else {
            warnings.push(Warning::new(path, "This version has no such setting; left out."));
        }
    }
    check(document, draft, file, &mut problems, &mut warnings);
    warnings.extend(of_other_file(document, draft, file));
    if problems.is_empty() { Ok(warnings) } else { Err(problems) }
}

/// Takes back the values that the document does not name.
fn take_back(document: &Document, draft: &mut State) {
    for key in plain_keys().filter(|key| !document.settings.contains_key(*key)) {
        draft.unset_key(key);
    }
    for group in GROUPS.iter().filter(|group| !document.settings.contains_key(group.key)) {
        draft.unset(group.key);
        for name in group.secrets {
            draft.unset(&format!("{}.{name}", group.key));
        }
    }
}

/// Checks the values with the configuration file of this gateway. Values that were valid with the file of the exporting
/// gateway and are not with this one are left out with a warning: the hardware is another one. Others are faults.
fn check(
    document: &Document,
    draft: &mut State,
    file: &Bootstrap,
    problems: &mut Problems,
    warnings: &mut Vec<Warning>,
) {
    let Err(found) = file.overlaid(&draft.settings) else { return };
    if let Err(faults) = Bootstrap::default().overlaid(&with_file(document, draft)) {
        for problem in faults.list() {
            let path = format!("settings.{}", problem.path);
            problems.add(problem.code, path, problem.message.clone()).allowed = problem.allowed.clone();
        }
        return;
    }
    let (_, left_out) = file.overlaid_or_less(&draft.settings);
    if left_out.is_empty() {
        problems.extend(found);
    }
    for (key, why) in left_out {
        draft.unset_key(&key);
        let message = format!("Left out: it conflicts with the configuration file of this gateway. {why}");
        warnings.push(Warning::new(format!("settings.{key}"), message));
    }
}

/// Returns the settings of the draft over the values of the exporting gateway's file.
fn with_file(document: &Document, draft: &State) -> crate::settings::Settings {
    let mut draft = draft.clone();
    for (key, value) in &document.file {
        if draft.settings.get(key).is_none() && is_exported(key) {
            draft.set_key(key, value.clone());
            draft.switch_off_without_secrets(key);
        }
    }
    draft.settings
}

/// Returns warnings about values that the exporting gateway had from its configuration file and that differ here.
fn of_other_file(document: &Document, draft: &State, file: &Bootstrap) -> Vec<Warning> {
    let (here, _) = file.overlaid_or_less(&draft.settings);
    let here = keys::shown(&here);
    let differs = |(key, value): (&String, &Value)| {
        let have = keys::at(&here, key).unwrap_or(&Value::Null);
        (have != value).then(|| {
            let message = format!(
                "The gateway that was exported has {value} from its configuration file; this one has {have}, which stays."
            );
            Warning::new(format!("file.{key}"), message)
        })
    };
    document.file.iter().filter_map(differs).collect()
}

fn import_group(
    document: &Document,
    draft: &mut State,
    group: &GroupKind,
    value: &Value,
    problems: &mut Problems,
    warnings: &mut Vec<Warning>,
) {
    let path = format!("settings.{}", group.key);
    if group.shown(draft) == *value {
        return;
    }
    match put_group(document, draft, group, value) {
        Ok(more) => warnings.extend(
            more.into_iter().map(|warning| Warning::new(join(&path, &warning.path), warning.message)),
        ),
        Err(EditError::Invalid(found)) => {
            for problem in found.iter() {
                problems.add(problem.code, join(&path, &problem.path), problem.message.clone()).allowed =
                    problem.allowed.clone();
            }
        }
        Err(error) => {
            problems.add(code::CONFLICT, &path, error.to_string());
        }
    }
    if document.secrets {
        return;
    }
    let after = group.shown(draft);
    let has = |shown: &Value, name: &str| {
        let (parent, mark) = mark_of(name);
        let mut steps = parent.split('.').filter(|step| !step.is_empty());
        let map = steps.try_fold(shown, |value, step| value.get(step));
        map.and_then(|map| map.get(&mark)) == Some(&Value::Bool(true))
    };
    let lost = group.secrets.iter().filter(|name| has(value, name) && !has(&after, name));
    warnings.extend(lost.map(|name| {
        Warning::new(join(&path, name), "This secret is not in the export; it has to be set again.")
    }));
}

/// Imports a group disabled if it cannot work without a secret that the document lacks.
fn put_group(
    document: &Document,
    draft: &mut State,
    group: &GroupKind,
    value: &Value,
) -> Result<Vec<Warning>, EditError> {
    let result = group.put(draft, value.clone());
    let Err(EditError::Invalid(found)) = &result else { return result };
    let without = found
        .iter()
        .all(|problem| problem.code == code::REQUIRED && group.secrets.contains(&problem.path.as_str()));
    if document.secrets || !without || value.get("enabled") != Some(&Value::Bool(true)) {
        return result;
    }
    let mut off = value.clone();
    off["enabled"] = false.into();
    let mut warnings = group.put(draft, off)?;
    warnings.push(Warning::new("enabled", "Switched off: it needs a secret that is not in the export."));
    Ok(warnings)
}
