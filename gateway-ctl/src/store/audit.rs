//! Audit trail: one entry per mutation, each with the hash of the previous entry.
//!
//! The hash of an entry is SHA-256 over the previous hash and the bytes of the entry as stored.
//! [`Store::verify_audit`](super::Store::verify_audit) therefore detects edited and removed entries. The number and
//! the hash of the last entry are stored separately, which reveals a truncated end.

mod changes;
mod query;

use std::net::IpAddr;

use gateway_core::hexadecimal::hex;
use gateway_model::Id;
use jiff::{SignedDuration, Timestamp};
use redb::{ReadTransaction, ReadableTable, WriteTransaction};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::error::Error;
use super::schema::{AUDIT, META, META_TEXT, meta};
use super::values;
pub(super) use changes::note_changes;

type Hash = [u8; 32];

/// Actor and action of a mutation. The write path consumes the ticket, so that no mutation lacks an entry.
#[derive(Debug)]
#[must_use = "a ticket is recorded by commit or record"]
pub struct AuditTicket {
    /// User name, key name, or `system`.
    pub actor: String,
    pub auth: AuditAuth,
    pub ip: Option<IpAddr>,
    pub request_id: String,
    /// Verb and noun: `create_routing_policy`.
    pub action: String,
    /// Noun: `routing_policy`.
    pub resource_type: String,
    pub resource_id: Option<String>,
    /// Name of the object in the request. It becomes the entry's ID if no better one is known.
    pub named: Option<String>,
    /// JSON object, which never contains secrets.
    pub details: Value,
}

impl AuditTicket {
    /// Creates a ticket for an action of the service itself.
    pub fn system(action: impl Into<String>, resource_type: impl Into<String>) -> AuditTicket {
        AuditTicket {
            actor: "system".into(),
            auth: AuditAuth::System,
            ip: None,
            request_id: String::new(),
            action: action.into(),
            resource_type: resource_type.into(),
            resource_id: None,
            named: None,
            details: Value::Null,
        }
    }

    pub fn on(mut self, id: Id) -> AuditTicket {
        self.resource_id = Some(id.to_string());
        self
    }
}

/// Authentication method of the actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AuditAuth {
    Session,
    Key,
    Localnet,
    /// Authentication is disabled.
    Open,
    System,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AuditResult {
    Success,
    Denied,
    Failed,
}

/// Audit entry as the API shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditEntry {
    pub id: u64,
    pub timestamp: Timestamp,
    pub actor: String,
    pub action: String,
    pub resource_type: String,
    pub resource_id: Option<String>,
    /// Facts of the action. `changes` lists changed objects and settings: `op`, `type`, `id`, `name`, for a
    /// replaced object its `fields`, and as `diff` each changed field with its value before (`from`) and after (`to`).
    /// Secrets are `set`, `changed` or `cleared` there, without values; long values are `truncated`; `diff` is missing
    /// beyond a total length. `changes_total` counts all changes if not all are listed.
    pub details: Value,
    pub result: AuditResult,
    pub ip: Option<IpAddr>,
    pub auth: AuditAuth,
    pub request_id: String,
    pub prev_hash: String,
    /// Hash of this entry; not part of the hashed bytes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hash: String,
}

/// Upper end of a page: entries older than this, exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageEnd {
    Id(u64),
    Time(Timestamp),
}

/// Conditions that must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    pub actor: Option<String>,
    pub action: Option<String>,
    pub resource_type: Option<String>,
    pub resource_id: Option<String>,
    pub request_id: Option<String>,
    pub result: Option<AuditResult>,
}

impl AuditFilter {
    fn is_empty(&self) -> bool {
        *self == AuditFilter::default()
    }

    /// Returns texts that the JSON of every matching entry contains. They exclude most entries without parsing.
    fn needles(&self) -> Vec<String> {
        let fields = [
            ("actor", &self.actor),
            ("action", &self.action),
            ("resource_type", &self.resource_type),
            ("resource_id", &self.resource_id),
            ("request_id", &self.request_id),
        ];
        let needle = |(field, value): (&str, &Option<String>)| {
            Some(format!("\"{field}\":{}", Value::from(value.as_deref()?)))
        };
        fields.into_iter().filter_map(needle).collect()
    }

    fn matches(&self, entry: &AuditEntry) -> bool {
        let text = |want: &Option<String>, have: &str| want.as_deref().is_none_or(|want| want == have);
        text(&self.actor, &entry.actor)
            && text(&self.action, &entry.action)
            && text(&self.resource_type, &entry.resource_type)
            && text(&self.request_id, &entry.request_id)
            && (self.resource_id.is_none() || self.resource_id == entry.resource_id)
            && self.result.is_none_or(|want| want == entry.result)
    }
}

/// Result of a check of the whole trail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AuditReport {
    pub entries: u64,
    pub intact: bool,
    /// First fault, in the order of the entries.
    pub fault: Option<AuditFault>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AuditFault {
    pub id: u64,
    pub what: String,
}

/// End of the chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChainHead {
    id: u64,
    hash: Hash,
    at: Timestamp,
}

impl ChainHead {
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn at(&self) -> Timestamp {
        self.at
    }

    /// Returns the end of a wiped trail: the numbers continue, but the chain starts again.
    pub(super) fn restarted(self) -> ChainHead {
        ChainHead { hash: [0; 32], ..self }
    }
}

