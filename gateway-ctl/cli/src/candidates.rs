//! Candidates for shell completions, requested at every key press: ids and names of the existing objects.
//!
//! On delay or error the output is empty. A completion must never block a shell, nor print an error into the line.

use std::time::Duration;

use serde_json::Value;

use crate::client::Client;
use crate::grammar::{Command, Kind};
use crate::{escape, request};

const LIMIT: Duration = Duration::from_millis(500);

/// Returns one line for each candidate: the word, a tab, its description. `words` are a kind and, if it has any, a
/// verb.
pub fn lines(table: &[Kind], words: &[String]) -> String {
    let collection =
        command(table, words).and_then(request::object_operand).map(|(_, collection)| collection);
    let Some(collection) = collection else { return String::new() };
    let Ok(client) = Client::from_environment() else { return String::new() };
    match client.with_timeout(LIMIT).get(collection) {
        Ok(answer) => choices(answer.data.as_array().map_or(&[][..], Vec::as_slice)),
        Err(_) => String::new(),
    }
}

fn command<'a>(table: &'a [Kind], words: &[String]) -> Option<&'a Command> {
    let (kind, rest) = words.split_first()?;
    let kind = table.iter().find(|known| known.name == kind)?;
    let verb = rest.first().and_then(|verb| kind.command(verb));
    verb.or_else(|| kind.default_command())
}

/// Returns the candidates. It offers a name instead of the id if the name is unique and needs no quotes, because it is
/// easier to type.
fn choices(objects: &[Value]) -> String {
    let word =
        |object: &Value, name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut text = String::new();
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
            text.push_str(&format!("{value}\t{}\n", escape::cell(&about)));
        }
    }
    text
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
        assert_eq!(choices(&objects), "laptop\t1\n2\ttv\n3\ttv\n4\tthe\\tfridge $(reboot)\n5\tquarantine\n");
    }

    #[test]
    fn only_commands_that_take_an_object_have_candidates() {
        let table = crate::commands::table();
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let collection = |line: &str| {
            command(&table, &words(line)).and_then(request::object_operand).map(|(_, collection)| collection)
        };
        assert_eq!(collection("devices get"), Some("/devices"));
        assert_eq!(collection("evaluate"), Some("/devices"));
        assert_eq!(collection("devices create"), None);
        assert_eq!(collection("nothing"), None);
    }
}
