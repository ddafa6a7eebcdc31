//! Clients behind an uplink: a session that comes in there refuses the start of a gateway, and access to the API is an
//! exception that needs sign-in and TLS.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::Output;
use std::time::Duration;

use gateway_tests::netns::Namespace;
use gateway_tests::testbed::Testbed;
use gateway_tests::topology::{LAN_V4, wan};
use gateway_tests::wait::wait_for;
use serde_json::{Value, json};

const PORT: u16 = 8080;
const SOON: Duration = Duration::from_secs(30);
/// Timeout of a blocked connection: far longer than an open one needs.
const BLOCKED: Duration = Duration::from_millis(700);
const FAMILIES: [bool; 2] = [false, true];

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

#[test]
fn a_session_that_comes_in_by_an_uplink_refuses_the_first_start() {
    let testbed = Testbed::prepare().expect("scene");
    let network = &testbed.network;
    let run = |command: &[&str]| testbed.daemon.command(command).output().expect("gatewayd");
    let at = SocketAddr::new(wan(false), 22);
    let listener = network.gateway.within(|| TcpListener::bind(at)).expect("a port");
    let from_uplink = network.internet.within(|| TcpStream::connect(at)).expect("a session");
    let client = format!("{} to port 22", from_uplink.local_addr().expect("an address").ip());
    let accepted = listener.accept().expect("accepted");
    for command in ["preflight", "init"] {
        let output = run(&[command]);
        let text = said(&output);
        assert!(!output.status.success() && text.contains(&client) && text.contains("--yes"), "{text}");
    }
    assert!(!testbed.daemon.marker().exists(), "nothing was done");
    let output = run(&["preflight", "--yes"]);
    assert!(said(&output).contains(&client), "{}", said(&output));
    // A session from the LAN goes on.
    drop((accepted, from_uplink));
    let at = SocketAddr::new(LAN_V4.into(), 22);
    let of_lan = network.gateway.within(|| TcpListener::bind(at)).expect("a port");
    let _from_lan = network.laptop.namespace.within(|| TcpStream::connect(at)).expect("a session");
    let _accepted = of_lan.accept().expect("accepted");
    wait_for(SOON, "no session from an uplink", || {
        said(&run(&["preflight"])).contains("none comes in by an uplink")
    })
    .expect("no session is found");
    let output = run(&["init"]);
    assert!(output.status.success() && testbed.daemon.marker().exists(), "{}", said(&output));
}

/// Reports whether a connection from a namespace is accepted. A refused one reached the host as well.
fn reaches(namespace: &Namespace, address: IpAddr) -> bool {
    let at = SocketAddr::new(address, PORT);
    match namespace.within(|| TcpStream::connect_timeout(&at, BLOCKED)) {
        Ok(_) => true,
        Err(error) => {
            let is_silent = matches!(
                error.kind(),
                ErrorKind::TimedOut | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable
            );
            assert!(is_silent, "{at}: {error}");
            false
        }
    }
}

/// Starts the daemon with these settings, and waits until hosts of the LAN reach its API.
fn start(testbed: &mut Testbed, settings: &Value) {
    testbed.daemon.configure(settings).expect("configured");
    testbed.daemon.spawn().expect("started");
    let laptop = &testbed.network.laptop.namespace;
    let at = SocketAddr::new(LAN_V4.into(), PORT);
    wait_for(SOON, "the API for the LAN", || {
        laptop.within(|| TcpStream::connect_timeout(&at, BLOCKED)).is_ok()
    })
    .unwrap_or_else(|error| panic!("{error:#}\n{}", testbed.daemon.last_words()));
}

#[test]
fn the_api_is_reached_by_an_uplink_only_as_its_setting_says() {
    let mut testbed = Testbed::prepare().expect("scene");
    let access = |more: Value| {
        let mut listen = json!({"api_addr": format!("[::]:{PORT}")});
        if !more.is_null() {
            listen["wan_access"] = more;
        }
        json!({"listen": listen, "auth": {"enabled": true}, "tls": {"enabled": true}})
    };
    start(&mut testbed, &access(Value::Null));
    for ipv6 in FAMILIES {
        assert!(!reaches(&testbed.network.internet, wan(ipv6)), "closed without the setting");
    }
    let end = |testbed: &mut Testbed| {
        let status = testbed.daemon.terminate().expect("ended");
        assert!(status.success(), "{status}");
    };
    end(&mut testbed);
    start(&mut testbed, &access(json!({"enabled": true, "cidrs": ["203.0.113.0/24", "2001:db8:113::/64"]})));
    for ipv6 in FAMILIES {
        wait_for(SOON, "the API by the uplink", || reaches(&testbed.network.internet, wan(ipv6)))
            .expect("open");
    }
    let nft = testbed.network.gateway.run("nft", &["list", "table", "inet", "gateway"]).expect("rules");
    assert_eq!(nft.matches(&format!("tcp dport {PORT} accept")).count(), 2, "{nft}");
    end(&mut testbed);
    // Clients of another network.
    start(&mut testbed, &access(json!({"enabled": true, "cidrs": ["198.51.100.0/24"]})));
    wait_for(SOON, "the rule", || {
        let nft = testbed.network.gateway.run("nft", &["list", "table", "inet", "gateway"]);
        nft.is_ok_and(|nft| nft.contains("198.51.100.0/24"))
    })
    .expect("installed");
    for ipv6 in FAMILIES {
        assert!(!reaches(&testbed.network.internet, wan(ipv6)), "closed to others");
    }
    end(&mut testbed);
    // Without sign-in or TLS, the daemon does not start.
    for unsafe_part in ["auth", "tls"] {
        let mut settings = access(json!({"enabled": true}));
        settings[unsafe_part] = json!({"enabled": false});
        testbed.daemon.configure(&settings).expect("configured");
        let output = testbed.daemon.command(&["check-config"]).output().expect("gatewayd");
        let text = said(&output);
        assert!(!output.status.success() && text.contains("listen.wan_access.enabled"), "{text}");
    }
}
