//! Proxies as hops: real servers, real clients without proxy settings, and no traffic outside the proxy.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use gateway_tests::services::{DNS, IDENT};
use gateway_tests::socks::{Proxy, Server};
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::{Host, LAN_V4, LAN_V6, other_server, server, wan};
use gateway_tests::traffic::{Answer, Load, TIMEOUT, TcpFlow, UdpFlow, ask, ask_udp, ping, rejection};
use gateway_tests::wait::{wait_for, wait_ok};
use gateway_tests::wireguard::Exit;
use serde_json::{Value, json};

use crate::e2e::{
    BLOCKED, FAMILIES, SOON, assert_blocked, assert_direct, assert_the_tap_sees, assert_through,
    wait_until_through,
};

const DANTE: Server<'static> = Server::Dante;
const MICROSOCKS: Server<'static> = Server::Microsocks { login: None };
/// Port of the relay (docs/src/troubleshooting.md, "Ports").
const RELAY: u16 = 4702;

/// A laptop whose traffic uses a proxy at exit A, with a verified tap.
struct Proxied {
    proxy: Proxy,
    testbed: Testbed,
    id: String,
    laptop: String,
    policy: String,
}

impl Proxied {
    fn start(server: Server<'_>) -> Self {
        Self::start_with(server, json!({}), json!({}))
    }

    /// Starts with these fields of the proxy and of the policy.
    fn start_with(server: Server<'_>, of_proxy: Value, of_policy: Value) -> Self {
        let testbed = Testbed::start().expect("scene");
        let network = &testbed.network;
        let laptop = testbed.device(&network.laptop).expect("device");
        let proxy = Proxy::start(&network.exit_a, server).expect("proxy");
        let id = testbed.proxy(&merged(proxy.object("office"), of_proxy), "up").expect("proxy up");
        assert_the_tap_sees(&testbed, &network.laptop);
        let policy = merged(through(&laptop, &["proxy:office"]), of_policy);
        let policy = testbed.policy(&policy).expect("policy");
        network.tap.reset();
        Self { proxy, testbed, id, laptop, policy }
    }

    fn laptop(&self) -> &Host {
        &self.testbed.network.laptop
    }

    fn exit(&self) -> &Exit {
        &self.testbed.network.exit_a
    }

    /// Returns the entry of the proxy in `/tproxy/status`.
    fn relayed(&self) -> Value {
        let status = self.testbed.api().get("/tproxy/status").expect("status");
        let all = status["by_proxy"].as_array().expect("a list");
        all.iter().find(|proxy| proxy["proxy_id"] == *self.id).cloned().unwrap_or_default()
    }
}

fn merged(mut object: Value, fields: Value) -> Value {
    for (key, value) in fields.as_object().expect("an object") {
        object[key] = value.clone();
    }
    object
}

/// Returns a fail-closed policy of a device, with hops written as `type:target`.
fn through(device: &str, hops: &[&str]) -> Value {
    let mut policy = policy("by-proxy", 10, ("device", device), &[]);
    let hops = hops.iter().map(|hop| hop.split_once(':').expect("type:target"));
    policy["hops"] = hops.map(|(kind, target)| json!({"type": kind, "target": target})).collect();
    policy
}

/// Asserts that only the relay's own connections to proxies were on the uplink.
fn assert_only_proxied(testbed: &Testbed) {
    testbed.network.settle().expect("silence on the LAN");
    let counts = testbed.network.tap.counts();
    assert!(counts.is_clean_but_for_proxies(), "{counts}");
}

fn wait_until_reset(flow: &mut TcpFlow) {
    let reset = || matches!(flow.ask(TIMEOUT), Answer::Rejected { .. });
    wait_for(SOON, "the connection to be reset", reset).expect("reset");
}

