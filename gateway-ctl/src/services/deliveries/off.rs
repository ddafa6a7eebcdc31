//! Receivers that answered 410: they are turned off in the configuration, where users see it.

use gateway_core::notifications::receivers::{Receiver, rule};
use gateway_model::EditError;
use gateway_model::State;
use gateway_model::kinds::AlertRule;
use gateway_model::kinds::alert_rule::Notify;
use gateway_model::resource::Resource;
use gateway_model::settings::group::Group;
use gateway_model::settings::groups::AlertWebhook;
use serde_json::json;

use super::Deliveries;
use crate::store::AuditTicket;
use crate::supervise::blocking;

impl Deliveries {
    /// Turns a receiver off, with an audit entry.
    pub(super) async fn turn_off(&self, receiver: Receiver) {
        let noun = match receiver {
            Receiver::Webhook => AlertWebhook::NOUN,
            // No reply of a mail server means that.
            Receiver::Email => return,
            Receiver::RuleWebhook(_) => AlertRule::NOUN,
        };
        let mut ticket = AuditTicket::system(format!("disable_{noun}"), noun);
        ticket.details = json!({ "receiver": receiver.to_string(), "reason": "the receiver answered 410" });
        let store = self.store.clone();
        let turned_off = blocking(move || store.commit(ticket, |draft| edit(draft, receiver))).await;
        match turned_off {
            Ok(()) => tracing::error!(%receiver, "the receiver answered 410: it is turned off"),
            Err(error) => {
                tracing::error!(%receiver, %error, "failed to turn a receiver off that answered 410")
            }
        }
    }
}

fn edit(draft: &mut State, receiver: Receiver) -> Result<(), EditError> {
    match receiver {
        Receiver::Email => {}
        Receiver::Webhook => {
            let webhook: AlertWebhook = draft.group();
            draft.set_group(&AlertWebhook { enabled: false, ..webhook });
        }
        Receiver::RuleWebhook(kind) => {
            let id = rule(draft, kind.as_str()).map(|rule| rule.meta.id);
            if let Some(id) = id {
                draft.update::<AlertRule>(id, None, |rule| rule.notify = Notify::None)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use gateway_core::notifications::receivers::is_on;
    use gateway_model::kinds::alert_rule::AlertKind;
    use gateway_model::secret::Secret;
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn receiver_is_off_and_keeps_its_settings() {
        let mut draft = State::default().begin(Timestamp::UNIX_EPOCH);
        let (url, secret) = ("https://hooks.example/".to_owned(), Secret::new("s3cret"));
        draft.set_group(&AlertWebhook { enabled: true, url, secret, ..AlertWebhook::default() });
        let kind = AlertKind::WanDown;
        let id = rule(&draft, kind.as_str()).unwrap().meta.id;
        let url = Some("https://other.example/".to_owned());
        draft.update::<AlertRule>(id, None, |rule| rule.webhook_url = url).unwrap();
        for receiver in [Receiver::Webhook, Receiver::RuleWebhook(kind)] {
            assert!(is_on(&draft, receiver));
            edit(&mut draft, receiver).unwrap();
            assert!(!is_on(&draft, receiver));
        }
        let webhook: AlertWebhook = draft.group();
        assert_eq!((webhook.url.as_str(), webhook.secret.expose()), ("https://hooks.example/", "s3cret"));
        assert!(rule(&draft, kind.as_str()).unwrap().webhook_url.is_some());
    }
}
