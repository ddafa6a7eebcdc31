//! Flows that go on: made of observations, and written when they end.

use std::collections::HashMap;

use gateway_model::text_enum;
use jiff::{SignedDuration, Timestamp};

use super::active_flow::{ActiveFlow, Surroundings};
use super::naming::is_logged;
use super::observation::{Connection, EvaluatedFlow, Observation, TcpState, Tuple};
use super::record::{FlowEnd, FlowRecord};
use super::usage::{Usage, UsageKey};

/// Maximum number of flows that are followed. Further ones are counted and have no record.
pub const MAX_FLOWS: usize = 262_144;
/// A denied flow without a packet for so long has ended.
const SILENCE: SignedDuration = SignedDuration::from_secs(30);
/// A record covers at most so long a part of a flow (the active timeout of NetFlow and IPFIX, RFC 5102).
const MAX_PART: SignedDuration = SignedDuration::from_mins(30);
/// Resolution of the times in the flow table.
const CLOCK_STEP: SignedDuration = SignedDuration::from_millis(1100);
/// A connection whose end was not reported is missing in so many observations.
const MISSING: u8 = 2;

/// Flows that the tracker has not kept, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Flows without a record, because too many were followed.
    pub untracked: u64,
    /// Flows whose end was not reported.
    pub unreported: u64,
}

text_enum! {
    /// Change of a flow.
    pub enum FlowChange {
        Begun = "begun",
        /// Its path has changed.
        Changed = "changed",
        /// The flow, or a part of it, has ended.
        Ended = "ended",
    }
}

/// Change of a flow, with its record after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowNews {
    pub change: FlowChange,
    pub record: FlowRecord,
}

/// Flows that go on.
#[derive(Debug, Default)]
pub struct Tracker {
    connections: HashMap<Tuple, ActiveFlow>,
    denied: HashMap<Tuple, ActiveFlow>,
    /// Records that are finished.
    finished: Vec<FlowRecord>,
    last: Option<Timestamp>,
    /// Time of the last wipe.
    forgotten_at: Option<Timestamp>,
    /// Changes since the last call of [`Tracker::take_news`], if they are wanted.
    news: Vec<FlowNews>,
    /// News are wanted.
    pub has_listeners: bool,
    usage: Vec<(UsageKey, Usage)>,
    pub losses: Losses,
}

impl Tracker {
    /// Takes an observation. Returns the records of the flows, and parts of flows, that are finished.
    pub fn observe(&mut self, mut seen: Observation, around: &Surroundings<'_>) -> Vec<FlowRecord> {
        for connection in std::mem::take(&mut seen.ended) {
            self.end(&connection, &seen, around);
        }
        self.connections.values_mut().for_each(|flow| flow.missing = flow.missing.saturating_add(1));
        for connection in &seen.connections {
            self.follow(connection, &seen, around);
        }
        self.forget_missing(&seen, around.now);
        for flow in seen.evaluated.values().filter(|flow| !flow.decision().is_permitted()) {
            self.deny(flow, around);
        }
        self.end_silent(around.now);
        self.end_parts(around.now);
        self.last = Some(around.now);
        let flows = self.connections.values_mut();
        self.usage.extend(flows.filter_map(ActiveFlow::take_usage));
        std::mem::take(&mut self.finished)
    }

    /// Returns the changes since the last call, the ends apart, which are the records that [`Tracker::observe`] returns.
    pub fn take_news(&mut self) -> Vec<FlowNews> {
        std::mem::take(&mut self.news)
    }

    /// Returns the usage since the last call.
    pub fn take_usage(&mut self) -> Vec<(UsageKey, Usage)> {
        std::mem::take(&mut self.usage)
    }

    fn report(news: &mut Vec<FlowNews>, change: FlowChange, flow: &ActiveFlow) {
        if flow.is_logged() {
            news.push(FlowNews { change, record: flow.record.clone() });
        }
    }

    /// Ends all parts, because the daemon ends. Returns their records.
    pub fn stop(&mut self, now: Timestamp) -> Vec<FlowRecord> {
        for flow in self.connections.values_mut().chain(self.denied.values_mut()) {
            if !flow.is_over {
                self.finished.extend(flow.finish(FlowEnd::DaemonStopped, None, now));
            }
        }
        self.forget();
        std::mem::take(&mut self.finished)
    }

    /// Forgets all flows.
    pub fn forget(&mut self) {
        (self.connections, self.denied) = Default::default();
    }

    /// Forgets what flows have done. Those that go on are others from now on.
    pub fn forget_past(&mut self, now: Timestamp) {
        self.forgotten_at = Some(now);
        self.denied.clear();
        self.connections.values_mut().filter(|flow| !flow.is_over).for_each(|flow| flow.begin_again(now));
    }

    /// Returns the records of the flows that go on, as they would be written now.
    pub fn active(&self) -> impl Iterator<Item = &FlowRecord> {
        let flows = self.connections.values().chain(self.denied.values());
        flows.filter(|flow| !flow.is_over && flow.is_logged()).map(|flow| &flow.record)
    }

    fn count(&self) -> usize {
        self.connections.len() + self.denied.len()
    }

    /// Takes the last counters of a connection that has ended.
    fn end(&mut self, connection: &Connection, seen: &Observation, around: &Surroundings<'_>) {
        self.follow(connection, seen, around);
        let is_of = |flow: &ActiveFlow| flow.connection == Some(connection.id);
        if self.connections.get(&connection.origin).is_some_and(is_of)
            && let Some(mut flow) = self.connections.remove(&connection.origin)
            && !flow.is_over
        {
            self.usage.extend(flow.take_usage());
            let end = match connection.tcp {
                Some(TcpState::Closed) => FlowEnd::Closed,
                Some(TcpState::Reset) => FlowEnd::Reset,
                _ if connection.is_early => FlowEnd::Removed,
                _ => FlowEnd::TimedOut,
            };
            self.finished.extend(flow.finish(end, Some(flow.end_time(around.now)), around.now));
        }
    }

