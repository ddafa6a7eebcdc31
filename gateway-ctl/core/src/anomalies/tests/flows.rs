//! Anomalies that rest on flows.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use gateway_model::kinds::anomaly::AnomalyKind;
use jiff::SignedDuration;

use super::{Scene, address, settings};
use crate::anomalies::{AnomalySettings, Missed, ObservationSource};
use crate::countries::CountryCode;
use crate::flow_log::FlowId;

#[test]
fn scans_beacons_tunnels_and_new_ports_are_found_in_flows() {
    let mut scene = Scene::new();
    let flows: Vec<FlowId> = (0..30).map(|port| scene.flow(address(1), 100 + port, 6)).collect();
    assert_eq!(scene.kinds(), [AnomalyKind::PortScan]);
    assert_eq!(scene.engine.anomalies().next().expect("it").flow_ids, flows[22..]);

    let mut scene = Scene::new();
    for last in 0..60 {
        scene.flow(address(last), 22, 6);
    }
    assert_eq!(scene.kinds(), [AnomalyKind::PortScan]);

    let mut scene = Scene::new();
    scene.learn_flows(address(8), 443);
    let mut flows = Vec::new();
    for _ in 0..11 {
        flows.push(scene.flow(Ipv4Addr::new(192, 0, 2, 9).into(), 443, 6));
        scene.now += SignedDuration::from_secs(60);
    }
    let found = scene.engine.check(scene.clock());
    let [beacon] = &found[..] else { panic!("{found:?}") };
    assert_eq!((beacon.kind, &beacon.flow_ids[..]), (AnomalyKind::Beaconing, &flows[3..]));
    let flow = scene.flow(address(9), 51820, 17);
    let found = scene.engine.check(scene.clock());
    let kinds: Vec<AnomalyKind> = found.iter().map(|anomaly| anomaly.kind).collect();
    assert_eq!(kinds, [AnomalyKind::TorOrVpnUsage], "the port of a tunnel is above those that are named");
    assert_eq!(found[0].flow_ids, [flow]);

    let mut scene = Scene::new();
    scene.learn_flows(address(9), 443);
    scene.flow(address(9), 40_000, 17);
    assert_eq!(scene.kinds(), []);
    let flow = scene.flow(address(9), 2323, 6);
    assert_eq!(scene.kinds(), [AnomalyKind::NewPort]);
    assert_eq!(scene.engine.anomalies().next().expect("it").flow_ids, [flow]);
}

#[test]
fn destinations_that_were_learned_are_usual() {
    let mut scene = Scene::new();
    for _ in 0..3 {
        scene.flow(address(7), 4500, 17);
        for _ in 0..12 {
            scene.flow(address(9), 443, 6);
            scene.now += SignedDuration::from_secs(60);
        }
        assert_eq!(scene.kinds(), [], "while it is learned");
        scene.pass(48);
    }
    scene.learn_flows(address(9), 80);
    scene.flow(address(8), 4500, 17);
    for _ in 0..12 {
        scene.flow(address(9), 443, 6);
        scene.now += SignedDuration::from_secs(60);
    }
    assert_eq!(scene.kinds(), [], "another address of the same network");
}

#[test]
fn a_first_connection_to_a_country_is_found_and_one_to_an_unknown_country_is_not() {
    let country = |code: &str| Some(code.parse::<CountryCode>().expect("a code"));
    let mut scene = Scene::new();
    for _ in 0..25 {
        scene.flow_to(address(1), 443, 6, country("DE"));
        scene.pass(60);
    }
    scene.flow_to(address(2), 443, 6, None);
    scene.flow_to(address(3), 443, 6, country("DE"));
    assert_eq!(scene.kinds(), []);
    let flow = scene.flow_to(address(4), 443, 6, country("CL"));
    assert_eq!(scene.kinds(), [AnomalyKind::NewDestinationCountry]);
    let found = scene.engine.anomalies().next().expect("it").clone();
    assert_eq!((found.flow_ids, found.description.contains("CL")), (vec![flow], true));
}

#[test]
fn flows_that_were_observed_later_are_learned_later() {
    let mut scene = Scene::new();
    scene.engine.set_sources(BTreeSet::new());
    (0..30).for_each(|_| drop(scene.pass(60)));
    assert_eq!(scene.engine.devices(), (1, 0));
    scene.engine.set_sources(BTreeSet::from([ObservationSource::FlowLog]));
    scene.flow(address(1), 2323, 6);
    assert_eq!(scene.kinds(), [], "its flows are not known yet");
    let stats = scene.engine.stats(true, Missed::default(), scene.now);
    let learning =
        |kind| stats.kinds.iter().find(|state| state.kind == kind).map(|state| state.devices_learning);
    assert_eq!((learning(AnomalyKind::NewPort), learning(AnomalyKind::DnsVolume)), (Some(1), Some(0)));
}

#[test]
fn a_kind_that_is_off_is_not_looked_for_and_says_so() {
    let mut scene = Scene::new();
    scene.engine.set(AnomalySettings { disabled: BTreeSet::from([AnomalyKind::PortScan]), ..settings(24) });
    for port in 0..30 {
        scene.flow(address(1), 100 + port, 6);
    }
    assert_eq!(scene.kinds(), []);
    let stats = scene.engine.stats(true, Missed::default(), scene.now);
    let state = stats.kinds.iter().find(|state| state.kind == AnomalyKind::PortScan).expect("every kind");
    assert!(
        !state.observed && state.reason.as_deref().is_some_and(|reason| reason.contains("disabled_kinds"))
    );
}

#[test]
fn visits_without_an_interval_are_no_beacon() {
    let mut scene = Scene::new();
    scene.learn_flows(Ipv4Addr::new(192, 0, 2, 1).into(), 443);
    for step in 0..20 {
        scene.flow(address(9), 443, 6);
        scene.now += SignedDuration::from_secs(40 + (step * 37) % 90);
    }
    assert_eq!(scene.kinds(), []);
}
