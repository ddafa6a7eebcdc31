//! SOCKS5 proxies: hops that take connections, and datagrams if they can.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::destination::Destination;
use crate::edit::EditError;
use crate::id_or_name::keep_name;
use crate::problem::{Problems, code};
use crate::resource::{Keys, Meta, Resource};
use crate::secret::Secret;
use crate::state::State;
use crate::validated::{check_free_text, check_slug, is_host_name, named_endpoint, text_enum};

text_enum! {
    #[derive(Default)]
    pub enum ProxyType {
        #[default]
        Socks5 = "socks5",
    }
}

text_enum! {
    /// Health check of a proxy.
    #[derive(Default)]
    pub enum ProxyCheckType {
        /// It takes a connection and agrees on a method.
        #[default]
        Connect = "connect",
        Http = "http",
        Dns = "dns",
    }
}

text_enum! {
    #[derive(Default)]
    pub enum ProxyStatus {
        Disabled = "disabled",
        Up = "up",
        Down = "down",
        #[default]
        Unknown = "unknown",
    }
}

/// Health check of a proxy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProxyCheck {
    pub r#type: ProxyCheckType,
    /// For `http` a URL (`http://host/path`), for `dns` a name server (`host` or `host:port`), queried through the
    /// proxy. The proxy resolves names in it.
    pub target: Option<String>,
    pub interval_sec: u32,
    pub timeout_sec: u32,
    /// So many failures in a row make it down.
    pub fail: u32,
    /// So many successes in a row make it up again.
    pub success: u32,
}

impl Default for ProxyCheck {
    fn default() -> ProxyCheck {
        ProxyCheck {
            r#type: ProxyCheckType::Connect,
            target: None,
            interval_sec: 30,
            timeout_sec: 5,
            fail: 3,
            success: 2,
        }
    }
}

/// A proxy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Proxy {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    /// Unique; hops name the proxy by it.
    #[schemars(regex(pattern = "^[a-z0-9_-]{1,32}$"))]
    pub name: String,
    pub r#type: ProxyType,
    /// Address or name of the host.
    pub address: String,
    pub port: u16,
    pub username: Option<String>,
    #[serde(rename(serialize = "has_password", deserialize = "password"))]
    pub password: Secret,
    /// Sends UDP through the proxy (UDP ASSOCIATE, RFC 1928) unless the proxy refuses it. Otherwise the policy's
    /// failure policy applies to UDP.
    pub udp: bool,
    /// Only false is accepted: there is no standard protocol.
    pub udp_over_tcp: bool,
    /// Resolves names at the proxy. Without effect in this version, in which the relay knows only addresses.
    pub remote_dns: bool,
    pub enabled: bool,
    /// Maximum number of concurrent connections; further ones are reset.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_connections: u32,
    pub health_check: ProxyCheck,
    pub notes: String,
}

impl Default for Proxy {
    fn default() -> Proxy {
        Proxy {
            meta: Meta::default(),
            name: String::new(),
            r#type: ProxyType::Socks5,
            address: String::new(),
            port: 1080,
            username: None,
            password: Secret::default(),
            udp: true,
            udp_over_tcp: false,
            remote_dns: true,
            enabled: true,
            max_connections: 16_384,
            health_check: ProxyCheck::default(),
            notes: String::new(),
        }
    }
}

/// Live state of a proxy, shown beside the stored fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ProxyLive {
    /// `unknown` until the first probe.
    pub status: ProxyStatus,
    /// Milliseconds until the proxy accepted the connection in the last probe.
    pub latency_ms: Option<f64>,
    /// True if the proxy relays UDP. Null if that is not known.
    pub udp_works: Option<bool>,
    /// Reason for which the proxy is not usable through one of its egresses.
    pub last_error: Option<String>,
}

impl Proxy {
    /// `host:port` if its address is a name, which has to be resolved.
    pub fn endpoint_name(&self) -> Option<String> {
        named_endpoint(&self.address, self.port)
    }
}

impl ProxyCheck {
    fn validate(&self, problems: &mut Problems) {
        let numbers = [
            ("interval_sec", self.interval_sec, 5..=86_400),
            ("timeout_sec", self.timeout_sec, 1..=60),
            ("fail", self.fail, 1..=100),
            ("success", self.success, 1..=100),
        ];
        for (field, value, range) in numbers {
            if !range.contains(&value) {
                let message = format!("Must be from {} to {}.", range.start(), range.end());
                problems.add(code::RANGE, format!("health_check.{field}"), message);
            }
        }
        if self.r#type != ProxyCheckType::Connect && self.target.is_none() {
            let message = format!("A check of type {} needs something to ask.", self.r#type);
            problems.add(code::REQUIRED, "health_check.target", message);
        }
        if self.target.as_ref().is_some_and(|target| target.len() > 2048) {
            problems.add(code::RANGE, "health_check.target", "At most 2048 characters.");
        }
    }
}

impl Resource for Proxy {
    const NOUN: &'static str = "proxy";
    const COLLECTION: &'static str = "proxies";
    const SECRETS: &'static [&'static str] = &["password"];
    const SENT_SECRETS: &'static [&'static str] = Self::SECRETS;
    const READ_ONLY: &'static [&'static str] = &["status", "latency_ms", "udp_works", "last_error"];
    /// The number of a proxy occupies eight bits of the packet mark.
    const SLOTS: u32 = 256;
    const REQUIRED: &'static [&'static str] = &["name", "address"];

    fn label(&self) -> &str {
        &self.name
    }

    fn alias(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn validate(&self, _state: &State, problems: &mut Problems) {
        check_slug("name", &self.name, problems);
        if self.address.parse::<std::net::IpAddr>().is_err() && !is_host_name(&self.address) {
            problems.add(code::FORMAT, "address", "Expected an address or a host name, without the port.");
        }
        if self.port == 0 {
            problems.add(code::RANGE, "port", "Must be from 1 to 65535.");
        }
        // One byte of length each (RFC 1929).
        if self.username.as_ref().is_some_and(|name| name.is_empty() || name.len() > 255) {
            problems.add(code::RANGE, "username", "1 to 255 bytes.");
        }
        if self.password.expose().len() > 255 {
            problems.add(code::RANGE, "password", "At most 255 bytes.");
        }
        if self.password.is_set() && self.username.is_none() {
            problems.add(code::REQUIRED, "username", "A password needs a user name.");
        }
        self.health_check.validate(problems);
        check_free_text("notes", &self.notes, 4000, problems);
        if self.udp_over_tcp {
            let message = "There is no standard for UDP in a connection of SOCKS5: this version speaks none.";
            problems.add(code::NOT_SUPPORTED, "udp_over_tcp", message);
        }
        if !(1..=1_000_000).contains(&self.max_connections) {
            problems.add(code::RANGE, "max_connections", "Must be from 1 to 1000000.");
        }
    }

    fn admit(&self, before: Option<&Self>, state: &State) -> Result<(), EditError> {
        keep_name(self, before, false, state)
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", self.name.as_str());
    }

    fn secrets(&mut self) -> Vec<(String, &mut Secret)> {
        vec![("/password".to_owned(), &mut self.password)]
    }

    fn destination(&self) -> Destination {
        [
            ("type", self.r#type.to_string()),
            ("address", self.address.to_ascii_lowercase()),
            ("port", self.port.to_string()),
        ]
        .into()
    }

    fn carry_over(input: &mut Map<String, Value>, before: &Self) {
        if before.password.is_set() && !input.contains_key("password") {
            input.insert("password".to_owned(), before.password.kept().into());
        }
    }

    fn shown_schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(ProxyLive::json_schema(generator))
    }
}
