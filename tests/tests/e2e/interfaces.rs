//! Addresses of interfaces by configuration and by the DHCP client of the daemon, which a hostile server cannot turn
//! against tunnels.

use std::net::{IpAddr, Ipv4Addr};

use gateway_tests::dhcp_server::{DhcpServer, Offer};
use gateway_tests::netns::Namespace;
use gateway_tests::services::HTTP;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::server;
use gateway_tests::traffic::{TcpFlow, ask_within};
use gateway_tests::wait::wait_ok;
use ipnet::Ipv4Net;
use serde_json::{Value, json};

use crate::e2e::{SOON, assert_direct, assert_nothing_leaked, assert_through};

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 44, 0, 1);

fn net(text: &str) -> Ipv4Net {
    text.parse().expect("a network")
}

/// Adds another interface, eth3, without an address. Returns the host behind it.
fn add_office(testbed: &Testbed) -> Namespace {
    let office = Namespace::create(&testbed.network.prefix, "office").expect("a namespace");
    let name = office.name();
    testbed
        .network
        .gateway
        .ip(&format!("link add eth3 type veth peer name eth0 netns {name}\n"))
        .expect("a link");
    office
        .ip(&format!("address add {SERVER}/24 dev eth0\nlink set eth0 up\nlink set lo up\n"))
        .expect("a host");
    // Whatever a device or a tunnel would send here.
    office
        .nft(
            "table inet office {\n counter stolen { }\n chain in {\n type filter hook prerouting priority raw\n \
             ip saddr 192.168.10.0/24 counter name stolen\n ip daddr 198.18.0.0/15 counter name stolen\n \
             ip daddr 198.51.100.0/24 counter name stolen\n }\n}\n",
        )
        .expect("a counter");
    wait_ok(SOON, "the interface to be found", || {
        let list = testbed.api().get("/interfaces")?;
        anyhow::ensure!(
            list.as_array().is_some_and(|all| all.iter().any(|one| one["name"] == "eth3")),
            "{list}"
        );
        Ok(())
    })
    .expect("found");
    office
}

fn stolen(office: &Namespace) -> u64 {
    let text = office.run("nft", &["list", "counter", "inet", "office", "stolen"]).expect("a counter");
    let packets = text.split_whitespace().skip_while(|word| *word != "packets").nth(1);
    packets.and_then(|count| count.parse().ok()).expect("a count")
}

fn addresses(testbed: &Testbed, interface: &str) -> String {
    testbed.network.gateway.run("ip", &["-4", "-o", "address", "show", "dev", interface]).expect("addresses")
}

fn wait_for_address(testbed: &Testbed, interface: &str, address: &str, is_there: bool) {
    wait_ok(SOON, "the addresses to follow", || {
        let shown = addresses(testbed, interface);
        anyhow::ensure!(shown.contains(&format!(" {address} ")) == is_there, "{shown}");
        Ok(())
    })
    .expect("followed");
}

fn main_table(testbed: &Testbed) -> String {
    testbed.network.gateway.run("ip", &["route", "show", "table", "main"]).expect("routes")
}

fn config(testbed: &Testbed, interface: &str) -> Value {
    testbed.api().get(&format!("/interfaces/{interface}/config")).expect("a configuration")
}

/// Waits until the client has a lease, or a reason for which it is not used.
fn wait_for_dhcp(testbed: &Testbed, holds: impl Fn(&Value) -> bool) -> Value {
    wait_ok(SOON, "the DHCP client", || {
        let dhcp = config(testbed, "eth3")["state"]["dhcp"].take();
        anyhow::ensure!(holds(&dhcp), "{dhcp}");
        Ok(dhcp)
    })
    .expect("a state")
}

