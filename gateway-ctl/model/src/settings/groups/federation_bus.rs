//! Hub of the federation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::destination::Destination;
use crate::problem::{Problems, code};
use crate::secret::Secret;
use crate::settings::group::Group;
use crate::state::State;

/// NATS server with JetStream over which gateways get changes at once. Without it, and while it is not reached, they pull.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FederationBus {
    pub enabled: bool,
    /// `nats://host:port`, or `tls://host:port` to refuse a server without TLS. The port is 4222 if none is given.
    pub url: String,
    /// Certificates in PEM that are trusted instead of the system's.
    pub ca_certificate: String,
    /// `user:password`, or a token. Empty: the gateway signs in with its own key, as the hub's configuration by `/federation/hub`
    /// expects.
    #[serde(rename(serialize = "has_credentials", deserialize = "credentials"))]
    pub credentials: Secret,
}

/// Address of a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubAddress {
    pub host: String,
    pub port: u16,
    /// A server without TLS is refused.
    pub needs_tls: bool,
}

impl FederationBus {
    pub const PORT: u16 = 4222;

    /// Returns the address of the hub; `None` if the URL is not valid.
    pub fn address(&self) -> Option<HubAddress> {
        let (scheme, rest) = self.url.split_once("://")?;
        let needs_tls = match scheme {
            "nats" => false,
            "tls" => true,
            _ => return None,
        };
        // The parser knows the forms of hosts only for schemes of the web.
        let url = url::Url::parse(&format!("http://{rest}")).ok()?;
        let is_bare = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
        if !is_bare || !url.username().is_empty() || url.password().is_some() {
            return None;
        }
        let given = rest.trim_end_matches('/').rsplit_once(':').map(|(_, port)| port.parse());
        // The parser drops the port 80, its default.
        let port = match given {
            Some(Ok(port)) => port,
            _ => url.port().unwrap_or(Self::PORT),
        };
        let host = url.host_str()?.trim_matches(['[', ']']).to_owned();
        (port != 0).then_some(HubAddress { host, port, needs_tls })
    }
}

impl Group for FederationBus {
    const KEY: &'static str = "federation.bus";
    const NOUN: &'static str = "federation_bus";
    const SECRETS: &'static [&'static str] = &["credentials"];
    const SENT_SECRETS: &'static [&'static str] = Self::SECRETS;

    fn validate(&self, _state: &State, problems: &mut Problems) {
        if self.url.is_empty() {
            if self.enabled {
                problems.required("url");
            }
        } else if self.address().is_none() {
            let message = "Expected nats://host:port or tls://host:port, without a user: credentials has it.";
            problems.add(code::FORMAT, "url", message);
        }
        if self.url.starts_with("nats://") && self.credentials.is_set() {
            problems.warn("url", "Without TLS the credentials go over the network in clear.");
        }
        if self.credentials.is_opened() && self.credentials.expose().contains("-----BEGIN") {
            let message =
                "Files of credentials are not read: leave it empty to sign in with the key of the gateway.";
            problems.add(code::FORMAT, "credentials", message);
        }
        if !self.ca_certificate.is_empty() && !self.ca_certificate.contains("-----BEGIN CERTIFICATE-----") {
            problems.add(code::FORMAT, "ca_certificate", "Expected certificates in PEM.");
        }
    }

    fn destination(&self) -> Destination {
        [
            ("url", self.url.trim_end_matches('/').to_ascii_lowercase()),
            ("ca_certificate", self.ca_certificate.trim().to_owned()),
        ]
        .into()
    }

    fn secrets(&mut self) -> Vec<&mut Secret> {
        vec![&mut self.credentials]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address(url: &str) -> Option<(String, u16, bool)> {
        let bus = FederationBus { url: url.to_owned(), ..FederationBus::default() };
        bus.address().map(|address| (address.host, address.port, address.needs_tls))
    }

    #[test]
    fn addresses_have_a_scheme_and_no_user() {
        let of = |host: &str, port, tls| Some((host.to_owned(), port, tls));
        assert_eq!(address("nats://hub.example"), of("hub.example", 4222, false));
        assert_eq!(address("tls://hub.example:80/"), of("hub.example", 80, true));
        assert_eq!(address("nats://192.0.2.1:4333"), of("192.0.2.1", 4333, false));
        assert_eq!(address("nats://[2001:db8::1]"), of("2001:db8::1", 4222, false));
        assert_eq!(address("tls://[2001:db8::1]:4333"), of("2001:db8::1", 4333, true));
        for url in [
            "hub.example:4222",
            "http://hub.example",
            "nats://",
            "nats://u:p@hub",
            "nats://hub/x",
            "nats://hub:0",
        ] {
            assert_eq!(address(url), None, "{url}");
        }
    }

    proptest! {
        #[test]
        fn any_url_is_read_or_refused(url in "(nats://|tls://)?\\PC{0,40}") {
            if let Some((host, port, _)) = address(&url) {
                prop_assert!(!host.is_empty() && port != 0);
            }
        }
    }
}
