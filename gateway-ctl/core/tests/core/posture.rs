//! The leak matrix, the fail matrix, and what may not be shown.

use gateway_common::wire::Mark;
use gateway_core::evaluate::{Request, evaluate};
use gateway_core::matrix::Outcome::{self, Blocked, Direct, NextHop, Tunnel};
use gateway_core::matrix::per_hop::leak_matrix_per_hop;
use gateway_core::matrix::{Cell, Cells, FailRow, LeakMatrix, Risk, fail_matrix, leak_matrix};
use gateway_core::render::{enforce, render};
use serde_json::{Value, json};

use crate::fixture::{Fixture, PRESHARED_KEY, PRIVATE_KEY};

fn world_with(policies: &[Value]) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.device("laptop", "02:00:00:00:00:01");
    fixture.tunnel("a");
    fixture.tunnel("b");
    for policy in policies {
        fixture.policy(policy.clone());
    }
    fixture.apply();
    fixture
}

fn policy(hops: &[(&str, &str)], more: Value) -> Value {
    let hops: Vec<Value> =
        hops.iter().map(|(kind, target)| json!({"type": kind, "target": target})).collect();
    let mut policy = json!({"name": "p", "source_type": "subnet", "source_value": "192.168.1.0/24,fd00:1::/64", "hops": hops});
    policy.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    policy
}

fn matrix(fixture: &Fixture) -> LeakMatrix {
    leak_matrix(&fixture.input())
}

fn outcomes(cells: &Cells) -> [Outcome; 6] {
    [&cells.up, &cells.degraded, &cells.down, &cells.flapping, &cells.daemon_down, &cells.boot]
        .map(|c| c.outcome)
}

fn leaks(cells: &Cells) -> [bool; 6] {
    [&cells.up, &cells.degraded, &cells.down, &cells.flapping, &cells.daemon_down, &cells.boot]
        .map(|c| c.leak)
}

fn fail_rows(fixture: &Fixture) -> Vec<FailRow> {
    fail_matrix(&fixture.input(), &fixture.compiled())
}

#[test]
fn a_policy_that_fails_closed_never_leaks() {
    let mut fixture = world_with(&[policy(&[("vpn", "a")], json!({}))]);
    // What holds now does not matter to the states.
    fixture.set_usable("a", false);
    fixture.facts.links.remove("wg-a");
    let matrix = matrix(&fixture);
    let row = &matrix.rows[0];
    assert_eq!(outcomes(&row.cells), [Tunnel, Blocked, Blocked, Blocked, Blocked, Blocked]);
    assert_eq!(leaks(&row.cells), [false; 6]);
    assert_eq!(
        row.cells.up,
        Cell { outcome: Tunnel, via: Some("a".into()), leak: false, dns: Tunnel, ipv6: Tunnel }
    );
    assert_eq!((matrix.risk, row.risk), (Risk::None, Risk::None));
    let fail = &fail_rows(&fixture)[0];
    assert_eq!(
        (fail.current, fail.if_first_fails, fail.if_all_fail, fail.leak_possible),
        (Blocked, Blocked, Blocked, false)
    );
    assert!(!fail.hops[0].healthy && !fail.hops[0].reason.is_empty());
}

#[test]
fn a_policy_that_fails_open_leaks_when_its_tunnel_is_down() {
    let fixture = world_with(&[policy(&[("vpn", "a")], json!({"fail_policy": "fail-open"}))]);
    let matrix = matrix(&fixture);
    let row = &matrix.rows[0];
    // The daemon's end is no failure of the policy: the plan that holds still says the tunnel.
    assert_eq!(outcomes(&row.cells), [Tunnel, Direct, Direct, Direct, Blocked, Blocked]);
    assert_eq!(leaks(&row.cells), [false, true, true, true, false, false]);
    assert_eq!(row.cells.down.via.as_deref(), Some("default"));
    assert_eq!((row.cells.down.dns, row.cells.down.ipv6), (Direct, Direct));
    assert_eq!(matrix.risk, Risk::Low);
    let fail = &fail_rows(&fixture)[0];
    assert_eq!(
        (fail.current, fail.if_first_fails, fail.if_all_fail, fail.leak_possible),
        (Tunnel, Direct, Direct, true)
    );
}

