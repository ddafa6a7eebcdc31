//! Round robin of new connections among exits. An established connection stays at its exit.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use gateway_common::leg_selection::address_hash;
use gateway_common::wire::Address;
use gateway_tests::dns::A;
use gateway_tests::name_server;
use gateway_tests::services::HTTP;
use gateway_tests::testbed::{Testbed, create, policy};
use gateway_tests::topology::{other_server, server};
use gateway_tests::traffic::{Answer, TIMEOUT, TcpFlow, ask, connections};
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use crate::e2e::dns_policy::{client, resolving};
use crate::e2e::health::{forwards, probed};
use crate::e2e::{
    FAMILIES, SOON, assert_blocked, assert_nothing_leaked, assert_the_tap_sees, wait_until_through,
};

fn split_scene() -> (Testbed, [String; 2]) {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    let tunnels = [
        testbed.tunnel("wg-a", &network.exit_a).expect("tunnel"),
        testbed.tunnel("wg-b", &network.exit_b).expect("tunnel"),
    ];
    let mut split = policy("split", 10, ("device", &laptop), &["wg-a", "wg-b"]);
    split["splitting"] = json!(true);
    testbed.policy(&split).expect("policy");
    assert_the_tap_sees(&testbed, &network.tv);
    (testbed, tunnels)
}

/// Returns the pool of the policy `split`.
fn pool(testbed: &Testbed) -> Value {
    let status = testbed.api().get("/splitting/status").expect("status");
    let pools = status["policies"].as_array().expect("a list").clone();
    pools.into_iter().find(|pool| pool["policy"] == "split").unwrap_or_else(|| panic!("no pool in {status}"))
}

/// Returns a field of each member.
fn of_members(pool: &Value, field: &str) -> Vec<Value> {
    pool["endpoints"].as_array().expect("members").iter().map(|member| member[field].clone()).collect()
}

/// Opens flows until each exit has some. Returns those of the first and those of the second.
fn open_on_both(testbed: &Testbed, ipv6: bool) -> [Vec<TcpFlow>; 2] {
    let network = &testbed.network;
    let exits = [network.exit_a.address(ipv6), network.exit_b.address(ipv6)];
    let mut flows = [Vec::new(), Vec::new()];
    for _ in 0..6 {
        let mut flow = TcpFlow::open(&network.laptop, server(ipv6)).expect("flow");
        let seen = flow.ask(TIMEOUT).seen().expect("an answer");
        flows[exits.iter().position(|exit| *exit == seen).expect("an exit")].push(flow);
    }
    assert!(flows.iter().all(|flows| flows.len() >= 2), "{flows:?}");
    flows
}

fn tally(seen: Vec<IpAddr>) -> BTreeMap<IpAddr, usize> {
    let mut tally = BTreeMap::new();
    for address in seen {
        *tally.entry(address).or_default() += 1;
    }
    tally
}

/// Flows that ask nothing while the tunnel is away, and flows that ask all the time: neither is reset at its return.
#[test]
fn flows_outlive_the_quick_return_of_their_tunnel() {
    let (testbed, tunnels) = split_scene();
    let exit = testbed.network.exit_a.address(false);
    let [mut of_a, _] = open_on_both(&testbed, false);
    for round in 0..8 {
        testbed.api().act(&format!("/tunnels/{}/down", tunnels[0])).expect("down");
        testbed.api().act("/enforce/reconcile").expect("reconciled");
        assert_eq!(of_members(&pool(&testbed), "state"), ["draining", "active"], "round {round}");
        testbed.api().act(&format!("/tunnels/{}/up", tunnels[0])).expect("up");
        for flow in &mut of_a {
            assert_eq!(flow.ask(TIMEOUT).seen(), Some(exit), "round {round}");
        }
        wait_ok(SOON, "the tunnel to be up", || {
            let members = of_members(&pool(&testbed), "state");
            anyhow::ensure!(members == ["active", "active"], "{members:?}");
            Ok(())
        })
        .expect("up");
        for flow in &mut of_a {
            assert_eq!(flow.ask(TIMEOUT).seen(), Some(exit), "round {round}");
        }
    }
}

