//! DNS: the resolver for the LAN, whose domain policies apply from the first packet.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::mpsc;
use std::time::Duration;

use gateway_tests::dns::{A, AAAA, Client, Reply, Upstream};
use gateway_tests::name_server;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::{Host, LAN_V4, LAN_V6, other_server, server, wan};
use gateway_tests::traffic::ask_server;
use gateway_tests::wait::{wait_for, wait_ok};
use serde_json::json;

use crate::e2e::{BLOCKED, FAMILIES, SOON, assert_nothing_leaked};

const REFUSED: u8 = 5;
const SERVFAIL: u8 = 2;

/// Returns a daemon whose resolver has one upstream.
pub(crate) fn resolving() -> (Testbed, Upstream) {
    resolving_at(&[])
}

/// Returns the same, with DoT and DoH listeners at these addresses.
fn resolving_at(secure: &[&str]) -> (Testbed, Upstream) {
    let mut testbed = Testbed::prepare().expect("scene");
    let upstream = Upstream::start(&testbed.network.internet).expect("upstream");
    testbed
        .daemon
        .configure(&json!({"dns": {"upstream_servers": [name_server::ADDRESS], "tls_listen_addrs": secure}}))
        .expect("configured");
    testbed.daemon.start().expect("daemon");
    (testbed, upstream)
}

pub(crate) fn client(host: &Host) -> Client {
    Client::of(host, LAN_V4.into()).expect("a client")
}

pub(crate) fn reply(address: IpAddr) -> Reply {
    Reply { rcode: 0, addresses: vec![address] }
}

#[test]
fn hosts_are_answered_in_both_families_and_the_internet_is_not() {
    let (testbed, upstream) = resolving();
    let laptop = &testbed.network.laptop;
    for resolver in [LAN_V4.into(), LAN_V6.into()] {
        let mut client = Client::of(laptop, resolver).expect("a client");
        assert_eq!(client.ask("www.example", A).expect("an answer"), reply(server(false)));
        assert_eq!(client.ask("www.example", AAAA).expect("an answer"), reply(server(true)));
    }
    // The second answer of each came from the cache.
    assert_eq!(upstream.askers("www.example"), [wan(false); 2]);
    let dug =
        laptop.namespace.run("dig", &["+short", "+tcp", "@192.168.10.1", "www.example", "A"]).expect("dig");
    assert_eq!(dug.trim(), server(false).to_string());
    for ipv6 in FAMILIES {
        let outside: SocketAddr = if ipv6 { ([0u16; 8], 0).into() } else { ([0, 0, 0, 0], 0).into() };
        let socket = testbed.network.internet.within(|| UdpSocket::bind(outside)).expect("a socket");
        socket.set_read_timeout(Some(BLOCKED)).expect("patience");
        let question = b"\0\x07\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\0\0\x01\0\x01";
        socket.send_to(question, (wan(ipv6), 53)).expect("sent");
        assert!(socket.recv(&mut [0; 512]).is_err(), "a resolver for everybody");
    }
}

#[test]
fn an_fqdn_policy_matches_the_first_packet_and_the_query() {
    let (testbed, upstream) = resolving();
    let network = &testbed.network;
    testbed.tunnel("a", &network.exit_a).expect("tunnel");
    testbed.policy(&policy("films", 10, ("domain", "films.example"), &["a"])).expect("policy");
    let mut laptop = client(&network.laptop);
    for (ipv6, kind) in [(false, A), (true, AAAA)] {
        let answer = ask_server(&network.laptop, server(ipv6));
        assert_eq!(answer.seen(), Some(wan(ipv6)), "nobody has asked for a name");
        assert_eq!(laptop.ask("www.films.example", kind).expect("an answer"), reply(server(ipv6)));
        let answer = ask_server(&network.laptop, server(ipv6));
        assert_eq!(answer.seen(), Some(network.exit_a.address(ipv6)));
        // Other hosts did not query the name, and other addresses do not belong to it.
        assert_eq!(ask_server(&network.tv, server(ipv6)).seen(), Some(wan(ipv6)));
        assert_eq!(ask_server(&network.laptop, other_server(ipv6)).seen(), Some(wan(ipv6)));
    }
    assert_eq!(upstream.askers("www.films.example"), [network.exit_a.address(false); 2]);
    // The gateway records the answers of each client.
    for (mac, via) in [(network.laptop.mac, "vpn:a"), (network.tv.mac, "default")] {
        let question = json!({"mac": mac, "destination": server(false).to_string()});
        let said = testbed.api().post("/policy/evaluate", &question).expect("evaluated");
        assert_eq!(said["families"]["ipv4"]["via"], via, "{said}");
    }
    laptop.ask("www.example", A).expect("an answer");
    assert_eq!(upstream.askers("www.example"), [wan(false)]);
    // An answer from the cache also installs the FQDN policy.
    client(&network.tv).ask("www.films.example", A).expect("an answer");
    assert_eq!(ask_server(&network.tv, server(false)).seen(), Some(network.exit_a.address(false)));
    assert_eq!(upstream.askers("www.films.example").len(), 2);
}

