//! A flow that goes on.

use std::net::IpAddr;

use gateway_model::id::MacAddr;
use gateway_model::kinds::privacy_class::QueryLog;
use jiff::Timestamp;

use super::naming::{FlowNames, client_number};
use super::observation::{Connection, EvaluatedFlow, Observation, Tuple};
use super::record::{FlowEnd, FlowId, FlowRecord, Traffic};
use super::usage::{Usage, UsageKey};

/// Source of the names by which clients have asked for addresses.
pub trait AskedNames {
    /// Returns the names by which a client has asked for an address, the newest first.
    fn names(&self, client: u64, address: IpAddr) -> Vec<String>;
}

/// No resolver.
impl AskedNames for () {
    fn names(&self, _: u64, _: IpAddr) -> Vec<String> {
        Vec::new()
    }
}

/// Surroundings of an observation.
pub struct Surroundings<'a> {
    pub names: &'a FlowNames,
    pub asked: &'a dyn AskedNames,
    pub now: Timestamp,
}

/// Past of a flow that a wipe has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Past {
    /// Nothing was taken, or a packet came since.
    Known,
    /// The counters of the next observation are those of the past.
    Forgotten,
    /// No packet was observed since.
    Silent,
}

/// A flow that goes on, with the part of it that the next record is about.
#[derive(Clone, Debug)]
pub(super) struct ActiveFlow {
    pub record: FlowRecord,
    /// Id of the conntrack entry. `None` for a denied flow.
    pub connection: Option<u32>,
    /// Replies of the connection.
    reply: Option<Tuple>,
    pub part_from: Timestamp,
    /// Consecutive observations without the connection.
    pub missing: u8,
    /// Its last record was made. The kernel still has the entry.
    pub is_over: bool,
    log: QueryLog,
    past: Past,
    /// Number by which the resolver knows the client.
    client: u64,
    /// Bytes since the last call of [`ActiveFlow::take_usage`].
    usage: Usage,
    /// Counters, and those of former parts.
    sent: Counters,
    received: Counters,
}

/// Counters of one direction.
#[derive(Clone, Copy, Debug)]
struct Counters {
    /// Count of the IP stack, `None` if the kernel did not count.
    stack: Option<Traffic>,
    /// Packets that passed the IP stack by, `None` if some were not counted.
    passed_by: Option<Traffic>,
    /// Sum of former parts.
    before: Traffic,
}

impl Counters {
    const NEW: Counters = Counters { stack: None, passed_by: Some(NOTHING), before: NOTHING };

    fn sum(self) -> Option<Traffic> {
        Some(self.stack?.plus(self.passed_by?))
    }

    /// Returns the traffic of the part.
    fn part(self) -> Option<Traffic> {
        self.sum().map(|sum| sum.since(self.before))
    }

    fn begin_part(&mut self) {
        self.before = self.sum().unwrap_or(self.before);
    }
}

const NOTHING: Traffic = Traffic { packets: 0, bytes: 0 };

impl ActiveFlow {
    pub(super) fn new(
        evaluated: &EvaluatedFlow,
        connection: Option<u32>,
        start: Timestamp,
        around: &Surroundings<'_>,
    ) -> ActiveFlow {
        let tuple = Tuple::from(&evaluated.key);
        let log = around.names.log_of(evaluated.device);
        let mut path = around.names.path(evaluated);
        path.at = start;
        let record = FlowRecord {
            flow_id: FlowId::new(start, &distinction(&tuple, evaluated.key.mac, connection)),
            part: 0,
            written_at: around.now,
            client: (log == QueryLog::Full).then(|| around.names.client(evaluated)),
            destination: tuple.destination,
            destination_port: tuple.destination_port,
            protocol: tuple.protocol,
            names: Vec::new(),
            server_name: None,
            paths: vec![path],
            path_changes: 0,
            sent: None,
            received: None,
            last_at: None,
            ended_at: None,
            end: None,
        };
        let mut flow = ActiveFlow {
            record,
            connection,
            reply: None,
            part_from: start,
            missing: 0,
            is_over: false,
            log,
            past: Past::Known,
            client: client_number(evaluated),
            usage: Usage { flows: 1, ..Usage::default() },
            sent: Counters::NEW,
            received: Counters::NEW,
        };
        flow.ask_names(around);
        flow
    }

    /// Reports whether the privacy class of the device lets the flow be logged, and a packet came since the last wipe.
    pub(super) fn is_logged(&self) -> bool {
        self.log != QueryLog::Off && self.past == Past::Known
    }

    /// Takes the counters of its connection.
    pub(super) fn count(&mut self, connection: &Connection, seen: &Observation, now: Timestamp) {
        (self.sent.stack, self.received.stack) = (connection.sent, connection.received);
        self.reply = Some(connection.reply);
        self.count_passed_by(connection.origin, seen, now);
    }

    /// Takes the server name that its client has sent, if the log may have names of the client.
    pub(super) fn name_server(&mut self, origin: &Tuple, seen: &Observation) {
        if self.record.server_name.is_none() && self.log == QueryLog::Full {
            self.record.server_name = seen.server_names.get(origin).cloned();
        }
    }

