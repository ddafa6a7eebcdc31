//! Address of the assistant's language model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{check_range, check_url};
use crate::capability::Capability;
use crate::problem::{Problems, code};
use crate::settings::group::Group;
use crate::state::State;
use crate::validated::check_free_text;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AssistantConfig {
    pub enabled: bool,
    pub endpoint: String,
    pub model: String,
    /// 1 to 600.
    pub timeout_sec: u64,
    /// Allows an endpoint on another host, to which policies and questions are sent.
    pub allow_remote: bool,
}

impl Default for AssistantConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            endpoint: "http://127.0.0.1:11434".to_owned(),
            model: String::new(),
            timeout_sec: 60,
            allow_remote: false,
        }
    }
}

impl Group for AssistantConfig {
    const KEY: &'static str = "ai";
    const NOUN: &'static str = "ai_config";
    const NEEDS: Option<Capability> = Some(Capability::Assistant);

    fn validate(&self, _: &State, problems: &mut Problems) {
        if let Some(url) = check_url("endpoint", &self.endpoint, problems) {
            let local = match url.host() {
                Some(url::Host::Ipv4(address)) => address.is_loopback(),
                Some(url::Host::Ipv6(address)) => address.is_loopback(),
                Some(url::Host::Domain(name)) => name == "localhost",
                None => false,
            };
            if !local && !self.allow_remote {
                let message = "Not this host: what is asked would leave it. allow_remote permits that.";
                problems.add(code::CONFLICT, "endpoint", message);
            }
        }
        check_free_text("model", &self.model, 200, problems);
        check_range("timeout_sec", self.timeout_sec, 1..=600, problems);
    }
}