/// Each name has its own address, and its first packet follows the answer immediately.
#[test]
fn ten_thousand_first_packets_take_the_egress_of_their_names() {
    const NAMES: u16 = 10_000;
    let (testbed, _upstream) = resolving();
    let network = &testbed.network;
    testbed.tunnel("a", &network.exit_a).expect("tunnel");
    testbed.policy(&policy("films", 10, ("domain", "*.films.example"), &["a"])).expect("policy");
    network.internet.ip("route add local 198.19.0.0/16 dev lo").expect("route");
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 9000));
    let sink = network.internet.within(|| UdpSocket::bind(any)).expect("a socket");
    sink.set_read_timeout(Some(Duration::from_secs(3))).expect("patience");
    let (arrived, arrivals) = mpsc::channel();
    let counting = std::thread::spawn(move || {
        let mut buffer = [0; 16];
        while let Ok((length, from)) = sink.recv_from(&mut buffer) {
            if length == 2 {
                arrived.send((u16::from_be_bytes([buffer[0], buffer[1]]), from.ip())).expect("counted");
            }
        }
    });
    let mut laptop = client(&network.laptop);
    let socket = network.laptop.namespace.within(|| UdpSocket::bind("0.0.0.0:0")).expect("a socket");
    for number in 0..NAMES {
        let answer = laptop.ask(&format!("n{number}.films.example"), A).expect("an answer");
        let to = answer.addresses[0];
        socket.send_to(&number.to_be_bytes(), (to, 9000)).expect("sent");
    }
    counting.join().expect("counted");
    let mut seen: BTreeMap<IpAddr, u32> = BTreeMap::new();
    arrivals.iter().for_each(|(_, from): (u16, IpAddr)| *seen.entry(from).or_default() += 1);
    assert_eq!(seen, BTreeMap::from([(network.exit_a.address(false), u32::from(NAMES))]));
}

#[test]
fn fqdn_entries_outlive_a_restart_and_hold_when_the_tunnel_fails() {
    let (mut testbed, _upstream) = resolving();
    let tunnel = testbed.tunnel("a", &testbed.network.exit_a).expect("tunnel");
    testbed.policy(&policy("films", 10, ("domain", "films.example"), &["a"])).expect("policy");
    client(&testbed.network.laptop).ask("films.example", A).expect("an answer");
    let through = |testbed: &Testbed| ask_server(&testbed.network.laptop, server(false)).seen();
    assert_eq!(through(&testbed), Some(testbed.network.exit_a.address(false)));
    testbed.daemon.kill9().expect("killed");
    testbed.daemon.start().expect("daemon");
    wait_for(SOON, "the way of the name", || {
        through(&testbed) == Some(testbed.network.exit_a.address(false))
    })
    .expect("as before");
    testbed.bring_down(&tunnel).expect("down");
    testbed.api().act("/enforce/reconcile").expect("reconciled");
    assert_eq!(through(&testbed), None);
    // Its questions do not leave either.
    let answer = client(&testbed.network.laptop).ask("www.films.example", A).expect("an answer");
    assert_eq!((answer.rcode, answer.addresses.len()), (SERVFAIL, 0));
}

