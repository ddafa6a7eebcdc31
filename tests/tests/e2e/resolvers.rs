//! Selection of upstream resolvers: those of profiles, and the reports about unresponsive ones.

use std::net::Ipv4Addr;

use gateway_tests::dns::{A, Upstream};
use gateway_tests::name_server;
use gateway_tests::testbed::create;
use gateway_tests::topology::wan;
use gateway_tests::wait::wait_ok;
use serde_json::json;

use crate::e2e::SOON;
use crate::e2e::dns_policy::{client, resolving};

#[test]
fn a_profile_selects_upstreams_and_hops_their_egress() {
    let (testbed, upstream) = resolving();
    let network = &testbed.network;
    let place = network.exit_a.place;
    network.internet.ip("address add 192.0.2.54/32 dev lo").expect("an address");
    let own = Upstream::start_at(&network.internet, Ipv4Addr::new(192, 0, 2, 54).into()).expect("a resolver");
    let inside = Upstream::start_at(&network.exit_a.namespace, place.inner_v4.into()).expect("a resolver");
    let tunnel = testbed.tunnel("a", &network.exit_a).expect("tunnel");
    let custom = json!({"mode": "custom", "upstreams": ["192.0.2.54"]});
    let mut profile = json!({"name": "office", "hops": [{"type": "vpn", "target": "a"}], "dns": custom});
    let id = create(testbed.api(), "/profiles", &profile).expect("profile");
    let device = json!({"name": "laptop", "mac": network.laptop.mac, "profile": "office"});
    create(testbed.api(), "/devices", &device).expect("device");
    let exit = [network.exit_a.address(false)];
    let mut laptop = client(&network.laptop);
    let mut names = (0..).map(|number| format!("n{number}.office.example"));
    let mut until = |what: &str, so: &dyn Fn(&str) -> bool| {
        wait_ok(SOON, what, || {
            let name = names.next().expect("endless");
            laptop.ask(&name, A)?;
            anyhow::ensure!(so(&name), "{:?} {:?}", own.askers(&name), upstream.askers(&name));
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error:#}"));
    };
    until("the resolver of the profile to be asked by its way", &|name| {
        own.askers(name) == exit && upstream.askers(name).is_empty()
    });
    // Other clients query as before, also for names that were answered to the laptop.
    client(&network.tv).ask("n0.office.example", A).expect("an answer");
    assert_eq!(upstream.askers("n0.office.example").last(), Some(&wan(false)));

    let mut object = testbed.api().get(&format!("/tunnels/{tunnel}")).expect("tunnel");
    object["dns"] = json!([place.inner_v4]);
    testbed.api().put(&format!("/tunnels/{tunnel}"), &object).expect("stored");
    profile["dns"] = json!({"mode": "tunnel"});
    testbed.api().put(&format!("/profiles/{id}"), &profile).expect("stored");
    until("the name server inside the tunnel to be asked", &|name| {
        !inside.askers(name).is_empty() && upstream.askers(name).is_empty() && own.askers(name).is_empty()
    });
    object = testbed.api().get(&format!("/tunnels/{tunnel}")).expect("tunnel");
    object["dns"] = json!([]);
    testbed.api().put(&format!("/tunnels/{tunnel}"), &object).expect("stored");
    until("nobody to be asked when there is none", &|name| {
        upstream.askers(name).is_empty() && own.askers(name).is_empty() && inside.askers(name).is_empty()
    });
}

#[test]
fn upstreams_change_without_a_restart() {
    let (testbed, upstream) = resolving();
    let network = &testbed.network;
    network.internet.ip("address add 192.0.2.54/32 dev lo").expect("an address");
    let other =
        Upstream::start_at(&network.internet, Ipv4Addr::new(192, 0, 2, 54).into()).expect("a resolver");
    let mut laptop = client(&network.laptop);
    let mut names = (0..).map(|number| format!("n{number}.example"));
    let mut until = |asked: &Upstream, not: &Upstream| {
        wait_ok(SOON, "the upstream that is set to be asked", || {
            let name = names.next().expect("endless");
            laptop.ask(&name, A)?;
            anyhow::ensure!(!asked.askers(&name).is_empty() && not.askers(&name).is_empty());
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error:#}"));
    };
    until(&upstream, &other);
    let path = "/settings/dns.upstream_servers";
    let set = testbed.api().put(path, &json!({"value": ["192.0.2.54"]})).expect("set");
    assert_eq!((&set["apply"], &set["pending_restart"]), (&json!("live"), &json!(false)), "{set}");
    until(&other, &upstream);
    testbed.api().delete(path).expect("taken back");
    until(&upstream, &other);
}

#[test]
fn a_silent_upstream_has_an_alert_while_it_lasts() {
    let (testbed, upstream) = resolving();
    let network = &testbed.network;
    // The list is fetched once within the time of this test.
    let rule = "/alerts/rules/blocklist_update_failed";
    let mut changed = testbed.api().get(rule).expect("a rule");
    changed["threshold"] = json!(1);
    testbed.api().put(rule, &changed).expect("changed");
    let list = json!({"name": "gone", "url": format!("http://{}:1/list", network.tv.v4)});
    let id = create(testbed.api(), "/dns/blocklist", &list).expect("a list");
    let mut laptop = client(&network.laptop);
    drop(upstream);
    let events = || {
        let listen = "curl -sN --max-time 1 http://127.0.0.1:8080/api/v1/events || true";
        network.gateway.run("sh", &["-c", listen]).expect("curl")
    };
    let mut names = (0..).map(|number| format!("n{number}.example"));
    let mut ask = || laptop.ask(&names.next().expect("endless"), A);
    wait_ok(SOON, "both to be told", || {
        ask()?;
        let raised = events();
        for what in ["dns_upstream_down", "192.0.2.53 by auto", "blocklist_update_failed", &id] {
            anyhow::ensure!(raised.contains(what), "no {what} in {raised}");
        }
        Ok(())
    })
    .expect("told");
    testbed.api().delete(&format!("/dns/blocklist/{id}")).expect("deleted");
    let _upstream = Upstream::start_at(&network.internet, name_server::ADDRESS.into()).expect("upstream");
    wait_ok(SOON, "both to be over", || {
        let raised = events();
        for kind in ["dns_upstream_down", "blocklist_update_failed"] {
            anyhow::ensure!(!raised.contains(kind), "{raised}");
        }
        Ok(())
    })
    .expect("over");
}
