//! Zones that the resolver serves or forwards.

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::dns_record::DnsRecord;
use super::zone_key;
use crate::domain::DomainName;
use crate::edit::EditError;
use crate::id_or_name::keep_name;
use crate::problem::{Problems, code};
use crate::resource::{Keys, Meta, Resource, ref_key};
use crate::secret::Secret;
use crate::state::State;
use crate::upstream::{DnsProtocol, check_upstreams, normalise_upstreams};
use crate::validated::text_enum;

text_enum! {
    /// Source of the answers of a zone.
    #[derive(Default)]
    pub enum ZoneType {
        /// The records stored here.
        #[default]
        Primary = "primary",
        /// Other recursive resolvers.
        Forward = "forward",
        /// Authoritative servers of the zone.
        Stub = "stub",
        /// Secondary zone, transferred from its primary server.
        Secondary = "secondary",
    }
}

/// Longest life of an answer: 2^31 - 1 seconds (RFC 2181).
pub(super) const MAX_TTL: u32 = i32::MAX as u32;

/// Start of authority of a primary zone. The serial is the gateway's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Soa {
    /// Name of the primary server; the gateway's own if left out.
    pub mname: Option<DomainName>,
    /// Mail address of the responsible person, as a mail address or as a domain name.
    pub rname: Option<String>,
    /// Seconds between two checks of a secondary server for a newer version (RFC 1035, section 3.3.13).
    pub refresh: u32,
    /// Seconds until a secondary server repeats a failed check.
    pub retry: u32,
    /// Seconds after the last successful check until a secondary server stops answering for the zone.
    pub expire: u32,
    /// TTL of negative answers in seconds (RFC 2308).
    pub minimum: u32,
}

impl Default for Soa {
    fn default() -> Soa {
        Soa { mname: None, rname: None, refresh: 86_400, retry: 7_200, expire: 3_600_000, minimum: 300 }
    }
}

impl Soa {
    fn check(&self, problems: &mut Problems) {
        let times = [
            ("refresh", self.refresh),
            ("retry", self.retry),
            ("expire", self.expire),
            ("minimum", self.minimum),
        ];
        for (field, seconds) in times {
            if seconds == 0 || seconds > MAX_TTL {
                problems.add(code::RANGE, format!("soa.{field}"), format!("From 1 to {MAX_TTL} seconds."));
            }
        }
        if self.expire <= self.refresh {
            problems.add(
                code::CONFLICT,
                "soa.expire",
                "A copy must live longer than until its next refresh.",
            );
        }
        if let Some(rname) = &self.rname
            && !is_mailbox(rname)
        {
            problems.add(
                code::FORMAT,
                "soa.rname",
                "Expected a mail address such as hostmaster@example.com.",
            );
        }
    }
}

/// `hostmaster@example.com` or `hostmaster.example.com`.
fn is_mailbox(text: &str) -> bool {
    let (local, domain) = text.split_once('@').unwrap_or(("x", text));
    let fine = !local.is_empty()
        && local.len() <= 63
        && local.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'+'));
    fine && DomainName::parse(domain).is_ok()
}

/// A zone. Records name it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DnsZone {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    pub name: DomainName,
    pub r#type: ZoneType,
    pub enabled: bool,
    /// TTL in seconds of records without their own.
    pub ttl: u32,
    pub soa: Soa,
    /// Upstreams of a zone that is not primary, for a secondary zone its primaries: addresses, with a port if it is not
    /// 53.
    pub upstreams: Vec<String>,
    /// True if a primary zone is signed. Answers of other zones are validated; secondary zones are served as
    /// transferred.
    pub dnssec: bool,
    /// Signs the zone, with ECDSA of P-256 and SHA-256 (RFC 6605): 32 bytes in base64, as name servers keep them in
    /// files. Made when the zone is to be signed and has none; null makes another one at once, which the zone above
    /// does not know.
    #[serde(rename(serialize = "has_signing_key", deserialize = "signing_key"))]
    pub signing_key: Secret,
    /// DNSKEY record of the key.
    #[schemars(extend("readOnly" = true))]
    pub dnskey: Option<String>,
}

impl Default for DnsZone {
    fn default() -> DnsZone {
        DnsZone {
            meta: Meta::default(),
            name: DomainName::default(),
            r#type: ZoneType::Primary,
            enabled: true,
            ttl: 300,
            soa: Soa::default(),
            upstreams: Vec::new(),
            dnssec: false,
            signing_key: Secret::default(),
            dnskey: None,
        }
    }
}

/// Fields of a shown zone that follow from its records.
#[derive(JsonSchema)]
#[allow(dead_code)]
struct DnsZoneShown {
    /// Number of records that are stored for the zone or were transferred.
    records_count: usize,
    /// Serial of the SOA record. In a primary zone it grows with every change of a record. Null for a secondary zone
    /// without valid data, which is answered with SERVFAIL.
    serial: Option<u32>,
    /// Signed zones: DS record for the parent zone.
    ds: Option<String>,
    /// Secondary zones: time of the last transfer.
    last_updated: Option<Timestamp>,
    /// Secondary zones: time at which the zone was last known to equal that of its primaries.
    last_checked: Option<Timestamp>,
    /// Secondary zones: time at which the zone expires unless it is confirmed before.
    expires_at: Option<Timestamp>,
    /// Secondary zones: reason for which the last refresh failed.
    error: Option<String>,
}