#[test]
fn twenty_connections_are_ten_and_ten() {
    let (testbed, _) = split_scene();
    let network = &testbed.network;
    for ipv6 in FAMILIES {
        let seen = tally(connections(&network.laptop, server(ipv6), 20).expect("connections"));
        let expected = [(network.exit_a.address(ipv6), 10), (network.exit_b.address(ipv6), 10)];
        assert_eq!(seen, BTreeMap::from(expected));
    }
    assert_nothing_leaked(&testbed);
}

#[test]
fn a_connection_stays_on_its_exit_while_others_come_and_go() {
    let (testbed, _) = split_scene();
    let network = &testbed.network;
    for ipv6 in FAMILIES {
        let mut flows: Vec<_> = (0..4)
            .map(|_| {
                let mut flow = TcpFlow::open(&network.laptop, server(ipv6)).expect("flow");
                let first = flow.ask(TIMEOUT).seen().expect("answer");
                (flow, first)
            })
            .collect();
        assert_eq!(tally(flows.iter().map(|(_, first)| *first).collect()).len(), 2);
        connections(&network.laptop, server(ipv6), 3).expect("connections");
        for (flow, first) in &mut flows {
            assert_eq!(flow.ask(TIMEOUT).seen(), Some(*first));
        }
    }
    assert_nothing_leaked(&testbed);
}

#[test]
fn an_exit_that_is_down_gets_no_new_connections_and_the_last_one_fails_closed() {
    let (testbed, [a, b]) = split_scene();
    let network = &testbed.network;
    testbed.bring_down(&a).expect("down");
    for ipv6 in FAMILIES {
        let seen = tally(connections(&network.laptop, server(ipv6), 6).expect("connections"));
        assert_eq!(seen, BTreeMap::from([(network.exit_b.address(ipv6), 6)]));
    }
    testbed.bring_down(&b).expect("down");
    assert_blocked(&network.laptop);
    assert_nothing_leaked(&testbed);
}

#[test]
fn reported_pool_counters_match_its_flows() {
    let (testbed, _) = split_scene();
    let network = &testbed.network;
    for ipv6 in FAMILIES {
        connections(&network.laptop, server(ipv6), 10).expect("connections");
    }
    let sample = pool(&testbed);
    assert_eq!(
        (&sample["active"], &sample["flows"], &sample["sticky"]),
        (&json!(true), &json!(20), &json!("flow")),
        "{sample}"
    );
    assert_eq!(of_members(&sample, "tunnel"), ["wg-a", "wg-b"], "{sample}");
    assert_eq!(of_members(&sample, "flows"), [10, 10], "{sample}");
    for field in ["share_pct", "new_share_pct"] {
        assert_eq!(of_members(&sample, field), [50.0, 50.0], "{sample}");
    }
    // Tunnels are polled once a second.
    wait_ok(SOON, "the bytes", || {
        let sample = pool(&testbed);
        anyhow::ensure!(
            of_members(&sample, "bytes").iter().all(|bytes| bytes.as_u64() > Some(1000)),
            "{sample}"
        );
        Ok(())
    })
    .expect("bytes");
    // The rate is read every five seconds.
    wait_ok(SOON, "the rate of new flows", || {
        let rate = pool(&testbed)["new_flows_per_min"].clone();
        anyhow::ensure!(rate.as_f64().is_some(), "{rate}");
        Ok(())
    })
    .expect("a rate");
    connections(&network.laptop, server(false), 20).expect("connections");
    wait_ok(SOON, "the new flows to be counted", || {
        let rate = pool(&testbed)["new_flows_per_min"].as_f64();
        anyhow::ensure!(rate > Some(10.0), "{rate:?}");
        Ok(())
    })
    .expect("counted");
    let transport = testbed.api().get("/splitting/transport").expect("transport");
    assert_eq!((&transport["mtu_min"], &transport["drain_sec"]), (&json!(1420), &json!(30)), "{transport}");
    assert_nothing_leaked(&testbed);
}