#[test]
fn queries_of_a_device_use_its_policy_and_a_separate_cache() {
    let (testbed, upstream) = resolving();
    let network = &testbed.network;
    testbed.tunnel("a", &network.exit_a).expect("tunnel");
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.policy(&policy("laptop", 10, ("device", &laptop), &["a"])).expect("policy");
    wait_ok(SOON, "the laptop's questions to take its tunnel", || {
        let name = format!("p{}.example", upstream.askers("tick.example").len());
        client(&network.tv).ask("tick.example", A)?;
        client(&network.laptop).ask(&name, A)?;
        anyhow::ensure!(
            upstream.askers(&name) == [network.exit_a.address(false)],
            "{:?}",
            upstream.askers(&name)
        );
        Ok(())
    })
    .expect("its own way");
    network.tap.reset();
    client(&network.laptop).ask("secret.example", A).expect("an answer");
    client(&network.laptop).ask("secret.example", A).expect("an answer");
    assert_eq!(upstream.askers("secret.example"), [network.exit_a.address(false)]);
    assert_nothing_leaked(&testbed);
    let status = testbed.api().get("/dns/status").expect("status");
    let by_tunnel = status["upstreams"].as_array().into_iter().flatten().find(|one| one["egress"] == "a");
    assert!(by_tunnel.is_some_and(|one| one["queries"].as_u64() > Some(0)), "{status}");
    let reply = testbed.api().post("/policy/evaluate", &json!({"device_id": laptop})).expect("explained");
    assert_eq!(reply["effective"]["dns"], format!("{} by a", name_server::ADDRESS), "{reply}");
    // Answers of the laptop's cache partition are not returned to other clients.
    client(&network.tv).ask("secret.example", A).expect("an answer");
    assert_eq!(upstream.askers("secret.example"), [network.exit_a.address(false), wan(false)]);
}

/// Queries of an unknown host use the egress of its network from the first query.
#[test]
fn the_first_query_of_an_unknown_host_takes_the_egress_of_its_network() {
    let (testbed, upstream) = resolving();
    let network = &testbed.network;
    testbed.tunnel("a", &network.exit_a).expect("tunnel");
    let lan = "192.168.10.0/24,fd00:10::/64";
    testbed.policy(&policy("lan", 10, ("subnet", lan), &["a"])).expect("policy");
    wait_ok(SOON, "the resolver to know the policy", || {
        let name = format!("tick{}.example", upstream.askers("tick.example").len());
        Client::of(&network.laptop, LAN_V4.into())?.ask("tick.example", A)?;
        Client::of(&network.laptop, LAN_V4.into())?.ask(&name, A)?;
        anyhow::ensure!(upstream.askers(&name) == [network.exit_a.address(false)]);
        Ok(())
    })
    .expect("its way");
    network.tap.reset();
    for (number, resolver) in [LAN_V4.into(), LAN_V6.into(), LAN_V4.into()].into_iter().enumerate() {
        network.gateway.run("ip", &["neighbour", "flush", "dev", "eth1"]).expect("forgotten");
        let name = format!("first{number}.example");
        Client::of(&network.tv, resolver).expect("a client").ask(&name, A).expect("an answer");
        assert_eq!(upstream.askers(&name), [network.exit_a.address(false)]);
    }
    assert_nothing_leaked(&testbed);
}

/// Its traffic to the name matches the policy of the device, so its queries do too.
#[test]
fn an_fqdn_policy_does_not_take_queries_from_an_earlier_policy() {
    let (testbed, upstream) = resolving();
    let network = &testbed.network;
    testbed.tunnel("a", &network.exit_a).expect("tunnel");
    testbed.tunnel("b", &network.exit_b).expect("tunnel");
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.store_policy(&policy("laptop", 10, ("device", &laptop), &["a"])).expect("policy");
    testbed.policy(&policy("films", 20, ("domain", "films.example"), &["b"])).expect("policy");
    testbed.api().act("/enforce/reconcile").expect("reconciled");
    client(&network.tv).ask("tv.films.example", A).expect("an answer");
    wait_ok(SOON, "the tv to take the way of the name", || {
        let seen = ask_server(&network.tv, server(false)).seen();
        anyhow::ensure!(seen == Some(network.exit_b.address(false)), "{seen:?}");
        Ok(())
    })
    .expect("its way");
    client(&network.laptop).ask("laptop.films.example", A).expect("an answer");
    assert_eq!(upstream.askers("laptop.films.example"), [network.exit_a.address(false)]);
    assert_eq!(ask_server(&network.laptop, server(false)).seen(), Some(network.exit_a.address(false)));
}

