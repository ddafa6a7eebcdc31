//! Failures, with their text for people and their exit code for scripts.

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::address::{self, Address};
use crate::escape;
use crate::grammar::Method;

/// Exit codes, for the help and the manual page.
pub(crate) const EXIT_CODES: &[(u8, &str)] = &[
    (0, "done; an empty list too"),
    (1, "the request failed: the gateway could not do it, or does not support it"),
    (2, "the command line or the JSON is not valid; nothing was sent"),
    (3, "the gateway cannot be reached, or did not answer in time"),
    (4, "sign-in is required, or the role does not allow it (401, 403)"),
    (5, "there is no such object (404)"),
    (6, "the request was rejected (400, 409, 412, 413, 415, 422, 429)"),
    (7, "the check ran, and its answer is bad (verify, leak-check, test-definitions run)"),
    (130, "ended by Ctrl-C"),
];

#[derive(Debug)]
pub(crate) enum Failure {
    /// Error in the command line or its input: nothing was sent.
    Usage(Usage),
    /// Error in the words of the command line, with clap's text.
    CommandLine(String),
    /// The gateway did not respond.
    Unreachable {
        address: Address,
        reason: String,
        /// Advice that fits this reason better than the usual one.
        advice: Option<String>,
    },
    Refused(Box<Refusal>),
    /// Error of neither the daemon nor the user, such as a response from another program.
    Other(String),
    /// The reader of standard output closed it.
    Closed,
}

#[derive(Debug, Default)]
pub(crate) struct Usage {
    pub message: String,
    /// Lines below the message, with the correct usage.
    pub advice: Vec<String>,
}

/// Error response of the gateway.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub method: Method,
    pub url: String,
    pub had_body: bool,
    pub status: u16,
    pub code: String,
    pub message: String,
    pub details: Map<String, Value>,
    /// Seconds, from `Retry-After`.
    pub retry_after: Option<u64>,
}

impl From<address::Invalid> for Failure {
    fn from(invalid: address::Invalid) -> Self {
        Failure::usage(invalid.message).advise(address::Invalid::ADVICE)
    }
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Failure::Usage(Usage { message: message.into(), advice: Vec::new() })
    }

    /// Adds a line to a usage failure. Other failures have their own advice.
    pub(crate) fn advise(mut self, line: impl Into<String>) -> Self {
        if let Failure::Usage(usage) = &mut self {
            usage.advice.push(line.into());
        }
        self
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage(_) | Failure::CommandLine(_) => 2,
            Failure::Unreachable { .. } => 3,
            Failure::Refused(refusal) => refusal.exit_code(),
            Failure::Other(_) => 1,
            Failure::Closed => 0,
        }
    }

    /// Returns the text for standard error; it ends with a newline.
    pub(crate) fn text(&self) -> String {
        match self {
            Failure::Usage(usage) => {
                let mut text = format!("error: {}\n", escape::text(&usage.message));
                for line in &usage.advice {
                    push_line(&mut text, line);
                }
                text
            }
            Failure::CommandLine(text) => {
                text.lines().map(|line| format!("{}\n", escape::text(line))).collect()
            }
            Failure::Unreachable { address, reason, advice } => {
                let mut text =
                    format!("error: cannot reach the gateway at {address}: {}\n", escape::text(reason));
                match advice {
                    Some(advice) => push_line(&mut text, advice),
                    None => push_line(
                        &mut text,
                        "Running? systemctl status gatewayd     Elsewhere? GATEWAY_ADDR=192.168.1.1:8080 gateway-ctl status",
                    ),
                }
                push_line(
                    &mut text,
                    "This says nothing about traffic. Rules now in the kernel: sudo bpftool net",
                );
                text
            }
            Failure::Refused(refusal) => refusal.text(),
            Failure::Other(message) => format!("error: {}\n", escape::text(message)),
            Failure::Closed => String::new(),
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Failure::Refused(Box::new(refusal))
    }
}

/// Paths of dry runs.
const CHECKS: &[&str] = &["/validate", "/policy/conflicts", "/policy/evaluate"];

