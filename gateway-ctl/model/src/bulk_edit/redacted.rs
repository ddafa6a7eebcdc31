//! Items of an export without secrets: objects that cannot be made without theirs, and those that depend on them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Item, join};
use crate::edit::EditError;
use crate::problem::{Problems, Warning, code};
use crate::state::State;

/// Items that were left out, by each text that refers to them.
#[derive(Default)]
pub(super) struct LeftOut(BTreeMap<String, String>);

impl LeftOut {
    pub(super) fn add(&mut self, item: &Item) {
        let field = |key: &str| item.input.get(key).and_then(Value::as_str).map(str::to_owned);
        let name = field("name").unwrap_or_else(|| item.id.to_string());
        let label = format!("{} {name:?}", item.kind.noun.replace('_', " "));
        let texts = [Some(item.id.to_string()), field("id"), field("name")];
        self.0.extend(texts.into_iter().flatten().map(|text| (text, label.clone())));
    }

    /// Leaves out the items whose missing references are all to items that were left out, with a warning each. Returns
    /// true if there were any.
    pub(super) fn take_dependants(
        &mut self,
        waiting: &mut Vec<(Item, EditError)>,
        warnings: &mut Vec<Warning>,
    ) -> bool {
        let count = waiting.len();
        for (item, error) in std::mem::take(waiting) {
            match self.missing(&item, &error) {
                Some(what) => {
                    let message = format!("Left out: it refers to {what}, which was left out.");
                    warnings.push(Warning::new(&item.path, message));
                    self.add(&item);
                }
                None => waiting.push((item, error)),
            }
        }
        waiting.len() < count
    }

    /// Returns what an item refers to, if nothing else keeps it from being written.
    fn missing(&self, item: &Item, error: &EditError) -> Option<String> {
        let EditError::Invalid(found) = error else { return None };
        let label = |pointer: &str| self.0.get(item.input.pointer(pointer)?.as_str()?.trim());
        let labels: Option<Vec<&String>> = found.iter().map(|problem| label(&problem.pointer)).collect();
        let mut labels = labels?;
        labels.dedup();
        let labels: Vec<&str> = labels.into_iter().map(String::as_str).collect();
        Some(labels.join(", "))
    }
}

/// A new object of an export: all that is wrong with it is that secrets were taken out.
pub(super) fn lacks_only_secrets(item: &Item, found: &Problems) -> bool {
    let redacted = |path: &str| {
        let (parent, field) = path.rsplit_once('.').map_or(("", path), |(parent, field)| (parent, field));
        let pointer: String = parent
            .split(['.', '['])
            .filter(|part| !part.is_empty())
            .fold(String::new(), |pointer, part| pointer + "/" + part.trim_end_matches(']'));
        item.input.pointer(&format!("{pointer}/has_{field}")) == Some(&Value::Bool(true))
    };
    found.iter().all(|problem| problem.code == code::REQUIRED && redacted(&problem.path))
}

/// A new object of an export has none of the secrets that were taken out.
pub(super) fn warn(before: &State, item: &Item, warnings: &mut Vec<Warning>) {
    if item.kind.secrets.is_empty() || item.kind.find(before, &item.id.to_string()).is_some() {
        return;
    }
    fn walk(value: &Value, path: &str, missing: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    match key.strip_prefix("has_") {
                        Some(field) if *value == Value::Bool(true) && !map.contains_key(field) => {
                            missing.push(join(path, field));
                        }
                        _ => walk(value, &join(path, key), missing),
                    }
                }
            }
            Value::Array(list) => {
                list.iter()
                    .enumerate()
                    .for_each(|(index, value)| walk(value, &format!("{path}[{index}]"), missing));
            }
            _ => {}
        }
    }
    let mut missing = Vec::new();
    walk(&item.input, "", &mut missing);
    let warned = missing.into_iter().map(|path| {
        Warning::new(join(&item.path, &path), "This secret is not in the export; it has to be set again.")
    });
    warnings.extend(warned);
}
