//! Mail about alerts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Severity, check_range};
use crate::destination::Destination;
use crate::domain::DomainName;
use crate::egress_name::{AUTO, check_egress};
use crate::problem::{Problems, code};
use crate::secret::Secret;
use crate::settings::group::Group;
use crate::state::State;
use crate::validated::text_enum;

/// Maximum number of recipients.
const MAX_RECIPIENTS: usize = 20;

text_enum! {
    /// Encryption of a connection to a mail server.
    #[derive(Default)]
    pub enum MailSecurity {
        /// The connection begins in clear text and is encrypted before anything is sent. Usual at port 587.
        #[default]
        Starttls = "starttls",
        /// TLS from the beginning. Usual at port 465.
        Tls = "tls",
    }
}

/// Mail server and recipients of alerts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AlertEmail {
    pub enabled: bool,
    /// Name or address of the mail server that takes submissions.
    pub host: String,
    /// 1 to 65535.
    pub port: u16,
    pub security: MailSecurity,
    /// Certificates in PEM that are trusted instead of the system's.
    pub ca_certificate: String,
    /// Empty if the server needs no sign-in.
    pub username: String,
    #[serde(rename(serialize = "has_password", deserialize = "password"))]
    pub password: Secret,
    /// Address of the sender.
    pub from: String,
    /// Addresses of the recipients, at most 20.
    pub to: Vec<String>,
    pub min_severity: Severity,
    /// `auto` for the default route, or the name of a tunnel or of an uplink. Nothing is sent by another while it is down.
    pub egress: String,
    /// Seconds for one mail, 1 to 120.
    pub timeout_sec: u64,
    /// 0 to 20.
    pub retries: u64,
}

impl Default for AlertEmail {
    fn default() -> Self {
        Self {
            enabled: false,
            host: String::new(),
            port: 587,
            security: MailSecurity::Starttls,
            ca_certificate: String::new(),
            username: String::new(),
            password: Secret::default(),
            from: String::new(),
            to: Vec::new(),
            min_severity: Severity::Warning,
            egress: AUTO.to_owned(),
            timeout_sec: 30,
            retries: 5,
        }
    }
}

/// Reports whether a text is the name or the address of a host.
pub(super) fn is_host(text: &str) -> bool {
    text.parse::<std::net::IpAddr>().is_ok() || DomainName::parse(text).is_ok()
}

/// Reports whether a text has the form of a mail address.
fn is_mail_address(text: &str) -> bool {
    let is_plain = text.len() <= 254
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>(),;\"\\".contains(&byte));
    let parts = text.rsplit_once('@').filter(|(local, _)| !local.is_empty() && !local.contains('@'));
    is_plain && parts.is_some_and(|(_, domain)| DomainName::parse(domain).is_ok())
}

impl Group for AlertEmail {
    const KEY: &'static str = "alerts.email";
    const NOUN: &'static str = "alert_email";
    const SECRETS: &'static [&'static str] = &["password"];
    const SENT_SECRETS: &'static [&'static str] = Self::SECRETS;

    fn validate(&self, state: &State, problems: &mut Problems) {
        check_egress("egress", &self.egress, |name| state.tunnel_by_name(name).is_some(), problems);
        if self.host.is_empty() {
            if self.enabled {
                problems.required("host");
            }
        } else if !is_host(&self.host) {
            problems.add(code::FORMAT, "host", "Expected the name or the address of a mail server.");
        }
        if self.from.is_empty() {
            if self.enabled {
                problems.required("from");
            }
        } else if !is_mail_address(&self.from) {
            problems.add(code::FORMAT, "from", "Expected an address such as gateway@example.net.");
        }
        if self.enabled && self.to.is_empty() {
            problems.required("to");
        } else if self.to.len() > MAX_RECIPIENTS {
            problems.add(code::RANGE, "to", format!("At most {MAX_RECIPIENTS} addresses."));
        }
        for (index, address) in self.to.iter().enumerate().filter(|(_, address)| !is_mail_address(address)) {
            let message = format!("{address:?} is no address such as anna@example.net.");
            problems.add(code::FORMAT, format!("to[{index}]"), message);
        }
        if self.password.is_set() && self.username.is_empty() {
            problems.required("username");
        }
        if !self.ca_certificate.is_empty() && !self.ca_certificate.contains("-----BEGIN CERTIFICATE-----") {
            problems.add(code::FORMAT, "ca_certificate", "Expected certificates in PEM.");
        }
        check_range("port", self.port.into(), 1..=65_535, problems);
        check_range("timeout_sec", self.timeout_sec, 1..=120, problems);
        check_range("retries", self.retries, 0..=20, problems);
    }

    fn destination(&self) -> Destination {
        [
            ("host", self.host.to_ascii_lowercase()),
            ("port", self.port.to_string()),
            ("ca_certificate", self.ca_certificate.trim().to_owned()),
        ]
        .into()
    }

    fn secrets(&mut self) -> Vec<&mut Secret> {
        vec![&mut self.password]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_by_their_field() {
        let email = |host: &str, from: &str, to: &str| AlertEmail {
            enabled: true,
            host: host.into(),
            from: from.into(),
            to: vec![to.into()],
            ..AlertEmail::default()
        };
        let problems = |email: AlertEmail| {
            let mut problems = Problems::new();
            email.validate(&State::default(), &mut problems);
            ["host", "from", "to[0]"].into_iter().filter(|path| problems.has(path)).collect::<Vec<_>>()
        };
        assert!(problems(email("smtp.example", "gw@example.net", "anna+gw@example.net")).is_empty());
        assert!(problems(email("192.0.2.25", "gw@example.net", "anna@example.net")).is_empty());
        for wrong in [
            "anna",
            "anna@",
            "@example.net",
            "a@b@example.net",
            "anna@example.net\r\nBcc: x",
            "<a@example.net>",
        ] {
            assert_eq!(problems(email("smtp.example", wrong, wrong)), ["from", "to[0]"], "{wrong}");
        }
        assert_eq!(problems(email("smtp example", "gw@example.net", "anna@example.net")), ["host"]);
    }
}
