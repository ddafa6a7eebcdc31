//! Forwarders: resolvers and egress of queries for a domain.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::dns_preset::DnsPreset;
use super::proxy::Proxy;
use super::tunnel::Tunnel;
use crate::domain::DomainName;
use crate::egress_name::{AUTO, check_egress};
use crate::id_or_name::{check_reference, reference};
use crate::problem::{Problems, code};
use crate::references::{Hold, Ref};
use crate::resource::{Keys, Meta, Resource};
use crate::state::State;
use crate::upstream::{DnsProtocol, check_upstreams, is_by_name, normalise_upstreams};

/// Forwarder. The one with the longest matching domain applies, among equals the one with the lowest priority.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DnsForwarder {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    /// The domain and all below it; `.` for all names.
    pub domain: DomainName,
    /// Addresses or names of resolvers, with a port if it is not that of the protocol; for https also whole addresses
    /// such as `https://dns.example.net/dns-query`.
    pub upstreams: Vec<String>,
    /// Id or name of a preset instead of upstreams, protocol and tls_name.
    pub preset: Option<String>,
    pub protocol: DnsProtocol,
    /// Name on the certificates of resolvers that are given by address.
    pub tls_name: Option<DomainName>,
    /// Addresses of resolvers that find those that are given by name.
    pub bootstrap: Vec<IpAddr>,
    /// `auto`, or name of a tunnel or of an uplink.
    pub egress: String,
    /// Id or name of a proxy that the queries go through.
    pub proxy: Option<String>,
    /// Answers are validated.
    pub dnssec: bool,
    pub enabled: bool,
    /// Lower comes first.
    pub priority: u16,
}

impl Default for DnsForwarder {
    fn default() -> DnsForwarder {
        DnsForwarder {
            meta: Meta::default(),
            domain: DomainName::root(),
            upstreams: Vec::new(),
            preset: None,
            protocol: DnsProtocol::Udp,
            tls_name: None,
            bootstrap: Vec::new(),
            egress: DnsForwarder::AUTO.to_owned(),
            proxy: None,
            dnssec: false,
            enabled: true,
            priority: 100,
        }
    }
}

impl DnsForwarder {
    /// Default route of the gateway itself.
    pub const AUTO: &'static str = AUTO;

    /// Upstreams, protocol and name on certificates: those of the preset, if it names one.
    pub fn servers<'a>(&'a self, state: &'a State) -> (&'a [String], DnsProtocol, Option<&'a DomainName>) {
        match state.referred::<DnsPreset>(&self.preset) {
            Some(preset) => (&preset.upstreams, preset.mode.protocol(), preset.tls_name.as_ref()),
            None => (&self.upstreams, self.protocol, self.tls_name.as_ref()),
        }
    }
}

impl Resource for DnsForwarder {
    const NOUN: &'static str = "dns_forwarder";
    const COLLECTION: &'static str = "dns_forwarders";
    const LABEL_IS_NAME: bool = false;

    fn label(&self) -> &str {
        self.domain.as_str()
    }

    fn prepare(&mut self) {
        normalise_upstreams(&mut self.upstreams);
    }

    fn validate(&self, state: &State, problems: &mut Problems) {
        if self.upstreams.is_empty() && self.preset.is_none() {
            problems.required("upstreams");
        }
        let own = [("upstreams", !self.upstreams.is_empty()), ("tls_name", self.tls_name.is_some())];
        for (path, _) in own.iter().filter(|(_, given)| *given && self.preset.is_some()) {
            problems.add(code::CONFLICT, *path, "A preset has its own: give one of them.");
        }
        check_reference::<DnsPreset>("preset", &self.preset, state, problems);
        check_upstreams("upstreams", &self.upstreams, self.protocol, &self.tls_name, problems);
        if self.preset.is_none() && self.tls_name.is_some() && !self.protocol.is_encrypted() {
            problems.add(
                code::CONFLICT,
                "tls_name",
                format!("The protocol {} has no certificates.", self.protocol),
            );
        }
        if self.tls_name.as_ref().is_some_and(DomainName::is_root) {
            problems.add(code::FORMAT, "tls_name", "Expected the name on a certificate.");
        }
        if self.bootstrap.len() > 8 {
            problems.add(code::RANGE, "bootstrap", "At most 8 addresses.");
        }
        let named = self.servers(state).0.iter().any(|text| is_by_name(text));
        // A forwarder of all domains cannot resolve the name of its own upstream.
        if named && self.bootstrap.is_empty() && self.domain.is_root() {
            problems.required("bootstrap");
        }
        check_egress("egress", &self.egress, |name| state.tunnel_by_name(name).is_some(), problems);
        check_reference::<Proxy>("proxy", &self.proxy, state, problems);
    }

    fn refs(&self) -> Vec<Ref> {
        let egress = Some(&self.egress).filter(|egress| *egress != DnsForwarder::AUTO);
        let egress = egress.map(|egress| Ref::new(Tunnel::NOUN, egress, "egress", Hold::Loose));
        let preset = reference::<DnsPreset>("preset", &self.preset, Hold::Firm);
        let proxy = reference::<Proxy>("proxy", &self.proxy, Hold::Firm);
        egress.into_iter().chain(preset).chain(proxy).collect()
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("priority", format!("{} {}", self.domain, self.priority));
    }
}
