//! Totals of flows by one property, the largest first.

use std::collections::HashMap;

use gateway_model::{Id, text_enum};

use super::record::{Decision, FlowRecord, Traffic};
use crate::countries::Countries;

text_enum! {
    /// Property by which flows are added up.
    pub enum TopKey {
        Device = "device",
        /// The newest name by which the client asked for the destination, else the server name.
        Domain = "domain",
        Policy = "policy",
        Egress = "egress",
        /// Country of the destination. Of hours that are added up already, by the database of that time.
        Country = "country",
    }
}

/// Value of the property. Flows without it have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TopValue<'a> {
    Absent,
    /// Device or policy.
    Id(Id),
    /// Domain, egress or code of the country.
    Text(&'a str),
}

/// Sums over records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub records: u64,
    pub flows: u64,
    /// Records whose bytes were not counted.
    pub uncounted: u64,
    /// Records of denied flows.
    pub denied: u64,
    pub sent: Traffic,
    pub received: Traffic,
}

impl Totals {
    /// Returns the totals of one record with these fields, the last decision among them.
    pub(super) fn of(
        part: u32,
        sent: Option<Traffic>,
        received: Option<Traffic>,
        decision: Option<Decision>,
    ) -> Totals {
        Totals {
            records: 1,
            // A flow is counted with its first part.
            flows: u64::from(part == 0),
            uncounted: u64::from(sent.is_none() && received.is_none()),
            denied: u64::from(decision.is_some_and(|decision| !decision.is_permitted())),
            sent: sent.unwrap_or_default(),
            received: received.unwrap_or_default(),
        }
    }

    pub(super) fn add(&mut self, other: Totals) {
        let Totals { records, flows, uncounted, denied, sent, received } = other;
        self.records = self.records.saturating_add(records);
        self.flows = self.flows.saturating_add(flows);
        self.uncounted = self.uncounted.saturating_add(uncounted);
        self.denied = self.denied.saturating_add(denied);
        self.sent = self.sent.plus(sent);
        self.received = self.received.plus(received);
    }

    fn bytes(&self) -> u64 {
        self.sent.plus(self.received).bytes
    }
}

/// Total of the flows with one value of the property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopRow {
    /// Device or policy.
    pub id: Option<Id>,
    /// Domain, egress or code of the country.
    pub name: Option<String>,
    pub totals: Totals,
}

/// Table of totals. Once it has [`MAX_VALUES`] values, further values are not distinguished.
#[derive(Debug)]
pub struct TopTable {
    by: TopKey,
    /// Totals of the records without the property.
    absent: Totals,
    ids: HashMap<Id, Totals>,
    texts: HashMap<String, Totals>,
    /// Number of records with values beyond the bound.
    others: u64,
}

/// Maximum number of values of a property that are distinguished.
pub(super) const MAX_VALUES: usize = 262_144;

impl TopTable {
    pub fn new(by: TopKey) -> TopTable {
        TopTable { by, absent: Totals::default(), ids: HashMap::new(), texts: HashMap::new(), others: 0 }
    }

    pub(super) fn by(&self) -> TopKey {
        self.by
    }

    /// Adds a record. The last path counts.
    pub fn add(&mut self, record: &FlowRecord, countries: &dyn Countries) {
        let path = record.path();
        let totals = Totals::of(record.part, record.sent, record.received, record.decision());
        let country;
        let value = match self.by {
            TopKey::Device => id(record.client.as_ref().and_then(|client| client.device)),
            TopKey::Domain => text(record.names.first().or(record.server_name.as_ref()).map(String::as_str)),
            TopKey::Policy => id(path.and_then(|path| path.policy)),
            TopKey::Egress => text(path.and_then(|path| path.egress.as_deref())),
            TopKey::Country => {
                country = countries.country(record.destination);
                text(country.as_ref().map(|code| code.as_str()))
            }
        };
        self.add_totals(value, totals);
    }

    /// Adds the totals of records with one value.
    pub(super) fn add_totals(&mut self, value: TopValue<'_>, totals: Totals) {
        let is_full = self.ids.len() + self.texts.len() >= MAX_VALUES;
        let known = match value {
            TopValue::Absent => Some(&mut self.absent),
            TopValue::Id(id) if is_full => self.ids.get_mut(&id),
            TopValue::Id(id) => Some(self.ids.entry(id).or_default()),
            TopValue::Text(text) if is_full || self.texts.contains_key(text) => self.texts.get_mut(text),
            TopValue::Text(text) => Some(self.texts.entry(text.to_owned()).or_default()),
        };
        match known {
            Some(known) => known.add(totals),
            None => self.others = self.others.saturating_add(totals.records),
        }
    }

    /// Returns the totals of one value.
    pub(super) fn totals_of_id(&self, id: Id) -> Totals {
        self.ids.get(&id).copied().unwrap_or_default()
    }

    /// Returns the values with their totals, in no order.
    pub(super) fn values(&self) -> impl Iterator<Item = (TopValue<'_>, Totals)> {
        let absent = (self.absent.records > 0).then_some((TopValue::Absent, self.absent));
        let ids = self.ids.iter().map(|(id, totals)| (TopValue::Id(*id), *totals));
        let texts = self.texts.iter().map(|(text, totals)| (TopValue::Text(text), *totals));
        absent.into_iter().chain(ids).chain(texts)
    }

    /// Returns the rows with the most bytes, at most `limit`, and the number of records that are in no row.
    pub fn rows(self, limit: usize) -> (Vec<TopRow>, u64) {
        let mut all: Vec<(TopValue<'_>, Totals)> = self.values().collect();
        all.sort_by(|(a_value, a), (b_value, b)| {
            let by_size = b.bytes().cmp(&a.bytes()).then(b.flows.cmp(&a.flows));
            by_size.then_with(|| a_value.cmp(b_value))
        });
        let row = |(value, totals)| match value {
            TopValue::Absent => TopRow { id: None, name: None, totals },
            TopValue::Id(id) => TopRow { id: Some(id), name: None, totals },
            TopValue::Text(text) => TopRow { id: None, name: Some(text.to_owned()), totals },
        };
        (all.into_iter().take(limit).map(row).collect(), self.others)
    }
}

pub(super) fn id<'a>(id: Option<Id>) -> TopValue<'a> {
    id.map_or(TopValue::Absent, TopValue::Id)
}

pub(super) fn text(text: Option<&str>) -> TopValue<'_> {
    text.map_or(TopValue::Absent, TopValue::Text)
}