#[test]
fn failing_over_takes_the_next_tunnel_and_an_uplink_at_the_end_is_a_leak() {
    let failover = json!({"hop_mode": "failover"});
    let fixture = world_with(&[
        policy(&[("vpn", "a"), ("vpn", "b")], failover.clone()),
        policy(
            &[("vpn", "b"), ("interface", "wan0")],
            json!({"hop_mode": "failover", "priority": 7, "source_type": "vlan", "source_value": "9"}),
        ),
    ]);
    let matrix = matrix(&fixture);
    let [second, first] = matrix.rows.as_slice() else { panic!("{matrix:?}") };
    assert_eq!(outcomes(&first.cells), [Tunnel, NextHop, Blocked, Blocked, Blocked, Blocked]);
    assert_eq!(first.cells.degraded.via.as_deref(), Some("b"));
    assert_eq!(outcomes(&second.cells), [Tunnel, Direct, Direct, Direct, Blocked, Blocked]);
    assert_eq!(second.cells.down.via.as_deref(), Some("wan0"));
    assert_eq!((first.risk, second.risk, matrix.risk), (Risk::None, Risk::Low, Risk::Low));
    let fail = fail_rows(&fixture);
    assert_eq!((fail[0].if_first_fails, fail[0].if_all_fail), (Direct, Blocked));
    assert_eq!((fail[1].if_first_fails, fail[1].if_all_fail), (NextHop, Blocked));
}

#[test]
fn each_hop_has_a_column_in_which_only_it_is_down() {
    let fixture = world_with(&[
        policy(&[("vpn", "a"), ("vpn", "b")], json!({"hop_mode": "failover", "name": "backup"})),
        policy(
            &[("vpn", "b"), ("interface", "wan0")],
            json!({"hop_mode": "failover", "name": "direct", "source_type": "vlan", "source_value": "9"}),
        ),
        policy(
            &[("vpn", "gone"), ("vpn", "a")],
            json!({"hop_mode": "failover", "name": "missing", "source_type": "vlan", "source_value": "10"}),
        ),
    ]);
    let plain = matrix(&fixture);
    assert!(plain.hops.is_empty() && plain.rows.iter().all(|row| row.cells.hops.is_empty()));
    let matrix = leak_matrix_per_hop(&fixture.input());
    assert_eq!(
        matrix.states[6..],
        ["a down", "b down", "uplink wan0 down"],
        "a hop without target cannot fail"
    );
    assert_eq!(matrix.hops.iter().map(|hop| hop.state.clone()).collect::<Vec<_>>(), matrix.states[6..]);
    let cell = |name: &str, state: &str| {
        let row = matrix.rows.iter().find(|row| row.name == name).expect("a row");
        let cell = &row.cells.hops[state];
        (cell.outcome, cell.via.clone(), cell.leak)
    };
    let via = |name: &str| Some(name.to_owned());
    assert_eq!(cell("backup", "a down"), (NextHop, via("b"), false));
    assert_eq!(cell("backup", "b down"), (Tunnel, via("a"), false));
    assert_eq!(cell("direct", "b down"), (Direct, via("wan0"), true));
    assert_eq!(cell("direct", "a down"), (Tunnel, via("b"), false));
    assert_eq!(cell("missing", "a down"), (Blocked, None, false));
    // Without its only uplink a tunnel may still be up: its health decides, not the route of its packets.
    for row in &matrix.rows {
        let same = plain.rows.iter().find(|other| other.policy_id == row.policy_id).expect("a row");
        assert_eq!(Cells { hops: std::collections::BTreeMap::new(), ..row.cells.clone() }, same.cells);
        assert_eq!(row.risk, same.risk, "{}", row.name);
    }
    let shown = serde_json::to_value(&matrix).expect("JSON");
    assert_eq!(shown["rows"][0]["cells"].as_object().expect("cells").len(), matrix.states.len());
}

#[test]
fn a_leak_without_one_hop_counts_in_the_risk() {
    // The pool goes on without either tunnel alone; the last hop is reached through both.
    let open = policy(&[("vpn", "a"), ("vpn", "b")], json!({"fail_policy": "fail-open"}));
    let fixture = world_with(&[open]);
    let matrix = leak_matrix_per_hop(&fixture.input());
    let row = &matrix.rows[0];
    assert!(row.cells.hops["b down"].leak, "b is carried inside a");
    assert_eq!((row.risk, matrix.risk), (Risk::Low, Risk::Low));
}

