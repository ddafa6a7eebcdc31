//! One host that fills the conntrack table through a server that completes its handshakes.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use gateway_tests::alerts::{wait_for_alert, wait_for_end};
use gateway_tests::services::HTTP;
use gateway_tests::testbed::Testbed;
use gateway_tests::topology::{server, wan};
use gateway_tests::traffic::ask;
use gateway_tests::wait::wait_ok;
use serde_json::json;

use crate::e2e::{SOON, assert_direct};

/// The smallest limit that can be configured. The kernel's own is larger, and only the first namespace can change it.
const LIMIT: usize = 1024;
const CONNECTIONS: usize = 1500;
const PORT: u16 = 7020;
/// Time without a cut after which the alert ends, with some reserve.
const CALM: Duration = Duration::from_secs(120);
const CONNECT: Duration = Duration::from_secs(5);

#[test]
fn host_that_fills_the_connection_table_loses_its_own_connections_and_no_others() {
    let mut testbed = Testbed::prepare().expect("scene");
    testbed.daemon.configure(&json!({"dataplane": {"conntrack_max": LIMIT}})).expect("configuration");
    testbed.daemon.start().expect("daemon");
    let network = &testbed.network;
    let timeout = "/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established";
    assert_eq!(network.gateway.run("cat", &[timeout]).expect("a setting").trim(), "7440");
    assert_direct(&network.tv);
    let kept = connect(&testbed, false).expect("a connection of the quiet host");

    let listener = network.internet.within(|| TcpListener::bind((server(false), PORT))).expect("a server");
    let accepting = std::thread::spawn(move || -> Vec<TcpStream> {
        listener.incoming().take(CONNECTIONS).filter_map(Result::ok).collect()
    });
    let target = SocketAddr::from((server(false), PORT));
    let held: Vec<TcpStream> = network.laptop.namespace.within(|| {
        let connect = |_| TcpStream::connect_timeout(&target, CONNECT);
        (0..CONNECTIONS).map(connect).collect::<Result<_, _>>().expect("all handshakes")
    });

    wait_ok(SOON, "the table to have room again", || {
        let entries = entries(&testbed);
        anyhow::ensure!(entries < LIMIT / 100 * 70, "{entries} entries");
        Ok(())
    })
    .expect("cut");
    let alert = wait_for_alert(testbed.api(), "conntrack_full", "conntrack", SOON).expect("an alert");
    let message = alert["message"].as_str().expect("a message");
    assert!(message.contains(&network.laptop.v4.to_string()), "the largest holder: {message}");
    // The quiet host has its connection still, and gets new ones.
    let entry = format!("sport={}", kept.local_addr().expect("an address").port());
    assert!(table(&testbed).contains(&entry), "{entry}");
    for ipv6 in [false, true] {
        let answer = ask(&network.tv, (server(ipv6), HTTP).into(), SOON);
        assert_eq!(answer.seen(), Some(wan(ipv6)), "{answer}");
    }
    drop((held, kept));
    drop(accepting.join());
    wait_for_end(testbed.api(), &alert, CALM).expect("it ended");
}

/// Opens a connection of the quiet host to the HTTP server.
fn connect(testbed: &Testbed, ipv6: bool) -> std::io::Result<TcpStream> {
    let target = SocketAddr::from((server(ipv6), HTTP));
    testbed.network.tv.namespace.within(|| TcpStream::connect_timeout(&target, CONNECT))
}

fn entries(testbed: &Testbed) -> usize {
    let file = "/proc/sys/net/netfilter/nf_conntrack_count";
    let text = testbed.network.gateway.run("cat", &[file]).expect("a number");
    text.trim().parse().expect("a number")
}

fn table(testbed: &Testbed) -> String {
    testbed.network.gateway.run("cat", &["/proc/net/nf_conntrack"]).expect("the table")
}
