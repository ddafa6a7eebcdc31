//! Message for an incoming webhook of Slack. Mattermost, Rocket.Chat and Discord (below `/slack`) take it as well.

use gateway_model::settings::groups::Severity;
use serde_json::{Value, json};

use super::{AlertSnapshot, Sender, Transition};

pub(crate) fn body(transition: Transition, alert: &AlertSnapshot, sender: &Sender) -> Value {
    let color = match (transition, alert.severity) {
        (Transition::Resolved, _) => "good",
        (Transition::Firing, Severity::Info) => "#439FE0",
        (Transition::Firing, Severity::Warning) => "warning",
        (Transition::Firing, Severity::Critical) => "danger",
    };
    let title = match transition {
        Transition::Firing => alert.title.clone(),
        Transition::Resolved => format!("Resolved: {}", alert.title),
    };
    let (title, text) = (escape(&title), escape(&alert.message));
    let field = |name: &str, value: &str| json!({ "title": name, "value": escape(value), "short": true });
    let time = alert.resolved_at.filter(|_| transition == Transition::Resolved).unwrap_or(alert.first_seen);
    let mut attachment = json!({
        "color": color,
        "fallback": title,
        "title": title,
        "text": text,
        "fields": [field("Severity", alert.severity.as_str()), field("Gateway", &sender.node)],
        "footer": alert.kind,
        "ts": time.as_second(),
    });
    if !sender.url.is_empty() {
        attachment["title_link"] = sender.url.as_str().into();
    }
    json!({ "text": title, "attachments": [attachment] })
}

/// Escapes the three characters that Slack interprets. Without it, a name could mention users of the channel.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
