//! Flows over several observations.

use std::collections::HashMap;
use std::net::IpAddr;

use gateway_common::verdict::{Action, Reason};
use gateway_common::wire::Mark;
use gateway_model::id::MacAddr;
use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::compile::{Input, compile};
use crate::facts::{Facts, Link};
use crate::network::Network;

/// A LAN with the network 10.0.0.0/24.
struct Fixture {
    names: FlowNames,
    tracker: Tracker,
    now: Timestamp,
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("a time")
}

impl Fixture {
    fn new() -> Fixture {
        let lan = "10.0.0.1/24".parse().expect("a network");
        let facts = Facts {
            links: [("lan0".to_owned(), Link { index: 3, up: true, ..Link::default() })].into(),
            addresses: [("lan0".to_owned(), [lan].into())].into(),
            ..Facts::default()
        };
        let network = Network { lan: vec!["lan0".to_owned()], ..Network::default() };
        let state = gateway_model::State::new(at(0));
        let input = Input { state: &state, network: &network, facts: &facts, now: at(0) };
        let names = FlowNames::new(&input, &compile(&input));
        let mut fixture = Fixture { names, tracker: Tracker::default(), now: at(0) };
        assert!(fixture.observe(0, Observation::default()).is_empty());
        fixture
    }

    fn observe(&mut self, second: i64, seen: Observation) -> Vec<FlowRecord> {
        self.now = at(second);
        let around = Surroundings { names: &self.names, asked: &OneName, now: self.now };
        self.tracker.observe(seen, &around)
    }

    fn active(&self) -> Vec<FlowRecord> {
        self.tracker.active().cloned().collect()
    }
}

/// A resolver that has answered one name for each address.
struct OneName;

impl AskedNames for OneName {
    fn names(&self, _: u64, address: IpAddr) -> Vec<String> {
        vec![format!("{address}.example")]
    }
}

fn key(port: u16) -> PacketKey {
    PacketKey {
        interface: 3,
        vlan: 0,
        mac: MacAddr([2, 0, 0, 0, 0, 1]),
        source: [10, 0, 0, 2].into(),
        destination: [192, 0, 2, 1].into(),
        source_port: port,
        destination_port: 443,
        protocol: 6,
    }
}

fn verdict(port: u16, reason: Reason, mark: Mark, second: i64) -> EvaluatedFlow {
    EvaluatedFlow {
        key: key(port),
        generation: 1,
        action: Action::Mark as u8,
        reason: reason as u8,
        mark,
        policy: None,
        device: 0,
        leg: None,
        seen_at: at(second),
        denied: None,
    }
}

fn direct(port: u16, second: i64) -> EvaluatedFlow {
    verdict(port, Reason::NoPolicy, Mark::DIRECT, second)
}

fn connection(port: u16, id: u32, packets: u64) -> Connection {
    let origin = Tuple::from(&key(port));
    let reply = Tuple {
        source: origin.destination,
        destination: [198, 18, 0, 1].into(),
        source_port: origin.destination_port,
        destination_port: port,
        protocol: 6,
    };
    let traffic = |packets| Some(Traffic { packets, bytes: 100 * packets });
    Connection {
        id,
        origin,
        reply,
        started_at: Some(at(1)),
        sent: traffic(packets),
        received: traffic(2 * packets),
        tcp: Some(TcpState::Open),
        is_early: false,
    }
}

fn seen(connections: Vec<Connection>, evaluated: Vec<EvaluatedFlow>) -> Observation {
    Observation {
        connections,
        evaluated: evaluated.into_iter().map(|flow| (Tuple::from(&flow.key), flow)).collect(),
        passed_by: Some(HashMap::new()),
        ..Observation::default()
    }
}

fn ended(connection: Connection, evaluated: Vec<EvaluatedFlow>) -> Observation {
    Observation { ended: vec![connection], ..seen(Vec::new(), evaluated) }
}

fn packets(traffic: Option<Traffic>) -> Option<u64> {
    traffic.map(|traffic| traffic.packets)
}

