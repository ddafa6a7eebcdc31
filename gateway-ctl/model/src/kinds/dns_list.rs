//! Entries of the allowlist and of the blocklist: a domain with all below it, or a list of them on the web.

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::DomainName;
use crate::problem::{Problems, code};
use crate::resource::{Keys, Meta, Resource};
use crate::state::State;
use crate::upstream::{check_web_address, normalise_web_address};
use crate::validated::{check_free_text, check_name};

/// State of a downloaded list. Null if no download was tried.
#[derive(Serialize, JsonSchema)]
pub struct ListState {
    pub rules_count: Option<u64>,
    /// Lines that have no effect. Null before the list was read.
    pub ignored: Option<IgnoredLines>,
    pub last_updated: Option<Timestamp>,
    pub etag: Option<String>,
    pub error: Option<String>,
}

/// Lines of a list that were not taken as written.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct IgnoredLines {
    pub total: u64,
    /// Reasons, the most frequent one first. Rare ones are counted together.
    pub reasons: Vec<IgnoredReason>,
}

/// Reason for which lines of a list were not taken.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct IgnoredReason {
    /// Human-readable reason. Words of the list are left out.
    pub reason: String,
    pub lines: u64,
    /// Number of the first such line, from 1.
    pub first_line: u64,
}

/// Keys of [`ListState`].
const STATE_KEYS: &[&str] = &["rules_count", "ignored", "last_updated", "etag", "error"];

const SCHEMES: &[&str] = &["https", "http"];

/// Fields of an entry of either list.
struct Entry<'a> {
    domain: &'a Option<DomainName>,
    name: &'a Option<String>,
    url: &'a Option<String>,
    comment: &'a str,
}

impl<'a> Entry<'a> {
    fn label(&self) -> &'a str {
        match (self.domain, self.name, self.url) {
            (Some(domain), _, _) => domain.as_str(),
            (None, Some(text), _) | (None, None, Some(text)) => text,
            (None, None, None) => "",
        }
    }

    fn validate(&self, problems: &mut Problems) {
        match (self.domain, self.url) {
            (None, None) => problems.required("domain"),
            (Some(_), Some(_)) => {
                problems.add(code::CONFLICT, "url", "An entry is a domain or a list on the web, not both.");
            }
            (Some(domain), None) => {
                if domain.is_root() {
                    problems.add(
                        code::FORMAT,
                        "domain",
                        "The root stands for all names; that is no entry of a list.",
                    );
                }
                if self.name.is_some() {
                    problems.add(code::CONFLICT, "name", "Only lists on the web have a name.");
                }
            }
            (None, Some(url)) => {
                check_web_address("url", url, SCHEMES, problems);
                match self.name {
                    None => problems.required("name"),
                    Some(name) => check_name("name", name, problems),
                }
            }
        }
        check_free_text("comment", self.comment, 1000, problems);
    }

    fn keys(&self, keys: &mut Keys) {
        if let Some(domain) = self.domain {
            keys.unique("domain", domain.as_str());
        }
        if let Some(name) = self.name {
            keys.unique("name", format!("name:{name}"));
        }
        if let Some(url) = self.url {
            keys.unique("url", format!("url:{url}"));
        }
    }
}

macro_rules! list_kind {
    ($(#[$doc:meta])* $kind:ident, $noun:literal, $collection:literal, $other:ident, $warning:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(default)]
        pub struct $kind {
            #[serde(flatten, skip_deserializing)]
            pub meta: Meta,
            /// The domain and its subdomains.
            pub domain: Option<DomainName>,
            /// Display name of a list with a URL.
            pub name: Option<String>,
            /// URL of the list: domains, a hosts file, or rules in Adblock syntax.
            pub url: Option<String>,
            pub enabled: bool,
            pub comment: String,
        }

        impl Default for $kind {
            fn default() -> $kind {
                $kind { meta: Meta::default(), domain: None, name: None, url: None, enabled: true, comment: String::new() }
            }
        }

        impl $kind {
            fn entry(&self) -> Entry<'_> {
                Entry { domain: &self.domain, name: &self.name, url: &self.url, comment: &self.comment }
            }
        }

        impl Resource for $kind {
            const NOUN: &'static str = $noun;
            const COLLECTION: &'static str = $collection;
            const READ_ONLY: &'static [&'static str] = STATE_KEYS;

            fn label(&self) -> &str {
                self.entry().label()
            }

            fn alias(&self) -> Option<&str> {
                self.domain.as_ref().map(DomainName::as_str)
            }

            fn spelling(name: &str) -> String {
                DomainName::parse(name).map_or_else(|_| name.to_owned(), |domain| domain.to_string())
            }

            fn prepare(&mut self) {
                if let Some(url) = &mut self.url {
                    normalise_web_address(url, SCHEMES);
                }
            }

            fn validate(&self, state: &State, problems: &mut Problems) {
                self.entry().validate(problems);
                let other = self.domain.as_ref().and_then(|domain| state.$other.by_key(domain.as_str()));
                if other.is_some_and(|other| other.enabled) {
                    problems.warn("domain", $warning);
                }
            }

            fn keys(&self, keys: &mut Keys) {
                self.entry().keys(keys);
            }

            fn add_derived(&self, _state: &State, shown: &mut Map<String, Value>) {
                STATE_KEYS.iter().for_each(|key| drop(shown.insert((*key).to_owned(), Value::Null)));
            }

            fn shown_schema(generator: &mut SchemaGenerator) -> Option<Schema> {
                Some(ListState::json_schema(generator))
            }
        }
    };
}

list_kind!(
    /// An entry of the allowlist: it wins over the blocklist, threat feeds and filter rules that block.
    DnsAllow,
    "dns_allow",
    "dns_allowlist",
    dns_blocklist,
    "It stands on the blocklist too; the allowlist wins."
);

list_kind!(
    /// An entry of the blocklist.
    DnsBlock,
    "dns_block",
    "dns_blocklist",
    dns_allowlist,
    "It stands on the allowlist too, which wins."
);
