//! Rewrites: local answers that replace public ones.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::{DomainName, DomainOrWildcard};
use crate::edit::EditError;
use crate::problem::{Problems, code};
use crate::resource::{Keys, Meta, Resource};
use crate::state::State;

/// Answer of a rewrite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Address(IpAddr),
    /// This name is resolved instead of the queried one.
    Name(DomainName),
    /// `A`: public IPv4 answers are kept.
    KeepA,
    /// `AAAA`: public IPv6 answers are kept.
    KeepAaaa,
}

impl Answer {
    pub fn parse(text: &str) -> Option<Answer> {
        let text = text.trim();
        match text.to_ascii_uppercase().as_str() {
            "A" => Some(Answer::KeepA),
            "AAAA" => Some(Answer::KeepAaaa),
            _ => match text.parse() {
                Ok(address) => Some(Answer::Address(address)),
                Err(_) => DomainName::parse(text).ok().map(Answer::Name),
            },
        }
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Answer::Address(address) => address.fmt(f),
            Answer::Name(name) => name.fmt(f),
            Answer::KeepA => f.write_str("A"),
            Answer::KeepAaaa => f.write_str("AAAA"),
        }
    }
}

/// DNS rewrite. The answers of several rewrites for one domain are combined.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DnsRewrite {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    /// Domain, or `*.` and a domain for its subdomains.
    pub domain: String,
    /// Address, name to resolve instead, or `A` or `AAAA` to keep the public answers of that type.
    pub answer: String,
    pub enabled: bool,
}

impl Default for DnsRewrite {
    fn default() -> DnsRewrite {
        DnsRewrite { meta: Meta::default(), domain: String::new(), answer: String::new(), enabled: true }
    }
}

impl Resource for DnsRewrite {
    const NOUN: &'static str = "dns_rewrite";
    const COLLECTION: &'static str = "dns_rewrites";
    const REQUIRED: &'static [&'static str] = &["domain", "answer"];
    const LABEL_IS_NAME: bool = false;

    fn label(&self) -> &str {
        &self.domain
    }

    fn prepare(&mut self) {
        if let Ok(domain) = DomainOrWildcard::parse(&self.domain) {
            self.domain = domain.to_string();
        }
        if let Some(answer) = Answer::parse(&self.answer) {
            self.answer = answer.to_string();
        }
    }

    fn validate(&self, _state: &State, problems: &mut Problems) {
        match DomainOrWildcard::parse(&self.domain) {
            _ if self.domain.is_empty() => problems.required("domain"),
            Err(error) => drop(problems.add(code::FORMAT, "domain", format!("Not a domain: {error}."))),
            Ok(_) => {}
        }
        match Answer::parse(&self.answer) {
            _ if self.answer.is_empty() => problems.required("answer"),
            None => {
                let message =
                    "Expected an address, a domain name, or A or AAAA to keep the answers of that type.";
                problems.add(code::FORMAT, "answer", message);
            }
            Some(Answer::Name(name)) if name.as_str() == self.domain => {
                let message = "The domain would be an alias of itself; to keep its answers use A and AAAA.";
                problems.add(code::CONFLICT, "answer", message);
            }
            Some(_) => {}
        }
    }

    /// An alias excludes every other answer.
    fn admit(&self, _before: Option<&Self>, state: &State) -> Result<(), EditError> {
        let is_name = |rewrite: &DnsRewrite| matches!(Answer::parse(&rewrite.answer), Some(Answer::Name(_)));
        let mut others = state
            .dns_rewrites
            .with_key(&domain_key(&self.domain))
            .filter(|other| other.meta.id != self.meta.id && other.enabled && other.answer != self.answer);
        match others.find(|other| self.enabled && (is_name(self) || is_name(other))) {
            None => Ok(()),
            Some(other) => Err(EditError::Conflict {
                resource_type: Self::NOUN,
                field: "answer".to_owned(),
                existing_id: other.meta.id,
                message: format!(
                    "{} is rewritten to {}; a name as the answer stands alone",
                    self.domain, other.answer
                ),
            }),
        }
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("answer", format!("{} {}", self.domain, self.answer));
        keys.shared(domain_key(&self.domain));
    }
}

fn domain_key(domain: &str) -> String {
    format!("domain:{domain}")
}