#[test]
fn forced_queries_to_any_resolver_are_answered_here() {
    let (testbed, upstream) = resolving();
    let network = &testbed.network;
    testbed.api().put("/privacy/dns-mode", &json!({"mode": "system"})).expect("stored");
    testbed.api().act("/enforce/reconcile").expect("reconciled");
    network.tap.reset();
    for resolver in [server(false), server(true), other_server(false)] {
        let mut client = Client::of(&network.laptop, resolver).expect("a client");
        let answer = client.ask("www.example", A).expect("an answer");
        // The server at that address would refuse.
        assert_eq!(answer, reply(server(false)), "asked at {resolver}");
    }
    assert_eq!(upstream.askers("www.example"), [wan(false)]);
    let dug = network
        .laptop
        .namespace
        .run("dig", &["+short", "+tcp", "@198.18.0.1", "www.example", "A"])
        .expect("dig");
    assert_eq!(dug.trim(), server(false).to_string());
    for ipv6 in FAMILIES {
        let to = SocketAddr::new(server(ipv6), 853);
        let listener = network.internet.within(|| std::net::TcpListener::bind(to)).expect("a server");
        // The kernel rate-limits its rejections; a retransmitted segment gets one.
        let connect = || std::net::TcpStream::connect_timeout(&to, SOON);
        let error = network.laptop.namespace.within(connect).expect_err("rejected");
        assert!(error.kind() != std::io::ErrorKind::TimedOut, "{error}");
        drop(listener);
    }
    testbed.api().put("/privacy/dns-mode", &json!({"mode": "off"})).expect("stored");
    testbed.api().act("/enforce/reconcile").expect("reconciled");
    let answer = Client::of(&network.laptop, server(false)).expect("a client").ask("www.example", A);
    assert_eq!(answer.expect("an answer").rcode, REFUSED);
}

/// The dataplane answers repeated queries: with the resolver's answers, with log records, and never beyond a change.
#[test]
fn repeated_queries_are_answered_by_the_kernel_cache() {
    let (mut testbed, upstream) = resolving();
    let repeated = |testbed: &Testbed| {
        testbed.api().get("/dns/status").expect("status")["repeated"].as_u64().unwrap_or(0)
    };
    let rows = |testbed: &Testbed, domain: &str| {
        let log = testbed.api().get(&format!("/dns/log?limit=500&domain={domain}")).expect("the log");
        log.as_array().expect("rows").len()
    };
    for resolver in [LAN_V4.into(), LAN_V6.into()] {
        let mut client = Client::of(&testbed.network.laptop, resolver).expect("a client");
        let before = (repeated(&testbed), rows(&testbed, "www.example"));
        let mut asked = 0;
        wait_for(SOON, "the dataplane to answer", || {
            asked += 1;
            assert_eq!(client.ask("www.example", A).expect("an answer"), reply(server(false)));
            repeated(&testbed) > before.0 + 20
        })
        .expect("repeated");
        assert_eq!(rows(&testbed, "www.example") - before.1, asked, "each of them stands in the log");
    }
    assert_eq!(upstream.askers("www.example").len(), 1);
    // Blocking and unblocking take effect immediately, for any number of earlier queries.
    let mut client = client(&testbed.network.laptop);
    testbed.api().post("/dns/blocklist", &json!({"domain": "www.example"})).expect("blocked");
    let nowhere = reply(Ipv4Addr::UNSPECIFIED.into());
    wait_for(SOON, "it is blocked", || client.ask("www.example", A).expect("an answer") == nowhere)
        .expect("blocked");
    for _ in 0..50 {
        assert_eq!(client.ask("www.example", A).expect("an answer"), nowhere);
    }
    testbed.api().delete("/dns/blocklist/www.example").expect("unblocked");
    wait_for(SOON, "it is not blocked", || client.ask("www.example", A).expect("an answer") != nowhere)
        .expect("passed");
    for _ in 0..50 {
        assert_eq!(client.ask("www.example", A).expect("an answer"), reply(server(false)));
    }
    // An applied policy takes the next query, regardless of earlier answers.
    testbed.tunnel("a", &testbed.network.exit_a).expect("tunnel");
    testbed.policy(&policy("films", 10, ("domain", "www.example"), &["a"])).expect("policy");
    assert_eq!(client.ask("www.example", A).expect("an answer"), reply(server(false)));
    let answer = ask_server(&testbed.network.laptop, server(false));
    assert_eq!(answer.seen(), Some(testbed.network.exit_a.address(false)), "it was learned");
    // Without the daemon there is no answer.
    for _ in 0..50 {
        assert_eq!(client.ask("ftp.example", A).expect("an answer"), reply(server(false)));
    }
    testbed.daemon.kill9().expect("killed");
    // The kernel removes the program from its map asynchronously.
    wait_for(SOON, "nobody to answer", || client.ask("ftp.example", A).is_err()).expect("silence");
}