#[test]
fn queries_of_a_host_use_the_tunnels_of_its_pool_in_round_robin_and_are_counted() {
    let (testbed, upstream) = resolving();
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    for (name, exit) in [("wg-a", &network.exit_a), ("wg-b", &network.exit_b)] {
        testbed.tunnel(name, exit).expect("tunnel");
    }
    let mut split = policy("split", 10, ("device", &laptop), &["wg-a", "wg-b"]);
    split["splitting"] = json!(true);
    testbed.policy(&split).expect("policy");
    let mut names = (0..).map(|number| format!("n{number}.example"));
    wait_ok(SOON, "questions by both tunnels", || {
        let name = names.next().expect("endless");
        client(&network.laptop).ask(&name, A)?;
        let asked = testbed.api().get("/splitting/dns/status")?;
        let counts: Vec<_> = asked["per_endpoint"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|one| (one["tunnel"].clone(), one["upstreams"].clone(), one["queries"].as_u64() > Some(1)))
            .collect();
        let by = |tunnel: &str| (json!(tunnel), json!([name_server::ADDRESS]), true);
        anyhow::ensure!(counts == [by("wg-a"), by("wg-b")], "{asked}");
        Ok(())
    })
    .expect("counted");
    network.tap.reset();
    let asked: Vec<String> = names.take(4).collect();
    for name in &asked {
        client(&network.laptop).ask(name, A).expect("an answer");
    }
    let seen = tally(asked.iter().flat_map(|name| upstream.askers(name)).collect());
    let expected = [(network.exit_a.address(false), 2), (network.exit_b.address(false), 2)];
    assert_eq!(seen, BTreeMap::from(expected));
    assert_nothing_leaked(&testbed);
}

#[test]
fn connections_at_the_same_time_are_shared_out_exactly() {
    let (testbed, _) = split_scene();
    let network = &testbed.network;
    let seen: Vec<IpAddr> = std::thread::scope(|scope| {
        let rows: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| connections(&network.laptop, server(false), 10).expect("connections")))
            .collect();
        rows.into_iter().flat_map(|row| row.join().expect("no panic")).collect()
    });
    let expected = [(network.exit_a.address(false), 20), (network.exit_b.address(false), 20)];
    assert_eq!(tally(seen), BTreeMap::from(expected));
    assert_nothing_leaked(&testbed);
}

#[test]
fn endpoints_weigh_the_members_of_a_pool_at_once() {
    let (testbed, _) = split_scene();
    let network = &testbed.network;
    let endpoint = create(testbed.api(), "/splitting/endpoints", &json!({"tunnel": "wg-a", "weight": 3}));
    let endpoint = endpoint.expect("endpoint");
    let of_a = |shares: [f64; 2]| {
        // The response arrives when the plan is in the kernel.
        testbed.api().act("/enforce/reconcile").expect("reconciled");
        wait_ok(SOON, "the weights", || {
            let sample = pool(&testbed);
            anyhow::ensure!(of_members(&sample, "new_share_pct") == shares, "{sample}");
            Ok(())
        })
        .expect("weights");
    };
    of_a([75.0, 25.0]);
    for ipv6 in FAMILIES {
        let seen = tally(connections(&network.laptop, server(ipv6), 16).expect("connections"));
        let expected = [(network.exit_a.address(ipv6), 12), (network.exit_b.address(ipv6), 4)];
        assert_eq!(seen, BTreeMap::from(expected));
    }
    let shown = testbed.api().get("/splitting/endpoints").expect("endpoints")[0].clone();
    assert_eq!((&shown["state"], &shown["flows"]), (&json!("active"), &json!(24)), "{shown}");
    assert_eq!((&shown["share_pct"], &shown["healthy"]), (&json!(75.0), &json!(true)), "{shown}");
    testbed.api().delete(&format!("/splitting/endpoints/{endpoint}")).expect("deleted");
    of_a([50.0, 50.0]);
    // A disabled member removes its tunnel from the pool; flows in it continue for a while.
    let [mut of_first, _] = open_on_both(&testbed, false);
    create(testbed.api(), "/splitting/endpoints", &json!({"tunnel": "wg-a", "enabled": false}))
        .expect("endpoint");
    of_a([0.0, 100.0]);
    assert_eq!(of_members(&pool(&testbed), "state"), ["draining", "active"]);
    assert_eq!(of_first[0].ask(TIMEOUT).seen(), Some(network.exit_a.address(false)));
    let seen = tally(connections(&network.laptop, server(false), 6).expect("connections"));
    assert_eq!(seen, BTreeMap::from([(network.exit_b.address(false), 6)]));
    assert_nothing_leaked(&testbed);
}

