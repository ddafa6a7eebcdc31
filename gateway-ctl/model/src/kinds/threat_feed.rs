//! Threat feeds: public lists of hostile names and addresses.

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::edit::EditError;
use crate::id_or_name::{keep_builtin, keep_name};
use crate::kinds::dns_list::IgnoredLines;
use crate::problem::{Problems, code};
use crate::resource::{Keys, Meta, Resource};
use crate::state::State;
use crate::upstream::{check_web_address, normalise_web_address};
use crate::validated::{check_name, text_enum};

text_enum! {
    /// Format of a feed.
    #[derive(Default)]
    pub enum FeedFormat {
        /// Lines of a hosts file.
        Hosts = "hosts",
        /// One name a line.
        #[default]
        Domains = "domains",
        Adblock = "adblock",
        /// A response policy zone.
        Rpz = "rpz",
        /// One address or network a line.
        Ip = "ip",
    }
}

text_enum! {
    /// Category of the entries of a feed.
    #[derive(Default)]
    pub enum FeedCategory {
        #[default]
        Malware = "malware",
        Phishing = "phishing",
        /// Servers that command infected machines.
        C2 = "c2",
        /// Resolvers by which clients can bypass the gateway.
        Doh = "doh",
        Tracker = "tracker",
    }
}

text_enum! {
    /// State of a feed.
    pub enum FeedStatus {
        Ok = "ok",
        /// Older than its interval.
        Stale = "stale",
        Error = "error",
    }
}

const SCHEMES: &[&str] = &["https", "http"];

/// A feed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ThreatFeed {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    pub name: String,
    pub url: String,
    pub format: FeedFormat,
    pub category: FeedCategory,
    pub enabled: bool,
    /// Hours between two checks for a newer version, 1 to 720.
    pub interval_h: u16,
    /// Built-in: cannot be renamed or deleted.
    #[schemars(extend("readOnly" = true))]
    pub builtin: bool,
}

impl Default for ThreatFeed {
    fn default() -> ThreatFeed {
        ThreatFeed {
            meta: Meta::default(),
            name: String::new(),
            url: String::new(),
            format: FeedFormat::Domains,
            category: FeedCategory::Malware,
            enabled: true,
            interval_h: 24,
            builtin: false,
        }
    }
}

/// Live state of a feed. Null if no download was tried.
#[derive(Serialize, JsonSchema)]
pub struct FeedLive {
    pub entries: Option<u64>,
    /// Lines that have no effect, or another one than the feed asks for. Null before the feed was read.
    pub ignored: Option<IgnoredLines>,
    pub last_updated: Option<Timestamp>,
    pub next_update: Option<Timestamp>,
    pub status: Option<FeedStatus>,
    pub etag: Option<String>,
    /// Reason for which the last download failed. Null if it did not.
    pub error: Option<String>,
}

const LIVE_KEYS: &[&str] = &["entries", "ignored", "last_updated", "next_update", "status", "etag", "error"];

impl Resource for ThreatFeed {
    const NOUN: &'static str = "threat_feed";
    const COLLECTION: &'static str = "threat_feeds";
    const READ_ONLY: &'static [&'static str] =
        &["builtin", "entries", "ignored", "last_updated", "next_update", "status", "etag", "error"];
    const REQUIRED: &'static [&'static str] = &["name", "url"];

    fn label(&self) -> &str {
        &self.name
    }

    fn builtin(now: Timestamp) -> Vec<ThreatFeed> {
        builtin(now)
    }

    fn alias(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn prepare(&mut self) {
        normalise_web_address(&mut self.url, SCHEMES);
    }

    fn validate(&self, _state: &State, problems: &mut Problems) {
        check_name("name", &self.name, problems);
        if self.url.is_empty() {
            problems.required("url");
        } else {
            check_web_address("url", &self.url, SCHEMES, problems);
        }
        if self.url.starts_with("http://") {
            problems.warn("url", "Without https others on the way can change what the feed says.");
        }
        if !(1..=720).contains(&self.interval_h) {
            problems.add(code::RANGE, "interval_h", "From 1 to 720 hours.");
        }
    }

    fn admit(&self, before: Option<&Self>, state: &State) -> Result<(), EditError> {
        keep_name(self, before, before.is_some_and(|before| before.builtin), state)
    }

    fn admit_delete(&self, _state: &State) -> Result<(), EditError> {
        keep_builtin(self, self.builtin)
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", self.name.as_str());
        keys.unique("url", format!("url:{}", self.url));
    }

    fn carry_over(input: &mut Map<String, Value>, before: &Self) {
        input.insert("builtin".into(), before.builtin.into());
    }

    fn add_derived(&self, _state: &State, shown: &mut Map<String, Value>) {
        LIVE_KEYS.iter().for_each(|key| drop(shown.insert((*key).to_owned(), Value::Null)));
    }

    fn shown_schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(FeedLive::json_schema(generator))
    }
}

/// Known feeds, all disabled. In the order of their slots: append only.
fn builtin(now: Timestamp) -> Vec<ThreatFeed> {
    use FeedCategory::{C2, Doh, Malware, Phishing, Tracker};
    use FeedFormat::{Adblock, Domains, Hosts, Ip};
    let feeds = [
        ("URLhaus", "https://urlhaus.abuse.ch/downloads/hostfile/", Hosts, Malware, 1),
        ("ThreatFox", "https://threatfox.abuse.ch/downloads/hostfile/", Hosts, C2, 1),
        ("Feodo Tracker", "https://feodotracker.abuse.ch/downloads/ipblocklist.txt", Ip, C2, 1),
        ("Phishing Army", "https://phishing.army/download/phishing_army_blocklist.txt", Domains, Phishing, 6),
        (
            "HaGeZi threat intelligence",
            "https://raw.githubusercontent.com/hagezi/dns-blocklists/main/adblock/tif.txt",
            Adblock,
            Malware,
            24,
        ),
        (
            "HaGeZi encrypted resolvers",
            "https://raw.githubusercontent.com/hagezi/dns-blocklists/main/adblock/doh.txt",
            Adblock,
            Doh,
            24,
        ),
        (
            "AdGuard DNS filter",
            "https://adguardteam.github.io/AdGuardSDNSFilter/Filters/filter.txt",
            Adblock,
            Tracker,
            24,
        ),
    ];
    let feed = |(slot, (name, url, format, category, interval_h)): (
        u32,
        (&str, &str, FeedFormat, FeedCategory, u16),
    )| ThreatFeed {
        meta: Meta::builtin(6, slot, now),
        name: name.to_owned(),
        url: url.to_owned(),
        format,
        category,
        enabled: false,
        interval_h,
        builtin: true,
    };
    (1..).zip(feeds).map(feed).collect()
}
