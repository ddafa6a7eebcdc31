//! Records of the zones stored here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::dns_zone::{DnsZone, MAX_TTL, ZoneType};
use crate::domain::{DomainError, DomainName};
use crate::edit::EditError;
use crate::id::Id;
use crate::problem::{Problems, code};
use crate::record::{self, RecordType};
use crate::references::{Hold, Ref};
use crate::resource::{Keys, Meta, Resource};
use crate::state::State;

/// A record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DnsRecord {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    /// Name of the zone; its id is taken too.
    pub zone: String,
    /// Owner name relative to the zone: `www`, `*`, or `@` for the zone itself. A name that ends with that of the zone
    /// is accepted too.
    pub name: String,
    pub r#type: RecordType,
    /// Data in the format of zone files (RFC 1035, section 5), without the priority.
    pub value: String,
    /// Seconds.
    pub ttl: u32,
    /// Of MX, SRV, HTTPS and SVCB: lower comes first.
    pub priority: Option<u16>,
    pub enabled: bool,
}

impl Default for DnsRecord {
    fn default() -> DnsRecord {
        DnsRecord {
            meta: Meta::default(),
            zone: String::new(),
            name: "@".to_owned(),
            r#type: RecordType::A,
            value: String::new(),
            ttl: 300,
            priority: None,
            enabled: true,
        }
    }
}

impl DnsRecord {
    /// The whole name: `*.` may be its first part.
    pub fn full_name(&self) -> String {
        if self.name == "@" { self.zone.clone() } else { format!("{}.{}", self.name, self.zone) }
    }

    /// Writes zone and name in their one spelling.
    fn canonicalise(&mut self, zone: &DomainName) {
        self.zone = zone.to_string();
        if let Ok(name) = owner(&self.name, zone) {
            self.name = name;
        }
    }
}

/// Returns the owner name relative to the zone, or the fault of it.
fn owner(text: &str, zone: &DomainName) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() || text == "@" {
        return Ok("@".to_owned());
    }
    let (wildcard, rest) = match text.strip_prefix('*') {
        None => ("", text),
        Some("" | ".") => return Ok("*".to_owned()),
        Some(rest) => ("*", rest.strip_prefix('.').ok_or("A * stands alone before the first dot.")?),
    };
    let outside = || format!("The name is not within the zone {zone}.");
    let name = match DomainName::parse(rest) {
        Ok(name) => name,
        // `5` in a reverse zone.
        Err(DomainError::Number | DomainError::Address) if rest.len() <= 63 => {
            let whole = DomainName::parse(&format!("{rest}.{zone}")).map_err(|error| format!("{error}."))?;
            let relative = whole.relative_to(zone).unwrap_or_default();
            return Ok(if wildcard.is_empty() { relative.to_owned() } else { format!("*.{relative}") });
        }
        Err(error) => return Err(format!("Not a name: {error}.")),
    };
    let relative = match name.relative_to(zone) {
        Some(relative) => relative.to_owned(),
        None if rest.ends_with('.') => return Err(outside()),
        None => name.to_string(),
    };
    if relative.len() + zone.as_str().len() + 3 > crate::domain::MAX_NAME {
        return Err("With the name of the zone it is longer than 253 characters.".to_owned());
    }
    Ok(match (wildcard, relative.as_str()) {
        ("", "") => "@".to_owned(),
        ("", relative) => relative.to_owned(),
        (_, "") => "*".to_owned(),
        (_, relative) => format!("*.{relative}"),
    })
}

/// The zone that a record names.
fn zone_of<'a>(record: &DnsRecord, state: &'a State) -> Option<&'a DnsZone> {
    state.find::<DnsZone>(&record.zone).map(AsRef::as_ref)
}