#[test]
fn a_pool_goes_on_with_the_rest() {
    let fixture = world_with(&[policy(&[("vpn", "a"), ("vpn", "b")], json!({"splitting": true}))]);
    let row = &matrix(&fixture).rows[0];
    assert_eq!(row.cells.up.via.as_deref(), Some("a, b"));
    assert_eq!((row.cells.degraded.outcome, row.cells.degraded.via.as_deref()), (NextHop, Some("b")));
}

#[test]
fn a_policy_for_an_uplink_is_direct_and_no_leak() {
    let fixture = world_with(&[policy(&[("interface", "wan0")], json!({}))]);
    let row = &matrix(&fixture).rows[0];
    assert_eq!(outcomes(&row.cells), [Direct, Blocked, Direct, Direct, Direct, Blocked]);
    assert_eq!(leaks(&row.cells), [false; 6]);
    assert_eq!(row.risk, Risk::None);
}

#[test]
fn a_family_that_the_tunnel_does_not_carry_leaks_only_if_the_policy_fails_open() {
    let mut fixture = Fixture::new();
    fixture.tunnel_with("four", &["10.64.0.2/32"]);
    fixture.policy(policy(&[("vpn", "four")], json!({"fail_policy": "fail-open"})));
    fixture.apply();
    let row = &matrix(&fixture).rows[0];
    assert_eq!((row.cells.up.outcome, row.cells.up.ipv6, row.cells.up.leak), (Tunnel, Direct, true));
    assert_eq!(row.risk, Risk::High);
}

#[test]
fn tunnels_of_the_kernel_outlive_the_daemon_unless_one_of_its_own_carries_them() {
    let mut fixture = world_with(&[policy(&[("vpn", "a")], json!({}))]);
    fixture.facts.links.get_mut("wg-a").expect("a link").kind = "wireguard".into();
    assert_eq!(matrix(&fixture).rows[0].cells.daemon_down.outcome, Tunnel);

    let mut fixture = world_with(&[policy(&[("vpn", "b"), ("vpn", "a")], json!({}))]);
    fixture.facts.links.get_mut("wg-a").expect("a link").kind = "wireguard".into();
    let row = &matrix(&fixture).rows[0];
    assert_eq!((row.cells.up.outcome, row.cells.daemon_down.outcome), (Tunnel, Blocked));
    fixture.facts.links.get_mut("wg-b").expect("a link").kind = "wireguard".into();
    assert_eq!(matrix(&fixture).rows[0].cells.daemon_down.outcome, Tunnel);
}

#[test]
fn queries_to_name_servers_follow_their_policy() {
    let laptop = |fixture: &Fixture| fixture.ids["laptop"].to_string();
    let mut fixture = world_with(&[]);
    let device = laptop(&fixture);
    fixture.policy(policy(
        &[("vpn", "a")],
        json!({"source_type": "device", "source_value": device, "fail_policy": "fail-closed"}),
    ));
    fixture.policy(json!({"name": "dns", "priority": 1, "source_type": "destination", "source_value": "0.0.0.0/0:53,[::/0]:53", "hops": [{"type": "interface", "target": "wan0"}]}));
    fixture.apply();
    let matrix = matrix(&fixture);
    let row = matrix.rows.iter().find(|row| row.name == "p").expect("a row");
    assert_eq!((row.cells.up.outcome, row.cells.up.dns), (Tunnel, Direct));
    // Another policy takes them on purpose.
    assert!(!row.cells.up.leak);
}

#[test]
fn a_dns_leak_is_a_leak() {
    let mut fixture = world_with(&[]);
    let device = fixture.ids["laptop"].to_string();
    fixture.policy(policy(&[("vpn", "a")], json!({"source_type": "device", "source_value": device})));
    fixture.policy(json!({"name": "dns", "priority": 1, "source_type": "destination", "source_value": "0.0.0.0/0:53", "hops": [{"type": "vpn", "target": "b"}], "fail_policy": "fail-open"}));
    fixture.apply();
    let matrix = matrix(&fixture);
    let row = matrix.rows.iter().find(|row| row.name == "p").expect("a row");
    assert_eq!((row.cells.down.outcome, row.cells.down.dns, row.cells.down.leak), (Blocked, Direct, true));
    assert!(!row.cells.up.leak);
    assert_eq!(row.risk, Risk::High);
}

