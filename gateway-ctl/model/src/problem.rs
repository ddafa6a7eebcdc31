//! Faults of an input, collected completely, each with the path of the field.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::capability::{Capability, refusal};

/// Codes of [`Problem::code`].
pub mod code {
    /// The field must be given.
    pub const REQUIRED: &str = "required";
    /// The value has another JSON type than the field.
    pub const TYPE: &str = "type";
    /// The text does not have the form that the field needs.
    pub const FORMAT: &str = "format";
    /// Too small, too large, too long or too many.
    pub const RANGE: &str = "range";
    /// Not one of the allowed values.
    pub const ENUM: &str = "enum";
    /// Names something that does not exist.
    pub const UNKNOWN_REFERENCE: &str = "unknown_reference";
    /// Contradicts another field.
    pub const CONFLICT: &str = "conflict";
    /// Given twice.
    pub const DUPLICATE: &str = "duplicate";
    /// At an invalid index of an ordered list.
    pub const ORDER: &str = "order";
    /// This build cannot do it.
    pub const NOT_SUPPORTED: &str = "not_supported";
    /// No field of that name (bootstrap configuration only).
    pub const UNKNOWN_KEY: &str = "unknown_key";
}

/// One wrong field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    /// Path of the field, such as `hops[1].type`. Empty for the whole body.
    pub path: String,
    /// JSON pointer (RFC 6901) of the field: `/hops/1/type`.
    pub pointer: String,
    /// Violated rule, one of [`code`].
    #[serde(rename = "rule")]
    pub code: &'static str,
    /// A sentence for people.
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<String>>,
}

/// Something that was accepted but is probably not meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Warning {
    pub path: String,
    pub message: String,
}

impl Warning {
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Warning {
        Warning { path: path.into(), message: message.into() }
    }
}

/// All that is wrong with one input, and all that is doubtful.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    list: Vec<Problem>,
    warnings: Vec<Warning>,
}

impl Problems {
    pub fn new() -> Problems {
        Problems::default()
    }

    /// No error; there may be warnings.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.list.iter()
    }

    pub fn list(&self) -> &[Problem] {
        &self.list
    }

    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    pub fn into_parts(self) -> (Vec<Problem>, Vec<Warning>) {
        (self.list, self.warnings)
    }

    /// Reports whether every problem has this code.
    pub fn all_are(&self, code: &str) -> bool {
        !self.list.is_empty() && self.list.iter().all(|problem| problem.code == code)
    }

    /// Reports whether a problem of this field was found already.
    pub fn has(&self, path: &str) -> bool {
        self.list.iter().any(|problem| problem.path == path)
    }

    pub fn add(
        &mut self,
        code: &'static str,
        path: impl Into<String>,
        message: impl Into<String>,
    ) -> &mut Problem {
        let path = path.into();
        let pointer = pointer(&path);
        self.list.push(Problem { path, pointer, code, message: message.into(), allowed: None });
        self.list.last_mut().expect("one was just pushed")
    }

    /// A missing field; once per field, and not where something else is wrong with it.
    pub fn required(&mut self, path: impl Into<String>) {
        let path = path.into();
        if !self.has(&path) {
            self.add(code::REQUIRED, path, "This field is required.");
        }
    }

    pub fn not_supported(&mut self, path: impl Into<String>, what: impl fmt::Display) {
        self.add(code::NOT_SUPPORTED, path, refusal(what));
    }

    /// Warns that a stored value needs a capability that is not in force.
    pub fn lacks(&mut self, path: &str, capability: Capability) {
        if let Some(warning) = capability.warning(path) {
            self.warn(path, warning);
        }
    }

    pub fn warn(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.warnings.push(Warning::new(path, message));
    }

    /// Adds the problems of another check.
    pub fn extend(&mut self, other: Problems) {
        self.list.extend(other.list);
        self.warnings.extend(other.warnings);
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.list.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            match problem.path.as_str() {
                "" => write!(f, "{separator}{}", problem.message)?,
                path => write!(f, "{separator}{path}: {}", problem.message)?,
            }
        }
        Ok(())
    }
}

/// `hops[1].type` as `/hops/1/type`.
fn pointer(path: &str) -> String {
    let mut pointer = String::new();
    for part in path.split(['.', '[']).filter(|part| !part.is_empty()) {
        pointer.push('/');
        pointer.push_str(&part.trim_end_matches(']').replace('~', "~0").replace('/', "~1"));
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_its_json_pointer() {
        assert_eq!(pointer("hops[1].type"), "/hops/1/type");
        assert_eq!(pointer(""), "");
        assert_eq!(pointer("a/b"), "/a~1b");
    }

    #[test]
    fn a_problem_shows_its_code_as_rule() {
        let mut problems = Problems::new();
        problems.add(code::ENUM, "hops[0].type", "No.").allowed = Some(vec!["vpn".into()]);
        let json = serde_json::to_value(problems.list()).unwrap();
        assert_eq!(json[0]["rule"], "enum");
        assert_eq!(json[0]["allowed"][0], "vpn");
        assert!(problems.all_are(code::ENUM));
    }
}
