//! Destinations of alerts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{check_range, check_url};
use crate::capability::Capability;
use crate::destination::Destination;
use crate::problem::Problems;
use crate::secret::Secret;
use crate::settings::group::Group;
use crate::state::State;
use crate::validated::text_enum;

text_enum! {
    /// Shape of the body that is posted.
    pub enum WebhookFormat {
        /// Alertmanager's webhook, version 4.
        Alertmanager = "alertmanager",
        Json = "json",
        Ntfy = "ntfy",
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
    pub url: String,
    /// Signs the deliveries (Standard Webhooks).
    #[serde(rename(serialize = "has_secret", deserialize = "secret"))]
    pub secret: Secret,
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
            format: WebhookFormat::Alertmanager,
            min_severity: Severity::Info,
            timeout_sec: 10,
            retries: 5,
        }
    }
}

impl Group for AlertWebhook {
    const KEY: &'static str = "alerts.webhook";
    const NOUN: &'static str = "alert_webhook";
    const SECRETS: &'static [&'static str] = &["secret"];
    const SENT_SECRETS: &'static [&'static str] = Self::SECRETS;
    const NEEDS: Option<Capability> = Some(Capability::AlertWebhooks);

    fn validate(&self, _: &State, problems: &mut Problems) {
        if !self.url.is_empty() {
            check_url("url", &self.url, problems);
        } else if self.enabled {
            problems.required("url");
        }
        check_range("timeout_sec", self.timeout_sec, 1..=60, problems);
        check_range("retries", self.retries, 0..=20, problems);
    }

    fn destination(&self) -> Destination {
        [("url", self.url.clone())].into()
    }

    fn secrets(&mut self) -> Vec<&mut Secret> {
        vec![&mut self.secret]
    }
}