/// Entry to be written.
pub(super) struct Entry {
    id: u64,
    at: Timestamp,
    hash: Hash,
    json: Vec<u8>,
}

impl Entry {
    pub(super) fn new(head: &ChainHead, ticket: AuditTicket, result: AuditResult, now: Timestamp) -> Entry {
        let AuditTicket { actor, auth, ip, request_id, action, resource_type, resource_id, named, details } =
            ticket;
        let resource_id = resource_id.or(named);
        let (id, at) = (head.id + 1, stamp(now, head.at));
        let details = if details.is_null() { Value::Object(Default::default()) } else { details };
        let entry = AuditEntry {
            id,
            timestamp: at,
            actor,
            action,
            resource_type,
            resource_id,
            details,
            result,
            ip,
            auth,
            request_id,
            prev_hash: hex(&head.hash),
            hash: String::new(),
        };
        let json = serde_json::to_vec(&entry).expect("an entry is a struct with string keys");
        Entry { id, at, hash: chain(&head.hash, &json), json }
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn head(&self) -> ChainHead {
        ChainHead { id: self.id, hash: self.hash, at: self.at }
    }
}

/// Returns the time of an entry: whole microseconds, and later than the last one. If the clock was set back by more
/// than a second, the trail shows it.
fn stamp(now: Timestamp, last: Timestamp) -> Timestamp {
    let now = Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now);
    if now <= last && last.duration_since(now) < SignedDuration::from_secs(1) {
        last.checked_add(SignedDuration::from_micros(1)).unwrap_or(last)
    } else {
        now
    }
}

fn chain(previous: &Hash, json: &[u8]) -> Hash {
    let mut hasher = Sha256::new();
    hasher.update(previous);
    hasher.update(json);
    hasher.finalize().into()
}

pub(super) fn append(txn: &WriteTransaction, entry: &Entry) -> Result<(), Error> {
    let failed = || Error::at("write the audit entry");
    let value = [entry.hash.as_slice(), entry.json.as_slice()].concat();
    let mut table = txn.open_table(AUDIT).map_err(Error::at("write the audit entry"))?;
    table.insert(entry.id, value.as_slice()).map_err(failed())?;
    let mut numbers = txn.open_table(META).map_err(Error::at("write the audit entry"))?;
    numbers.insert(meta::AUDIT_LAST, entry.id).map_err(failed())?;
    let mut texts = txn.open_table(META_TEXT).map_err(Error::at("write the audit entry"))?;
    texts.insert(meta::AUDIT_HASH, hex(&entry.hash).as_str()).map_err(failed())?;
    Ok(())
}

pub(super) fn read_head(txn: &ReadTransaction) -> Result<ChainHead, Error> {
    let table = txn.open_table(AUDIT).map_err(Error::at("read the audit trail"))?;
    let last = table.last().map_err(Error::at("read the audit trail"))?;
    let Some((id, value)) = last else {
        // An emptied trail continues after its last number, so that the gap stays visible.
        let id = values::number(txn, meta::AUDIT_LAST)?;
        return Ok(ChainHead { id, hash: [0; 32], at: Timestamp::UNIX_EPOCH });
    };
    let number = id.value().max(values::number(txn, meta::AUDIT_LAST)?);
    // `verify_audit` reports an unreadable last entry; it must not prevent the gateway from starting.
    Ok(match show(value.value()) {
        Ok((entry, hash)) => ChainHead { id: number, hash, at: entry.timestamp },
        Err(_) => ChainHead { id: number, hash: [0; 32], at: Timestamp::UNIX_EPOCH },
    })
}

/// Returns the hash with which the chain begins: zeros, unless the beginning was trimmed.
fn base(txn: &ReadTransaction) -> Result<Hash, Error> {
    let Some(text) = values::text(txn, meta::AUDIT_BASE)? else { return Ok([0; 32]) };
    let byte =
        |at: usize| text.get(2 * at..2 * at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
    let mut hash = [0; 32];
    for (at, place) in hash.iter_mut().enumerate() {
        *place = byte(at)
            .ok_or_else(|| Error::Damaged { what: "the base of the audit trail cannot be read".into() })?;
    }
    Ok(hash)
}

/// Returns the hash of a stored entry as text.
pub(super) fn hash_of(value: &[u8]) -> Result<String, Error> {
    split(value).map(|(hash, _)| hex(&hash))
}

/// Returns the time of a stored entry; `None` if it is unreadable.
pub(super) fn time_of(value: &[u8]) -> Option<Timestamp> {
    show(value).ok().map(|(entry, _)| entry.timestamp)
}

fn split(value: &[u8]) -> Result<(Hash, &[u8]), Error> {
    match value.split_first_chunk::<32>() {
        Some((hash, json)) => Ok((*hash, json)),
        None => Err(Error::Damaged { what: "an audit entry is cut off".into() }),
    }
}

fn parse(json: &[u8]) -> Result<AuditEntry, Error> {
    serde_json::from_slice(json)
        .map_err(|error| Error::Damaged { what: format!("an audit entry cannot be read: {error}") })
}

fn show(value: &[u8]) -> Result<(AuditEntry, Hash), Error> {
    let (hash, json) = split(value)?;
    let mut entry = parse(json)?;
    entry.hash = hex(&hash);
    Ok((entry, hash))
}