    fn follow(&mut self, connection: &Connection, seen: &Observation, around: &Surroundings<'_>) {
        let evaluated = seen.evaluated.get(&connection.origin);
        let is_other = |flow: &ActiveFlow| flow.connection != Some(connection.id);
        if self.connections.get(&connection.origin).is_some_and(is_other) {
            // Another connection with the ports of an earlier one, whose end was not reported.
            if let Some(mut flow) = self.connections.remove(&connection.origin)
                && !flow.is_over
            {
                self.losses.unreported += 1;
                self.finished.extend(flow.finish(FlowEnd::Unreported, None, around.now));
            }
        }
        if !self.connections.contains_key(&connection.origin) {
            let Some(flow) = self.begin(connection, evaluated, around) else { return };
            if self.has_listeners {
                Self::report(&mut self.news, FlowChange::Begun, &flow);
            }
            self.connections.insert(connection.origin, flow);
        }
        let Some(flow) = self.connections.get_mut(&connection.origin) else { return };
        flow.missing = 0;
        if flow.is_over {
            return;
        }
        flow.count(connection, seen, around.now);
        flow.name_server(&connection.origin, seen);
        self.usage.extend(flow.take_usage());
        if let Some(evaluated) = evaluated
            && flow.change_path(evaluated, around)
            && self.has_listeners
        {
            Self::report(&mut self.news, FlowChange::Changed, flow);
        }
        let end = match connection.tcp {
            Some(TcpState::Closed) => FlowEnd::Closed,
            Some(TcpState::Reset) => FlowEnd::Reset,
            _ => return,
        };
        flow.is_over = true;
        let ended = flow.end_time(around.now);
        self.finished.extend(flow.finish(end, Some(ended), around.now));
    }

    /// Begins to follow a connection. `None` if it is not logged.
    fn begin(
        &mut self,
        connection: &Connection,
        evaluated: Option<&EvaluatedFlow>,
        around: &Surroundings<'_>,
    ) -> Option<ActiveFlow> {
        let evaluated =
            evaluated.filter(|flow| is_logged(flow) && around.names.is_from_lan(&connection.origin))?;
        if self.count() >= MAX_FLOWS {
            self.losses.untracked += 1;
            return None;
        }
        let start = connection.started_at.unwrap_or(around.now).min(around.now);
        let mut flow = ActiveFlow::new(evaluated, Some(connection.id), start, around);
        if self.forgotten_at.is_some_and(|wiped| start < wiped) {
            flow.begin_again(around.now);
        }
        if self.last.is_none() {
            // It is older than the daemon, which may have written of it before.
            flow.resume(connection, around.now);
        }
        Some(flow)
    }

    /// Ends connections that the kernel has no more, although no end was reported.
    fn forget_missing(&mut self, seen: &Observation, now: Timestamp) {
        let Tracker { connections, finished, losses, .. } = self;
        connections.retain(|origin, flow| {
            if flow.missing > 0 && !flow.is_over {
                // The report of its end is on the way.
                flow.count_passed_by(*origin, seen, now);
            }
            let is_gone = flow.missing >= MISSING;
            if is_gone && !flow.is_over {
                losses.unreported += 1;
                finished.extend(flow.finish(FlowEnd::Unreported, None, now));
            }
            !is_gone
        });
    }

    /// Follows a flow that is denied. Attempts from other ports of a client belong to it.
    fn deny(&mut self, evaluated: &EvaluatedFlow, around: &Surroundings<'_>) {
        if !is_logged(evaluated) {
            return;
        }
        let mut tuple = Tuple::from(&evaluated.key);
        tuple.source_port = 0;
        if let Some(flow) = self.denied.get_mut(&tuple) {
            if flow.deny(evaluated, around) && self.has_listeners {
                Self::report(&mut self.news, FlowChange::Changed, flow);
            }
            return;
        }
        // The table keeps records of flows that have ended.
        let is_new = self.last.is_some_and(|last| evaluated.seen_at > last - CLOCK_STEP);
        let is_forgotten = self.forgotten_at.is_some_and(|wiped| evaluated.seen_at <= wiped);
        if !is_new || is_forgotten {
            return;
        }
        if self.count() >= MAX_FLOWS {
            self.losses.untracked += 1;
            return;
        }
        let start = evaluated.seen_at.min(around.now);
        let mut flow = ActiveFlow::new(evaluated, None, start, around);
        flow.deny(evaluated, around);
        if self.has_listeners {
            Self::report(&mut self.news, FlowChange::Begun, &flow);
        }
        self.denied.insert(tuple, flow);
    }

    fn end_silent(&mut self, now: Timestamp) {
        let Tracker { denied, finished, .. } = self;
        denied.retain(|_, flow| {
            let last = flow.record.last_at.unwrap_or(now);
            let is_silent = now.duration_since(last) >= SILENCE;
            if is_silent {
                finished.extend(flow.finish(FlowEnd::Silent, Some(last), now));
            }
            !is_silent
        });
    }

    fn end_parts(&mut self, now: Timestamp) {
        for flow in self.connections.values_mut().chain(self.denied.values_mut()) {
            if !flow.is_over && now.duration_since(flow.part_from) >= MAX_PART {
                self.finished.extend(flow.finish(FlowEnd::Continued, None, now));
                flow.begin_part(now);
            }
        }
    }
}