#[test]
fn address_of_an_access_point_is_set_at_the_start_and_kept() {
    let mut testbed = Testbed::prepare().expect("a network");
    let ap = json!({"interface": "eth1", "subnet": "10.9.0.0/24", "ip": "10.9.0.1"});
    testbed.daemon.configure(&json!({"network": {"ap": ap}})).expect("configured");
    testbed.daemon.start().expect("started");
    wait_for_address(&testbed, "eth1", "10.9.0.1/24", true);
    testbed.network.gateway.ip("address del 10.9.0.1/24 dev eth1\n").expect("removed");
    wait_for_address(&testbed, "eth1", "10.9.0.1/24", true);
    let other = json!({"method": "static", "address": "10.10.0.1", "prefix": 24});
    let refused = testbed.api().send("PUT", "/interfaces/eth1/config", Some(&other)).expect("an answer");
    assert_eq!(
        (refused.status, &refused.body["error"]["details"]["fields"][0]["path"]),
        (422, &json!("address"))
    );

    // The network of an uplink would not be reached any more.
    let shown = addresses(&testbed, "eth0");
    let uplink = shown.split_whitespace().find_map(|word| word.parse::<Ipv4Net>().ok()).expect("a network");
    let ap = json!({"interface": "eth1", "subnet": uplink.trunc(), "ip": uplink.hosts().last()});
    let refused =
        testbed.api().send("PUT", "/settings/network.ap", Some(&json!({"value": ap}))).expect("an answer");
    let path = &refused.body["error"]["details"]["fields"][0]["path"];
    assert_eq!((refused.status, path), (422, &json!("network.ap.subnet")), "{}", refused.body);

    testbed.api().put("/settings/network.ap", &json!({"value": null})).expect("taken back");
    assert!(addresses(&testbed, "eth1").contains(" 10.9.0.1/24 "), "until the next start");
    assert!(testbed.daemon.terminate().expect("ended").success());
    testbed.daemon.start().expect("started again");
    wait_for_address(&testbed, "eth1", "10.9.0.1/24", false);
}

#[test]
fn static_address_is_kept_until_it_is_taken_back() {
    let mut testbed = Testbed::start().expect("a network");
    let office = add_office(&testbed);
    let wanted =
        json!({"method": "static", "address": "10.44.0.7", "prefix": 24, "gateway": SERVER, "mtu": 1400});
    let shown = testbed.api().put("/interfaces/eth3/config", &wanted).expect("stored");
    assert_eq!(
        (&shown["pending_restart"], &shown["state"]["role"]),
        (&json!(false), &json!("other")),
        "{shown}"
    );
    // In force when it is answered.
    assert!(addresses(&testbed, "eth3").contains(" 10.44.0.7/24 "));
    office.run("ping", &["-c1", "-W5", "10.44.0.7"]).expect("an answer");
    // What a host beyond the gateway of the interface gets is sent back by it.
    office.ip("address add 10.45.0.1/24 dev lo\n").expect("a network behind");
    let route = ["route", "get", "10.45.0.1", "from", "10.44.0.7"];
    let way = testbed.network.gateway.run("ip", &route).expect("a route");
    assert!(way.contains("via 10.44.0.1 dev eth3"), "{way}");
    office.run("ping", &["-c1", "-W5", "-I", "10.45.0.1", "10.44.0.7"]).expect("an answer");
    assert_direct(&testbed.network.laptop);

    testbed
        .network
        .gateway
        .ip("address del 10.44.0.7/24 dev eth3\naddress add 10.9.9.9/24 dev eth3\n")
        .expect("changed");
    wait_for_address(&testbed, "eth3", "10.44.0.7/24", true);
    testbed.daemon.kill9().expect("killed");
    testbed.daemon.start().expect("started");
    wait_for_address(&testbed, "eth3", "10.44.0.7/24", true);

    // It comes back with its interface.
    let name = office.name().to_owned();
    testbed.network.gateway.ip("link del eth3\n").expect("removed");
    wait_ok(SOON, "the report", || {
        let shown = config(&testbed, "eth3");
        anyhow::ensure!(shown["state"]["exists"] == false && shown["address"] == "10.44.0.7", "{shown}");
        Ok(())
    })
    .expect("reported");
    testbed
        .network
        .gateway
        .ip(&format!("link add eth3 type veth peer name eth9 netns {name}\n"))
        .expect("a link");
    testbed.network.gateway.ip("address add 10.9.9.9/24 dev eth3\n").expect("another address");
    wait_for_address(&testbed, "eth3", "10.44.0.7/24", true);

    testbed.api().put("/interfaces/eth3/config", &json!({"method": "none"})).expect("stored");
    assert!(!addresses(&testbed, "eth3").contains("10.44.0.7"));
    assert!(addresses(&testbed, "eth3").contains(" 10.9.9.9/24 "), "another program set it");
    let rules = testbed.network.gateway.run("ip", &["rule"]).expect("rules");
    assert!(!rules.contains("10.44.0.7"), "{rules}");
}

