//! Exceptions on real packets: they take effect immediately, without an apply, on this device only, and expire by
//! themselves.

use std::time::{Duration, Instant};

use gateway_tests::dns::A;
use gateway_tests::services::{HTTP, IDENT};
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::{Host, other_server, server, wan};
use gateway_tests::traffic::{TIMEOUT, UdpFlow, ask};
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use crate::e2e::dns_policy::{client, reply, resolving};
use crate::e2e::{
    BLOCKED, FAMILIES, SOON, assert_blocked, assert_direct, assert_nothing_leaked, assert_seen_as,
    assert_the_tap_sees, assert_through,
};

/// Binds both hosts to exit A, fail-closed. Returns their ids.
fn bound_scene() -> (Testbed, String, String) {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    let tv = testbed.device(&network.tv).expect("device");
    assert_the_tap_sees(&testbed, &network.tv);
    testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.policy(&policy("vpn-only", 10, ("all", ""), &["wg-a"])).expect("policy");
    (testbed, laptop, tv)
}

/// Creates an exception of a kind and returns its id.
fn except(testbed: &Testbed, kind: &str, device: &str, more: &Value) -> String {
    let mut exception = json!({"type": kind, "device_id": device, "reason": "test"});
    for (name, value) in more.as_object().into_iter().flatten() {
        exception[name] = value.clone();
    }
    let made = testbed.api().post("/exceptions", &exception).expect("exception");
    made["id"].as_str().expect("an id").to_owned()
}

fn revoke(testbed: &Testbed, exception: &str) {
    testbed.api().delete(&format!("/exceptions/{exception}")).expect("revoked");
}

/// Waits briefly: the exception needs no apply, but the kernel is updated shortly after the response of the API.
fn wait_until_seen_as(host: &Host, what: &str, expected: impl Fn(bool) -> Option<std::net::IpAddr>) {
    for ipv6 in FAMILIES {
        wait_ok(SOON, &format!("{} to be {what}", host.name), || {
            let answer = ask(host, (server(ipv6), HTTP).into(), BLOCKED);
            anyhow::ensure!(answer.seen() == expected(ipv6), "{answer}");
            Ok(())
        })
        .expect("the exception took hold");
    }
}

#[test]
fn a_bypass_lets_one_device_out_and_its_end_takes_the_flows_back() {
    let (testbed, laptop, tv) = bound_scene();
    let network = &testbed.network;
    // On record only: without allow_direct nothing changes.
    except(&testbed, "emergency-bypass", &laptop, &json!({}));
    assert_through(&network.laptop, &network.exit_a);
    testbed.network.settle().expect("silence");
    assert_nothing_leaked(&testbed);

    for kind in ["emergency-bypass", "diagnostic-bypass"] {
        let bypass = except(&testbed, kind, &laptop, &json!({"allow_direct": true}));
        wait_until_seen_as(&network.laptop, "direct", |ipv6| Some(wan(ipv6)));
        assert_through(&network.tv, &network.exit_a);
        let evaluated = testbed.evaluate(&laptop).expect("evaluated");
        assert_eq!(evaluated["decision"], json!("direct"), "{evaluated}");
        // A flow that began under the exception ends with it.
        let flows =
            FAMILIES.map(|ipv6| UdpFlow::open(&network.laptop, (server(ipv6), IDENT).into()).expect("flow"));
        for (flow, ipv6) in flows.iter().zip(FAMILIES) {
            assert_eq!(flow.ask(TIMEOUT).expect("answer"), wan(ipv6));
        }
        revoke(&testbed, &bypass);
        wait_until_seen_as(&network.laptop, "in the tunnel again", |ipv6| Some(network.exit_a.address(ipv6)));
        network.settle().expect("silence");
        network.tap.reset();
        for flow in &flows {
            // It may enter the tunnel or not, but must not leave in clear.
            let _ = flow.ask(BLOCKED);
        }
        assert_nothing_leaked(&testbed);
    }
    // While the tunnel is down the others stay blocked, and a bypass restores connectivity.
    let tunnel = testbed.api().get("/tunnels").expect("tunnels")[0]["id"].as_str().expect("an id").to_owned();
    testbed.bring_down(&tunnel).expect("down");
    assert_blocked(&network.tv);
    except(&testbed, "emergency-bypass", &tv, &json!({"allow_direct": true}));
    wait_until_seen_as(&network.tv, "direct", |ipv6| Some(wan(ipv6)));
    assert_blocked(&network.laptop);
}

