//! The external filter as upstream: a LAN host that resolves names, with the API of Pi-hole 6.

use std::net::{IpAddr, TcpListener};

use gateway_tests::dns::{A, Upstream};
use gateway_tests::pihole::{PASSWORD, PiHole};
use gateway_tests::services::HTTP;
use gateway_tests::testbed::policy;
use gateway_tests::topology::{LAN_V4, server, wan};
use gateway_tests::wait::wait_ok;
use serde_json::json;

use crate::e2e::SOON;
use crate::e2e::dns_policy::{client, reply, resolving};

const SERVFAIL: u8 = 2;

#[test]
fn the_external_filter_gets_queries_of_devices_on_the_default_route() {
    let (mut testbed, upstream) = resolving();
    let network = &testbed.network;
    let host = IpAddr::from(network.tv.v4);
    let listener = network.tv.namespace.within(|| TcpListener::bind((host, HTTP))).expect("a port");
    let filter = PiHole::start(listener, 1).expect("its API");
    let resolver = Upstream::start_at(&network.tv.namespace, host).expect("its resolver");
    let config = json!({"url": format!("http://{host}"), "password": PASSWORD});
    testbed.api().put("/dns/extfilter/config", &config).expect("stored");
    testbed
        .api()
        .post("/dns/forwarders", &json!({"domain": "corp.example", "upstreams": ["192.0.2.53"]}))
        .expect("stored");

    let mut laptop = client(&network.laptop);
    assert_eq!(laptop.ask("before.example", A).expect("an answer"), reply(server(false)));
    assert_eq!(upstream.askers("before.example"), [wan(false)]);
    let status = testbed.api().act("/dns/extfilter/enable").expect("enabled");
    assert_eq!((&status["enabled"], &status["reachable"]), (&json!(true), &json!(true)), "{status}");
    let mut names = (0..).map(|number| format!("n{number}.filtered.example"));
    wait_ok(SOON, "the filter to be asked", || {
        let name = names.next().expect("endless");
        laptop.ask(&name, A)?;
        anyhow::ensure!(resolver.askers(&name) == [IpAddr::from(LAN_V4)], "{:?}", upstream.askers(&name));
        anyhow::ensure!(upstream.askers(&name).is_empty());
        Ok(())
    })
    .expect("the filter");
    assert_eq!(testbed.api().get("/dns/status").expect("status")["backend"], "extfilter");
    // Cached answers of the upstreams are not returned.
    laptop.ask("before.example", A).expect("an answer");
    assert_eq!(resolver.askers("before.example"), [IpAddr::from(LAN_V4)]);
    // A domain with a forwarder keeps it, and queries of the filter itself are not sent back to it.
    laptop.ask("www.corp.example", A).expect("an answer");
    assert_eq!(upstream.askers("www.corp.example"), [wan(false)]);
    let mut tv = client(&network.tv);
    assert_eq!(tv.ask("further.example", A).expect("an answer"), reply(server(false)));
    assert_eq!(
        (upstream.askers("further.example"), resolver.askers("further.example")),
        (vec![wan(false)], vec![])
    );

    testbed.tunnel("a", &network.exit_a).expect("tunnel");
    let device = testbed.device(&network.laptop).expect("device");
    let bound = testbed.policy(&policy("bound", 10, ("device", &device), &["a"])).expect("policy");
    let mut names = (0..).map(|number| format!("n{number}.bound.example"));
    wait_ok(SOON, "the policy's way", || {
        let name = names.next().expect("endless");
        laptop.ask(&name, A)?;
        anyhow::ensure!(upstream.askers(&name) == [network.exit_a.address(false)]);
        anyhow::ensure!(resolver.askers(&name).is_empty());
        Ok(())
    })
    .expect("its way");
    testbed.api().delete(&format!("/routing/policies/{bound}")).expect("deleted");
    testbed.apply().expect("applied");
    let mut names = (0..).map(|number| format!("n{number}.free.example"));
    wait_ok(SOON, "the filter to be asked again", || {
        let name = names.next().expect("endless");
        laptop.ask(&name, A)?;
        anyhow::ensure!(!resolver.askers(&name).is_empty());
        Ok(())
    })
    .expect("the filter");

    // Without the filter there is no answer, instead of an unfiltered one.
    drop(resolver);
    assert_eq!(laptop.ask("gone.example", A).expect("an answer").rcode, SERVFAIL);
    assert_eq!(upstream.askers("gone.example"), Vec::<IpAddr>::new());
    let mut names = (0..).map(|number| format!("n{number}.gone.example"));
    wait_ok(SOON, "it to be told", || {
        laptop.ask(&names.next().expect("endless"), A)?;
        let status = testbed.api().get("/dns/extfilter/status")?;
        anyhow::ensure!(
            status["error"].as_str().is_some_and(|error| error.contains("its resolver")),
            "{status}"
        );
        Ok(())
    })
    .expect("told");
    testbed.api().act("/dns/extfilter/disable").expect("disabled");
    wait_ok(SOON, "the upstream to be asked", || {
        anyhow::ensure!(laptop.ask("after.example", A)? == reply(server(false)));
        Ok(())
    })
    .expect("an answer");
    assert_eq!(upstream.askers("after.example"), [wan(false)]);
    assert_eq!((filter.logins(), filter.sessions()), (1, 1), "one session for everything");
    testbed.daemon.terminate().expect("ended");
    assert_eq!(filter.sessions(), 0, "and its seat is given back");
}