#[test]
fn address_of_an_uplink_changes_at_the_next_start() {
    let mut testbed = Testbed::start().expect("a network");
    let wanted =
        json!({"method": "static", "address": "203.0.113.9", "prefix": 24, "gateway": "203.0.113.1"});
    let shown = testbed.api().put("/interfaces/eth0/config", &wanted).expect("stored");
    assert_eq!(
        (&shown["pending_restart"], &shown["state"]["role"]),
        (&json!(true), &json!("uplink")),
        "{shown}"
    );
    assert!(!addresses(&testbed, "eth0").contains("203.0.113.9"));
    assert_direct(&testbed.network.laptop);
    testbed.daemon.terminate().expect("ended");
    testbed.network.gateway.ip("address flush dev eth0 scope global\n").expect("flushed");
    testbed.daemon.start().expect("started");
    wait_for_address(&testbed, "eth0", "203.0.113.9/24", true);
    assert!(main_table(&testbed).contains("default via 203.0.113.1 dev eth0"), "{}", main_table(&testbed));
    assert_eq!(config(&testbed, "eth0")["pending_restart"], false);
    let to = (server(false), HTTP).into();
    wait_ok(SOON, "traffic by the new address", || {
        let seen = ask_within(&testbed.network.laptop.namespace, to, SOON).seen();
        anyhow::ensure!(seen == Some(IpAddr::from([203, 0, 113, 9])), "{seen:?}");
        Ok(())
    })
    .expect("seen");
}

#[test]
fn dhcp_client_is_refused_where_the_gateway_depends_on_the_interface() {
    let testbed = Testbed::start().expect("a network");
    for interface in ["eth0", "eth1", "lo"] {
        for path in ["dhcp/start", "dhcp/stop", "dhcp/renew"] {
            let reply = testbed.api().send("POST", &format!("/interfaces/{interface}/{path}"), None);
            let reply = reply.expect("an answer");
            assert_eq!(
                (reply.status, &reply.body["error"]["code"]),
                (409, &json!("interface_protected")),
                "{path}"
            );
        }
        let body = json!({"method": "dhcp"});
        let reply = testbed.api().send("PUT", &format!("/interfaces/{interface}/config"), Some(&body));
        assert_eq!(reply.expect("an answer").status, 409, "{interface}");
    }
    let reply = testbed.api().send("POST", "/interfaces/nowhere/dhcp/start", None).expect("an answer");
    assert_eq!(reply.status, 404);
}

#[test]
fn dhcp_client_gets_renews_and_releases_a_lease() {
    let mut testbed = Testbed::start().expect("a network");
    let office = add_office(&testbed);
    let mut offer = Offer::of(net("10.44.0.7/24"));
    (offer.router, offer.dns) = (Some(SERVER), vec![SERVER]);
    let dhcp = DhcpServer::start(&office, "eth0", SERVER, offer).expect("a server");
    let started = testbed.api().act("/interfaces/eth3/dhcp/start").expect("started");
    assert_eq!(started["method"], "dhcp");
    let state = wait_for_dhcp(&testbed, |dhcp| dhcp["used"] == true);
    assert_eq!(
        (&state["stage"], &state["gateway"], &state["server"]),
        (&json!("bound"), &json!(SERVER), &json!(SERVER))
    );
    assert_eq!(config(&testbed, "eth3")["state"]["dns"], json!([SERVER]));
    office.run("ping", &["-c1", "-W5", "10.44.0.7"]).expect("an answer");
    assert!(!main_table(&testbed).contains("10.44.0"), "{}", main_table(&testbed));
    for routes in [33, 121, 249] {
        assert!(!dhcp.requested().contains(&routes), "{:?}", dhcp.requested());
    }
    let before = dhcp.acknowledged();
    testbed.api().act("/interfaces/eth3/dhcp/renew").expect("asked");
    wait_ok(SOON, "a renewal", || {
        anyhow::ensure!(dhcp.acknowledged() > before);
        Ok(())
    })
    .expect("renewed");

    testbed.daemon.kill9().expect("killed");
    testbed.daemon.start().expect("started");
    wait_for_dhcp(&testbed, |dhcp| dhcp["used"] == true);

    let stopped = testbed.api().act("/interfaces/eth3/dhcp/stop").expect("stopped");
    assert_eq!(stopped["method"], "none");
    wait_for_address(&testbed, "eth3", "10.44.0.7/24", false);
    for path in ["stop", "renew"] {
        let reply =
            testbed.api().send("POST", &format!("/interfaces/eth3/dhcp/{path}"), None).expect("an answer");
        assert_eq!((reply.status, &reply.body["error"]["code"]), (409, &json!("invalid_state")), "{path}");
    }
}