#[test]
fn a_temporary_exception_uses_the_hops_of_its_profile() {
    let (testbed, laptop, _) = bound_scene();
    let network = &testbed.network;
    testbed.tunnel("wg-b", &network.exit_b).expect("tunnel");
    let profile = json!({"name": "by b", "hops": [{"type": "vpn", "target": "wg-b"}]});
    testbed.api().post("/profiles", &profile).expect("profile");
    let more = json!({"allow_direct": true, "profile": "by b"});
    let exception = except(&testbed, "temporary-direct", &laptop, &more);
    wait_until_seen_as(&network.laptop, "behind exit B", |ipv6| Some(network.exit_b.address(ipv6)));
    assert_through(&network.tv, &network.exit_a);
    assert_nothing_leaked(&testbed);
    revoke(&testbed, &exception);
    wait_until_seen_as(&network.laptop, "behind exit A", |ipv6| Some(network.exit_a.address(ipv6)));
    except(&testbed, "temporary-direct", &laptop, &json!({"allow_direct": true}));
    wait_until_seen_as(&network.laptop, "direct", |ipv6| Some(wan(ipv6)));
}

#[test]
fn quarantine_stops_a_device_that_was_free_and_no_other_exception_frees_it() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    assert_direct(&network.laptop);
    let flow = UdpFlow::open(&network.laptop, (server(false), IDENT).into()).expect("flow");
    flow.ask(TIMEOUT).expect("answer");
    let quarantine = except(&testbed, "quarantine", &laptop, &json!({"allow_direct": true}));
    wait_until_seen_as(&network.laptop, "in quarantine", |_| None);
    network.settle().expect("silence");
    network.tap.reset();
    except(&testbed, "emergency-bypass", &laptop, &json!({"allow_direct": true}));
    assert_blocked(&network.laptop);
    assert!(flow.ask(BLOCKED).is_err(), "a flow from before goes on");
    assert_nothing_leaked(&testbed);
    assert_direct(&network.tv);
    revoke(&testbed, &quarantine);
    wait_until_seen_as(&network.laptop, "free again", |ipv6| Some(wan(ipv6)));
}

#[test]
fn an_exception_outlives_the_daemon_and_ends_by_itself() {
    let (mut testbed, laptop, _) = bound_scene();
    let exception =
        except(&testbed, "emergency-bypass", &laptop, &json!({"allow_direct": true, "duration_min": 1}));
    let made = Instant::now();
    wait_until_seen_as(&testbed.network.laptop, "direct", |ipv6| Some(wan(ipv6)));
    testbed.daemon.kill9().expect("killed");
    testbed.daemon.start().expect("started again");
    assert_seen_as(&testbed.network.laptop, wan);
    assert!(
        made.elapsed() < Duration::from_secs(50),
        "this machine is too slow for an exception of a minute"
    );
    std::thread::sleep(Duration::from_secs(60).saturating_sub(made.elapsed()));
    wait_until_seen_as(&testbed.network.laptop, "in the tunnel again", |ipv6| {
        Some(testbed.network.exit_a.address(ipv6))
    });
    let late = made.elapsed();
    assert!(late < Duration::from_secs(75), "the exception ended after {late:?}");
    let ended = testbed.api().get(&format!("/exceptions/{exception}")).expect("exception");
    assert_eq!((&ended["status"], &ended["remaining_sec"]), (&json!("expired"), &json!(0)));
    testbed.network.settle().expect("silence");
    testbed.network.tap.reset();
    assert_through(&testbed.network.laptop, &testbed.network.exit_a);
    assert_nothing_leaked(&testbed);
}

