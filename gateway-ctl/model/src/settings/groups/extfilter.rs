//! The external filter: a filtering resolver beside the gateway, with the API of Pi-hole 6.

use std::net::{IpAddr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check_url;
use crate::destination::Destination;
use crate::problem::{Problems, code};
use crate::secret::Secret;
use crate::settings::group::Group;
use crate::state::State;

/// Address of the external filter. `dns.backend` selects it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExtFilterConfig {
    /// URL of its web interface, such as `http://192.168.1.2`; empty if there is none.
    pub url: String,
    /// Address of its resolver, with a port if it is not 53. Default: the host of `url`, which must then be an IP
    /// address.
    pub resolver: Option<String>,
    /// Password of its web interface, preferably an application password; empty if it needs none.
    #[serde(rename(serialize = "has_password", deserialize = "password"))]
    pub password: Secret,
}

impl ExtFilterConfig {
    /// An address is set.
    pub fn is_configured(&self) -> bool {
        !self.url.is_empty()
    }

    /// Returns the address for queries.
    pub fn resolver(&self) -> Option<SocketAddr> {
        if !self.is_configured() {
            return None;
        }
        match &self.resolver {
            Some(text) => address(text),
            None => match url::Url::parse(&self.url).ok()?.host()? {
                url::Host::Ipv4(address) => Some((address, PORT).into()),
                url::Host::Ipv6(address) => Some((address, PORT).into()),
                url::Host::Domain(_) => None,
            },
        }
    }
}

const PORT: u16 = 53;

fn address(text: &str) -> Option<SocketAddr> {
    let with_port = text.parse::<SocketAddr>().ok();
    let found = with_port.or_else(|| Some((text.parse::<IpAddr>().ok()?, PORT).into()))?;
    let there = !found.ip().is_unspecified() && !found.ip().is_multicast() && found.port() != 0;
    there.then_some(found)
}

impl Group for ExtFilterConfig {
    const KEY: &'static str = "dns.extfilter";
    const NOUN: &'static str = "dns_extfilter";
    const SECRETS: &'static [&'static str] = &["password"];
    const SENT_SECRETS: &'static [&'static str] = Self::SECRETS;

    fn validate(&self, _: &State, problems: &mut Problems) {
        let url = (!self.url.is_empty()).then(|| check_url("url", &self.url, problems)).flatten();
        if url.is_some_and(|url| url.query().is_some() || url.fragment().is_some()) {
            problems.add(code::FORMAT, "url", "Expected an address without ? and #.");
        }
        match &self.resolver {
            Some(text) if address(text).is_none() => {
                let message = "Expected the address of a resolver, such as 192.168.1.2 or [fd00::2]:5353.";
                problems.add(code::FORMAT, "resolver", message);
            }
            Some(_) if !self.is_configured() => problems.required("url"),
            None if self.is_configured() && self.resolver().is_none() => problems.required("resolver"),
            _ => {}
        }
    }

    fn destination(&self) -> Destination {
        [("url", self.url.clone())].into()
    }

    fn secrets(&mut self) -> Vec<&mut Secret> {
        vec![&mut self.password]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str, resolver: Option<&str>) -> ExtFilterConfig {
        ExtFilterConfig { url: url.into(), resolver: resolver.map(str::to_owned), ..Default::default() }
    }

    #[test]
    fn the_resolver_is_where_it_is_said_or_where_the_web_server_is() {
        let cases = [
            ("http://192.168.1.2", None, Some("192.168.1.2:53")),
            ("https://[fd00::2]:8443/", None, Some("[fd00::2]:53")),
            ("http://192.168.1.2", Some("127.0.0.1:5353"), Some("127.0.0.1:5353")),
            ("https://pi.hole", Some("fd00::2"), Some("[fd00::2]:53")),
            ("https://pi.hole", None, None),
            ("", Some("192.168.1.2"), None),
            ("", None, None),
        ];
        for (url, resolver, want) in cases {
            let found = config(url, resolver).resolver().map(|at| at.to_string());
            assert_eq!(found.as_deref(), want, "{url} {resolver:?}");
        }
    }

    #[test]
    fn invalid_addresses_are_refused_by_their_field() {
        let cases = [
            ("https://pi.hole", None, "resolver"),
            ("http://192.168.1.2", Some("pi.hole"), "resolver"),
            ("http://192.168.1.2", Some("0.0.0.0"), "resolver"),
            ("http://192.168.1.2", Some("192.168.1.2:0"), "resolver"),
            ("", Some("192.168.1.2"), "url"),
            ("ftp://192.168.1.2", None, "url"),
            ("http://me:secret@192.168.1.2", None, "url"),
            ("http://192.168.1.2/?x=1", None, "url"),
        ];
        for (url, resolver, field) in cases {
            let mut problems = Problems::new();
            config(url, resolver).validate(&State::default(), &mut problems);
            assert!(problems.has(field), "{url} {resolver:?}: {problems}");
        }
        let mut problems = Problems::new();
        ExtFilterConfig::default().validate(&State::default(), &mut problems);
        assert!(problems.is_empty());
    }
}
