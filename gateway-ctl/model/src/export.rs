//! Export of the configuration as a document, and its import.
//!
//! Accounts are not in it, nor the keys of the configuration file, which belong to the machine.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::bulk_edit::{self, Mode, Order, Outcome};
use crate::edit::EditError;
use crate::kinds::Exception;
use crate::problem::{Problems, Warning, code};
use crate::resource::Resource;
use crate::settings::group::{GROUPS, GroupKind, mark_of, parent_of};
use crate::state::State;

/// The name of the form of the document, before its number.
const FORM: &str = "gateway-config/";
/// The newest form this version reads, and the one it writes.
const NUMBER: u32 = 1;

/// An export.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Document {
    /// `gateway-config/1`
    pub schema: String,
    /// Version of the daemon that wrote the export.
    pub version: String,
    pub created_at: Option<Timestamp>,
    /// The gateway that wrote it.
    pub node: String,
    /// Revision of the exported store.
    pub revision: u64,
    /// Secrets are in it, in clear.
    pub secrets: bool,
    /// Collection to list of objects.
    pub resources: Map<String, Value>,
    /// Groups of settings, by key.
    pub settings: Map<String, Value>,
    /// The document itself, where it comes in the envelope of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<Document>>,
}

impl Document {
    /// Writes down a state.
    pub fn of(state: &State, secrets: bool, version: &str, node: &str, now: Timestamp) -> Document {
        let set = GROUPS.iter().filter(|group| state.settings.get(group.key).is_some());
        let shown = |group: &GroupKind| {
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
            (group.key.to_owned(), shown)
        };
        Document {
            schema: format!("{FORM}{NUMBER}"),
            version: version.to_owned(),
            created_at: Some(now),
            node: node.to_owned(),
            revision: state.revision.0,
            secrets,
            resources: bulk_edit::export(state, secrets),
            settings: set.map(shown).collect(),
            data: None,
        }
    }

    /// Parses the output of [`Document::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Document, Problems> {
        let read: Result<Document, _> = serde_json::from_slice(bytes);
        let document = read.map_err(|error| {
            let mut problems = Problems::new();
            problems.add(code::FORMAT, "", format!("This is no export of a gateway: {error}."));
            problems
        })?;
        document.accept()
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("a struct with string keys")
    }

    /// The document, if it is one and of a form that this version knows.
    pub fn accept(mut self) -> Result<Document, Problems> {
        if let Some(inner) = self.data.take() {
            self = *inner;
        }
        let mut problems = Problems::new();
        match self.schema.strip_prefix(FORM).map(str::parse::<u32>) {
            Some(Ok(1..=NUMBER)) => return Ok(self),
            Some(Ok(newer)) if newer > NUMBER => {
                let message = format!(
                    "This export has the form {FORM}{newer} and was written by a newer version ({}); this one reads up to {FORM}{NUMBER}.",
                    self.version
                );
                problems.add(code::NOT_SUPPORTED, "schema", message);
            }
            _ if self.schema.is_empty() => problems.required("schema"),
            _ => {
                let message = format!(
                    "This is no export of a gateway: expected {FORM}{NUMBER}, got {:?}.",
                    self.schema
                );
                problems.add(code::FORMAT, "schema", message);
            }
        }
        Err(problems)
    }

    /// Returns the plan that imports the objects.
    pub fn order(&self, mode: Mode) -> Order {
        Order { mode, resources: self.resources.clone(), force: true, redacted: !self.secrets, freeze: true }
    }

    /// Takes it in: objects, settings, and the policies come into force. No exception begins by it.
    pub fn import(&self, draft: &mut State, mode: Mode) -> Result<Outcome, Problems> {
        let mut order = self.order(mode);
        let left_out = leave_out_exceptions(&mut order, draft);
        let mut outcome = bulk_edit::change(draft, &order)?;
        outcome.warnings.extend(left_out);
        let mut problems = Problems::new();
        for (key, value) in &self.settings {
            let path = format!("settings.{key}");
            let Some(group) = GroupKind::find(key) else {
                outcome.warnings.push(Warning::new(path, "This version has no such settings; left out."));
                continue;
            };
            let before = group.shown(draft);
            if before == *value {
                continue;
            }
            match self.put_group(draft, group, value) {
                Ok(warnings) => outcome.warnings.extend(
                    warnings
                        .into_iter()
                        .map(|warning| Warning::new(join(&path, &warning.path), warning.message)),
                ),
                Err(EditError::Invalid(found)) => {
                    for problem in found.iter() {
                        problems
                            .add(problem.code, join(&path, &problem.path), problem.message.clone())
                            .allowed = problem.allowed.clone();
                    }
                }
                Err(error) => {
                    problems.add(code::CONFLICT, &path, error.to_string());
                }
            }
            if !self.secrets {
                let after = group.shown(draft);
                let has = |shown: &Value, name: &str| {
                    let (parent, mark) = mark_of(name);
                    let mut steps = parent.split('.').filter(|step| !step.is_empty());
                    let map = steps.try_fold(shown, |value, step| value.get(step));
                    map.and_then(|map| map.get(&mark)) == Some(&Value::Bool(true))
                };
                let lost = group.secrets.iter().filter(|name| has(value, name) && !has(&after, name));
                outcome.warnings.extend(lost.map(|name| {
                    Warning::new(
                        join(&path, name),
                        "This secret is not in the export; it has to be set anew.",
                    )
                }));
            }
        }
        if problems.is_empty() { Ok(outcome) } else { Err(problems) }
    }

    /// Imports an object disabled if it cannot work without a secret that the document lacks.
    fn put_group(
        &self,
        draft: &mut State,
        group: &GroupKind,
        value: &Value,
    ) -> Result<Vec<Warning>, EditError> {
        let result = group.put(draft, value.clone());
        let Err(EditError::Invalid(found)) = &result else { return result };
        let without = found
            .iter()
            .all(|problem| problem.code == code::REQUIRED && group.secrets.contains(&problem.path.as_str()));
        if self.secrets || !without || value.get("enabled") != Some(&Value::Bool(true)) {
            return result;
        }
        let mut off = value.clone();
        off["enabled"] = false.into();
        let mut warnings = group.put(draft, off)?;
        warnings.push(Warning::new("enabled", "Switched off: it needs a secret that is not in the export."));
        Ok(warnings)
    }
}

