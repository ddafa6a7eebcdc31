//! Cover traffic: the exit receives more packets than were sent, and no host behind its WireGuard sees one of them.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, Instant};

use gateway_tests::scene::{Scene, policy};
use gateway_tests::topology::{Topology, server};
use gateway_tests::traffic::{PATIENCE, TcpFlow, transfer};
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

fn covered_scene() -> Scene {
    let scene = Scene::start().expect("scene");
    assert_the_tap_sees(&scene, &scene.network.tv);
    scene.tunnel("wg-a", &scene.network.exit_a).expect("tunnel");
    scene.policy(&policy("vpn-only", 10, ("all", ""), &["wg-a"])).expect("policy");
    scene.network.settle().expect("silence");
    scene.network.tap.reset();
    scene
}

fn cover(scene: &Scene, enabled: bool, budget_pct: u64) {
    let value = json!({"value": {"enabled": enabled, "budget_pct": budget_pct}});
    scene.api().put("/settings/splitting.cover", &value).expect("set");
}

/// Turns cover traffic on and waits until the tunnel counts its packets.
fn turn_on(scene: &Scene, budget_pct: u64) {
    cover(scene, true, budget_pct);
    wait_ok(SOON, "the tunnel to count", || {
        assert_through(&scene.network.laptop, &scene.network.exit_a);
        let told = stats(scene);
        anyhow::ensure!(number(&told, "normal_packets") > 0, "{told}");
        Ok(())
    })
    .expect("counted");
}

fn stats(scene: &Scene) -> Value {
    scene.api().get("/splitting/cover/stats").expect("stats")
}

fn number(stats: &Value, field: &str) -> u64 {
    stats[field].as_u64().unwrap_or_else(|| panic!("no {field} in {stats}"))
}

