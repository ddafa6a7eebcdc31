//! Totals of flows by one property, the largest first.

use std::collections::HashMap;

use gateway_model::{Id, text_enum};

use super::record::{FlowRecord, Traffic};
use crate::countries::Countries;

text_enum! {
    /// Property by which flows are added up.
    pub enum TopKey {
        Device = "device",
        /// The newest name by which the client asked for the destination, else the server name.
        Domain = "domain",
        Policy = "policy",
        Egress = "egress",
        /// Country of the destination, by the database of `countries.database` as it is now.
        Country = "country",
    }
}

/// Property of the flows of a row. `None` for flows without it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Key {
    Id(Option<Id>),
    Text(Option<String>),
}

/// Total of the flows with one value of the property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopRow {
    /// Device or policy.
    pub id: Option<Id>,
    /// Domain, egress or code of the country.
    pub name: Option<String>,
    pub flows: u64,
    /// Flows whose bytes were not counted.
    pub uncounted: u64,
    pub denied: u64,
    pub sent: Traffic,
    pub received: Traffic,
}

/// Table of totals. Once it has [`MAX_KEYS`] values, further values are not distinguished.
#[derive(Debug)]
pub struct TopTable {
    by: TopKey,
    rows: HashMap<Key, TopRow>,
    /// Records of values beyond the bound.
    others: u64,
}

/// Maximum number of values of a property that are distinguished.
const MAX_KEYS: usize = 65_536;

impl TopTable {
    pub fn new(by: TopKey) -> TopTable {
        TopTable { by, rows: HashMap::new(), others: 0 }
    }

    /// Adds a record. The last path counts.
    pub fn add(&mut self, record: &FlowRecord, countries: &dyn Countries) {
        let path = record.path();
        let key = match self.by {
            TopKey::Device => Key::Id(record.client.as_ref().and_then(|client| client.device)),
            TopKey::Domain => Key::Text(record.names.first().or(record.server_name.as_ref()).cloned()),
            TopKey::Policy => Key::Id(path.and_then(|path| path.policy)),
            TopKey::Egress => Key::Text(path.and_then(|path| path.egress.clone())),
            TopKey::Country => Key::Text(countries.country(record.destination).map(|code| code.to_string())),
        };
        if self.rows.len() >= MAX_KEYS && !self.rows.contains_key(&key) {
            self.others += 1;
            return;
        }
        let (id, name) = match &key {
            Key::Id(id) => (*id, None),
            Key::Text(text) => (None, text.clone()),
        };
        let nothing = Traffic::default();
        let row = self.rows.entry(key).or_insert_with(|| TopRow {
            id,
            name,
            flows: 0,
            uncounted: 0,
            denied: 0,
            sent: nothing,
            received: nothing,
        });
        // A flow is counted with its first part.
        row.flows += u64::from(record.part == 0);
        row.uncounted += u64::from(record.sent.is_none() && record.received.is_none());
        row.denied += u64::from(record.decision().is_some_and(|decision| !decision.is_permitted()));
        row.sent = row.sent.plus(record.sent.unwrap_or_default());
        row.received = row.received.plus(record.received.unwrap_or_default());
    }

    /// Returns the rows with the most bytes, at most `limit`, and the number of records that are in no row.
    pub fn rows(self, limit: usize) -> (Vec<TopRow>, u64) {
        let mut rows: Vec<(Key, TopRow)> = self.rows.into_iter().collect();
        let bytes = |row: &TopRow| row.sent.plus(row.received).bytes;
        rows.sort_by(|(a_key, a), (b_key, b)| {
            bytes(b).cmp(&bytes(a)).then(b.flows.cmp(&a.flows)).then_with(|| a_key.cmp(b_key))
        });
        (rows.into_iter().take(limit).map(|(_, row)| row).collect(), self.others)
    }
}
