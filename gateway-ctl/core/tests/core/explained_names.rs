//! `/policy/evaluate` against the decision on the bytes that a client sends to a server of a name.

use std::net::IpAddr;

use gateway_common::classify::{Headers, read_headers};
use gateway_common::client_hello::names as names_of;
use gateway_common::decide::decide_ip;
use gateway_common::inspect::decide_inspected;
use gateway_common::recorded_verdict::flow_key;
use gateway_common::verdict::{Action, Reason, Verdict};
use gateway_common::wire::flow_flags;
use gateway_core::evaluate::{Decision, Evaluation, Family, Protocol, Request, evaluate};
use gateway_core::plan_maps::PlanMaps;
use gateway_model::Id;
use proptest::prelude::*;
use serde_json::json;

use crate::fixture::Fixture;
use crate::frames::{client_hello, quic_initial, segment, udp};

/// Flow record that no plan has written.
const NO_GENERATION: u32 = 0;

const CLASSES: [&str; 4] = ["open", "isolated", "no resolvers", "no quic"];
const NAMES: [&str; 5] =
    ["doh.opendns.com", "dns.google", "a.dns.google", "www.google.com", "www.example.com"];
const PORTS: [u16; 10] = [443, 8443, 5443, 80, 123, 853, 3478, 5353, 8000, 50_000];

fn fixture(class: &str) -> (Fixture, Id) {
    let mut fixture = Fixture::new();
    for (name, key) in [("no resolvers", "block_doh"), ("no quic", "block_quic")] {
        fixture.create("privacy-class", json!({"name": name, (key): true})).expect("a class");
    }
    let device = json!({"name": "laptop", "mac": "02:00:00:00:00:01", "privacy_class": class});
    let device = fixture.create("device", device).expect("a device");
    (fixture, device)
}

fn explained(fixture: &Fixture, device: Id, destination: &str, port: u16, protocol: Protocol) -> Evaluation {
    let request = Request {
        device_id: Some(device),
        destination: Some(destination.to_owned()),
        port: Some(port),
        protocol: Some(protocol),
        family: Some(Family::Ipv4),
        source: Some("192.168.1.7".parse().expect("an address")),
        ..Request::default()
    };
    evaluate(&fixture.input(), &fixture.compiled(), &request).expect("an answer")
}

/// Returns the verdict on the flow of a client that connects to the server, after it has shown the name.
fn dataplane(fixture: &Fixture, to: IpAddr, port: u16, protocol: Protocol, name: &str) -> Verdict {
    let compiled = fixture.compiled();
    let maps = PlanMaps::new(Some(&compiled.plan.dataplane));
    let to = to.to_string();
    let decide = |frame: &[u8]| {
        let (mut ip, mut verdict) = (Default::default(), Verdict::DROP);
        assert_eq!(read_headers(frame, 2, &mut ip), Headers::Ip);
        decide_inspected(frame, &mut ip, &maps, &mut verdict, decide_ip);
        (flow_key(&ip), verdict)
    };
    if protocol == Protocol::Tcp {
        decide(&segment(&to, port, 2, &[]));
        return decide(&segment(&to, port, 0x18, &client_hello(name))).1;
    }
    if !matches!(port, 443 | 8443 | 5443) {
        return decide(&udp(&to, port, &[7; 40])).1;
    }
    let initial = udp(&to, port, &quic_initial());
    let (flow, verdict) = decide(&initial);
    if verdict.reason != Reason::QuicHeld {
        return verdict;
    }
    // What the daemon does when it has read the name.
    // Without the header of the record.
    let names = names_of(&client_hello(name)[5..]);
    let is_resolver = names.0.iter().any(|hash| compiled.plan.dataplane.doh_names.contains_key(hash));
    let noted = flow_flags::HELLO | if is_resolver { flow_flags::DOH_NAME } else { 0 };
    let mut flows = maps.flows.borrow_mut();
    let record = flows.get_mut(&flow).expect("a record");
    (record.shown, record.generation) = (record.shown | noted, NO_GENERATION);
    drop(flows);
    decide(&initial).1
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_name_is_explained_as_the_dataplane_treats_it(
        class in prop::sample::select(CLASSES.to_vec()),
        name in prop::sample::select(NAMES.to_vec()),
        port in prop::sample::select(PORTS.to_vec()),
        is_tcp in any::<bool>(),
    ) {
        let protocol = if is_tcp { Protocol::Tcp } else { Protocol::Udp };
        let (fixture, device) = fixture(class);
        let evaluation = explained(&fixture, device, name, port, protocol);
        let four = evaluation.families.ipv4.expect("IPv4");
        let destination = four.destination.rsplit_once(':').expect("a port").0.parse().expect("an address");
        let verdict = dataplane(&fixture, destination, port, protocol, name);
        // The gateway answers redirected queries itself.
        let is_redirected = matches!(verdict.reason, Reason::ForcedDns | Reason::ForcedNtp);
        let is_blocked = verdict.reason.is_block() && !is_redirected;
        prop_assert_eq!(four.decision == Decision::Block, is_blocked, "{:?}: {}", verdict.reason, four.reason);
        let mark = (verdict.action == Action::Mark).then(|| format!("{:#010x}", verdict.mark));
        prop_assert_eq!(four.kernel.mark, mark, "{:?}", verdict.reason);
    }
}

#[test]
fn a_block_by_name_is_explained_by_the_name() {
    let (fixture, device) = fixture("no resolvers");
    for (destination, port, protocol, because) in [
        ("doh.opendns.com", 8000, Protocol::Tcp, Some("name")),
        ("doh.opendns.com", 443, Protocol::Udp, Some("name")),
        ("1.1.1.1", 443, Protocol::Tcp, Some("address")),
        ("www.example.com", 443, Protocol::Udp, None),
    ] {
        let sentence = explained(&fixture, device, destination, port, protocol).sentence;
        match because {
            Some(because) => {
                let expected =
                    format!("BLOCKED: DNS over HTTPS is blocked for it, and the {because} is one of");
                assert!(sentence.contains(&expected), "{sentence}");
            }
            None => assert!(sentence.contains("DIRECT"), "{sentence}"),
        }
    }
}

#[test]
fn content_that_would_block_a_flow_is_named() {
    let sentence = |class: &str, port: u16| {
        let (fixture, device) = fixture(class);
        let evaluation = explained(&fixture, device, "203.0.113.9", port, Protocol::Udp);
        let reason = evaluation.families.ipv4.expect("IPv4").reason;
        assert!(evaluation.sentence.ends_with(&reason), "{reason}");
        evaluation.sentence
    };
    let isolated = sentence("isolated", 50_000);
    assert!(
        isolated.ends_with(
            "no policy matched; a flow that turns out to be STUN, QUIC, a connection of TLS or QUIC to the name of a public resolver is blocked"
        ),
        "{isolated}"
    );
    let by_name = sentence("no resolvers", 443);
    assert!(
        by_name.contains("DIRECT") && by_name.contains("QUIC to the name of a public resolver"),
        "{by_name}"
    );
    assert!(!sentence("open", 50_000).contains("turns out"));
}
