//! Changes of the egress, and whether they reset a connection.

use gateway_common::classify::{TCP, UDP};
use gateway_common::leg_selection::FIRST_TUNNEL;
use gateway_common::wire::{
    ActionValue, Choice, InterfaceKey, InterfaceValue, Mark, PlanValue, RANK_NONE, SourceKind,
};

use super::*;

const A: u8 = FIRST_TUNNEL;
const B: u8 = FIRST_TUNNEL + 1;

/// Returns a plan that has one policy for everything, or none.
fn plan(choice: Option<Choice>) -> Dataplane {
    let mut plan = Dataplane {
        header: PlanValue { all: if choice.is_some() { 0 } else { RANK_NONE }, ..PlanValue::default() },
        ..Dataplane::default()
    };
    plan.actions.extend(choice.map(|v4| ActionValue { v4, v6: v4, policy: 1, ..ActionValue::default() }));
    let interface = InterfaceKey { index: 2, ..InterfaceKey::default() };
    plan.interfaces.insert(interface, InterfaceValue { rank: RANK_NONE, ..InterfaceValue::default() });
    for net in ["0.0.0.0/0", "::/0"] {
        plan.lan_sources.insert((0, net.parse().expect("a network")), SourceKind::Lan as u32);
    }
    plan
}

fn key(protocol: u8) -> FlowKey {
    let packet = IpPacket {
        source: IpAddr::from([192, 168, 1, 7]).into(),
        destination: IpAddr::from([203, 0, 113, 9]).into(),
        interface: 2,
        protocol,
        source_port: 40_000,
        destination_port: 443,
        ..IpPacket::default()
    };
    gateway_common::recorded_verdict::flow_key(&packet)
}

fn flow(mark: Mark, leg: u8) -> FlowValue {
    FlowValue { mark: mark.0, leg, generation: 7, ..FlowValue::default() }
}

#[test]
fn connections_are_reset_in_every_change_of_their_egress() {
    let direct = || flow(Mark::DIRECT, 0);
    let by = |leg: u8| flow(Mark::leg(leg), leg);
    let by_proxy = |leg: u8| flow(Mark::proxy(3, leg, false), leg);
    let none = || plan(None);
    let legs = |legs: &[u8]| plan(Some(Choice::legs(legs)));
    let policy = |choice: Choice| plan(Some(choice));
    let cases = [
        ("a policy came", legs(&[A]), direct(), true),
        ("a policy went", none(), by(A), true),
        ("a policy for the proxy went", none(), by_proxy(0), true),
        ("another tunnel", legs(&[B]), by(A), true),
        ("the proxy by the tunnel, now the tunnel itself", legs(&[A]), by_proxy(A), true),
        ("a policy for the default route", policy(Choice::DIRECT), by(A), true),
        ("the same tunnel", legs(&[A]), by(A), false),
        ("one more tunnel", legs(&[B, A]), by(A), false),
        ("no policy before and after", none(), direct(), false),
        ("the default route, now by a policy", policy(Choice::DIRECT), direct(), false),
        ("the uplink was selected", legs(&[1]), direct(), false),
        ("the uplink is not selected any more", none(), by(1), false),
        ("blocked, which has its own answer", policy(Choice::REJECT), by(A), false),
    ];
    for (what, plan, flow, expected) in cases {
        assert_eq!(is_reset(&plan, &key(TCP), &flow), expected, "{what}");
        assert!(!is_reset(&plan, &key(UDP), &flow), "{what}: a datagram has no connection");
    }
}