#[test]
fn a_connection_has_one_record_with_its_last_counters() {
    let mut fixture = Fixture::new();
    assert!(fixture.observe(2, seen(vec![connection(1, 7, 1)], vec![direct(1, 2)])).is_empty());
    let active = fixture.active();
    assert_eq!((active.len(), packets(active[0].sent), active[0].end), (1, Some(1), None));
    assert_eq!(active[0].names, ["192.0.2.1.example"]);
    let closed = Connection { tcp: Some(TcpState::Closed), ..connection(1, 7, 5) };
    let finished = fixture.observe(4, seen(vec![closed.clone()], vec![direct(1, 3)]));
    let [record] = &finished[..] else { panic!("{finished:?}") };
    assert_eq!((packets(record.sent), packets(record.received)), (Some(5), Some(10)));
    assert_eq!((record.end, record.flow_id), (Some(FlowEnd::Closed), active[0].flow_id));
    assert_eq!(record.flow_id.start(), at(1));
    // The kernel keeps the entry for a while, and reports its end then.
    assert!(fixture.observe(6, seen(vec![closed.clone()], vec![direct(1, 3)])).is_empty());
    assert!(fixture.active().is_empty());
    assert!(fixture.observe(8, ended(closed, Vec::new())).is_empty());
}

#[test]
fn a_connection_between_two_observations_has_a_record() {
    let mut fixture = Fixture::new();
    let short = Connection { tcp: None, ..connection(1, 7, 3) };
    let finished = fixture.observe(2, ended(short, vec![direct(1, 2)]));
    let [record] = &finished[..] else { panic!("{finished:?}") };
    assert_eq!((packets(record.sent), record.end), (Some(3), Some(FlowEnd::TimedOut)));
}

#[test]
fn packets_that_passed_the_ip_stack_by_are_added() {
    let mut fixture = Fixture::new();
    let by = |packets: u64, reply: Option<u64>| {
        let connection = connection(1, 7, 1);
        let traffic = |packets: u64| Traffic { packets, bytes: 10 * packets };
        let all = [(connection.origin, Some(traffic(packets))), (connection.reply, reply.map(traffic))];
        Observation { passed_by: Some(all.into()), ..seen(vec![connection], vec![direct(1, 2)]) }
    };
    fixture.observe(2, by(10, Some(20)));
    fixture.observe(4, by(5, Some(7)));
    let active = fixture.active();
    assert_eq!(active[0].sent, Some(Traffic { packets: 16, bytes: 250 }));
    assert_eq!(packets(active[0].received), Some(29));
    fixture.observe(6, by(1, None));
    let active = fixture.active();
    assert_eq!((packets(active[0].sent), active[0].received), (Some(17), None), "a lost count stays unknown");
    fixture.observe(8, by(1, Some(1)));
    assert_eq!(fixture.active()[0].received, None);
}

#[test]
fn a_change_of_the_verdict_is_a_change_of_the_path() {
    let mut fixture = Fixture::new();
    fixture.observe(2, seen(vec![connection(1, 7, 1)], vec![direct(1, 2)]));
    let denied = verdict(1, Reason::TrustInternetDenied, Mark::REJECT, 3);
    fixture.observe(4, seen(vec![connection(1, 7, 2)], vec![denied]));
    let active = fixture.active();
    let of_connection = active.iter().find(|record| record.path_changes == 1).expect("the connection");
    let decisions: Vec<_> = of_connection.paths.iter().map(|path| path.decision).collect();
    assert_eq!(decisions, [Decision::Permitted, Decision::Rejected]);
    assert_eq!(of_connection.paths[0].egress.as_deref(), Some("auto"));
}

#[test]
fn attempts_that_are_denied_are_one_flow_until_they_stop() {
    let mut fixture = Fixture::new();
    let denied = |port, second| verdict(port, Reason::TrustInternetDenied, Mark::REJECT, second);
    fixture.observe(2, seen(Vec::new(), vec![denied(1, 2), denied(2, 2)]));
    assert_eq!(fixture.active().len(), 1);
    fixture.observe(20, seen(Vec::new(), vec![denied(1, 2), denied(3, 19)]));
    assert_eq!((fixture.active().len(), fixture.active()[0].last_at), (1, Some(at(19))));
    let finished = fixture.observe(60, seen(Vec::new(), vec![denied(1, 2), denied(3, 19)]));
    let [record] = &finished[..] else { panic!("{finished:?}") };
    assert_eq!((record.end, record.ended_at), (Some(FlowEnd::Silent), Some(at(19))));
    assert_eq!((record.sent, record.received, record.decision()), (None, None, Some(Decision::Rejected)));
    // The table still has the records of the attempts.
    fixture.observe(62, seen(Vec::new(), vec![denied(1, 2), denied(3, 19)]));
    assert!(fixture.active().is_empty());
}

