//! Message for a topic of ntfy: the text is the body, and headers have the rest.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gateway_model::settings::groups::Severity;

use super::payload::Payload;
use super::{AlertSnapshot, Sender, Transition};

pub(crate) fn payload(transition: Transition, alert: &AlertSnapshot, sender: &Sender) -> Payload {
    let (priority, tag) = match (transition, alert.severity) {
        (Transition::Resolved, _) => ("3", "white_check_mark"),
        (Transition::Firing, Severity::Info) => ("3", "information_source"),
        (Transition::Firing, Severity::Warning) => ("4", "warning"),
        (Transition::Firing, Severity::Critical) => ("5", "rotating_light"),
    };
    let title = match transition {
        Transition::Firing => alert.title.clone(),
        Transition::Resolved => format!("Resolved: {}", alert.title),
    };
    let mut headers = vec![
        ("content-type", "text/plain; charset=utf-8".to_owned()),
        ("title", header_text(&title)),
        ("priority", priority.to_owned()),
        ("tags", format!("{tag},{}", alert.kind)),
    ];
    if !sender.url.is_empty() {
        headers.push(("click", header_text(&sender.url)));
    }
    // ntfy takes an empty body for a test.
    let text = if alert.message.is_empty() { &title } else { &alert.message };
    Payload { headers, body: text.clone().into_bytes() }
}

/// Returns a text for a header. ntfy decodes those that are not ASCII by RFC 2047.
fn header_text(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if line.is_ascii() { line } else { format!("=?UTF-8?B?{}?=", STANDARD.encode(line)) }
}