#[test]
fn a_captive_portal_opens_the_web_and_nothing_else() {
    let (testbed, laptop, _) = bound_scene();
    let network = &testbed.network;
    let exception = except(&testbed, "captive-portal", &laptop, &json!({"allow_direct": true}));
    wait_until_seen_as(&network.laptop, "direct", |ipv6| Some(wan(ipv6)));
    for ipv6 in FAMILIES {
        let flow = UdpFlow::open(&network.laptop, (server(ipv6), IDENT).into()).expect("flow");
        assert_eq!(flow.ask(TIMEOUT).expect("answer"), network.exit_a.address(ipv6), "another port");
    }
    assert_through(&network.tv, &network.exit_a);
    revoke(&testbed, &exception);
    wait_until_seen_as(&network.laptop, "in the tunnel again", |ipv6| Some(network.exit_a.address(ipv6)));
}

#[test]
fn a_domain_in_an_allowlist_is_for_the_device_that_asked_for_its_name() {
    let (testbed, upstream) = resolving();
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.device(&network.tv).expect("device");
    testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    testbed.policy(&policy("vpn-only", 10, ("all", ""), &["wg-a"])).expect("policy");
    let more = json!({"allow_direct": true, "targets": ["films.example"]});
    let exception = except(&testbed, "service-allowlist", &laptop, &more);
    let seen = |host: &Host| ask(host, (server(false), HTTP).into(), TIMEOUT).seen();
    let through = Some(network.exit_a.address(false));
    for host in [&network.laptop, &network.tv] {
        assert_eq!(seen(host), through, "{} did not ask for the name", host.name);
    }
    wait_ok(SOON, "the target to be reached directly", || {
        let answer = client(&network.laptop).ask("www.films.example", A)?;
        anyhow::ensure!(answer == reply(server(false)), "{answer:?}");
        let seen = seen(&network.laptop);
        anyhow::ensure!(seen == Some(wan(false)), "seen as {seen:?}");
        Ok(())
    })
    .expect("the exception took hold");
    assert_eq!(upstream.askers("www.films.example").last(), Some(&wan(false)));
    client(&network.tv).ask("www.films.example", A).expect("an answer");
    assert_eq!(seen(&network.tv), through, "another device");
    revoke(&testbed, &exception);
    wait_ok(SOON, "the target to be in the tunnel again", || {
        let seen = seen(&network.laptop);
        anyhow::ensure!(seen == through, "seen as {seen:?}");
        Ok(())
    })
    .expect("the exception ended");
}

#[test]
fn an_allowlist_lets_packets_to_its_targets_out_and_no_others() {
    let (testbed, laptop, _) = bound_scene();
    let network = &testbed.network;
    let targets = json!([format!("{}/32", other_server(false)), format!("[{}]:{HTTP}", other_server(true))]);
    let more = json!({"allow_direct": true, "targets": targets});
    let exception = except(&testbed, "service-allowlist", &laptop, &more);
    let seen =
        |host: &Host, ipv6: bool, port: u16| ask(host, (other_server(ipv6), port).into(), TIMEOUT).seen();
    for ipv6 in FAMILIES {
        wait_ok(SOON, "the target to be reached directly", || {
            let seen = seen(&network.laptop, ipv6, HTTP);
            anyhow::ensure!(seen == Some(wan(ipv6)), "seen as {seen:?}");
            Ok(())
        })
        .expect("the exception took hold");
        assert_eq!(seen(&network.tv, ipv6, HTTP), Some(network.exit_a.address(ipv6)), "another device");
    }
    // Another port of the same server, and the same port of the other server.
    let flow = UdpFlow::open(&network.laptop, (other_server(true), IDENT).into()).expect("flow");
    assert_eq!(flow.ask(TIMEOUT).expect("answer"), network.exit_a.address(true));
    assert_through(&network.laptop, &network.exit_a);
    revoke(&testbed, &exception);
    for ipv6 in FAMILIES {
        wait_ok(SOON, "the target to be in the tunnel again", || {
            let seen = seen(&network.laptop, ipv6, HTTP);
            anyhow::ensure!(seen == Some(network.exit_a.address(ipv6)), "seen as {seen:?}");
            Ok(())
        })
        .expect("the exception ended");
    }
    network.settle().expect("silence");
    network.tap.reset();
    assert_through(&network.laptop, &network.exit_a);
    assert_nothing_leaked(&testbed);
}
