//! `flow_log_rate`: new flows per second that one core of the daemon follows to their end and stores. The peer is what is asked of
//! it, 100 000 flows/s. Flows beyond the bound of those that are followed at a time are counted, and fail the bench here.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Result, ensure};
use gateway_common::verdict::{Action, Reason};
use gateway_common::wire::Mark;
use gateway_core::compile::{Input, compile};
use gateway_core::facts::{Facts, Link};
use gateway_core::flow_log::{
    Connection, EvaluatedFlow, FlowNames, Observation, PacketKey, Surroundings, TcpState, Tracker, Traffic,
    Tuple,
};
use gateway_core::network::Network;
use gateway_ctl::handles::Handle as _;
use gateway_ctl::services::flow_log::FlowLog;
use gateway_model::State;
use gateway_model::id::MacAddr;
use jiff::{SignedDuration, Timestamp};

use super::cpu_time;
use crate::row::{Row, Target};

/// Flows between two observations: 100 000 a second.
const FLOWS: u32 = 200_000;
const ROUNDS: i64 = 5;
const WANTED: f64 = 100_000.0;

pub(super) fn run() -> Result<Row> {
    let now = Timestamp::from_second(1_800_000_000)?;
    let names = names(now)?;
    let (folder, mut tracker, mut time) = (tempfile::tempdir()?, Tracker::default(), Duration::ZERO);
    let log = FlowLog::open(folder.path(), now);
    tracker.observe(Observation::default(), &Surroundings { names: &names, asked: &(), now });
    let mut written = 0;
    for round in 1..=ROUNDS {
        let now = now + SignedDuration::from_secs(2 * round);
        let (seen, around) = (observation(now), Surroundings { names: &names, asked: &(), now });
        let begun = cpu_time();
        let records = tracker.observe(seen, &around);
        log.keep(&records, now);
        log.add_up(Duration::MAX, None, now);
        time += cpu_time() - begun;
        written += records.len();
    }
    let expected = usize::try_from(ROUNDS * i64::from(FLOWS))?;
    ensure!(written == expected && tracker.losses.untracked == 0, "{written} records, {:?}", tracker.losses);
    let ours = written as f64 / time.as_secs_f64();
    println!("{ours:.0} new flows/s on one core");
    Ok(Row {
        bench: "flow_log_rate",
        ours,
        peer: WANTED,
        peer_name: "the rate that is asked for".to_owned(),
        unit: "flows/s on one core",
        target: Target::RatioAtLeast(1.0),
    })
}

/// Names of a gateway with the LAN 10.0.0.0/8 and without devices.
fn names(now: Timestamp) -> Result<FlowNames> {
    let facts = Facts {
        links: [("lan0".to_owned(), Link { index: 3, up: true, ..Link::default() })].into(),
        addresses: [("lan0".to_owned(), ["10.0.0.1/8".parse()?].into())].into(),
        ..Facts::default()
    };
    let network = Network { lan: vec!["lan0".to_owned()], ..Network::default() };
    let state = State::new(now);
    let input = Input { state: &state, network: &network, facts: &facts, now };
    Ok(FlowNames::new(&input, &compile(&input)))
}

/// Connections that began and ended in the last two seconds.
fn observation(now: Timestamp) -> Observation {
    let (mut ended, mut evaluated) = (Vec::new(), HashMap::new());
    for number in 0..FLOWS {
        let [_, a, b, c] = number.to_be_bytes();
        let key = PacketKey {
            interface: 3,
            vlan: 0,
            mac: MacAddr([2, 0, 0, a, b, c]),
            source: IpAddr::from([10, 1, a, b]),
            destination: IpAddr::from([198, 18, b, c]),
            source_port: 32_768 + u16::from(c),
            destination_port: 443,
            protocol: 6,
        };
        let origin = Tuple::from(&key);
        let traffic = Some(Traffic { packets: 9, bytes: 4_000 });
        let reply = Tuple {
            source: origin.destination,
            destination: origin.source,
            source_port: origin.destination_port,
            destination_port: origin.source_port,
            protocol: origin.protocol,
        };
        ended.push(Connection {
            id: number + 1,
            origin,
            reply,
            started_at: Some(now - SignedDuration::from_secs(1)),
            sent: traffic,
            received: traffic,
            tcp: Some(TcpState::Closed),
            is_early: false,
        });
        evaluated.insert(
            origin,
            EvaluatedFlow {
                key,
                generation: 1,
                action: Action::Mark as u8,
                reason: Reason::NoPolicy as u8,
                mark: Mark::DIRECT,
                policy: None,
                device: 0,
                leg: None,
                seen_at: now,
                denied: None,
            },
        );
    }
    Observation { ended, evaluated, passed_by: Some(HashMap::new()), ..Observation::default() }
}