#[test]
fn without_the_rules_a_mark_meets_the_guard() {
    // The grid follows the plan: were a rule missing, the main table would answer.
    use gateway_core::evaluate::route::Kernel;
    let fixture = world_with(&[policy(&[("vpn", "a")], json!({}))]);
    let mut compiled = fixture.compiled();
    let mark = Mark(0x4700_0010);
    assert_eq!(Kernel::new(&compiled, &fixture.facts).follow(mark, false).out.as_deref(), Ok("wg-a"));
    compiled.plan.rules.clear();
    let out = Kernel::new(&compiled, &fixture.facts).follow(mark, false).out;
    assert!(out.as_ref().is_err_and(|reason| reason.contains("guard of wan0")), "{out:?}");
    compiled.plan.attach.clear();
    assert_eq!(Kernel::new(&compiled, &fixture.facts).follow(mark, false).out.as_deref(), Ok("wan0"));
}

#[test]
fn nothing_that_is_shown_has_a_key_of_a_tunnel() {
    let fixture = world_with(&[policy(&[("vpn", "a")], json!({}))]);
    let compiled = fixture.compiled();
    let device = compiled.plan.wireguard.get("wg-a").expect("a device");
    let secrets = [
        device.private_key.0,
        device.peers.values().next().expect("a peer").preshared_key.as_ref().expect("a key").0,
    ];
    let request = Request { device_id: Some(fixture.ids["laptop"]), ..Request::default() };
    let shown = [
        serde_json::to_string(&render(&compiled, 3)).expect("JSON"),
        serde_json::to_string(&enforce(&fixture.input(), &compiled)).expect("JSON"),
        serde_json::to_string(&evaluate(&fixture.input(), &compiled, &request).expect("an answer"))
            .expect("JSON"),
        serde_json::to_string(&matrix(&fixture)).expect("JSON"),
        format!("{:?}", compiled.plan),
    ];
    for text in shown {
        assert!(text.contains("wg-a") || text.contains("\"a\""), "{text}");
        for (secret, base64) in secrets.iter().zip([PRIVATE_KEY, PRESHARED_KEY]) {
            let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
            let list = format!("{secret:?}");
            let dense = list.replace(' ', "");
            for form in [base64, &hex, &hex.to_uppercase(), &list, &dense] {
                assert!(!text.contains(form), "{form} in {text}");
            }
        }
    }
}

#[test]
fn equal_plans_have_equal_hashes_and_other_plans_have_others() {
    let mut fixture = world_with(&[policy(&[("vpn", "a")], json!({}))]);
    let one = render(&fixture.compiled(), 1);
    let again = render(&fixture.compiled(), 2);
    assert_eq!((one.hash.len(), one.generation, again.generation), (64, 1, 2));
    assert_eq!(one.hash, again.hash);
    fixture.set_usable("a", false);
    assert_ne!(render(&fixture.compiled(), 1).hash, one.hash);
    assert!(
        one.excludes.iter().any(|exclude| exclude.destination == "192.168.1.0/24" && exclude.kind == "lan")
    );
    assert_eq!(one.maps["gw_actions"].count, 1);
}

#[test]
fn enforcement_names_matchers_legs_and_findings() {
    let fixture = world_with(&[
        policy(&[("vpn", "a")], json!({})),
        json!({"name": "d", "source_type": "domain", "source_value": "example.com"}),
    ]);
    let shown = enforce(&fixture.input(), &fixture.compiled());
    assert_eq!(shown.policies[0].matches, ["from 192.168.1.0/24", "from fd00:1::/64"]);
    assert_eq!(shown.policies[0].action.ipv4, "leg 16 (wg-a)");
    assert_eq!(shown.policies[1].matches, ["to addresses that clients resolved for example.com"]);
    assert_eq!(shown.findings, []);
    assert!(shown.attach.iter().any(|attach| attach.interface == "lan0" && attach.program == "ingress"));
    assert_eq!(
        shown.legs.iter().map(|leg| leg.interface.as_str()).collect::<Vec<_>>(),
        ["wan0", "wg-a", "wg-b"]
    );
}
