//! JSON into a type, with every wrong field reported and not only the first.
//!
//! Serde stops at the first error. Here the offending value is taken out and decoding starts again, so
//! types decoded this way give each field a default; which fields must be present is checked beside it.

mod reader;
mod step;

use std::cell::RefCell;

use serde::de::DeserializeOwned;
use serde_json::Value;

use self::reader::Trace;
pub use self::step::{Step, path_text};
use crate::problem::{Problems, code};

/// Maximum number of reported problems.
const MAX_PROBLEMS: usize = 200;

/// Decoded input with its warnings.
#[derive(Debug)]
pub struct Decoded<T> {
    pub value: T,
    /// Paths of keys that the type does not know.
    pub unknown: Vec<String>,
    /// Paths of lists that lost elements to problems: indices into them do not hold any more.
    shortened: Vec<String>,
}

impl<T> Decoded<T> {
    /// Adds the problems of a check of the value, without those that follow from removed values.
    pub fn merge(&self, problems: &mut Problems, found: Problems) {
        let (list, warnings) = found.into_parts();
        let stale = |path: &str| {
            self.shortened.iter().any(|list| {
                path.strip_prefix(list.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('['))
            })
        };
        for problem in list {
            if !problems.has(&problem.path) && !stale(&problem.path) {
                problems.add(problem.code, problem.path, problem.message).allowed = problem.allowed;
            }
        }
        for warning in warnings {
            problems.warn(warning.path, warning.message);
        }
    }
}

/// Decodes, with one problem per wrong value. `None`: not even the whole has the right type.
/// Values at the paths of `secrets` (`peers[].preshared_key`) are not quoted in messages.
pub fn decode<T: DeserializeOwned>(
    value: Value,
    secrets: &[&str],
    problems: &mut Problems,
) -> Option<Decoded<T>> {
    let mut decoded = None;
    let mut attempt = |value: &Value, trace: &Trace| {
        decoded = Some(reader::read(value, trace)?);
        Ok(())
    };
    let (unknown, shortened) = repeat(&mut attempt, value, secrets, problems)?;
    Some(Decoded { value: decoded?, unknown, shortened })
}

/// Attempts until no wrong value is left. Returns the paths of unknown keys, and of lists that lost elements. Not generic:
/// there are a hundred types.
fn repeat(
    attempt: &mut dyn FnMut(&Value, &Trace) -> Result<(), serde_json::Error>,
    mut value: Value,
    secrets: &[&str],
    problems: &mut Problems,
) -> Option<(Vec<String>, Vec<String>)> {
    let mut removed: Vec<Removed> = Vec::new();
    loop {
        let trace = Trace { ignored: Some(RefCell::default()), ..Trace::default() };
        let Err(error) = attempt(&value, &trace) else {
            let unknown = trace.ignored.map(RefCell::into_inner).unwrap_or_default();
            return Some((unknown, removed.iter().map(|gone| path_text(&gone.list)).collect()));
        };
        let path = trace.failed_at.into_inner().unwrap_or_default();
        let mut shown = original_path(&path, &removed);
        let text = error.to_string();
        if let Some(field) = quoted(text.strip_prefix("missing field ").unwrap_or_default()).next() {
            shown.push(Step::Key(field.to_owned()));
            problems.required(path_text(&shown));
        } else {
            report(&path_text(&shown), &text, secrets, problems);
        }
        if problems.len() >= MAX_PROBLEMS || !remove_at(&mut value, &path, &mut removed) {
            return None;
        }
    }
}

/// An element that was taken out of a list.
struct Removed {
    /// Path of the list, with original indices.
    list: Vec<Step>,
    index: usize,
}

/// Reads a value that the gateway itself has stored. Unknown keys are ignored; the first error is returned.
pub fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T, serde_json::Error> {
    reader::read(value, &Trace::default())
}

