//! Message of an alert for people: subject and text of a mail.

use super::{AlertSnapshot, Sender, Transition};

/// Subject and text of a mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailText {
    /// One line.
    pub subject: String,
    pub text: String,
}

pub fn text(transition: Transition, alert: &AlertSnapshot, sender: &Sender) -> MailText {
    let state = match transition {
        Transition::Firing => alert.severity.as_str().to_uppercase(),
        Transition::Resolved => "RESOLVED".to_owned(),
    };
    let subject = format!("[{}] {state}: {}", sender.node, alert.title);
    let mut lines = vec![alert.title.clone(), String::new()];
    if !alert.message.is_empty() {
        lines.extend([alert.message.clone(), String::new()]);
    }
    lines.push(format!("Gateway: {}", sender.node));
    lines.push(format!("Severity: {}", alert.severity));
    lines.push(format!("Kind: {}", alert.kind));
    lines.push(format!("Since: {}", alert.first_seen));
    if alert.count > 1 {
        lines.push(format!("Occurrences: {}", alert.count));
    }
    if let (Transition::Resolved, Some(at)) = (transition, alert.resolved_at) {
        lines.push(format!("Resolved: {at}"));
    }
    if !sender.url.is_empty() {
        lines.extend([String::new(), sender.url.clone()]);
    }
    let subject = subject.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    MailText { subject, text: lines.join("\n") + "\n" }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::notifications::test_alert;

    #[test]
    fn mail_says_what_is_wrong_since_when_and_where() {
        let sender = Sender { node: "gw-1".into(), url: "https://gateway.lan/".into() };
        let alert =
            AlertSnapshot { title: "Tunnel\r\nBcc: x".into(), count: 2, ..test_alert(Timestamp::UNIX_EPOCH) };
        let firing = text(Transition::Firing, &alert, &sender);
        assert_eq!(firing.subject, "[gw-1] INFO: Tunnel  Bcc: x");
        assert!(firing.text.ends_with(
            "Gateway: gw-1\nSeverity: info\nKind: test\nSince: 1970-01-01T00:00:00Z\nOccurrences: 2\n\nhttps://gateway.lan/\n"
        ));
        let alert = AlertSnapshot { resolved_at: Some(Timestamp::UNIX_EPOCH), ..alert };
        let resolved = text(Transition::Resolved, &alert, &Sender::default());
        assert!(
            resolved.subject.starts_with("[] RESOLVED: ")
                && resolved.text.ends_with("Resolved: 1970-01-01T00:00:00Z\n")
        );
    }
}