/// Details that say more than the message, with their labels.
const TELLING: &[(&str, &str)] = &[
    ("allowed", "allowed"),
    ("existing_id", "existing object"),
    ("policies", "policies"),
    ("references", "referenced by"),
    ("required_role", "required role"),
    ("role", "role"),
    ("stage", "stage"),
    ("kernel_message", "kernel"),
    ("limit_bytes", "limit in bytes"),
    ("line", "line"),
    ("column", "column"),
];

impl Refusal {
    pub(crate) fn exit_code(&self) -> u8 {
        match self.status {
            401 | 403 => 4,
            404 => 5,
            400 | 409 | 412 | 413 | 415 | 422 | 429 => 6,
            _ => 1,
        }
    }

    /// Returns the message without its full stop.
    pub(crate) fn sentence(&self) -> &str {
        self.message.trim_end().trim_end_matches('.')
    }

    fn text(&self) -> String {
        let mut text = format!("error: {} ({} {})\n", escape::text(self.sentence()), self.status, self.code);
        self.push_fields(&mut text);
        for (name, words) in TELLING {
            match self.details.get(*name) {
                None => {}
                Some(Value::Array(list)) if list.is_empty() => {}
                Some(Value::Object(references)) if *name == "references" => {
                    push_line(&mut text, &format!("{words}: {}", counts(references)));
                }
                Some(value) => push_line(&mut text, &format!("{words}: {}", plain(value))),
            }
        }
        for line in self.next_step() {
            push_line(&mut text, &line);
        }
        text
    }

    /// Adds one aligned line for each field. A single field is omitted if the message contains it.
    fn push_fields(&self, text: &mut String) {
        let fields = self.details.get("fields").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if fields.len() < 2 && fields.iter().all(|field| self.message.contains(word(field, "message"))) {
            return;
        }
        let width = fields.iter().map(|field| word(field, "path").chars().count()).max().unwrap_or(0);
        for field in fields {
            let (path, message) = (escape::text(word(field, "path")), escape::text(word(field, "message")));
            push_line(text, &format!("{path:width$}  {message}"));
        }
    }

    fn next_step(&self) -> Vec<String> {
        let mut lines = Vec::new();
        match self.status {
            401 if self.method == Method::Get => {
                lines.push(
                    "The client carries no credential, so with auth enabled it can only read, and only where"
                        .into(),
                );
                lines.push(
                    "auth.local_net allows it: on the gateway itself, and neither logs, the audit trail nor secrets."
                        .into(),
                );
                lines.push(self.elsewhere());
            }
            401 if self.is_check() => {
                lines.push(
                    "This changes nothing, but with auth enabled it needs a credential, and the client carries none."
                        .into(),
                );
                lines.push(self.elsewhere());
            }
            401 => {
                lines.push(
                    "This changes state and the client carries no credential, so with auth enabled it can only read."
                        .into(),
                );
                lines.push(self.elsewhere());
            }
            429 => lines.extend(self.retry_after.map(|seconds| format!("Try again in {seconds} s."))),
            500 => {
                if let Some(Value::String(id)) = self.details.get("request_id") {
                    lines
                        .push(format!("More in its log: journalctl -u gatewayd | grep {}", escape::text(id)));
                }
            }
            503 => lines.push("What it says of itself: gateway-ctl health".into()),
            _ => {}
        }
        lines
    }

    /// Returns true for requests other than GET that change nothing.
    fn is_check(&self) -> bool {
        CHECKS.iter().any(|path| self.url.ends_with(path))
    }

    fn elsewhere(&self) -> String {
        let body = if self.had_body { "-H 'Content-Type: application/json' -d @FILE " } else { "" };
        format!("Use: curl -X {} -H \"Authorization: Bearer $KEY\" {body}{}", self.method.as_str(), self.url)
    }
}

fn push_line(text: &mut String, line: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "  {line}");
}