/// Sends requests alternately in both families. Returns the packets towards the exit meanwhile.
fn talk(scene: &Scene) -> u64 {
    scene.network.tap.reset();
    for n in 0..QUESTIONS {
        let mut flow = TcpFlow::open(&scene.network.laptop, server(n % 2 == 1)).expect("flow");
        let seen = flow.ask(PATIENCE).seen();
        assert_eq!(seen, Some(scene.network.exit_a.address(n % 2 == 1)));
        drop(flow);
        sleep(Duration::from_secs(1));
    }
    assert_nothing_leaked(scene).tunnel.total()
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
fn wait_for_cover(scene: &Scene, packets: u64) {
    wait_ok(IDLE, "cover to flow", || {
        let told = stats(scene);
        anyhow::ensure!(number(&told, "padding_packets") >= packets, "{told}");
        Ok(())
    })
    .expect("cover");
}

#[test]
fn cover_goes_towards_the_exit_and_ends_there() {
    let scene = covered_scene();
    let network = &scene.network;
    if kernel_has_wireguard(&network.gateway) {
        cover(&scene, true, 10);
        let told = stats(&scene);
        assert_eq!(told["per_tunnel"][0]["state"], "not_supported", "{told}");
        return;
    }
    let told = stats(&scene);
    assert_eq!((&told["enabled"], &told["budget_pct"]), (&json!(false), &json!(10)), "{told}");
    assert_eq!(told["per_tunnel"][0]["state"], "off", "{told}");
    let alone = talk(&scene);
    let told = stats(&scene);
    for field in ["padding_packets", "padding_bytes", "normal_packets", "throttled"] {
        assert_eq!(number(&told, field), 0, "{told}");
    }

    let mut flow = TcpFlow::open(&network.laptop, server(false)).expect("flow");
    assert_eq!(flow.ask(PATIENCE).seen(), Some(network.exit_a.address(false)));
    let began = Instant::now();
    turn_on(&scene, 50);
    let (before, counted) = (emerged(network), number(&stats(&scene), "normal_packets"));
    let among_cover = talk(&scene);
    assert_eq!(
        flow.ask(PATIENCE).seen(),
        Some(network.exit_a.address(false)),
        "the tunnel was not made anew"
    );
    drop(flow);
    wait_for_cover(&scene, 5);
    let told = stats(&scene);
    let padding = number(&told, "padding_packets");
    assert!(among_cover >= alone + 5, "{alone} without, {among_cover} with: {told}");
    let row = &told["per_tunnel"][0];
    assert_eq!((&row["tunnel"], &row["state"]), (&json!("wg-a"), &json!("active")), "{told}");
    assert_eq!((&told["direction"], &told["one_sided"]), (&json!("upstream"), &json!(true)), "{told}");
    assert_eq!(number(row, "padding_packets"), padding, "{told}");

    // Cover packets have the lengths of the surrounding traffic, and stay within their share plus the floor of the
    // time.
    let share = number(&told, "normal_bytes") / 2;
    let floor = FLOOR * (began.elapsed().as_secs() + 1);
    assert!(number(&told, "padding_bytes") <= share + floor, "{told}");
    assert!(number(&told, "padding_bytes") >= 64 * padding, "{told}");

    // Without traffic, cover continues for a while. None of it leaves the tunnel at the exit, and none starts a
    // handshake.
    network.settle().expect("silence");
    let (told, quiet) = (stats(&scene), emerged(network));
    let mut handshakes = BTreeSet::new();
    for more in 1..=3 {
        handshakes.insert(last_handshake(network));
        wait_for_cover(&scene, number(&told, "padding_packets") + more);
    }
    handshakes.insert(last_handshake(network));
    assert_eq!(emerged(network), quiet, "packets came out that nobody sent");
    assert!(handshakes.len() <= 2, "each packet asked for a session: {handshakes:?}");
    let told = stats(&scene);
    let sent = number(&told, "normal_packets") - counted;
    assert!(quiet - before <= sent, "{} came out: {told}", quiet - before);
    assert_nothing_leaked(&scene);

    // Control: an exit that allows every source decapsulates them, and its host drops them.
    let interface = network.prefix.interface(network.exit_a.place.label);
    let key = &network.exit_a.client.public;
    let allow = ["set", &interface, "peer", key, "allowed-ips", "0.0.0.0/0,::/0"];
    network.exit_a.namespace.run("wg", &allow).expect("allowed");
    let (told, dropped) = (stats(&scene), malformed(network));
    wait_for_cover(&scene, number(&told, "padding_packets") + 2);
    assert!(emerged(network) >= quiet + 2 && malformed(network) >= dropped + 2);
}

#[test]
fn cover_harms_no_transfer_and_ends_when_it_is_told_to() {
    let scene = covered_scene();
    let network = &scene.network;
    if kernel_has_wireguard(&network.gateway) {
        return;
    }
    turn_on(&scene, 10);
    for ipv6 in FAMILIES {
        transfer(&network.laptop, server(ipv6), 8 << 20).expect("a transfer");
    }
    assert_through(&network.laptop, &network.exit_a);
    wait_for_cover(&scene, 3);
    // The reported counters are up to a second old.
    let told = wait_ok(SOON, "the transfers to be counted", || {
        let told = stats(&scene);
        anyhow::ensure!(number(&told, "normal_bytes") > 16 << 20, "{told}");
        Ok(told)
    })
    .expect("counted");
    assert!(number(&told, "padding_bytes") <= number(&told, "normal_bytes") / 10, "{told}");
    assert!(told["overhead_pct"].as_f64().is_some_and(|share| share <= 10.0), "{told}");

    cover(&scene, false, 10);
    let mut last = None;
    wait_ok(SOON, "cover to end", || {
        let told = stats(&scene);
        let ended = last.replace(told["padding_packets"].clone()) == Some(told["padding_packets"].clone());
        anyhow::ensure!(ended && told["per_tunnel"][0]["state"] == "off", "{told}");
        sleep(Duration::from_secs(2));
        Ok(())
    })
    .expect("ended");
    let before = stats(&scene);
    assert_through(&network.laptop, &network.exit_a);
    sleep(Duration::from_secs(2));
    let after = stats(&scene);
    for field in ["padding_packets", "normal_packets"] {
        assert_eq!(number(&before, field), number(&after, field), "{after}");
    }

    // A tunnel that is down sends no cover, and no cover takes another egress.
    cover(&scene, true, 10);
    let id = scene.api().get("/tunnels").expect("tunnels")[0]["id"].as_str().expect("an id").to_owned();
    scene.bring_down(&id).expect("down");
    wait_ok(SOON, "the tunnel to be down", || {
        let told = stats(&scene);
        anyhow::ensure!(told["per_tunnel"][0]["state"] == "waiting", "{told}");
        Ok(())
    })
    .expect("down");
    network.settle().expect("silence");
    network.tap.reset();
    sleep(Duration::from_secs(3));
    let counts = assert_nothing_leaked(&scene);
    assert_eq!(counts.tunnel.total(), 0, "{counts}");
}
