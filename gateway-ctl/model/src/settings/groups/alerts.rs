//! Destinations of alerts.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use super::{check_range, check_url};
use crate::destination::Destination;
use crate::egress_name::{AUTO, check_egress};
use crate::problem::{Problems, code};
use crate::secret::Secret;
use crate::settings::group::Group;
use crate::state::State;
use crate::validated::text_enum;

text_enum! {
    /// Shape of the body that is posted.
    pub enum WebhookFormat {
        /// Alertmanager's webhook, version 4.
        Alertmanager = "alertmanager",
        /// Alerts as an Alertmanager takes them itself: sent again until they are resolved.
        AlertmanagerV2 = "alertmanager-v2",
        Json = "json",
        /// A topic of ntfy.
        Ntfy = "ntfy",
        /// An incoming webhook of Slack, Mattermost or Rocket.Chat.
        Slack = "slack",
    }
}

text_enum! {
    pub enum Severity {
        Info = "info",
        Warning = "warning",
        Critical = "critical",
    }
}

/// The default receiver of alerts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AlertWebhook {
    pub enabled: bool,
    /// URL of the receiver. `{token}` in its path or query stands for the token.
    pub url: String,
    /// Signs the deliveries (Standard Webhooks). The key is the text itself, or Base64 after `whsec_`.
    #[serde(rename(serialize = "has_secret", deserialize = "secret"))]
    pub secret: Secret,
    /// Token of the receiver, for `{token}` in the URL; else it is sent as `Authorization: Bearer`.
    #[serde(rename(serialize = "has_token", deserialize = "token"))]
    pub token: Secret,
    /// Certificates in PEM that are trusted instead of the system's.
    pub ca_certificate: String,
    /// Allows a receiver on this host, its links or in a private network.
    pub allow_private: bool,
    /// `auto` for the default route, or the name of a tunnel or of an uplink. Nothing is sent by another while it is down.
    pub egress: String,
    pub format: WebhookFormat,
    pub min_severity: Severity,
    /// 1 to 60.
    pub timeout_sec: u64,
    /// 0 to 20.
    pub retries: u64,
}

impl Default for AlertWebhook {
    fn default() -> Self {
        Self {
            enabled: false,
            url: String::new(),
            secret: Secret::default(),
            token: Secret::default(),
            ca_certificate: String::new(),
            allow_private: false,
            egress: AUTO.to_owned(),
            format: WebhookFormat::Alertmanager,
            min_severity: Severity::Info,
            timeout_sec: 10,
            retries: 5,
        }
    }
}

/// Text in a URL that stands for the token, and its form in the path of a parsed URL.
const TOKEN_PLACEHOLDER: &str = "{token}";
const ENCODED_PLACEHOLDER: &str = "%7Btoken%7D";

/// Returns the URL with the token in its path and query; `None` if it has no place for one. The token cannot change the
/// host.
pub fn with_token(url: &Url, token: &str) -> Option<Url> {
    let is_in = |text: &str| text.contains(TOKEN_PLACEHOLDER) || text.contains(ENCODED_PLACEHOLDER);
    let filled = |text: &str| text.replace(TOKEN_PLACEHOLDER, token).replace(ENCODED_PLACEHOLDER, token);
    let mut full = url.clone();
    if is_in(url.path()) {
        full.set_path(&filled(url.path()));
    }
    if let Some(query) = url.query().filter(|query| is_in(query)) {
        full.set_query(Some(&filled(query)));
    }
    (full != *url).then_some(full)
}

impl AlertWebhook {
    fn check_url(&self, problems: &mut Problems) {
        if self.url.is_empty() {
            if self.enabled {
                problems.required("url");
            }
            return;
        }
        let Some(url) = check_url("url", &self.url, problems) else { return };
        if !self.url.contains(TOKEN_PLACEHOLDER) {
            return;
        }
        if url.host_str().is_some_and(|host| host.contains(['{', '}', '%']))
            || with_token(&url, "x").is_none()
        {
            let message = "{token} belongs to the path or the query, not to the name of the host.";
            problems.add(code::FORMAT, "url", message);
        } else if !self.token.is_set() {
            problems.required("token");
        }
    }

