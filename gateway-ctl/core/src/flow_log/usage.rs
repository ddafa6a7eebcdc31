//! Bytes by device, policy and egress in each hour.

use std::collections::{BTreeMap, HashMap};

use gateway_model::{Id, text_enum};
use jiff::Timestamp;

use super::bytes::{Reader, put_number, put_text};

/// Maximum number of keys of which bytes are added up at a time. Those of further keys are added to one without properties.
const MAX_KEYS: usize = 65_536;
const HOUR_SECONDS: i64 = 3600;
const NANOSECONDS: i64 = 1_000_000_000;
/// Fixed part: time and the parts that follow.
const FIXED: usize = 9;

/// Parts that a row has.
mod has {
    pub(super) const DEVICE: u8 = 1;
    pub(super) const POLICY: u8 = 2;
    pub(super) const EGRESS: u8 = 4;
    pub(super) const ALL: u8 = 7;
}

/// Properties by which bytes are added up. Of anonymous clients the device is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UsageKey {
    pub device: Option<Id>,
    pub policy: Option<Id>,
    pub egress: Option<String>,
}

/// Bytes of both directions, and the number of flows that began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub sent: u64,
    pub received: u64,
    pub flows: u64,
}

impl Usage {
    pub fn add(&mut self, other: Usage) {
        self.sent = self.sent.saturating_add(other.sent);
        self.received = self.received.saturating_add(other.received);
        self.flows = self.flows.saturating_add(other.flows);
    }
}

/// Row of the journal: what one key used in a part of an hour. An hour may have several rows of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRow {
    /// Begin of the hour, in seconds since 1970.
    pub hour: i64,
    pub key: UsageKey,
    pub usage: Usage,
}

/// Returns the begin of the hour of a time, in seconds since 1970.
pub fn hour_of(time: Timestamp) -> i64 {
    time.as_second().div_euclid(HOUR_SECONDS) * HOUR_SECONDS
}

/// Usage that is not in the journal yet.
#[derive(Debug, Default)]
pub struct PendingUsage {
    hour: i64,
    keys: HashMap<UsageKey, Usage>,
    /// Rows of former hours.
    finished: Vec<UsageRow>,
}

impl PendingUsage {
    /// Adds usage at a time.
    pub fn add(&mut self, key: UsageKey, usage: Usage, now: Timestamp) {
        let hour = hour_of(now);
        if hour != self.hour {
            self.close();
            self.hour = hour;
        }
        let is_full = self.keys.len() >= MAX_KEYS && !self.keys.contains_key(&key);
        let key = if is_full { UsageKey::default() } else { key };
        self.keys.entry(key).or_default().add(usage);
    }

    /// Returns all rows. What follows is added up from zero.
    pub fn take(&mut self) -> Vec<UsageRow> {
        self.close();
        std::mem::take(&mut self.finished)
    }

    fn close(&mut self) {
        let hour = self.hour;
        let mut rows: Vec<UsageRow> =
            self.keys.drain().map(|(key, usage)| UsageRow { hour, key, usage }).collect();
        rows.sort_by(|a, b| a.key.cmp(&b.key));
        self.finished.append(&mut rows);
    }

    /// Returns the rows that are not in the journal yet.
    pub fn rows(&self) -> impl Iterator<Item = UsageRow> {
        let open = self.keys.iter().map(|(key, usage)| UsageRow {
            hour: self.hour,
            key: key.clone(),
            usage: *usage,
        });
        self.finished.iter().cloned().chain(open)
    }
}

/// Appends a row.
pub fn encode_usage(out: &mut Vec<u8>, row: &UsageRow) {
    let UsageRow { hour, key: UsageKey { device, policy, egress }, usage } = row;
    let start = out.len();
    out.push(0);
    out.extend(hour.saturating_mul(NANOSECONDS).to_le_bytes());
    let bit = |is: bool, bit: u8| if is { bit } else { 0 };
    out.push(
        bit(device.is_some(), has::DEVICE)
            | bit(policy.is_some(), has::POLICY)
            | bit(egress.is_some(), has::EGRESS),
    );
    for id in [device, policy].into_iter().flatten() {
        out.extend(id.as_bytes());
    }
    // A name that is too long for the length of a row is cut. No interface and no tunnel has one.
    if let Some(egress) = egress {
        put_text(out, &egress.chars().take(40).collect::<String>());
    }
    [usage.sent, usage.received, usage.flows].into_iter().for_each(|number| put_number(out, number));
    match u8::try_from(out.len() - start - 1) {
        Ok(length) => out[start] = length,
        Err(_) => out.truncate(start),
    }
}

/// Encoded row, read in place.
#[derive(Clone, Copy, Debug)]
pub struct UsageView<'a>(&'a [u8]);

/// Splits bytes into rows. Ends before bytes that are no row.
pub fn usage_views(bytes: &[u8]) -> impl Iterator<Item = UsageView<'_>> {
    let mut rest = Reader(bytes);
    std::iter::from_fn(move || {
        let length = usize::from(rest.byte()?);
        rest.take(length).filter(|row| row.len() >= FIXED).map(UsageView)
    })
}

