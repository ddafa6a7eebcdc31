//! Address of the assistant's language model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{check_range, check_url};
use crate::capability::Capability;
use crate::destination::Destination;
use crate::problem::{Problems, code};
use crate::secret::Secret;
use crate::settings::group::Group;
use crate::state::State;
use crate::validated::{check_free_text, text_enum};

text_enum! {
    /// Protocol of a server of language models.
    #[derive(Default)]
    pub enum AssistantKind {
        /// API of Ollama, with the administration of models.
        #[default]
        Ollama = "ollama",
        /// API that is compatible with the one of OpenAI: chat completions and a list of models.
        Openai = "openai",
    }
}

/// Server of the language model that the assistant asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AssistantConfig {
    pub enabled: bool,
    pub kind: AssistantKind,
    /// URL of the server, with or without `/v1` at its end.
    pub endpoint: String,
    pub model: String,
    /// 1 to 600. A request of the API is answered within two minutes in any case.
    pub timeout_sec: u64,
    /// Allows an endpoint on another host, to which policies and questions are sent.
    pub allow_remote: bool,
    /// Replaces names, hosts, domains and addresses by pseudonyms in what the model reads. The answer has the names again.
    pub pseudonyms: bool,
    /// Key for the server, sent as a bearer token.
    #[serde(rename(serialize = "has_api_key", deserialize = "api_key"))]
    pub api_key: Secret,
}

impl Default for AssistantConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            kind: AssistantKind::Ollama,
            endpoint: "http://127.0.0.1:11434".to_owned(),
            model: String::new(),
            timeout_sec: 60,
            allow_remote: false,
            pseudonyms: false,
            api_key: Secret::default(),
        }
    }
}

impl AssistantConfig {
    /// Reports whether the server is this host.
    pub fn is_local(&self) -> bool {
        url::Url::parse(&self.endpoint).is_ok_and(|url| is_this_host(&url))
    }
}

fn is_this_host(url: &url::Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// Reports whether the host is a link-local address, as the metadata services of clouds have.
fn is_link_local(url: &url::Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_link_local(),
        Some(url::Host::Ipv6(address)) => {
            address.is_unicast_link_local() || address.to_ipv4_mapped().is_some_and(|v4| v4.is_link_local())
        }
        Some(url::Host::Domain(_)) | None => false,
    }
}

impl Group for AssistantConfig {
    const KEY: &'static str = "ai";
    const NOUN: &'static str = "ai_config";
    const SECRETS: &'static [&'static str] = &["api_key"];
    const SENT_SECRETS: &'static [&'static str] = Self::SECRETS;
    const NEEDS: Option<Capability> = Some(Capability::Assistant);

    fn validate(&self, _: &State, problems: &mut Problems) {
        if let Some(url) = check_url("endpoint", &self.endpoint, problems) {
            let local = is_this_host(&url);
            if is_link_local(&url) {
                problems.add(
                    code::RANGE,
                    "endpoint",
                    "A link-local address is no server of language models.",
                );
            } else if !local && !self.allow_remote {
                let message = "Not this host: what is asked would leave it. allow_remote permits that.";
                problems.add(code::CONFLICT, "endpoint", message);
            } else if !local && !self.pseudonyms {
                problems
                    .warn("pseudonyms", "Without pseudonyms, names and addresses of hosts leave this host.");
            }
            if url.scheme() == "http" && !local && self.api_key.is_set() {
                problems.warn("endpoint", "Without TLS the key goes over the network in clear.");
            }
        }
        check_free_text("model", &self.model, 200, problems);
        check_range("timeout_sec", self.timeout_sec, 1..=600, problems);
    }

    fn destination(&self) -> Destination {
        [("endpoint", self.endpoint.trim_end_matches('/').to_owned())].into()
    }

    fn secrets(&mut self) -> Vec<&mut Secret> {
        vec![&mut self.api_key]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(endpoint: &str, allow_remote: bool) -> Problems {
        let config =
            AssistantConfig { endpoint: endpoint.to_owned(), allow_remote, ..AssistantConfig::default() };
        let mut problems = Problems::new();
        config.validate(&State::default(), &mut problems);
        problems
    }

    #[test]
    fn another_host_needs_permission_and_a_link_local_one_is_none() {
        for local in
            ["http://127.0.0.1:11434", "http://[::1]:8000/v1", "http://localhost:1", "http://127.9.9.9"]
        {
            assert!(problems(local, false).is_empty(), "{local}");
        }
        for remote in ["http://192.168.1.5:11434", "https://models.example/v1", "http://localhost.example"] {
            assert!(problems(remote, false).has("endpoint"), "{remote}");
            assert!(problems(remote, true).is_empty(), "{remote}");
            assert_eq!(problems(remote, true).warnings().len(), 1, "{remote}");
        }
        for metadata in ["http://169.254.169.254/", "http://[fe80::1]/", "http://[::ffff:169.254.169.254]/"] {
            assert!(problems(metadata, true).has("endpoint"), "{metadata}");
        }
    }
}