#[test]
fn splitting_is_switched_for_one_policy() {
    let (testbed, _) = split_scene();
    let network = &testbed.network;
    let id = pool(&testbed)["policy_id"].clone();
    let switch = |enabled: bool| {
        testbed
            .api()
            .post("/splitting/activate", &json!({"policy_id": id, "enabled": enabled}))
            .expect("switched")
    };
    // Without it the hops are a path: the first is the underlay of the second.
    switch(false);
    wait_until_through(&network.laptop, &network.exit_b);
    let status = testbed.api().get("/splitting/status").expect("status");
    assert_eq!((&status["enabled"], &status["policies"]), (&json!(false), &json!([])), "{status}");
    switch(true);
    wait_until_through(&network.laptop, &network.exit_b);
    let seen = tally(connections(&network.laptop, server(false), 6).expect("connections"));
    assert_eq!(seen.values().collect::<Vec<_>>(), [&3, &3], "{seen:?}");

    let alone = testbed.policy(&policy("alone", 20, ("all", ""), &["wg-a"])).expect("policy");
    let refused = testbed
        .api()
        .send("POST", "/splitting/activate", Some(&json!({"policy_id": alone})))
        .expect("answer");
    assert_eq!(
        (refused.status, &refused.body["error"]["code"]),
        (409, &json!("invalid_state")),
        "{}",
        refused.body
    );
    assert_nothing_leaked(&testbed);
}

#[test]
fn a_tunnel_that_is_taken_down_keeps_its_flows_for_half_a_minute() {
    let (testbed, [first, _]) = split_scene();
    let network = &testbed.network;
    let mut flows = FAMILIES.map(|ipv6| (ipv6, open_on_both(&testbed, ipv6)));
    let started = Instant::now();
    testbed.bring_down(&first).expect("down");
    let sample = pool(&testbed);
    assert_eq!(of_members(&sample, "state"), ["draining", "active"], "{sample}");
    assert_eq!(testbed.api().get(&format!("/tunnels/{first}")).expect("tunnel")["status"], "disconnecting");
    while started.elapsed() < Duration::from_secs(20) {
        for (ipv6, [of_first, of_second]) in &mut flows {
            assert_eq!(of_first[0].ask(TIMEOUT).seen(), Some(network.exit_a.address(*ipv6)));
            assert_eq!(of_second[0].ask(TIMEOUT).seen(), Some(network.exit_b.address(*ipv6)));
            let seen = tally(connections(&network.laptop, server(*ipv6), 2).expect("connections"));
            assert_eq!(seen, BTreeMap::from([(network.exit_b.address(*ipv6), 2)]));
        }
        std::thread::sleep(Duration::from_secs(2));
    }
    // One connection sends and is reset, the other only listens and is reset as well.
    for (ipv6, [of_first, of_second]) in &mut flows {
        assert_eq!(of_first[1].wait_for_the_end(Duration::from_secs(25)), ErrorKind::ConnectionReset);
        let answer = of_first[0].ask(TIMEOUT);
        assert!(matches!(&answer, Answer::Rejected { .. }), "{answer}");
        assert_eq!(of_second[0].ask(TIMEOUT).seen(), Some(network.exit_b.address(*ipv6)));
    }
    let took = started.elapsed();
    assert!((29..40).contains(&took.as_secs()), "{took:?}");
    let sample = pool(&testbed);
    assert_eq!(of_members(&sample, "state"), ["down", "active"], "{sample}");
    assert_nothing_leaked(&testbed);
}

