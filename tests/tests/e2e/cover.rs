//! Cover traffic: the exit receives more packets than were sent, and no host behind its WireGuard sees one of them.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, Instant};

use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::{Topology, server};
use gateway_tests::traffic::{TIMEOUT, TcpFlow, transfer};
use gateway_tests::wait::wait_ok;
use gateway_tests::wireguard::kernel_has_wireguard;
use serde_json::{Value, json};

use crate::e2e::{FAMILIES, SOON, assert_nothing_leaked, assert_the_tap_sees, assert_through};

/// Number of requests, one second apart. Each ends with a gap that cover can fill.
const QUESTIONS: usize = 10;
/// Bytes per second that the budget allows beyond its share.
const FLOOR: u64 = 64;
/// Long enough for the exit to answer cover twice at its own interval of ten seconds.
const IDLE: Duration = Duration::from_secs(60);

fn covered_scene() -> Testbed {
    let testbed = Testbed::start().expect("scene");
    assert_the_tap_sees(&testbed, &testbed.network.tv);
    testbed.tunnel("wg-a", &testbed.network.exit_a).expect("tunnel");
    testbed.policy(&policy("vpn-only", 10, ("all", ""), &["wg-a"])).expect("policy");
    testbed.network.settle().expect("silence");
    testbed.network.tap.reset();
    testbed
}

fn cover(testbed: &Testbed, enabled: bool, budget_pct: u64) {
    let value = json!({"value": {"enabled": enabled, "budget_pct": budget_pct}});
    testbed.api().put("/settings/splitting.cover", &value).expect("set");
}

/// Turns cover traffic on and waits until the tunnel counts its packets.
fn turn_on(testbed: &Testbed, budget_pct: u64) {
    cover(testbed, true, budget_pct);
    wait_ok(SOON, "the tunnel to count", || {
        assert_through(&testbed.network.laptop, &testbed.network.exit_a);
        let sample = stats(testbed);
        anyhow::ensure!(number(&sample, "normal_packets") > 0, "{sample}");
        Ok(())
    })
    .expect("counted");
}

fn stats(testbed: &Testbed) -> Value {
    testbed.api().get("/splitting/cover/stats").expect("stats")
}

fn number(stats: &Value, field: &str) -> u64 {
    stats[field].as_u64().unwrap_or_else(|| panic!("no {field} in {stats}"))
}

/// Sends requests alternately in both families. Returns the packets towards the exit meanwhile.
fn talk(testbed: &Testbed) -> u64 {
    testbed.network.tap.reset();
    for n in 0..QUESTIONS {
        let mut flow = TcpFlow::open(&testbed.network.laptop, server(n % 2 == 1)).expect("flow");
        let seen = flow.ask(TIMEOUT).seen();
        assert_eq!(seen, Some(testbed.network.exit_a.address(n % 2 == 1)));
        drop(flow);
        sleep(Duration::from_secs(1));
    }
    assert_nothing_leaked(testbed).tunnel.total()
}

/// Returns the number of packets that the exit decapsulated.
fn emerged(network: &Topology) -> u64 {
    let interface = format!("{}:", network.prefix.interface(network.exit_a.place.label));
    let table = network.exit_a.namespace.run("cat", &["/proc/net/dev"]).expect("counters");
    let row = table.lines().find_map(|line| line.trim().strip_prefix(&interface)).expect("the interface");
    row.split_whitespace().nth(1).and_then(|packets| packets.parse().ok()).expect("a number")
}

/// Returns the time of the last handshake, as the exit reports it.
fn last_handshake(network: &Topology) -> String {
    let interface = network.prefix.interface(network.exit_a.place.label);
    network.exit_a.namespace.run("wg", &["show", &interface, "latest-handshakes"]).expect("told")
}

/// Returns the number of IPv4 packets that the exit's host dropped for header errors.
fn malformed(network: &Topology) -> u64 {
    let text = network.exit_a.namespace.run("nstat", &["-asz", "IpInHdrErrors"]).expect("counters");
    let row = text.lines().find_map(|line| line.strip_prefix("IpInHdrErrors")).expect("the counter");
    row.split_whitespace().next().and_then(|n| n.parse().ok()).expect("a number")
}

/// Waits until the tunnel has sent this many cover packets without other traffic.
fn wait_for_cover(testbed: &Testbed, packets: u64) {
    wait_ok(IDLE, "cover to flow", || {
        let sample = stats(testbed);
        anyhow::ensure!(number(&sample, "padding_packets") >= packets, "{sample}");
        Ok(())
    })
    .expect("cover");
}