#[test]
fn packets_of_all_attempts_that_are_denied_count_together() {
    let mut fixture = Fixture::new();
    let denied = |port, second, packets| EvaluatedFlow {
        denied: Some(Traffic { packets, bytes: 60 * packets }),
        ..verdict(port, Reason::TrustInternetDenied, Mark::REJECT, second)
    };
    fixture.observe(2, seen(Vec::new(), vec![denied(1, 2, 2), denied(2, 2, 1)]));
    fixture.observe(4, seen(Vec::new(), vec![denied(1, 2, 0), denied(2, 4, 3), denied(3, 4, 1)]));
    let finished = fixture.observe(60, seen(Vec::new(), vec![denied(3, 4, 0)]));
    let [record] = &finished[..] else { panic!("{finished:?}") };
    assert_eq!((record.sent, record.received), (Some(Traffic { packets: 7, bytes: 420 }), None));
}

#[test]
fn an_end_that_was_not_reported_is_noticed() {
    let mut fixture = Fixture::new();
    fixture
        .observe(2, seen(vec![connection(1, 7, 1), connection(2, 8, 1)], vec![direct(1, 2), direct(2, 2)]));
    // Another connection has the ports of the first one.
    let finished = fixture.observe(4, seen(vec![connection(1, 9, 4)], vec![direct(1, 4), direct(2, 2)]));
    assert_eq!(finished.iter().map(|record| record.end).collect::<Vec<_>>(), [Some(FlowEnd::Unreported)]);
    let finished = fixture.observe(6, seen(vec![connection(1, 9, 4)], vec![direct(1, 4), direct(2, 2)]));
    assert_eq!(finished.len(), 1, "the second one is missing twice");
    assert_eq!(fixture.tracker.losses.unreported, 2);
    assert_eq!(fixture.active().len(), 1);
}

#[test]
fn a_long_flow_has_a_record_for_each_part() {
    let mut fixture = Fixture::new();
    fixture.observe(2, seen(vec![connection(1, 7, 1)], vec![direct(1, 2)]));
    let finished = fixture.observe(1900, seen(vec![connection(1, 7, 10)], vec![direct(1, 1899)]));
    let [first] = &finished[..] else { panic!("{finished:?}") };
    assert_eq!((first.end, first.part, packets(first.sent)), (Some(FlowEnd::Continued), 0, Some(10)));
    let finished = fixture.observe(1902, ended(connection(1, 7, 12), vec![direct(1, 1901)]));
    let [last] = &finished[..] else { panic!("{finished:?}") };
    assert_eq!((last.flow_id, last.part, packets(last.sent)), (first.flow_id, 1, Some(2)));
    assert_eq!(last.end, Some(FlowEnd::TimedOut));
}

#[test]
fn usage_is_what_came_since_the_last_observation_by_the_path_before() {
    let mut fixture = Fixture::new();
    fixture.observe(2, seen(vec![connection(1, 7, 1)], vec![direct(1, 2)]));
    let used = fixture.tracker.take_usage();
    let auto = UsageKey { egress: Some("auto".into()), ..UsageKey::default() };
    assert_eq!(used, [(auto.clone(), Usage { sent: 100, received: 200, flows: 1 })]);
    let denied = verdict(1, Reason::TrustInternetDenied, Mark::REJECT, 3);
    fixture.observe(4, seen(vec![connection(1, 7, 3)], vec![denied]));
    assert_eq!(fixture.tracker.take_usage(), [(auto, Usage { sent: 200, received: 400, flows: 0 })]);
    fixture.observe(6, seen(vec![connection(1, 7, 3)], vec![denied]));
    assert!(fixture.tracker.take_usage().is_empty());
}