#[test]
fn connections_take_the_proxy_in_both_families() {
    let proxied = Proxied::start(DANTE);
    assert_through(proxied.laptop(), proxied.exit());
    assert_only_proxied(&proxied.testbed);
    assert!(proxied.testbed.network.tap.counts().proxied.total() > 0);
    let relayed = proxied.relayed();
    assert_eq!((&relayed["accepted"], &relayed["failed"]), (&json!(2), &json!(0)), "{relayed}");
    let status = proxied.testbed.api().get("/tproxy/status").expect("status");
    assert_eq!((&status["running"], &status["mode"]), (&json!(true), &json!("tproxy")), "{status}");
    let said = proxied.testbed.evaluate(&proxied.laptop).expect("evaluated");
    assert_eq!(said["decision"], "tunnel", "{said}");
    let sentence = said["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains("laptop -> PROXY office: "), "{sentence}");
    assert_eq!(said["families"]["ipv6"]["via"], "proxy:office", "{said}");
    assert_direct(&proxied.testbed.network.tv);
}

#[test]
fn datagrams_take_a_proxy_that_takes_them() {
    let proxied = Proxied::start(DANTE);
    wait_for(SOON, "the proxy to be seen to take UDP", || {
        let object = proxied.testbed.api().get(&format!("/proxies/{}", proxied.id)).expect("proxy");
        object["udp_works"] == true
    })
    .expect("udp_works");
    for ipv6 in FAMILIES {
        let to = SocketAddr::from((server(ipv6), IDENT));
        let flow = UdpFlow::open(proxied.laptop(), to).expect("socket");
        for _ in 0..5 {
            let seen = flow.ask(TIMEOUT).expect("an answer");
            assert_eq!(seen, proxied.exit().address(ipv6), "the server saw {seen}");
        }
        let other = ask_udp(proxied.laptop(), (other_server(ipv6), IDENT).into(), TIMEOUT);
        assert_eq!(other.seen(), Some(proxied.exit().address(ipv6)), "{other}");
        // An answer comes from the queried address.
        let dns = ask_udp(proxied.laptop(), (server(ipv6), DNS).into(), TIMEOUT);
        assert!(matches!(dns, Answer::Rejected { .. }), "the sink answers in the form of DNS: {dns}");
    }
    assert_only_proxied(&proxied.testbed);
    assert!(proxied.relayed()["udp_flows"].as_u64().is_some_and(|flows| flows >= 4), "{}", proxied.relayed());
}

#[test]
fn traffic_that_the_proxy_does_not_take_fails_by_the_policy() {
    let proxied = Proxied::start(MICROSOCKS);
    let network = &proxied.testbed.network;
    wait_for(SOON, "the proxy to be seen to refuse UDP", || {
        let object = proxied.testbed.api().get(&format!("/proxies/{}", proxied.id)).expect("proxy");
        object["udp_works"] == false
    })
    .expect("udp_works");
    wait_ok(SOON, "UDP to be rejected at once", || {
        Ok(rejection(&network.laptop, (server(false), IDENT).into(), BLOCKED)?)
    })
    .expect("rejected");
    assert_through(&network.laptop, &network.exit_a);
    for ipv6 in FAMILIES {
        let answer = ask_udp(&network.laptop, (server(ipv6), IDENT).into(), BLOCKED);
        assert_eq!(answer.seen(), None, "{answer}");
        assert!(!ping(&network.laptop, server(ipv6)));
    }
    assert_only_proxied(&proxied.testbed);
    let question = json!({"device_id": proxied.laptop, "protocol": "udp", "port": 53});
    let said = proxied.testbed.api().post("/policy/evaluate", &question).expect("evaluated");
    let sentence = said["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains("BLOCKED") && sentence.contains("office does not take UDP"), "{sentence}");

    let mut open = through(&proxied.laptop, &["proxy:office"]);
    open["fail_policy"] = json!("fail-open");
    proxied.testbed.replace_policy(&proxied.policy, &open).expect("policy");
    for ipv6 in FAMILIES {
        let answer = ask_udp(&network.laptop, (server(ipv6), IDENT).into(), TIMEOUT);
        assert_eq!(answer.seen(), Some(wan(ipv6)), "what fails open goes out directly: {answer}");
    }
    assert_through(&network.laptop, &network.exit_a);
}

/// From the first packet on, before a probe has found that the proxy supports no datagrams.
#[test]
fn datagrams_for_a_proxy_that_refuses_them_never_leak() {
    let proxied = Proxied::start(MICROSOCKS);
    let load = Load::start(proxied.laptop()).expect("load");
    load.run_for(600).expect("load");
    let sent = load.stop();
    assert!(sent.answers.is_empty(), "{sent:?}");
    assert_only_proxied(&proxied.testbed);
}

#[test]
fn a_login_is_used_and_a_wrong_one_blocks() {
    let login = Server::Microsocks { login: Some(("anna", "a secret")) };
    let proxied = Proxied::start_with(login, json!({"username": "anna", "password": "a secret"}), json!({}));
    assert_through(proxied.laptop(), proxied.exit());
    let path = format!("/proxies/{}", proxied.id);
    let mut object = proxied.testbed.api().get(&path).expect("proxy");
    assert_eq!((&object["has_password"], object.get("password")), (&json!(true), None), "{object}");
    object["password"] = json!("another");
    proxied.testbed.api().put(&path, &object).expect("replaced");
    proxied.testbed.wait_for_proxy(&proxied.id, "down").expect("refused");
    let object = proxied.testbed.api().get(&path).expect("proxy");
    let reason = object["last_error"].as_str().unwrap_or_default();
    assert!(reason.contains("rejected the user name or password"), "{object}");
    proxied.testbed.api().act("/enforce/reconcile").expect("reconciled");
    assert_blocked(proxied.laptop());
    assert_only_proxied(&proxied.testbed);
    for path in ["/proxies", "/render", "/tproxy/status", "/audit"] {
        let reply = proxied.testbed.api().send("GET", path, None).expect("answer");
        assert!(!reply.body.to_string().contains("a secret"), "{path}: {}", reply.body);
    }
}

#[test]
fn a_proxy_that_dies_under_load_leaks_nothing() {
    let mut proxied = Proxied::start(DANTE);
    let mut flow = TcpFlow::open(proxied.laptop(), server(false)).expect("flow");
    assert_eq!(flow.ask(TIMEOUT).seen(), Some(proxied.exit().address(false)));
    let load = Load::start(proxied.laptop()).expect("load");
    load.wait_for_answer_to(proxied.exit().address(false), SOON).expect("load through the proxy");
    proxied.proxy.kill9().expect("killed");
    load.run_for(400).expect("load");
    wait_until_reset(&mut flow);
    proxied.testbed.wait_for_proxy(&proxied.id, "down").expect("seen to be down");
    proxied.testbed.api().act("/enforce/reconcile").expect("reconciled");
    assert_blocked(proxied.laptop());
    load.run_for(200).expect("load");
    let said = proxied.testbed.evaluate(&proxied.laptop).expect("evaluated");
    let sentence = said["sentence"].as_str().expect("a sentence");
    assert!(
        sentence.contains("BLOCKED") && sentence.contains("its only hop proxy:office is down"),
        "{sentence}"
    );
    load.stop();
    proxied.proxy = Proxy::start(&proxied.testbed.network.exit_a, DANTE).expect("proxy");
    proxied.testbed.wait_for_proxy(&proxied.id, "up").expect("up again");
    wait_until_through(proxied.laptop(), proxied.exit());
    assert_only_proxied(&proxied.testbed);
}

#[test]
fn a_daemon_that_dies_under_load_leaks_nothing() {
    let mut proxied = Proxied::start(DANTE);
    let load = Load::start(proxied.laptop()).expect("load");
    load.wait_for_answer_to(proxied.exit().address(true), SOON).expect("load through the proxy");
    proxied.testbed.daemon.kill9().expect("killed");
    load.run_for(600).expect("load");
    assert_blocked(proxied.laptop());
    proxied.testbed.daemon.start_again().or_else(|_| proxied.testbed.daemon.start()).expect("started again");
    wait_until_through(proxied.laptop(), proxied.exit());
    load.stop();
    assert_only_proxied(&proxied.testbed);
}

#[test]
fn each_side_may_end_its_half_of_a_connection() {
    let proxied = Proxied::start(DANTE);
    for ipv6 in FAMILIES {
        let at = SocketAddr::from((server(ipv6), 7010));
        let listener = proxied.testbed.network.internet.within(|| TcpListener::bind(at)).expect("server");
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut question = Vec::new();
            stream.read_to_end(&mut question).expect("the whole question");
            std::thread::sleep(Duration::from_millis(300));
            write!(stream, "{} bytes", question.len()).expect("an answer after the end of the question");
        });
        let connect = || TcpStream::connect_timeout(&at, TIMEOUT);
        let mut stream = proxied.laptop().namespace.within(connect).expect("connected");
        stream.set_read_timeout(Some(TIMEOUT)).expect("timeout");
        stream.write_all(&vec![7; 2_000_000]).expect("question");
        stream.shutdown(Shutdown::Write).expect("half closed");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answer");
        assert_eq!(answer, "2000000 bytes");
        serving.join().expect("server");
    }
}