#[test]
fn clients_are_answered_over_tls_and_https_while_those_of_others_are_rejected() {
    let (testbed, _upstream) = resolving_at(&["0.0.0.0:853", "0.0.0.0:443"]);
    let network = &testbed.network;
    testbed.api().put("/privacy/dns-mode", &json!({"mode": "system"})).expect("stored");
    testbed.api().post("/dns/blocklist", &json!({"domain": "ads.example"})).expect("stored");
    testbed.api().act("/enforce/reconcile").expect("reconciled");
    let dig = |resolver: &str, name: &str, how: &[&str]| -> anyhow::Result<String> {
        let arguments = [&["+short", "+timeout=10", resolver, name, "A"], how].concat();
        Ok(network.laptop.namespace.run("dig", &arguments)?.trim().to_owned())
    };
    let tls: [&[&str]; 2] = [&["+tls"], &["+tls", "-p", "443"]];
    let https: [&[&str]; 3] = [&["+https", "-p", "853"], &["+https"], &["+https-get"]];
    // dig does not query IPv6 addresses over HTTPS here; curl does, below.
    for (resolver, ways) in
        [(format!("@{LAN_V4}"), [&tls[..], &https].concat()), (format!("@{LAN_V6}"), tls.to_vec())]
    {
        for how in ways {
            let answer = dig(&resolver, "www.example", how);
            assert_eq!(answer.expect("dig"), server(false).to_string(), "{resolver} {how:?}");
            wait_ok(SOON, "the name to be blocked", || {
                let answer = dig(&resolver, "ads.example", how)?;
                anyhow::ensure!(answer == "0.0.0.0", "{answer}");
                Ok(())
            })
            .expect("blocked");
        }
    }
    let log = testbed.api().get("/dns/log?domain=www.example").expect("the log");
    let of = |proto: &str| {
        let entries = log.as_array().expect("entries").iter();
        entries.filter(|entry| entry["proto"] == proto).count()
    };
    assert_eq!((of("dot"), of("doh")), (4, 3), "{log}");
    let listen = testbed.api().get("/dns/status").expect("the status")["listen"].clone();
    let listen = listen.as_array().expect("places").iter();
    assert_eq!(
        listen
            .filter(|place| place["address"].as_str().is_some_and(|at| at.starts_with("tls://"))
                && place["error"].is_null())
            .count(),
        4
    );
    // RFC 8484, section 4.1.1: www.example.com, which the server there does not know.
    for authority in [LAN_V4.to_string(), format!("[{LAN_V6}]"), format!("[{LAN_V6}]:853")] {
        let url = format!("https://{authority}/dns-query?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA2NvbQAAAQAB");
        let shown = "%{http_version} %{http_code} %{content_type}";
        let arguments = ["-skm", "20", "-o", "/dev/null", "-w", shown, &url];
        let fetched = network.laptop.namespace.run("curl", &arguments);
        assert_eq!(fetched.expect("curl"), "2 200 application/dns-message", "{authority}");
    }
    for ipv6 in FAMILIES {
        for port in [853, 443] {
            let to = SocketAddr::new(wan(ipv6), port);
            let outside = || std::net::TcpStream::connect_timeout(&to, BLOCKED);
            assert!(network.internet.within(outside).is_err(), "a resolver for everybody at {to}");
        }
        let to = SocketAddr::new(server(ipv6), 853);
        let connect = || std::net::TcpStream::connect_timeout(&to, SOON);
        network.laptop.namespace.within(connect).expect_err("rejected");
    }
}