impl DnsZone {
    pub fn is_signed(&self) -> bool {
        self.dnssec && self.r#type == ZoneType::Primary
    }
}

impl Resource for DnsZone {
    const NOUN: &'static str = "dns_zone";
    const COLLECTION: &'static str = "dns_zones";
    const READ_ONLY: &'static [&'static str] =
        &["dnskey", "ds", "records_count", "serial", "last_updated", "last_checked", "expires_at", "error"];
    const REQUIRED: &'static [&'static str] = &["name"];
    const SECRETS: &'static [&'static str] = &["signing_key"];
    const LOCAL_SECRETS: &'static [&'static str] = Self::SECRETS;

    fn label(&self) -> &str {
        self.name.as_str()
    }

    fn alias(&self) -> Option<&str> {
        Some(self.name.as_str())
    }

    fn prepare(&mut self) {
        normalise_upstreams(&mut self.upstreams);
        if !self.is_signed() {
            self.dnskey = None;
            return;
        }
        if !self.signing_key.is_set() {
            self.signing_key = zone_key::generate().unwrap_or_default();
        }
        // What cannot be opened keeps its public half.
        if self.signing_key.is_readable() {
            self.dnskey = zone_key::public(&self.signing_key).map(|key| zone_key::show(&key));
        }
    }

    fn validate(&self, state: &State, problems: &mut Problems) {
        if self.name.is_root() {
            problems.add(
                code::FORMAT,
                "name",
                "The root is no zone of this gateway; forwarders are for all names.",
            );
        }
        if self.ttl == 0 || self.ttl > MAX_TTL {
            problems.add(code::RANGE, "ttl", format!("From 1 to {MAX_TTL} seconds."));
        }
        self.soa.check(problems);
        check_upstreams("upstreams", &self.upstreams, DnsProtocol::Udp, &None, problems);
        match self.r#type {
            ZoneType::Primary if !self.upstreams.is_empty() => {
                problems.add(code::CONFLICT, "upstreams", "A primary zone needs no upstreams.");
            }
            ZoneType::Primary => {}
            _ if self.upstreams.is_empty() => problems.required("upstreams"),
            other if state.dns_zones.contains(self.meta.id) && has_records(self, state) => {
                let message = format!("The zone has records; a zone of type {other} has none of its own.");
                problems.add(code::CONFLICT, "type", message);
            }
            _ => {}
        }
        if self.is_signed() && self.dnskey.is_none() {
            problems.add(
                code::FORMAT,
                "signing_key",
                "Expected a private key of the curve P-256: 32 bytes in base64, 44 characters.",
            );
        }
        if self.dnssec && self.r#type == ZoneType::Secondary {
            problems.warn("dnssec", "Not used: a copy is served as its servers have signed it.");
        }
    }

    fn admit(&self, before: Option<&Self>, state: &State) -> Result<(), EditError> {
        keep_name(self, before, false, state)
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", self.name.as_str());
    }

    fn secrets(&mut self) -> Vec<(String, &mut Secret)> {
        vec![("/signing_key".to_owned(), &mut self.signing_key)]
    }

    fn carry_over(input: &mut Map<String, Value>, before: &Self) {
        if before.signing_key.is_set() && !input.contains_key("signing_key") {
            input.insert("signing_key".to_owned(), before.signing_key.kept().into());
            input.insert("dnskey".to_owned(), before.dnskey.clone().into());
        }
    }

    fn add_derived(&self, state: &State, shown: &mut Map<String, Value>) {
        for live in ["last_updated", "last_checked", "expires_at", "error"] {
            shown.insert(live.into(), Value::Null);
        }
        let ds = self.dnskey.as_deref().and_then(|key| zone_key::ds(&self.name, key));
        shown.insert("ds".into(), ds.into());
        shown.insert("records_count".into(), records(self, state).count().into());
        if self.r#type != ZoneType::Primary {
            shown.insert("serial".into(), Value::Null);
            return;
        }
        // Deleted records leave no trace but in the revision of their collection.
        let revision = self.meta.revision.max(state.dns_records.revision()).0;
        shown.insert("serial".into(), (revision & u64::from(u32::MAX)).into());
    }

    fn shown_schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(DnsZoneShown::json_schema(generator))
    }
}

fn records<'a>(zone: &DnsZone, state: &'a State) -> impl Iterator<Item = &'a DnsRecord> + use<'a> {
    state.dns_records.with_key(&ref_key(DnsZone::NOUN, zone.name.as_str())).map(AsRef::as_ref)
}

fn has_records(zone: &DnsZone, state: &State) -> bool {
    let before = state.dns_zones.get(zone.meta.id);
    before.is_some_and(|before| records(before, state).next().is_some())
}
