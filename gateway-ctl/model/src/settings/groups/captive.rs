//! Servers that tell captive portals from the internet.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::problem::{Problems, code};
use crate::settings::group::Group;
use crate::state::State;

/// A server that answers with 204 and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaptiveTarget {
    /// `http://host/path`. Its host is only named in the request.
    pub url: String,
    /// Address of the server: a portal answers names wrongly, and the resolver of its network learns nothing.
    pub address: IpAddr,
    /// The server answers to the header `X-Challenge` with `X-Challenge-Response: response CHALLENGE`. A portal that
    /// answers 204 to every request does not.
    #[serde(default)]
    pub challenge: bool,
}

/// Targets of the check for captive portals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CaptiveCheck {
    /// 1 to 4.
    pub targets: Vec<CaptiveTarget>,
}

impl Default for CaptiveCheck {
    fn default() -> Self {
        let target = |address: [u8; 4]| CaptiveTarget {
            url: "http://cp.cloudflare.com/generate_204".to_owned(),
            address: address.into(),
            challenge: false,
        };
        Self { targets: vec![target([104, 16, 132, 229]), target([104, 16, 133, 229])] }
    }
}

impl CaptiveTarget {
    /// Parses the URL. `None` if it is not valid.
    pub fn parsed(&self) -> Option<Url> {
        let url = Url::parse(&self.url).ok()?;
        let is_plain = url.scheme() == "http" && url.username().is_empty() && url.password().is_none();
        (is_plain && url.has_host()).then_some(url)
    }

    /// Returns the address that a `Location` of an answer leads to. `None` if it is none of the web.
    pub fn portal(&self, location: &str) -> Option<String> {
        let url = self.parsed()?.join(location).ok()?;
        let is_web = matches!(url.scheme(), "http" | "https") && url.as_str().len() <= MAX_URL;
        is_web.then(|| url.to_string())
    }
}

const MAX_TARGETS: usize = 4;
const MAX_URL: usize = 2048;

impl Group for CaptiveCheck {
    const KEY: &'static str = "captive";
    const NOUN: &'static str = "captive_check";

    fn validate(&self, _: &State, problems: &mut Problems) {
        if !(1..=MAX_TARGETS).contains(&self.targets.len()) {
            problems.add(code::RANGE, "targets", format!("Expected 1 to {MAX_TARGETS} targets."));
        }
        for (index, target) in self.targets.iter().enumerate() {
            if target.parsed().is_none() || target.url.len() > MAX_URL {
                let message =
                    "Expected a URL such as http://probe.example/generate_204; a portal cannot answer https.";
                problems.add(code::FORMAT, format!("targets[{index}].url"), message);
            }
            let address = target.address;
            if address.is_unspecified() || address.is_multicast() {
                let path = format!("targets[{index}].address");
                problems.add(code::FORMAT, path, "Expected the address of a host.");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portals_are_addresses_of_the_web() {
        let target = CaptiveCheck::default().targets.remove(0);
        let portal = |location| target.portal(location);
        assert_eq!(
            portal("https://portal.example/login?x=1").as_deref(),
            Some("https://portal.example/login?x=1")
        );
        assert_eq!(portal("/login").as_deref(), Some("http://cp.cloudflare.com/login"));
        for foreign in ["javascript:alert(1)", "file:///etc/passwd", "http://[", &"x".repeat(4096)] {
            assert_eq!(portal(foreign), None, "{foreign}");
        }
    }
}
