//! Receivers of an alert, by the settings and its rule.

use std::fmt;
use std::str::FromStr;

use gateway_model::State;
use gateway_model::kinds::AlertRule;
use gateway_model::kinds::alert_rule::{AlertKind, Notify};
use gateway_model::settings::groups::{AlertEmail, AlertWebhook};
use serde::{Deserialize, Serialize};

use super::AlertSnapshot;

/// Receiver of notifications. Its settings may change, or go, while deliveries wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Receiver {
    /// The default webhook.
    Webhook,
    /// The URL of a rule, instead of the default webhook.
    RuleWebhook(AlertKind),
    Email,
}

const WEBHOOK: &str = "webhook";
const EMAIL: &str = "email";

impl fmt::Display for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Receiver::Webhook => f.write_str(WEBHOOK),
            Receiver::Email => f.write_str(EMAIL),
            Receiver::RuleWebhook(kind) => write!(f, "{WEBHOOK}:{kind}"),
        }
    }
}

impl From<Receiver> for String {
    fn from(receiver: Receiver) -> String {
        receiver.to_string()
    }
}

impl FromStr for Receiver {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Receiver, &'static str> {
        let rule = text.strip_prefix(WEBHOOK).and_then(|rest| rest.strip_prefix(':'));
        match (text, rule.map(AlertKind::from_str)) {
            (WEBHOOK, _) => Ok(Receiver::Webhook),
            (EMAIL, _) => Ok(Receiver::Email),
            (_, Some(Ok(kind))) => Ok(Receiver::RuleWebhook(kind)),
            _ => Err("not a receiver"),
        }
    }
}

impl TryFrom<String> for Receiver {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Receiver, &'static str> {
        text.parse()
    }
}

/// Returns the receivers of an alert.
pub fn receivers(state: &State, alert: &AlertSnapshot) -> Vec<Receiver> {
    let rule = rule(state, &alert.kind);
    if rule.is_some_and(|rule| rule.notify == Notify::None) {
        return Vec::new();
    }
    let webhook: AlertWebhook = state.group();
    let email: AlertEmail = state.group();
    let own = rule.filter(|rule| rule.webhook_url.is_some()).map(|rule| Receiver::RuleWebhook(rule.kind));
    let is_wanted = webhook.enabled && alert.severity >= webhook.min_severity;
    let by_web = own.or(is_wanted.then_some(Receiver::Webhook));
    let by_mail = email.enabled && alert.severity >= email.min_severity;
    by_web.into_iter().chain(by_mail.then_some(Receiver::Email)).collect()
}

/// Reports whether the receiver is set and on, so that deliveries wait for it.
pub fn is_on(state: &State, receiver: Receiver) -> bool {
    match receiver {
        Receiver::Webhook => state.group::<AlertWebhook>().enabled,
        Receiver::Email => state.group::<AlertEmail>().enabled,
        Receiver::RuleWebhook(kind) => rule(state, kind.as_str())
            .is_some_and(|rule| rule.webhook_url.is_some() && rule.notify != Notify::None),
    }
}

/// Returns the rule of a kind of alert.
pub fn rule<'s>(state: &'s State, kind: &str) -> Option<&'s AlertRule> {
    state.alert_rules.iter().find(|rule| rule.kind.as_str() == kind)
}

#[cfg(test)]
mod tests {
    use gateway_model::settings::groups::Severity;
    use jiff::Timestamp;

    use super::*;
    use crate::notifications::test_alert;

    fn alert(kind: AlertKind, severity: Severity) -> AlertSnapshot {
        let kind = kind.as_str().to_owned();
        AlertSnapshot { kind, severity, ..test_alert(Timestamp::UNIX_EPOCH) }
    }

    fn edit(state: &mut State, kind: AlertKind, change: impl FnOnce(&mut AlertRule)) {
        let id = rule(state, kind.as_str()).expect("a rule for each kind").meta.id;
        state.update::<AlertRule>(id, None, change).expect("valid");
    }

    #[test]
    fn severity_and_the_rule_select_the_receivers() {
        let mut state = State::default().begin(Timestamp::UNIX_EPOCH);
        let (down, new) = (AlertKind::WanDown, AlertKind::NewDevice);
        assert_eq!(receivers(&state, &alert(down, Severity::Critical)), []);
        let url = "https://alerts.example/".to_owned();
        let min_severity = Severity::Warning;
        state.set_group(&AlertWebhook { enabled: true, url, min_severity, ..AlertWebhook::default() });
        assert_eq!(receivers(&state, &alert(down, Severity::Warning)), [Receiver::Webhook]);
        assert_eq!(receivers(&state, &alert(down, Severity::Info)), []);
        edit(&mut state, down, |rule| rule.notify = Notify::None);
        assert_eq!(receivers(&state, &alert(down, Severity::Critical)), []);
        edit(&mut state, new, |rule| rule.webhook_url = Some("https://other.example/".into()));
        assert_eq!(receivers(&state, &alert(new, Severity::Info)), [Receiver::RuleWebhook(new)]);
        let recipients = vec!["anna@example.net".to_owned()];
        state.set_group(&AlertEmail { enabled: true, to: recipients, ..AlertEmail::default() });
        let both = [Receiver::RuleWebhook(new), Receiver::Email];
        assert_eq!(receivers(&state, &alert(new, Severity::Warning)), both);
        assert!(is_on(&state, Receiver::RuleWebhook(new)) && !is_on(&state, Receiver::RuleWebhook(down)));
    }

    #[test]
    fn receivers_are_read_back_as_they_are_written() {
        for receiver in [Receiver::Webhook, Receiver::RuleWebhook(AlertKind::TunnelDown), Receiver::Email] {
            assert_eq!(receiver.to_string().parse(), Ok(receiver));
        }
        assert!("webhook:nothing".parse::<Receiver>().is_err() && "".parse::<Receiver>().is_err());
    }
}