#[test]
fn a_proxy_inside_a_tunnel_is_reached_by_the_tunnel_only() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    let tunnel = testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    let proxy = Proxy::start(&network.exit_b, DANTE).expect("proxy");
    let id = testbed.proxy(&proxy.object("office"), "up").expect("proxy up");
    assert_the_tap_sees(&testbed, &network.laptop);
    let mut policy = None;
    for hops in [["interface:eth0", "vpn:wg-a", "proxy:office"].as_slice(), &["vpn:wg-a", "proxy:office"]] {
        let way = through(&laptop, hops);
        match &policy {
            None => policy = Some(testbed.policy(&way).expect("policy")),
            Some(policy) => testbed.replace_policy(policy, &way).expect("policy"),
        }
        wait_until_through(&network.laptop, &network.exit_b);
        // A path to the proxy that no policy uses is no longer probed.
        testbed.wait_for_proxy(&id, "up").expect("by the tunnel");
        network.settle().expect("silence");
        network.tap.reset();
        assert_through(&network.laptop, &network.exit_b);
        for ipv6 in FAMILIES {
            let answer = ask_udp(&network.laptop, (server(ipv6), IDENT).into(), TIMEOUT);
            assert_eq!(answer.seen(), Some(network.exit_b.address(ipv6)), "{answer}");
        }
        let counts = network.tap.counts();
        assert!(counts.is_clean() && counts.tunnel.total() > 0, "{hops:?}: {counts}");
        // The uplink shows the outer hop only.
        let outer: Vec<IpAddr> = counts.endpoints.keys().copied().collect();
        assert_eq!((outer, counts.proxied.total()), (vec![network.exit_a.place.v4.into()], 0), "{hops:?}");
    }
    let sentence =
        testbed.evaluate(&laptop).expect("evaluated")["sentence"].as_str().unwrap_or_default().to_owned();
    assert!(sentence.contains("PROXY office by wg-a"), "{sentence}");

    let mut flow = TcpFlow::open(&network.laptop, server(false)).expect("flow");
    assert_eq!(flow.ask(TIMEOUT).seen(), Some(network.exit_b.address(false)));
    testbed.bring_down(&tunnel).expect("down");
    wait_until_reset(&mut flow);
    assert_blocked(&network.laptop);
    let counts = network.tap.counts();
    assert_eq!((counts.leaked.total(), counts.missed), (0, 0), "{counts}");
}