fn word<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns `routing_policies 2, devices 1`: the referring objects of a references result.
fn counts(references: &Map<String, Value>) -> String {
    let Some(Value::Object(kinds)) = references.get("referenced_by") else {
        return plain(&Value::Object(references.clone()));
    };
    let mut list = Vec::new();
    for (kind, count) in kinds.iter().filter(|(_, count)| count.as_u64() != Some(0)) {
        list.push(format!("{} {count}", escape::text(kind)));
    }
    list.join(", ")
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => escape::text(text),
        Value::Array(list) => list.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => escape::text(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(method: Method, status: u16, code: &str, message: &str, details: Value) -> Refusal {
        let address = Address::parse("localhost:8080").unwrap();
        Refusal {
            method,
            url: address.url("/devices/1"),
            had_body: false,
            status,
            code: code.to_owned(),
            message: message.to_owned(),
            details: details.as_object().unwrap().clone(),
            retry_after: None,
        }
    }

    #[test]
    fn all_wrong_fields_are_reported_under_one_another() {
        let details = json!({"fields": [
            {"path": "name", "message": "is required"},
            {"path": "mac", "message": "must be a MAC address like 02:42:ac:11:00:02 (got \"zz\")"},
        ]});
        let refusal = refusal(Method::Post, 422, "validation_failed", "2 fields are not valid.", details);
        assert_eq!(
            Failure::from(refusal).text(),
            "error: 2 fields are not valid (422 validation_failed)\n  \
             name  is required\n  \
             mac   must be a MAC address like 02:42:ac:11:00:02 (got \"zz\")\n"
        );
    }

    #[test]
    fn a_single_field_is_not_reported_twice() {
        let details = json!({"fields": [{"path": "name", "message": "is required"}]});
        let refusal = refusal(Method::Post, 422, "validation_failed", "name: is required", details);
        assert_eq!(refusal.text(), "error: name: is required (422 validation_failed)\n");
    }

    #[test]
    fn a_change_without_a_credential_says_how_to_make_it() {
        let refusal = refusal(Method::Delete, 401, "unauthenticated", "Sign-in is required.", json!({}));
        let text = refusal.text();
        assert!(text.starts_with("error: Sign-in is required (401 unauthenticated)\n"), "{text}");
        assert!(text.contains("This changes state"), "{text}");
        assert!(
            text.contains(
                "curl -X DELETE -H \"Authorization: Bearer $KEY\" http://localhost:8080/api/v1/devices/1"
            ),
            "{text}"
        );
        assert_eq!(refusal.exit_code(), 4);
    }

    #[test]
    fn dry_runs_are_not_called_changes() {
        for path in CHECKS {
            let mut refusal =
                refusal(Method::Post, 401, "unauthenticated", "Sign-in is required.", json!({}));
            refusal.url = Address::parse("localhost:8080").unwrap().url(path);
            let text = refusal.text();
            assert!(text.contains("This changes nothing") && !text.contains("changes state"), "{text}");
            assert!(!text.contains("web UI"), "{text}");
        }
    }

    #[test]
    fn references_to_an_object_are_counted() {
        let details = json!({"references": {"type": "device", "referenced_by": {"device_groups": 0, "routing_policies": 2}}});
        let refusal = refusal(Method::Delete, 409, "in_use", "Other objects refer to it.", details);
        assert_eq!(
            refusal.text(),
            "error: Other objects refer to it (409 in_use)\n  referenced by: routing_policies 2\n"
        );
    }

    #[test]
    fn the_exit_codes_are_those_of_the_manual() {
        let code = |status| refusal(Method::Get, status, "x", "x", json!({})).exit_code();
        assert_eq!([400, 409, 412, 413, 415, 422, 429].map(code), [6; 7]);
        assert_eq!([401, 403].map(code), [4; 2]);
        assert_eq!(code(404), 5);
        assert_eq!([405, 500, 501, 502, 503, 504, 507].map(code), [1; 7]);
    }

    #[test]
    fn a_hostile_message_does_not_reach_the_terminal() {
        let refusal = refusal(Method::Get, 400, "bad_request", "\u{1b}[2J gone", json!({}));
        assert!(!refusal.text().contains('\u{1b}'));
    }
}