#[test]
fn a_dead_leg_gets_no_new_flow_and_its_connections_are_reset() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    let target = server(false).to_string();
    for (exit, name) in [(&network.exit_a, "wg-a"), (&network.exit_b, "wg-b")] {
        let id = create(testbed.api(), "/tunnels", &probed(exit, name, "ping", &target)).expect("tunnel");
        testbed.bring_up(&id).expect("up");
    }
    let mut split = policy("split", 10, ("device", &laptop), &["wg-a", "wg-b"]);
    split["splitting"] = json!(true);
    testbed.policy(&split).expect("policy");
    assert_the_tap_sees(&testbed, &network.tv);
    let mut flows = FAMILIES.map(|ipv6| (ipv6, open_on_both(&testbed, ipv6)));
    assert!(of_members(&pool(&testbed), "rtt_ms").iter().all(|rtt| rtt.as_f64() > Some(0.0)));
    forwards(&network.exit_a, false);
    wait_ok(SOON, "the pool to notice", || {
        let sample = pool(&testbed);
        anyhow::ensure!(of_members(&sample, "state") == ["down", "active"], "{sample}");
        Ok(())
    })
    .expect("noticed");
    for (ipv6, [of_first, of_second]) in &mut flows {
        let seen = tally(connections(&network.laptop, server(*ipv6), 6).expect("connections"));
        assert_eq!(seen, BTreeMap::from([(network.exit_b.address(*ipv6), 6)]));
        assert_eq!(of_first[1].wait_for_the_end(SOON), ErrorKind::ConnectionReset);
        let started = Instant::now();
        let answer = of_first[0].ask(TIMEOUT);
        assert!(matches!(&answer, Answer::Rejected { .. }), "{answer}");
        assert!(started.elapsed() < Duration::from_secs(2), "{answer}");
        assert_eq!(of_second[0].ask(TIMEOUT).seen(), Some(network.exit_b.address(*ipv6)));
    }
    assert_nothing_leaked(&testbed);
}

#[test]
fn sticky_flows_share_a_leg() {
    let (testbed, _) = split_scene();
    let network = &testbed.network;
    let id = pool(&testbed)["policy_id"].as_str().expect("an id").to_owned();
    for sticky in ["source", "source_dest"] {
        let mut object = testbed.api().get(&format!("/routing/policies/{id}")).expect("policy");
        object["sticky"] = json!(sticky);
        testbed.replace_policy(&id, &object).expect("policy");
        for ipv6 in FAMILIES {
            let source: IpAddr = if ipv6 { network.laptop.v6.into() } else { network.laptop.v4.into() };
            let exits = [network.exit_a.address(ipv6), network.exit_b.address(ipv6)];
            for to in [server(ipv6), other_server(ipv6)] {
                let destination = Address::from(to);
                let both = (sticky == "source_dest").then_some(&destination);
                let expected = exits[address_hash(&source.into(), both) as usize % 2];
                for n in 0..5 {
                    let answer = ask(&network.laptop, (to, HTTP).into(), TIMEOUT);
                    assert_eq!(answer.seen(), Some(expected), "{sticky}, {n}: {answer}");
                }
            }
        }
        assert_eq!(pool(&testbed)["new_flows_per_min"], Value::Null);
    }
    assert_nothing_leaked(&testbed);
}