#[test]
fn cover_goes_towards_the_exit_and_ends_there() {
    let testbed = covered_scene();
    let network = &testbed.network;
    if kernel_has_wireguard(&network.gateway) {
        cover(&testbed, true, 10);
        let sample = stats(&testbed);
        assert_eq!(sample["per_tunnel"][0]["state"], "not_supported", "{sample}");
        return;
    }
    let sample = stats(&testbed);
    assert_eq!((&sample["enabled"], &sample["budget_pct"]), (&json!(false), &json!(10)), "{sample}");
    assert_eq!(sample["per_tunnel"][0]["state"], "off", "{sample}");
    let alone = talk(&testbed);
    let sample = stats(&testbed);
    for field in ["padding_packets", "padding_bytes", "normal_packets", "throttled"] {
        assert_eq!(number(&sample, field), 0, "{sample}");
    }

    let mut flow = TcpFlow::open(&network.laptop, server(false)).expect("flow");
    assert_eq!(flow.ask(TIMEOUT).seen(), Some(network.exit_a.address(false)));
    let began = Instant::now();
    turn_on(&testbed, 50);
    let (before, counted) = (emerged(network), number(&stats(&testbed), "normal_packets"));
    let among_cover = talk(&testbed);
    assert_eq!(flow.ask(TIMEOUT).seen(), Some(network.exit_a.address(false)), "the tunnel was not made anew");
    drop(flow);
    wait_for_cover(&testbed, 5);
    let sample = stats(&testbed);
    let padding = number(&sample, "padding_packets");
    assert!(among_cover >= alone + 5, "{alone} without, {among_cover} with: {sample}");
    let row = &sample["per_tunnel"][0];
    assert_eq!((&row["tunnel"], &row["state"]), (&json!("wg-a"), &json!("active")), "{sample}");
    assert_eq!((&sample["direction"], &sample["one_sided"]), (&json!("upstream"), &json!(true)), "{sample}");
    assert_eq!(number(row, "padding_packets"), padding, "{sample}");

    // Cover packets have the lengths of the surrounding traffic, and stay within their share plus the floor of the
    // time.
    let share = number(&sample, "normal_bytes") / 2;
    let floor = FLOOR * (began.elapsed().as_secs() + 1);
    assert!(number(&sample, "padding_bytes") <= share + floor, "{sample}");
    assert!(number(&sample, "padding_bytes") >= 64 * padding, "{sample}");

    // Without traffic, cover continues for a while. None of it leaves the tunnel at the exit, and none starts a
    // handshake.
    network.settle().expect("silence");
    let (sample, quiet) = (stats(&testbed), emerged(network));
    let mut handshakes = BTreeSet::new();
    for more in 1..=3 {
        handshakes.insert(last_handshake(network));
        wait_for_cover(&testbed, number(&sample, "padding_packets") + more);
    }
    handshakes.insert(last_handshake(network));
    assert_eq!(emerged(network), quiet, "packets came out that nobody sent");
    assert!(handshakes.len() <= 2, "each packet asked for a session: {handshakes:?}");
    let sample = stats(&testbed);
    let sent = number(&sample, "normal_packets") - counted;
    assert!(quiet - before <= sent, "{} came out: {sample}", quiet - before);
    assert_nothing_leaked(&testbed);

    // Control: an exit that allows every source decapsulates them, and its host drops them.
    let interface = network.prefix.interface(network.exit_a.place.label);
    let key = &network.exit_a.client.public;
    let allow = ["set", &interface, "peer", key, "allowed-ips", "0.0.0.0/0,::/0"];
    network.exit_a.namespace.run("wg", &allow).expect("allowed");
    let (sample, dropped) = (stats(&testbed), malformed(network));
    wait_for_cover(&testbed, number(&sample, "padding_packets") + 2);
    assert!(emerged(network) >= quiet + 2 && malformed(network) >= dropped + 2);
}

#[test]
fn cover_harms_no_transfer_and_ends_on_request() {
    let testbed = covered_scene();
    let network = &testbed.network;
    if kernel_has_wireguard(&network.gateway) {
        return;
    }
    turn_on(&testbed, 10);
    for ipv6 in FAMILIES {
        transfer(&network.laptop, server(ipv6), 8 << 20).expect("a transfer");
    }
    assert_through(&network.laptop, &network.exit_a);
    wait_for_cover(&testbed, 3);
    // The reported counters are up to a second old.
    let sample = wait_ok(SOON, "the transfers to be counted", || {
        let sample = stats(&testbed);
        anyhow::ensure!(number(&sample, "normal_bytes") > 16 << 20, "{sample}");
        Ok(sample)
    })
    .expect("counted");
    assert!(number(&sample, "padding_bytes") <= number(&sample, "normal_bytes") / 10, "{sample}");
    assert!(sample["overhead_pct"].as_f64().is_some_and(|share| share <= 10.0), "{sample}");

    cover(&testbed, false, 10);
    let mut last = None;
    wait_ok(SOON, "cover to end", || {
        let sample = stats(&testbed);
        let ended =
            last.replace(sample["padding_packets"].clone()) == Some(sample["padding_packets"].clone());
        anyhow::ensure!(ended && sample["per_tunnel"][0]["state"] == "off", "{sample}");
        sleep(Duration::from_secs(2));
        Ok(())
    })
    .expect("ended");
    let before = stats(&testbed);
    assert_through(&network.laptop, &network.exit_a);
    sleep(Duration::from_secs(2));
    let after = stats(&testbed);
    for field in ["padding_packets", "normal_packets"] {
        assert_eq!(number(&before, field), number(&after, field), "{after}");
    }

    // A tunnel that is down sends no cover, and no cover takes another egress.
    cover(&testbed, true, 10);
    let id = testbed.api().get("/tunnels").expect("tunnels")[0]["id"].as_str().expect("an id").to_owned();
    testbed.bring_down(&id).expect("down");
    wait_ok(SOON, "the tunnel to be down", || {
        let sample = stats(&testbed);
        anyhow::ensure!(sample["per_tunnel"][0]["state"] == "waiting", "{sample}");
        Ok(())
    })
    .expect("down");
    network.settle().expect("silence");
    network.tap.reset();
    sleep(Duration::from_secs(3));
    let counts = assert_nothing_leaked(&testbed);
    assert_eq!(counts.tunnel.total(), 0, "{counts}");
}