impl Resource for DnsRecord {
    const NOUN: &'static str = "dns_record";
    const COLLECTION: &'static str = "dns_records";
    const REQUIRED: &'static [&'static str] = &["zone", "value"];
    const LABEL_IS_NAME: bool = false;

    fn label(&self) -> &str {
        &self.name
    }

    fn prepare(&mut self) {
        // A zone that is given by its id gets its name in `settle`, where the zones are known.
        if let (Ok(zone), Err(_)) = (DomainName::parse(&self.zone), self.zone.parse::<Id>()) {
            self.canonicalise(&zone);
        }
        if let Ok(parsed) = record::parse(self.r#type, &self.value) {
            self.value = parsed.data.to_string();
            self.priority = self.priority.or(parsed.priority);
            if self.r#type.has_priority() {
                self.priority = self.priority.or(Some(self.r#type.default_priority()));
            }
        }
    }

    fn validate(&self, state: &State, problems: &mut Problems) {
        match zone_of(self, state) {
            _ if self.zone.is_empty() => problems.required("zone"),
            None => {
                let known = state.dns_zones.iter().map(|zone| zone.name.to_string()).take(50).collect();
                let message = format!("There is no zone {:?}.", self.zone);
                problems.add(code::UNKNOWN_REFERENCE, "zone", message).allowed = Some(known);
            }
            Some(zone) if zone.r#type != ZoneType::Primary => {
                let message = format!(
                    "The zone {} is of type {}; only primary zones have records.",
                    zone.name, zone.r#type
                );
                problems.add(code::CONFLICT, "zone", message);
            }
            Some(zone) => match owner(&self.name, &zone.name) {
                Err(message) => drop(problems.add(code::FORMAT, "name", message)),
                Ok(name) if name == "@" && self.r#type == RecordType::Cname => {
                    problems.add(
                        code::CONFLICT,
                        "type",
                        "The zone itself has other records and cannot be an alias.",
                    );
                }
                Ok(name) if name == "@" && self.r#type == RecordType::Ds => {
                    problems.add(
                        code::CONFLICT,
                        "type",
                        "The DS records of a zone stand in the zone above it.",
                    );
                }
                Ok(_) => {}
            },
        }
        if self.ttl == 0 || self.ttl > MAX_TTL {
            problems.add(code::RANGE, "ttl", format!("From 1 to {MAX_TTL} seconds."));
        }
        if let Err(message) = record::parse(self.r#type, &self.value) {
            problems.add(code::FORMAT, "value", message);
        }
        if self.priority.is_some() && !self.r#type.has_priority() {
            problems.add(code::CONFLICT, "priority", "Only MX, SRV, HTTPS and SVCB have a priority.");
        }
        let service = matches!(self.r#type, RecordType::Https | RecordType::Svcb);
        if service && self.priority == Some(0) && self.value.contains(' ') {
            problems.add(
                code::CONFLICT,
                "priority",
                "With the priority 0 it is an alias, which has no parameters.",
            );
        }
    }

    /// Records are unique, also if the zone is given by its id. An alias has no other record beside it (RFC 1034,
    /// section 3.6.2).
    fn admit(&self, _before: Option<&Self>, state: &State) -> Result<(), EditError> {
        let Some(zone) = zone_of(self, state) else { return Ok(()) };
        let mut record = self.clone();
        record.canonicalise(&zone.name);
        let conflict = |field: &str, existing_id: Id, message: String| EditError::Conflict {
            resource_type: Self::NOUN,
            field: field.to_owned(),
            existing_id,
            message,
        };
        let name = record.full_name();
        if let Some(clash) = state.dns_records.key_clash(&record) {
            let message = format!("{name} has this record of type {} already", self.r#type);
            return Err(conflict(&clash.field, clash.existing, message));
        }
        let others = state.dns_records.with_key(&name_key(&record));
        let mut others =
            others.filter(|other| self.enabled && other.enabled && other.meta.id != self.meta.id);
        let alias = |record: &DnsRecord| record.r#type == RecordType::Cname;
        match others.find(|other| alias(self) || alias(other)) {
            None => Ok(()),
            Some(other) => {
                let message =
                    format!("{name} has a record of type {}; an alias (CNAME) stands alone", other.r#type);
                Err(conflict("type", other.meta.id, message))
            }
        }
    }

    fn apply_consequences(mut self, state: &mut State) -> Result<(), EditError> {
        let Some(name) = zone_of(&self, state).map(|zone| zone.name.clone()) else { return Ok(()) };
        if self.zone == name.as_str() {
            return Ok(());
        }
        self.canonicalise(&name);
        state.put(self)
    }

    fn refs(&self) -> Vec<Ref> {
        vec![Ref::new(DnsZone::NOUN, &self.zone, "zone", Hold::Firm)]
    }

    fn keys(&self, keys: &mut Keys) {
        let DnsRecord { r#type, value, priority, .. } = self;
        let same = priority.map(|priority| format!("{priority} ")).unwrap_or_default();
        keys.unique("value", format!("{} {type} {same}{value}", self.full_name()));
        keys.shared(name_key(self));
    }
}

/// Shared key of all records of one name.
fn name_key(record: &DnsRecord) -> String {
    format!("name:{}", record.full_name())
}