    fn check_secrets(&self, problems: &mut Problems) {
        let is_token = |text: &str| text.len() <= 1000 && text.bytes().all(|byte| byte.is_ascii_graphic());
        if self.token.is_set() && self.token.is_readable() && !is_token(self.token.expose()) {
            problems.add(code::FORMAT, "token", "At most 1000 visible ASCII characters.");
        }
        let encoded =
            self.secret.is_readable().then(|| self.secret.expose().strip_prefix("whsec_")).flatten();
        if encoded.is_some_and(|encoded| STANDARD_NO_PAD.decode(encoded.trim_end_matches('=')).is_err()) {
            problems.add(code::FORMAT, "secret", "Expected Base64 after whsec_.");
        }
    }
}

impl Group for AlertWebhook {
    const KEY: &'static str = "alerts.webhook";
    const NOUN: &'static str = "alert_webhook";
    const SECRETS: &'static [&'static str] = &["secret", "token"];
    const SENT_SECRETS: &'static [&'static str] = Self::SECRETS;

    fn validate(&self, state: &State, problems: &mut Problems) {
        check_egress("egress", &self.egress, |name| state.tunnel_by_name(name).is_some(), problems);
        self.check_url(problems);
        self.check_secrets(problems);
        if !self.ca_certificate.is_empty() && !self.ca_certificate.contains("-----BEGIN CERTIFICATE-----") {
            problems.add(code::FORMAT, "ca_certificate", "Expected certificates in PEM.");
        }
        check_range("timeout_sec", self.timeout_sec, 1..=60, problems);
        check_range("retries", self.retries, 0..=20, problems);
    }

    fn destination(&self) -> Destination {
        [("url", self.url.clone()), ("ca_certificate", self.ca_certificate.trim().to_owned())].into()
    }

    fn secrets(&mut self) -> Vec<&mut Secret> {
        vec![&mut self.secret, &mut self.token]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(url: &str, token: &str, secret: &str) -> String {
        let [token, secret] = [token, secret].map(Secret::new);
        let webhook =
            AlertWebhook { enabled: true, url: url.into(), token, secret, ..AlertWebhook::default() };
        let mut problems = Problems::new();
        webhook.validate(&State::default(), &mut problems);
        ["url", "token", "secret"].into_iter().filter(|path| problems.has(path)).collect()
    }

    #[test]
    fn token_fills_the_path_or_the_query_and_never_the_host() {
        let filled = |url: &str, token: &str| with_token(&Url::parse(url).unwrap(), token).map(String::from);
        let slack = filled("https://hooks.example/services/{token}", "T0/B0/x?y#z");
        assert_eq!(slack.as_deref(), Some("https://hooks.example/services/T0/B0/x%3Fy%23z"));
        let query = filled("https://hooks.example/a?b={token}&c=1", "s&d=2");
        assert_eq!(query.as_deref(), Some("https://hooks.example/a?b=s&d=2&c=1"));
        assert_eq!(filled("https://hooks.example/a", "s"), None);
    }

    #[test]
    fn places_of_the_token_and_forms_of_the_secrets_are_checked() {
        let url = "https://hooks.example/{token}";
        assert_eq!(problems(url, "T0/B0", "whsec_c2VjcmV0"), "");
        assert_eq!(problems("https://hooks.example/", "T0/B0", "any text"), "");
        assert_eq!(problems("", "", ""), "url");
        assert_eq!(problems(url, "", ""), "token");
        assert_eq!(problems(url, "a b", "whsec_***"), "tokensecret");
        for url in ["https://{token}.example/", "https:///{token}/", "https://hooks.example/#{token}"] {
            assert_eq!(problems(url, "T0", ""), "url", "{url}");
        }
    }
}
