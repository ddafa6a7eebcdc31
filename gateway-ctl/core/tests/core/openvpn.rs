//! OpenVPN tunnels in the plan: what is taken of what a server says.

use gateway_core::compile::Compiled;
use gateway_core::matrix::leak_matrix;
use gateway_model::Id;
use gateway_model::kinds::routing_policy::PolicyStatus;
use serde_json::{Value, json};

use crate::fixture::Fixture;

const KEY: &str = "SECRETKEYOFTHECLIENT";

fn file(more: &str) -> String {
    format!(
        "client\nremote vpn.example.net\nremote-cert-tls server\nup /bin/x\n{more}\n<ca>\nx\n</ca>\n<cert>\nx\n</cert>\n\
         <key>\n{KEY}\n</key>\n"
    )
}

fn object(more: &str) -> Value {
    json!({"name": "nl", "type": "openvpn", "config": file(more), "username": "alice", "password": "wonderland"})
}

/// A tunnel whose server has given it these addresses, and a policy over it.
fn fixture(object: Value, given: &[&str]) -> (Fixture, Id) {
    let mut fixture = Fixture::new();
    let id = fixture.create("tunnel", object).expect("a tunnel");
    fixture.link("ov-nl", 40);
    fixture.set_usable("nl", true);
    let fact = fixture.facts.tunnels.get_mut(&id.to_string()).expect("just made");
    fact.addresses = given.iter().map(|text| text.parse().expect("an address")).collect();
    for address in given {
        fixture.address("ov-nl", &format!("{address}/{}", if address.contains(':') { 128 } else { 32 }));
    }
    fixture.policy(json!({"name": "p", "priority": 1, "source_type": "all", "source_value": "",
        "hops": [{"type": "vpn", "target": "nl"}], "fail_policy": "fail-closed"}));
    fixture.apply();
    (fixture, id)
}

fn addresses(compiled: &Compiled) -> Vec<String> {
    compiled.plan.addresses.keys().map(|key| format!("{} {}", key.interface, key.address)).collect()
}

#[test]
fn a_tunnel_has_a_process_and_the_addresses_that_its_server_gave() {
    let (fixture, id) = fixture(object("tun-mtu 1300"), &["10.8.0.2", "fd08::2"]);
    let compiled = fixture.compiled();
    let process = &compiled.plan.openvpn[&id.to_string()];
    assert_eq!(
        (process.interface.as_str(), process.fwmark.0, process.mtu),
        ("ov-nl", 0x4701_0000, Some(1300))
    );
    assert!(process.config.expose().contains(KEY) && !process.config.expose().contains("/bin/x"));
    assert_eq!((process.username.expose(), process.password.expose()), ("alice", "wonderland"));
    assert_eq!(addresses(&compiled), ["ov-nl 10.8.0.2/32", "ov-nl fd08::2/128"]);
    assert_eq!(compiled.policies[0].status, PolicyStatus::Active);
    assert!(compiled.plan.links["ov-nl"].up);
    let shown = format!("{:?} {compiled:?}", compiled.plan);
    for secret in [KEY, "wonderland", "alice"] {
        assert!(!shown.contains(secret), "{secret} is shown");
    }
}

#[test]
fn packets_are_no_larger_than_both_ends_have_agreed_on() {
    let (mut fixture, id) = fixture(object(""), &["10.8.0.2"]);
    let link = |fixture: &Fixture| fixture.compiled().plan.links["ov-nl"].mtu;
    assert!((1280..1500).contains(&link(&fixture)), "{}", link(&fixture));
    fixture.facts.tunnels.get_mut(&id.to_string()).expect("there").mtu = Some(1290);
    assert_eq!(link(&fixture), 1290);
}

#[test]
fn credentials_of_the_object_outweigh_those_in_the_file() {
    let in_file = "<auth-user-pass>\nbob\nbuilder\n</auth-user-pass>";
    for (object, username) in [
        (object(in_file), "alice"),
        (json!({"name": "nl", "type": "openvpn", "config": file(in_file)}), "bob"),
    ] {
        let (fixture, id) = fixture(object, &[]);
        let process = &fixture.compiled().plan.openvpn[&id.to_string()];
        assert_eq!(process.username.expose(), username);
        assert!(!process.config.expose().contains("builder"));
    }
}

#[test]
fn an_address_that_would_take_something_from_this_host_is_refused() {
    let cases = [
        ("192.168.1.1", "own on lan0"),
        ("192.168.1.77", "network of lan0"),
        ("fd00:1::5", "network of lan0"),
        ("198.51.100.2", "own on wan0"),
        ("198.51.100.1", "router"),
        ("127.0.0.1", "cannot be"),
        ("0.0.0.0", "cannot be"),
        ("224.0.0.1", "cannot be"),
        ("255.255.255.255", "cannot be"),
        ("::1", "cannot be"),
        ("::ffff:10.0.0.1", "disguise"),
        ("169.254.1.1", "nowhere"),
        ("fe80::1", "nowhere"),
    ];
    for (given, why) in cases {
        let (fixture, id) = fixture(object(""), &["10.8.0.2", given]);
        let compiled = fixture.compiled();
        let leg = compiled.legs.of_tunnel(id).expect("a leg");
        assert!(!leg.usable && leg.reason.contains(why), "{given}: {}", leg.reason);
        assert!(addresses(&compiled).is_empty(), "{given}: {:?}", addresses(&compiled));
        assert_eq!(compiled.policies[0].status, PolicyStatus::Blocked, "{given}");
    }
}

#[test]
fn before_its_process_has_made_the_interface_nothing_is_wanted_of_it() {
    let (mut fixture, id) = fixture(object(""), &["10.8.0.2"]);
    fixture.facts.links.remove("ov-nl");
    let compiled = fixture.compiled();
    assert!(compiled.plan.openvpn.contains_key(&id.to_string()));
    assert!(!compiled.plan.links.contains_key("ov-nl") && addresses(&compiled).is_empty());
    assert_eq!(compiled.policies[0].status, PolicyStatus::Blocked);
}

#[test]
fn a_tunnel_that_is_taken_down_has_no_process() {
    let mut down = object("");
    down["enabled"] = json!(false);
    let (fixture, _) = fixture(down, &[]);
    assert!(fixture.compiled().plan.openvpn.is_empty());
}

#[test]
fn the_matrix_sees_through_a_tunnel_that_was_never_up() {
    let (mut fixture, id) = fixture(object(""), &[]);
    fixture.facts.links.remove("ov-nl");
    fixture.facts.tunnels.remove(&id.to_string());
    let matrix = serde_json::to_value(leak_matrix(&fixture.input())).expect("plain values");
    let up = &matrix["rows"][0]["cells"]["up"];
    assert_eq!((&up["outcome"], &up["leak"]), (&json!("tunnel"), &json!(false)), "{matrix}");
}
