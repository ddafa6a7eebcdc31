//! Query statistics: today in total, and since the start by client.

use std::collections::HashMap;

use gateway_core::dns::{Name, NameRef};
use gateway_model::Id;
use jiff::Timestamp;

use super::record::{RecordClient, RecordView};
use crate::serve::Status;

/// Counters since midnight. Every query counts, also those that are not logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub queries: u64,
    pub blocked: u64,
    pub cached: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientStats {
    pub client: RecordClient,
    pub queries: u64,
    pub blocked: u64,
    pub cached: u64,
    pub last_seen: Timestamp,
    /// Names with the most queries, and their counts, in descending order. Rare names may be missing. Counts are
    /// slightly low for a client with thousands of names.
    pub top: Vec<(Name, u64)>,
}

#[derive(Debug)]
struct ClientCounter {
    client: RecordClient,
    queries: u64,
    blocked: u64,
    cached: u64,
    last_seen: i64,
    names: HashMap<Box<[u8]>, u64, rapidhash::fast::RandomState>,
}

/// Maximum number of counted clients. Beyond it the least recently seen one is removed.
const CLIENTS: usize = 4096;
/// Maximum number of counted names of a client. Beyond it the least queried ones are removed.
const NAMES: usize = 512;
/// With more than half of the maximum, one query in this many may add a new name.
const ROTATION: u64 = 8;
/// Maximum number of them in a reply.
const TOP: usize = 20;

/// Counter of the decisions of a filter rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleCounter {
    pub count: u64,
    pub last: Timestamp,
}

impl RuleCounter {
    pub fn add(&mut self, more: RuleCounter) {
        self.count += more.count;
        self.last = self.last.max(more.last);
    }
}

/// Counters by rule id.
pub type RuleCounters = HashMap<Id, RuleCounter, rapidhash::fast::RandomState>;

#[derive(Debug, Default)]
pub(crate) struct QueryCounts {
    clients: HashMap<u64, ClientCounter, rapidhash::fast::RandomState>,
    rules: RuleCounters,
}

impl QueryCounts {
    pub(crate) fn hit(&mut self, hits: RuleCounters) {
        for (rule, more) in hits {
            self.rules.entry(rule).or_default().add(more);
        }
    }

    pub(crate) fn hits(&self) -> RuleCounters {
        self.rules.clone()
    }

    /// A record, and the name it is about.
    pub(crate) fn add(&mut self, view: &RecordView<'_>, name: Option<NameRef<'_>>) {
        if !view.named() {
            return;
        }
        let number = view.client();
        if !self.clients.contains_key(&number) {
            let Some(client) = view.client_of_record() else { return };
            if self.clients.len() >= CLIENTS {
                let oldest = self.clients.iter().min_by_key(|(_, count)| count.last_seen).map(|(n, _)| *n);
                oldest.map(|number| self.clients.remove(&number));
            }
            let names = HashMap::default();
            let count = ClientCounter { client, queries: 0, blocked: 0, cached: 0, last_seen: 0, names };
            self.clients.insert(number, count);
        }
        let Some(count) = self.clients.get_mut(&number) else { return };
        count.queries += 1;
        count.last_seen = count.last_seen.max(view.time());
        match view.status() {
            Some(Status::Blocked) => count.blocked += 1,
            Some(Status::Cached) => count.cached += 1,
            _ => {}
        }
        let Some(name) = name else { return };
        if let Some(times) = count.names.get_mut(name.wire()) {
            *times += 1;
            return;
        }
        // Of thousands of rare names, the frequent ones are admitted soon.
        if count.names.len() > NAMES / 2 && !count.queries.is_multiple_of(ROTATION) {
            return;
        }
        if count.names.len() >= NAMES {
            let mut times: Vec<u64> = count.names.values().copied().collect();
            let (_, middle, _) = times.select_nth_unstable(NAMES / 2);
            let middle = *middle;
            count.names.retain(|_, times| *times > middle);
        }
        count.names.insert(name.wire().into(), 1);
    }

    pub(crate) fn clients(&self) -> Vec<ClientStats> {
        let mut figures: Vec<ClientStats> = self.clients.values().map(ClientCounter::figures).collect();
        figures.sort_by_key(|figures| (std::cmp::Reverse(figures.queries), figures.client.number));
        figures
    }
}

impl ClientCounter {
    fn figures(&self) -> ClientStats {
        let name = |wire: &[u8]| NameRef::new(wire).map(NameRef::to_owned);
        let names = self.names.iter().filter_map(|(wire, times)| Some((name(wire)?, *times)));
        let mut top: Vec<(Name, u64)> = names.collect();
        top.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
        top.truncate(TOP);
        ClientStats {
            client: self.client.clone(),
            queries: self.queries,
            blocked: self.blocked,
            cached: self.cached,
            last_seen: Timestamp::from_nanosecond(i128::from(self.last_seen)).unwrap_or_default(),
            top,
        }
    }
}
