//! States and alerts for an MQTT broker.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::alert_email::is_host;
use super::check_range;
use crate::destination::Destination;
use crate::egress_name::{AUTO, check_egress};
use crate::problem::{Problems, code};
use crate::secret::Secret;
use crate::settings::group::Group;
use crate::state::State;

/// MQTT broker that gets the states of the gateway, in the form that Home Assistant discovers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AlertMqtt {
    pub enabled: bool,
    /// Name or address of the broker.
    pub host: String,
    /// 1 to 65535; usually 1883, or 8883 with TLS.
    pub port: u16,
    pub tls: bool,
    /// Certificates in PEM that are trusted instead of the system's.
    pub ca_certificate: String,
    /// Empty if the broker needs no sign-in.
    pub username: String,
    #[serde(rename(serialize = "has_password", deserialize = "password"))]
    pub password: Secret,
    /// `auto` for the default route, or the name of a tunnel or of an uplink. Nothing is sent by another while it is down.
    pub egress: String,
    /// First level of the topics of states.
    pub topic_prefix: String,
    /// First level of the topics of discovery, as Home Assistant has it.
    pub discovery_prefix: String,
}

impl Default for AlertMqtt {
    fn default() -> Self {
        Self {
            enabled: false,
            host: String::new(),
            port: 1883,
            tls: false,
            ca_certificate: String::new(),
            username: String::new(),
            password: Secret::default(),
            egress: AUTO.to_owned(),
            topic_prefix: "gateway".to_owned(),
            discovery_prefix: "homeassistant".to_owned(),
        }
    }
}

impl Group for AlertMqtt {
    const KEY: &'static str = "alerts.mqtt";
    const NOUN: &'static str = "alert_mqtt";
    const SECRETS: &'static [&'static str] = &["password"];
    const SENT_SECRETS: &'static [&'static str] = Self::SECRETS;

    fn validate(&self, state: &State, problems: &mut Problems) {
        check_egress("egress", &self.egress, |name| state.tunnel_by_name(name).is_some(), problems);
        if self.host.is_empty() {
            if self.enabled {
                problems.required("host");
            }
        } else if !is_host(&self.host) {
            problems.add(code::FORMAT, "host", "Expected the name or the address of a broker.");
        }
        if self.password.is_set() && self.username.is_empty() {
            problems.required("username");
        }
        if self.password.is_set() && !self.tls {
            problems.warn("tls", "Without TLS the password goes over the network in clear.");
        }
        if !self.ca_certificate.is_empty() && !self.ca_certificate.contains("-----BEGIN CERTIFICATE-----") {
            problems.add(code::FORMAT, "ca_certificate", "Expected certificates in PEM.");
        }
        let is_level = |text: &str| {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            (1..=64).contains(&text.len()) && text.bytes().all(allowed)
        };
        for (path, level) in
            [("topic_prefix", &self.topic_prefix), ("discovery_prefix", &self.discovery_prefix)]
        {
            if !is_level(level) {
                problems.add(
                    code::FORMAT,
                    path,
                    "Expected 1 to 64 letters, digits, hyphens and underscores.",
                );
            }
        }
        check_range("port", self.port.into(), 1..=65_535, problems);
    }

    fn destination(&self) -> Destination {
        [
            ("host", self.host.to_ascii_lowercase()),
            ("port", self.port.to_string()),
            ("tls", self.tls.to_string()),
            ("ca_certificate", self.ca_certificate.trim().to_owned()),
        ]
        .into()
    }

    fn secrets(&mut self) -> Vec<&mut Secret> {
        vec![&mut self.password]
    }
}