#[test]
fn hostile_dhcp_server_draws_nothing_to_its_network() {
    let testbed = Testbed::start().expect("a network");
    let network = &testbed.network;
    let office = add_office(&testbed);
    let laptop = testbed.device(&network.laptop).expect("a device");
    testbed.tunnel("exit", &network.exit_a).expect("a tunnel");
    testbed.policy(&policy("vpn", 10, ("device", &laptop), &["exit"])).expect("a policy");
    let mut flow = TcpFlow::open(&network.laptop, server(false)).expect("a connection");
    // It claims the server and the end of the tunnel as neighbours, and routes everything to itself.
    let mut offer = Offer::of(net("198.18.0.77/7"));
    offer.router = Some(Ipv4Addr::new(198, 18, 0, 66));
    let hostile =
        ["0.0.0.0/0", "0.0.0.0/1", "128.0.0.0/1", "198.18.0.1/32", "198.51.100.7/32", "192.168.10.10/32"];
    offer.routes = hostile.map(|to| (net(to), Ipv4Addr::new(198, 18, 0, 66))).into();
    let dhcp = DhcpServer::start(&office, "eth0", SERVER, offer.clone()).expect("a server");
    office.sysctl("net.ipv4.conf.eth0.proxy_arp", "1").expect("a neighbour for all addresses");
    testbed.api().act("/interfaces/eth3/dhcp/start").expect("started");
    wait_for_dhcp(&testbed, |dhcp| dhcp["used"] == true);
    network.tap.reset();
    assert_through(&network.laptop, &network.exit_a);
    assert_eq!(flow.ask(SOON).seen(), Some(network.exit_a.address(false)), "the connection goes on");
    assert_direct_of_gateway(&testbed);
    assert_eq!(stolen(&office), 0);
    for to in hostile {
        let routes = main_table(&testbed);
        let to = to.trim_end_matches("/32");
        assert!(!routes.lines().any(|line| line.starts_with(&format!("{to} "))), "{to}: {routes}");
    }
    // Addresses that the gateway sends to are not taken at all.
    for address in
        [format!("{}/32", network.exit_a.place.v4), "192.168.10.77/24".into(), "203.0.113.1/32".into()]
    {
        dhcp.offer(Some(Offer { address: net(&address), ..offer.clone() }));
        testbed.api().act("/interfaces/eth3/dhcp/stop").expect("stopped");
        testbed.api().act("/interfaces/eth3/dhcp/start").expect("started");
        let state =
            wait_for_dhcp(&testbed, |dhcp| dhcp["address"] == address.as_str() && dhcp["error"].is_string());
        assert_eq!(state["used"], false, "{state}");
        let host = address.split('/').next().expect("an address");
        assert!(!addresses(&testbed, "eth3").contains(&format!(" {host}/")));
        assert_through(&network.laptop, &network.exit_a);
    }
    network.settle().expect("silence");
    let counts = network.tap.counts();
    assert!(counts.missed == 0 && counts.tunnel.total() > 0, "{counts}");
    assert_eq!(stolen(&office), 0);
}

/// Programs of the gateway reach the server by the uplink.
fn assert_direct_of_gateway(testbed: &Testbed) {
    let seen = ask_within(&testbed.network.gateway, (server(false), HTTP).into(), SOON).seen();
    assert_eq!(seen, Some(gateway_tests::topology::wan(false)));
    testbed.network.tap.reset();
    assert_nothing_leaked(testbed);
}
