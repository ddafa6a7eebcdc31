//! Privacy blocks and real clients: programs of others that reveal names or addresses, and a browser.
//!
//! The laptop gets one block after the other, and then all of them. The tv has none. All clients run on both at once.

mod browsers;
mod fixture;
mod open_page;
mod programs;

use std::thread::scope;
use std::time::Duration;

use gateway_tests::testbed::create;
use gateway_tests::topology::Host;
use serde_json::{Value, json};

use fixture::Fixture;

/// Time after which a client counts as stopped that should get an answer.
const LONG: Duration = Duration::from_secs(30);
/// The same for one that should get none: far longer than it needs without a block. Programs count in seconds.
const SHORT: Duration = Duration::from_secs(2);

/// Result of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Succeeded,
    /// The resolver of the gateway answered in place of the one that was asked.
    Redirected,
    /// The page came, but not by HTTP/3.
    FellBack,
    Stopped,
}

use Outcome::{FellBack, Redirected, Stopped, Succeeded};

/// A client, and its outcome with and without blocks.
struct Client {
    name: &'static str,
    run: fn(&Fixture, &Host, Duration) -> Outcome,
    /// Fields of a privacy class, each of which affects the client.
    blocks: &'static [&'static str],
    /// Outcome with any of these blocks. Without them the client succeeds.
    blocked: Outcome,
}

const fn client(
    name: &'static str,
    run: fn(&Fixture, &Host, Duration) -> Outcome,
    blocks: &'static [&'static str],
    blocked: Outcome,
) -> Client {
    Client { name, run, blocks, blocked }
}

const CLIENTS: &[Client] = &[
    client("dig", |_, host, time| programs::dig(host, time, None), &["force_dns"], Redirected),
    client("dig +tcp", |_, host, time| programs::dig(host, time, Some("+tcp")), &["force_dns"], Redirected),
    client(
        "dig +tls",
        |_, host, time| programs::dig(host, time, Some("+tls")),
        &["force_dns", "block_dot"],
        Stopped,
    ),
    client("dig +https", |_, host, time| programs::dig(host, time, Some("+https")), &["block_doh"], Stopped),
    client("curl with DoH at a known address", programs::curl_doh_by_address, &["block_doh"], Stopped),
    client("curl with DoH under a known name", programs::curl_doh_by_name, &["block_doh"], Stopped),
    client("curl", programs::curl, &[], Stopped),
    client("QUIC client", programs::quic, &["block_quic"], Stopped),
    client("STUN client", programs::stun, &["webrtc"], Stopped),
    client("ping -4", |_, host, time| programs::ping(host, time, false), &[], Stopped),
    client("ping -6", |_, host, time| programs::ping(host, time, true), &["block_ipv6"], Stopped),
    client("HTTP/3 page in Chromium", browsers::load_page, &["block_quic"], FellBack),
    client("WebRTC in Chromium", browsers::call_peer, &["webrtc"], Stopped),
];

/// Blocks of a privacy class.
const BLOCKS: &[&str] = &["force_dns", "block_dot", "block_doh", "block_quic", "block_ipv6", "webrtc"];

impl Client {
    fn expected(&self, blocks: &[&str]) -> Outcome {
        if self.blocks.iter().any(|block| blocks.contains(block)) { self.blocked } else { Succeeded }
    }

    /// Runs the client, and returns a sentence if the outcome is another one.
    fn problem(&self, fixture: &Fixture, host: &Host, blocks: &[&str]) -> Option<String> {
        let expected = self.expected(blocks);
        let time = match expected {
            Succeeded | Redirected => LONG,
            FellBack | Stopped => SHORT,
        };
        let outcome = (self.run)(fixture, host, time);
        (outcome != expected).then(|| {
            format!(
                "{} of the {} with {blocks:?}: {outcome:?} in place of {expected:?}",
                self.name, host.name
            )
        })
    }
}

/// Runs all clients on both devices at once, the laptop with these blocks.
fn check_clients(fixture: &Fixture, blocks: &[&str]) {
    let network = &fixture.testbed.network;
    let problems: Vec<String> = scope(|scope| {
        let running: Vec<_> = [(&network.laptop, blocks), (&network.tv, &[])]
            .into_iter()
            .flat_map(|(host, blocks)| CLIENTS.iter().map(move |client| (host, blocks, client)))
            .map(|(host, blocks, client)| scope.spawn(move || client.problem(fixture, host, blocks)))
            .collect();
        running.into_iter().filter_map(|client| client.join().expect("a client ended")).collect()
    });
    assert!(problems.is_empty(), "{problems:#?}");
}

/// Creates a privacy class with one block.
fn create_class(fixture: &Fixture, block: &str) -> String {
    let value: Value = if block == "webrtc" { json!("block") } else { json!(true) };
    let class = json!({"name": format!("with {block}"), block: value});
    create(fixture.testbed.api(), "/privacy-classes", &class).expect("a class")
}

#[test]
fn each_block_stops_its_clients_and_no_others() {
    let fixture = Fixture::build();
    check_clients(&fixture, &[]);
    for block in BLOCKS {
        fixture.set_class_of_laptop(&create_class(&fixture, block));
        check_clients(&fixture, &[block]);
    }
    fixture.set_class_of_laptop("isolated");
    check_clients(&fixture, BLOCKS);
    fixture.set_class_of_laptop("open");
    check_clients(&fixture, &[]);
}