#[test]
fn connections_are_limited_and_reset_when_their_proxy_is_removed() {
    let proxied = Proxied::start_with(DANTE, json!({"max_connections": 2}), json!({}));
    let mut flows: Vec<TcpFlow> =
        (0..2).map(|_| TcpFlow::open(proxied.laptop(), server(false)).expect("flow")).collect();
    for flow in &mut flows {
        assert_eq!(flow.ask(TIMEOUT).seen(), Some(proxied.exit().address(false)));
    }
    assert_eq!(proxied.relayed()["connections"], 2);
    // The relay accepts the connection before it can reject it.
    let third = TcpFlow::open(proxied.laptop(), server(false)).map(|mut flow| flow.ask(TIMEOUT));
    assert!(third.is_err() || matches!(third, Ok(Answer::Rejected { .. })), "{third:?}");
    assert_eq!(proxied.relayed()["over_limit"], 1);
    proxied.testbed.api().delete(&format!("/proxies/{}?force=true", proxied.id)).expect("deleted");
    for flow in &mut flows {
        wait_until_reset(flow);
    }
    assert_blocked(proxied.laptop());
    assert_only_proxied(&proxied.testbed);
}

#[test]
fn the_relay_is_not_reachable_directly() {
    let proxied = Proxied::start(DANTE);
    let network = &proxied.testbed.network;
    let refused = |host: &Host, to: SocketAddr| {
        let error = host.namespace.within(|| TcpStream::connect_timeout(&to, BLOCKED)).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{} to {to}: {error}", host.name);
    };
    for host in [&network.laptop, &network.tv] {
        for gateway in [IpAddr::from(LAN_V4), LAN_V6.into()] {
            refused(host, (gateway, RELAY).into());
        }
    }
    // From the gateway itself: accepted, since it is loopback, and reset immediately, since no proxy is assigned.
    for loopback in ["127.0.0.1", "::1"] {
        let to = SocketAddr::new(loopback.parse().expect("an address"), RELAY);
        let connect = || TcpStream::connect_timeout(&to, TIMEOUT);
        let said = network.gateway.within(connect).and_then(|mut stream| {
            stream.set_read_timeout(Some(TIMEOUT))?;
            stream.read(&mut [0; 1])
        });
        let error = said.expect_err("reset");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    }
    // A port of the internet with the relay's port number is an ordinary port.
    let at = SocketAddr::from((server(false), RELAY));
    let listener = network.internet.within(|| TcpListener::bind(at)).expect("server");
    let _stream =
        network.laptop.namespace.within(|| TcpStream::connect_timeout(&at, TIMEOUT)).expect("connected");
    let (_, from) = listener.accept().expect("a connection");
    assert_eq!(from.ip(), network.exit_a.address(false));
    // The relay must not give access to services of the gateway that listen on all addresses.
    proxied.testbed.network.gateway.nft("delete table inet gateway").expect("the table is taken away");
    let answer = ask(&network.laptop, (server(false), 8080).into(), BLOCKED);
    // The daemon may have brought the table back meanwhile.
    let is_proxied = answer.seen().is_none_or(|address| address == network.exit_a.address(false));
    assert!(is_proxied, "{answer}");
    let is_of_gateway = matches!(&answer, Answer::Rejected { error, .. } if error.kind() == ErrorKind::Other);
    assert!(!is_of_gateway, "{answer}");
}