/// Takes the value at the path out of the input. False when there is nothing that could be taken.
fn remove_at(value: &mut Value, path: &[Step], removed: &mut Vec<Removed>) -> bool {
    let Some((last, parents)) = path.split_last() else { return false };
    let mut node = value;
    for step in parents {
        let next = match (step, node) {
            (Step::Key(key), Value::Object(map)) => map.get_mut(key),
            (Step::Index(index), Value::Array(list)) => list.get_mut(*index),
            _ => None,
        };
        match next {
            Some(next) => node = next,
            None => return false,
        }
    }
    match (last, node) {
        (Step::Key(key), Value::Object(map)) => map.shift_remove(key).is_some(),
        (Step::Index(index), Value::Array(list)) if *index < list.len() => {
            list.remove(*index);
            let Some((Step::Index(index), list)) =
                original_path(path, removed).split_last().map(|(last, list)| (last.clone(), list.to_vec()))
            else {
                return false;
            };
            removed.push(Removed { list, index });
            true
        }
        _ => false,
    }
}

/// The path in the input as it was given, before elements were taken out.
fn original_path(path: &[Step], removed: &[Removed]) -> Vec<Step> {
    let mut original: Vec<Step> = Vec::with_capacity(path.len());
    for step in path {
        let step = match step {
            Step::Key(key) => Step::Key(key.clone()),
            Step::Index(index) => {
                let mut gone: Vec<usize> = removed
                    .iter()
                    .filter(|removed| removed.list == original)
                    .map(|removed| removed.index)
                    .collect();
                gone.sort_unstable();
                Step::Index(
                    gone.iter().fold(*index, |index, gone| if *gone <= index { index + 1 } else { index }),
                )
            }
        };
        original.push(step);
    }
    original
}

/// Turns serde's words into a problem.
fn report(path: &str, text: &str, secrets: &[&str], problems: &mut Problems) {
    if secrets.contains(&pattern(path).as_str()) {
        problems.add(code::TYPE, path, "Expected a string.");
        return;
    }
    if let Some((_, expected)) =
        text.strip_prefix("unknown variant").and_then(|rest| rest.rsplit_once(", expected"))
    {
        let allowed: Vec<String> = quoted(expected).map(str::to_owned).collect();
        let message = format!("Must be one of {}.", allowed.join(", "));
        problems.add(code::ENUM, path, message).allowed = Some(allowed);
    } else if let Some((got, expected)) =
        text.strip_prefix("invalid type: ").and_then(|rest| rest.rsplit_once(", expected "))
    {
        problems.add(code::TYPE, path, format!("Expected {}, got {got}.", plain(expected)));
    } else if let Some((got, expected)) =
        text.strip_prefix("invalid value: ").and_then(|rest| rest.rsplit_once(", expected "))
    {
        problems.add(code::RANGE, path, format!("Expected {}, got {got}.", plain(expected)));
    } else if is_about_time(text) {
        problems.add(code::FORMAT, path, "Expected a time such as 2026-11-20T12:00:00Z.");
    } else {
        let mut chars = text.chars();
        let sentence = chars
            .next()
            .map(|first| first.to_uppercase().chain(chars).collect::<String>())
            .unwrap_or_default();
        problems.add(code::FORMAT, path, format!("{}.", sentence.trim_end_matches('.')));
    }
}

/// Returns true for errors of the time library, whose texts do not say what is expected.
fn is_about_time(text: &str) -> bool {
    const STEPS: [&str; 6] = [
        "two digit",
        "four digit",
        "required for parsing a timestamp",
        "unparsed input",
        "parsed date",
        "UTC numeric offset",
    ];
    STEPS.iter().any(|step| text.contains(step))
}