/// Leaves out the exceptions that are not here: taken in, they would begin again with all their time.
fn leave_out_exceptions(order: &mut Order, draft: &State) -> Vec<Warning> {
    let Some(Value::Array(list)) = order.resources.get_mut(Exception::COLLECTION) else { return Vec::new() };
    let is_here = |item: &Value| {
        let id = item.get("id").and_then(Value::as_str).and_then(|id| id.parse().ok());
        id.is_some_and(|id| draft.exceptions.contains(id))
    };
    let mut warnings = Vec::new();
    for (index, _) in list.iter().enumerate().filter(|(_, item)| item.is_object() && !is_here(item)) {
        let path = format!("resources.{}[{index}]", Exception::COLLECTION);
        warnings
            .push(Warning::new(path, "Left out: an import starts no exception. Make a new one if needed."));
    }
    list.retain(|item| !item.is_object() || is_here(item));
    warnings
}

fn join(path: &str, field: &str) -> String {
    if field.is_empty() { path.to_owned() } else { format!("{path}.{field}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        "2026-11-21T12:00:00Z".parse().unwrap()
    }

    fn state() -> State {
        let mut draft = State::new(now()).begin(now());
        let webhook = GroupKind::find("alerts.webhook").unwrap();
        webhook
            .put(&mut draft, json!({"url": "https://a.example/", "secret": "s3cret-s3cret-s3cret"}))
            .unwrap();
        draft
    }

    #[test]
    fn a_document_comes_back_as_it_was_and_applies_without_change() {
        for secrets in [true, false] {
            let state = state();
            let document = Document::of(&state, secrets, "1", "gw", now());
            let bytes = document.to_bytes();
            assert_eq!(String::from_utf8_lossy(&bytes).contains("s3cret-s3cret"), secrets);
            let read = Document::from_bytes(&bytes).unwrap();
            assert_eq!(read, document);
            let mut draft = state.begin(now());
            let outcome = read.import(&mut draft, Mode::Replace).unwrap();
            assert!(outcome.changes.iter().all(|change| change.op == bulk_edit::Op::Unchanged));
            assert_eq!(
                Document::of(&draft, true, "1", "gw", now()).settings,
                Document::of(&state, true, "1", "gw", now()).settings
            );
        }
    }

    #[test]
    fn a_redacted_secret_that_is_not_here_is_reported() {
        let document = Document::of(&state(), false, "1", "gw", now());
        let mut draft = State::new(now()).begin(now());
        let outcome = document.import(&mut draft, Mode::Replace).unwrap();
        assert!(
            outcome.warnings.iter().any(|warning| warning.path == "settings.alerts.webhook.secret"),
            "{:?}",
            outcome.warnings
        );
    }

    #[test]
    fn backups_without_their_passphrase_are_taken_in_switched_off() {
        let backup = GroupKind::find("backup.config").unwrap();
        let mut state = State::new(now()).begin(now());
        let target = json!({"type": "webdav", "url": "https://dav.example/", "username": "gw", "secret": "s3cret-of-dav"});
        let config = json!({"enabled": true, "target": target, "passphrase": "correct horse"});
        backup.put(&mut state, config).unwrap();
        for secrets in [true, false] {
            let document = Document::of(&state, secrets, "1", "gw", now());
            assert_eq!(String::from_utf8_lossy(&document.to_bytes()).contains("s3cret-of-dav"), secrets);
            let mut draft = State::new(now()).begin(now());
            let warnings = document.import(&mut draft, Mode::Replace).unwrap().warnings;
            let shown = backup.shown(&draft);
            assert_eq!(shown["enabled"], secrets);
            assert_eq!(shown["target"]["has_secret"], secrets);
            let paths: Vec<&str> = warnings.iter().map(|warning| warning.path.as_str()).collect();
            let warned = ["enabled", "passphrase", "target.secret"]
                .map(|name| format!("settings.backup.config.{name}"))
                .iter()
                .all(|path| paths.contains(&path.as_str()));
            assert!(secrets != warned, "{paths:?}");
        }
    }

    #[test]
    fn foreign_newer_and_damaged_documents_are_distinguished() {
        let rule = |text: &str| Document::from_bytes(text.as_bytes()).unwrap_err().list()[0].code;
        assert_eq!(rule("{"), code::FORMAT);
        assert_eq!(rule("{}"), code::REQUIRED);
        assert_eq!(rule(r#"{"schema": "other/1"}"#), code::FORMAT);
        assert_eq!(rule(r#"{"schema": "gateway-config/0"}"#), code::FORMAT);
        assert_eq!(rule(r#"{"schema": "gateway-config/2", "version": "9"}"#), code::NOT_SUPPORTED);
        assert!(Document::from_bytes(br#"{"data": {"schema": "gateway-config/1"}}"#).is_ok());
    }
}
