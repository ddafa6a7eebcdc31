//! Targets of webhooks: the settings of a receiver at the time of an attempt, with its secrets opened.

use std::time::Duration;

use gateway_core::notifications::alertmanager_v2;
use gateway_core::notifications::receivers::{Receiver, rule};
use gateway_model::State;
use gateway_model::secret::Secret;
use gateway_model::settings::groups::{AlertWebhook, WebhookFormat, with_token};
use url::Url;

/// Webhook of a receiver.
#[derive(Clone)]
pub(super) struct WebhookTarget {
    /// URL with the token, so it is never shown.
    pub url: Url,
    pub format: WebhookFormat,
    pub signing_secret: Secret,
    /// Token for `Authorization`.
    pub bearer: Secret,
    pub ca_certificate: String,
    pub allow_private: bool,
    /// Name of the egress.
    pub egress: String,
    pub timeout: Duration,
    /// Maximum number of attempts after the first.
    pub retries: u64,
}

/// Reason why a receiver has no usable target. Contains no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    #[error("no URL is set")]
    NoUrl,
    #[error("no mail server, sender or recipient is set")]
    NoMailServer,
    #[error("no broker is set")]
    NoBroker,
    #[error("the URL is not valid")]
    Url,
    #[error("a secret of the receiver cannot be decrypted: set it again")]
    Secret,
}

impl WebhookTarget {
    /// Returns the target of a receiver. The URL of a rule gets the format, the egress and the limits of the default webhook, but
    /// none of its secrets, which belong to another host. Opening secrets takes milliseconds of CPU time.
    pub(super) fn of(state: &State, receiver: Receiver) -> Result<WebhookTarget, TargetError> {
        let mut webhook: AlertWebhook = state.group();
        if let Receiver::RuleWebhook(kind) = receiver {
            let url = rule(state, kind.as_str()).and_then(|rule| rule.webhook_url.clone());
            webhook.url = url.unwrap_or_default();
            webhook.secret = Secret::default();
            webhook.token = Secret::default();
            webhook.ca_certificate = String::new();
        }
        WebhookTarget::new(webhook)
    }

    fn new(webhook: AlertWebhook) -> Result<WebhookTarget, TargetError> {
        if webhook.url.is_empty() {
            return Err(TargetError::NoUrl);
        }
        if !webhook.secret.is_readable() || !webhook.token.is_readable() {
            return Err(TargetError::Secret);
        }
        let base = match webhook.format {
            WebhookFormat::AlertmanagerV2 => alertmanager_v2::url(&webhook.url),
            _ => webhook.url,
        };
        let url = Url::parse(&base).map_err(|_| TargetError::Url)?;
        let full = with_token(&url, webhook.token.expose());
        let bearer = if full.is_some() { Secret::default() } else { webhook.token };
        Ok(WebhookTarget {
            url: full.unwrap_or(url),
            format: webhook.format,
            signing_secret: webhook.secret,
            bearer,
            ca_certificate: webhook.ca_certificate,
            allow_private: webhook.allow_private,
            egress: webhook.egress,
            timeout: Duration::from_secs(webhook.timeout_sec),
            retries: webhook.retries,
        })
    }
}

#[cfg(test)]
mod tests {
    use gateway_model::kinds::AlertRule;
    use gateway_model::kinds::alert_rule::AlertKind;
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn secrets_go_to_the_default_webhook_and_to_no_url_of_a_rule() {
        let mut state = State::default().begin(Timestamp::UNIX_EPOCH);
        assert_eq!(WebhookTarget::of(&state, Receiver::Webhook).err(), Some(TargetError::NoUrl));
        let webhook = AlertWebhook {
            url: "https://hooks.example/a?key={token}".into(),
            secret: Secret::new("signing"),
            token: Secret::new("t0ken"),
            ..AlertWebhook::default()
        };
        state.set_group(&webhook);
        let target = WebhookTarget::of(&state, Receiver::Webhook).unwrap();
        assert_eq!(target.url.as_str(), "https://hooks.example/a?key=t0ken");
        assert!(!target.bearer.is_set() && target.signing_secret.is_set());
        let kind = AlertKind::WanDown;
        let id = rule(&state, kind.as_str()).expect("a rule").meta.id;
        let url = Some("https://other.example/{token}".to_owned());
        state.update::<AlertRule>(id, None, |rule| rule.webhook_url = url).expect("valid");
        let target = WebhookTarget::of(&state, Receiver::RuleWebhook(kind)).unwrap();
        assert!(!target.url.as_str().contains("t0ken"));
        assert!(!target.bearer.is_set() && !target.signing_secret.is_set());
    }

    #[test]
    fn token_without_a_place_in_the_url_is_a_bearer_token() {
        let mut state = State::default().begin(Timestamp::UNIX_EPOCH);
        let format = WebhookFormat::AlertmanagerV2;
        let (url, token) = ("http://am.example:9093".into(), Secret::new("t0ken"));
        state.set_group(&AlertWebhook { url, token, format, ..AlertWebhook::default() });
        let target = WebhookTarget::of(&state, Receiver::Webhook).unwrap();
        assert_eq!(target.url.as_str(), "http://am.example:9093/api/v2/alerts");
        assert_eq!(target.bearer.expose(), "t0ken");
    }
}
