//! Candidates for shell completions, requested at every key press: ids and names of the existing objects.
//!
//! On delay or error the output is empty. A completion must never block a shell, nor print an error into the line.

use std::time::Duration;

use clap_complete::CompletionCandidate;
use serde_json::Value;

use crate::client::Client;
use crate::escape;

const LIMIT: Duration = Duration::from_millis(500);

/// Returns the objects of a collection of the API.
pub(crate) fn objects(collection: &'static str) -> Vec<CompletionCandidate> {
    let Ok(client) = Client::from_environment() else { return Vec::new() };
    match client.with_timeout(LIMIT).get(collection) {
        Ok(answer) => choices(answer.data.as_array().map_or(&[][..], Vec::as_slice)),
        Err(_) => Vec::new(),
    }
}

/// Returns the candidates. It offers a name instead of the id if the name is unique and needs no quotes, because it is
/// easier to type.
fn choices(objects: &[Value]) -> Vec<CompletionCandidate> {
    let word =
        |object: &Value, name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut candidates = Vec::new();
    for object in objects {
        let (id, name) = (word(object, "id"), word(object, "name"));
        let alone = objects.iter().filter(|other| word(other, "name") == name).count() == 1;
        let (value, about) = if alone && is_plain(&name) {
            (name, id)
        } else {
            let about = ["name", "type", "state"].map(|field| word(object, field));
            (id, about.into_iter().find(|about| !about.is_empty()).unwrap_or_default())
        };
        if is_plain(&value) {
            candidates.push(CompletionCandidate::new(value).help(Some(escape::cell(&about).into())));
        }
    }
    candidates
}

/// Returns whether the shell would neither expand nor split the word, nor take it for an option.
fn is_plain(word: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    !word.is_empty() && !word.starts_with('-') && word.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unique_plain_names_stand_for_their_ids() {
        let objects = [
            json!({"id": "1", "name": "laptop"}),
            json!({"id": "2", "name": "tv"}),
            json!({"id": "3", "name": "tv"}),
            json!({"id": "4", "name": "the\tfridge $(reboot)"}),
            json!({"id": "5", "type": "quarantine"}),
            json!({"id": "$(reboot)", "name": "--x"}),
        ];
        let offered: Vec<String> = choices(&objects)
            .iter()
            .map(|one| format!("{} {}", one.get_value().display(), one.get_help().expect("a help")))
            .collect();
        assert_eq!(offered, ["laptop 1", "2 tv", "3 tv", "4 the\\tfridge $(reboot)", "5 quarantine"]);
    }
}