impl UsageView<'_> {
    /// Nanoseconds since 1970.
    pub fn time(&self) -> i64 {
        Reader(self.0).array().map_or(0, i64::from_le_bytes)
    }

    pub fn length(&self) -> usize {
        1 + self.0.len()
    }

    /// Returns the row. `None` if the bytes are none.
    pub fn row(&self) -> Option<UsageRow> {
        let mut from = Reader(self.0);
        let hour = i64::from_le_bytes(from.array()?).div_euclid(NANOSECONDS);
        let parts = from.byte()?;
        if parts & !has::ALL != 0 {
            return None;
        }
        let device = if parts & has::DEVICE != 0 { Some(Id::from_bytes(from.array()?)) } else { None };
        let policy = if parts & has::POLICY != 0 { Some(Id::from_bytes(from.array()?)) } else { None };
        let egress = if parts & has::EGRESS != 0 { Some(from.text()?.to_owned()) } else { None };
        let usage = Usage { sent: from.number()?, received: from.number()?, flows: from.number()? };
        Some(UsageRow { hour, key: UsageKey { device, policy, egress }, usage })
    }
}

text_enum! {
    /// Property by which usage is shown.
    pub enum UsageGroup {
        Device = "device",
        Policy = "policy",
        Egress = "egress",
    }
}

text_enum! {
    /// Length of the steps in which usage is shown.
    pub enum UsageStep {
        Hour = "hour",
        /// Of UTC.
        Day = "day",
    }
}

/// Usage by step and property.
#[derive(Debug)]
pub struct UsageTable {
    group: UsageGroup,
    step: UsageStep,
    rows: BTreeMap<(i64, UsageKey), Usage>,
}

impl UsageTable {
    pub fn new(group: UsageGroup, step: UsageStep) -> UsageTable {
        UsageTable { group, step, rows: BTreeMap::new() }
    }

    pub fn add(&mut self, row: UsageRow) {
        let seconds = match self.step {
            UsageStep::Hour => HOUR_SECONDS,
            UsageStep::Day => 24 * HOUR_SECONDS,
        };
        let begin = row.hour.div_euclid(seconds) * seconds;
        let nothing = UsageKey::default();
        let key = match self.group {
            UsageGroup::Device => UsageKey { device: row.key.device, ..nothing },
            UsageGroup::Policy => UsageKey { policy: row.key.policy, ..nothing },
            UsageGroup::Egress => UsageKey { egress: row.key.egress, ..nothing },
        };
        self.rows.entry((begin, key)).or_default().add(row.usage);
    }

    /// Returns the rows, the oldest step first.
    pub fn into_rows(self) -> impl Iterator<Item = UsageRow> {
        self.rows.into_iter().map(|((hour, key), usage)| UsageRow { hour, key, usage })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).expect("a time")
    }

    prop_compose! {
        fn row()(
            hours in 0i64..1_000_000,
            device in proptest::option::of(any::<u128>().prop_map(Id::from_u128)),
            policy in proptest::option::of(any::<u128>().prop_map(Id::from_u128)),
            egress in proptest::option::of("[a-z0-9-]{1,15}"),
            (sent, received, flows) in any::<(u64, u64, u64)>(),
        ) -> UsageRow {
            let key = UsageKey { device, policy, egress };
            UsageRow { hour: hours * HOUR_SECONDS, key, usage: Usage { sent, received, flows } }
        }
    }

    proptest! {
        #[test]
        fn rows_survive_their_encoding(rows in proptest::collection::vec(row(), 1..5)) {
            let mut bytes = Vec::new();
            rows.iter().for_each(|row| encode_usage(&mut bytes, row));
            let read: Vec<UsageRow> = usage_views(&bytes).filter_map(|view| view.row()).collect();
            prop_assert_eq!(&read, &rows);
            prop_assert_eq!(usage_views(&bytes).map(|view| view.length()).sum::<usize>(), bytes.len());
            for length in 0..bytes.len().min(9) {
                prop_assert_eq!(usage_views(&bytes[..length]).count(), 0);
            }
        }
    }

    #[test]
    fn usage_is_added_up_by_hour_and_shown_by_property() {
        let key = |device: u128, egress: &str| UsageKey {
            device: Some(Id::from_u128(device)),
            policy: None,
            egress: Some(egress.into()),
        };
        let used = |sent| Usage { sent, received: 10 * sent, flows: 1 };
        let mut pending = PendingUsage::default();
        for (second, device, egress, sent) in
            [(0, 1, "wg-a", 1), (10, 1, "wg-a", 2), (20, 2, "wg-b", 4), (3600, 1, "wg-b", 8)]
        {
            pending.add(key(device, egress), used(sent), at(second));
        }
        assert_eq!(pending.rows().count(), 3);
        let rows = pending.take();
        assert_eq!((rows.len(), pending.rows().count()), (3, 0));
        let mut table = UsageTable::new(UsageGroup::Egress, UsageStep::Day);
        rows.iter().cloned().for_each(|row| table.add(row));
        let shown: Vec<_> =
            table.into_rows().map(|row| (row.key.egress, row.usage.sent, row.usage.flows)).collect();
        assert_eq!(shown, [(Some("wg-a".into()), 3, 2), (Some("wg-b".into()), 12, 2)]);
        let mut table = UsageTable::new(UsageGroup::Device, UsageStep::Hour);
        rows.into_iter().for_each(|row| table.add(row));
        let hours: Vec<_> = table.into_rows().map(|row| (row.hour, row.usage.received)).collect();
        let first = hour_of(at(0));
        assert_eq!(hours, [(first, 30), (first, 40), (first + 3600, 80)]);
    }
}