    /// Takes the packets that passed the IP stack by.
    pub(super) fn count_passed_by(&mut self, origin: Tuple, seen: &Observation, now: Timestamp) {
        let before = (self.record.sent, self.record.received);
        let of = |tuple: Option<Tuple>| match (&seen.passed_by, tuple) {
            (Some(all), Some(tuple)) => all.get(&tuple).copied().unwrap_or(Some(NOTHING)),
            _ => None,
        };
        for (counters, tuple) in [(&mut self.sent, Some(origin)), (&mut self.received, self.reply)] {
            // What was not counted once stays unknown.
            counters.passed_by = counters.passed_by.zip(of(tuple)).map(|(sum, more)| sum.plus(more));
        }
        let is_of_the_past = self.past == Past::Forgotten;
        if is_of_the_past {
            self.sent.begin_part();
            self.received.begin_part();
            self.past = Past::Silent;
        }
        (self.record.sent, self.record.received) = (self.sent.part(), self.received.part());
        if (self.record.sent, self.record.received) != before && !is_of_the_past {
            self.record.last_at = Some(now);
            self.past = Past::Known;
        }
        // What becomes known for the first time counts as a whole.
        let more = |after: Option<Traffic>, before: Option<Traffic>| {
            after.map_or(0, |after| after.since(before.unwrap_or_default()).bytes)
        };
        self.usage.sent += more(self.record.sent, before.0);
        self.usage.received += more(self.record.received, before.1);
        self.record.written_at = now;
    }

    /// Takes the packets of a denied flow since the last observation. Each of its attempts has a count of its own.
    ///
    /// Returns true if the path is another one.
    pub(super) fn deny(&mut self, evaluated: &EvaluatedFlow, around: &Surroundings<'_>) -> bool {
        self.record.last_at = self.record.last_at.max(Some(evaluated.seen_at));
        self.record.written_at = around.now;
        if let Some(more) = evaluated.denied {
            self.sent.stack = Some(self.sent.stack.unwrap_or(NOTHING).plus(more));
        }
        self.record.sent = self.sent.part();
        self.change_path(evaluated, around)
    }

    /// Takes the verdict, and the names by which its client has asked meanwhile.
    ///
    /// Returns true if the path is another one.
    pub(super) fn change_path(&mut self, evaluated: &EvaluatedFlow, around: &Surroundings<'_>) -> bool {
        let mut path = around.names.path(evaluated);
        path.at = around.now;
        let is_changed = self.record.change_path(path);
        self.ask_names(around);
        is_changed
    }

    fn ask_names(&mut self, around: &Surroundings<'_>) {
        // Later names of the same address are of other flows.
        if self.record.names.is_empty() && self.record.part == 0 && self.log == QueryLog::Full {
            self.record.names = around.asked.names(self.client, self.record.destination);
        }
    }

    /// Returns its usage since the last call. `None` if there was none.
    pub(super) fn take_usage(&mut self) -> Option<(UsageKey, Usage)> {
        let usage = std::mem::take(&mut self.usage);
        let path = self.record.path();
        (usage != Usage::default()).then(|| {
            let device = self.record.client.as_ref().and_then(|client| client.device);
            let policy = path.and_then(|path| path.policy);
            (UsageKey { device, policy, egress: path.and_then(|path| path.egress.clone()) }, usage)
        })
    }

    /// Returns the time at which it ended: that of its last packet, if it was observed.
    pub(super) fn end_time(&self, now: Timestamp) -> Timestamp {
        self.record.last_at.unwrap_or(now)
    }

    /// Returns the record of the part. `None` if it is not logged.
    pub(super) fn finish(
        &mut self,
        end: FlowEnd,
        ended_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<FlowRecord> {
        (self.record.end, self.record.ended_at, self.record.written_at) = (Some(end), ended_at, now);
        self.is_logged().then(|| self.record.clone())
    }

    /// Begins another part.
    pub(super) fn begin_part(&mut self, now: Timestamp) {
        self.sent.begin_part();
        self.received.begin_part();
        self.part_from = now;
        let record = &mut self.record;
        (record.end, record.ended_at) = (None, None);
        record.part = record.part.saturating_add(1);
        record.sent = record.sent.map(|_| Traffic::default());
        record.received = record.received.map(|_| Traffic::default());
    }

    /// Leaves what a connection has done to an earlier part, whether or not that was written.
    pub(super) fn resume(&mut self, connection: &Connection, now: Timestamp) {
        (self.sent.stack, self.received.stack) = (connection.sent, connection.received);
        self.begin_part(now);
        self.usage.flows = 0;
    }

    /// Makes another flow of it, which begins now.
    pub(super) fn begin_again(&mut self, now: Timestamp) {
        self.begin_part(now);
        self.past = Past::Forgotten;
        let record = &mut self.record;
        record.part = 0;
        record.flow_id = FlowId::new(now, &record.flow_id.raw().to_le_bytes());
        (record.names, record.server_name, record.last_at) = (Vec::new(), None, None);
        record.paths.drain(..record.paths.len().saturating_sub(1));
        record.paths.iter_mut().for_each(|path| path.at = now);
        record.path_changes = 0;
    }
}

/// Returns the bytes by which flows of one start are distinguished.
fn distinction(tuple: &Tuple, mac: MacAddr, connection: Option<u32>) -> Vec<u8> {
    let mut bytes = connection.unwrap_or_default().to_le_bytes().to_vec();
    for address in [tuple.source, tuple.destination] {
        match address {
            IpAddr::V4(four) => bytes.extend(four.octets()),
            IpAddr::V6(six) => bytes.extend(six.octets()),
        }
    }
    bytes.extend(mac.octets());
    bytes.extend(tuple.source_port.to_le_bytes());
    bytes.extend(tuple.destination_port.to_le_bytes());
    bytes.push(tuple.protocol);
    bytes
}