/// `peers[3].preshared_key` as `peers[].preshared_key`.
fn pattern(path: &str) -> String {
    path.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// Names of Rust types as human-readable text.
fn plain(expected: &str) -> &str {
    match expected {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" | "u64" => "a whole number, not negative",
        "i32" | "i64" => "a whole number",
        "f32" | "f64" => "a number",
        "a sequence" => "a list",
        "a map" => "an object",
        "a boolean" => "true or false",
        "string or map" => "a string",
        other => match other.strip_prefix("struct ") {
            Some(_) => "an object",
            None => other,
        },
    }
}

/// The words between back-ticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default)]
    struct Sample {
        name: String,
        port: u16,
        mode: Mode,
        macs: Vec<crate::MacAddr>,
        parts: Vec<Part>,
        key: crate::Secret,
        at: Option<jiff::Timestamp>,
        share: f64,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Part {
        r#type: Mode,
        #[serde(default)]
        size: u8,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Mode {
        #[default]
        Slow,
        Fast,
    }

    fn problems_of(value: Value) -> Vec<(String, &'static str, String)> {
        let mut problems = Problems::new();
        decode::<Sample>(value, &["key"], &mut problems);
        problems.iter().map(|p| (p.path.clone(), p.code, p.message.clone())).collect()
    }

    #[test]
    fn every_wrong_field_is_reported_at_its_original_path() {
        let found = problems_of(json!({
            "name": 3, "port": 70000, "mode": "medium",
            "macs": ["bad", "02:42:ac:11:00:02", "worse", 7],
            "parts": [{"type": "fast", "size": 300}, {"size": 1}, {"type": "swift"}, {"type": "slow", "size": "x"}],
        }));
        let paths: Vec<(&str, &str)> = found.iter().map(|(path, code, _)| (path.as_str(), *code)).collect();
        assert_eq!(
            paths,
            [
                ("name", "type"),
                ("port", "range"),
                ("mode", "enum"),
                ("macs[0]", "format"),
                ("macs[2]", "format"),
                ("macs[3]", "type"),
                ("parts[0].size", "range"),
                ("parts[1].type", "required"),
                ("parts[2].type", "enum"),
                ("parts[3].size", "type"),
            ]
        );
        assert_eq!(found[0].2, "Expected a string, got integer `3`.");
    }

    #[test]
    fn unknown_keys_are_named_and_do_no_harm() {
        let mut problems = Problems::new();
        let decoded =
            decode::<Sample>(json!({"nam": 1, "parts": [{"type": "fast", "colour": 2}]}), &[], &mut problems)
                .unwrap();
        assert!(problems.is_empty());
        assert_eq!(decoded.unknown, ["nam", "parts[0].colour"]);
    }

    #[test]
    fn a_secret_of_the_wrong_type_is_not_quoted() {
        assert_eq!(
            problems_of(json!({"key": 123456})),
            [("key".into(), "type", "Expected a string.".into())]
        );
    }

    #[test]
    fn wrong_times_and_numbers_are_described_in_plain_words() {
        for at in [
            "tomorrow",
            "2026",
            "2026-13-01T00:00:00Z",
            "2026-02-30T00:00:00Z",
            "2026-11-20",
            "2026-11-20T12:00:00",
            "2026-11-20T12:00:00Zx",
            "2026-11-20T12:00:00+99:00",
            "",
        ] {
            let found = problems_of(json!({ "at": at }));
            let want = "Expected a time such as 2026-11-20T12:00:00Z.";
            assert_eq!(found, [("at".into(), "format", want.into())], "{at}");
        }
        let found = problems_of(json!({"share": "much"}));
        assert_eq!(found[0].2, "Expected a number, got string \"much\".");
    }

    #[test]
    fn a_body_that_is_no_object_is_one_problem() {
        assert_eq!(problems_of(json!("text")).len(), 1);
        assert_eq!(problems_of(json!(7)).len(), 1);
    }

    #[test]
    fn the_allowed_values_of_an_enum_are_listed() {
        let mut problems = Problems::new();
        decode::<Sample>(json!({"mode": "x, expected `y`"}), &[], &mut problems);
        assert_eq!(problems.list()[0].allowed.as_deref(), Some(&["slow".to_owned(), "fast".to_owned()][..]));
    }
}