#[test]
fn changes_are_reported_to_listeners() {
    let mut fixture = Fixture::new();
    fixture.observe(2, seen(vec![connection(1, 7, 1)], vec![direct(1, 2)]));
    assert!(fixture.tracker.take_news().is_empty(), "without a listener");
    fixture.tracker.has_listeners = true;
    let denied = verdict(1, Reason::TrustInternetDenied, Mark::REJECT, 3);
    fixture.observe(4, seen(vec![connection(1, 7, 3), connection(2, 8, 1)], vec![denied, direct(2, 3)]));
    let mut news: Vec<_> =
        fixture.tracker.take_news().into_iter().map(|news| (news.change, news.record.path_changes)).collect();
    news.sort();
    assert_eq!(news, [(FlowChange::Begun, 0), (FlowChange::Begun, 0), (FlowChange::Changed, 1)]);
}

#[test]
fn a_connection_that_is_older_than_the_daemon_counts_from_its_start_on() {
    let mut fixture = Fixture::new();
    fixture.tracker = Tracker::default();
    fixture.observe(2, seen(vec![connection(1, 7, 100)], vec![direct(1, 2)]));
    fixture.observe(4, seen(vec![connection(1, 7, 103)], vec![direct(1, 4)]));
    let active = fixture.active();
    assert_eq!((packets(active[0].sent), active[0].part, active[0].flow_id.start()), (Some(3), 1, at(1)));
    let used = fixture.tracker.take_usage();
    assert_eq!(used.iter().map(|(_, usage)| (usage.sent, usage.flows)).collect::<Vec<_>>(), [(300, 0)]);
}

#[test]
fn after_a_wipe_nothing_of_the_past_is_in_a_record() {
    let mut fixture = Fixture::new();
    let both = |sent| vec![connection(1, 7, sent), connection(2, 8, 100)];
    fixture.observe(2, seen(both(100), vec![direct(1, 2), direct(2, 2)]));
    let before = fixture.active();
    assert_eq!(before.len(), 2);
    fixture.tracker.forget_past(at(3));
    // What came between the last reading and the wipe is of the past, too.
    fixture.observe(4, seen(both(101), vec![direct(1, 4), direct(2, 4)]));
    assert!(fixture.active().is_empty());
    fixture.observe(6, seen(both(103), vec![direct(1, 6), direct(2, 6)]));
    let after = fixture.active();
    assert_eq!(after.len(), 1, "no packet of the other flow came since");
    assert_eq!((packets(after[0].sent), after[0].flow_id.start()), (Some(2), at(3)));
    assert!(before.iter().all(|flow| flow.flow_id != after[0].flow_id));
    let stopped = fixture.tracker.stop(at(7));
    assert_eq!(stopped.len(), 1);
}

#[test]
fn what_is_not_from_the_lan_or_to_the_gateway_is_not_logged() {
    let mut fixture = Fixture::new();
    let to_gateway = verdict(1, Reason::ToGateway, Mark::LOCAL, 2);
    let mut foreign = connection(2, 8, 1);
    foreign.origin.source = [203, 0, 113, 9].into();
    fixture.observe(2, seen(vec![connection(1, 7, 1), foreign], vec![to_gateway]));
    assert!(fixture.active().is_empty());
    let stopped = fixture.tracker.stop(at(3) + SignedDuration::from_secs(1));
    assert!(stopped.is_empty());
}

#[test]
fn a_server_name_stays_with_its_connection() {
    let mut fixture = Fixture::new();
    let named = |connections, name: &str| {
        let server_names = [(Tuple::from(&key(1)), name.to_owned())].into();
        Observation { server_names, ..seen(connections, vec![direct(1, 2)]) }
    };
    fixture.observe(2, named(vec![connection(1, 7, 1)], "www.example"));
    fixture.observe(4, named(vec![connection(1, 7, 2)], "other.example"));
    assert_eq!(fixture.active()[0].server_name.as_deref(), Some("www.example"));
    fixture.observe(6, seen(vec![connection(1, 8, 1)], vec![direct(1, 6)]));
    assert_eq!(fixture.active()[0].server_name, None, "another connection");
}
