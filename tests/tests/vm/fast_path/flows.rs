//! Traffic of one host in established flows: packets of the fast path and of the IP stack, and each datagram before and
//! behind the gateway.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use gateway_tests::capture::{Capture, Datagram};
use gateway_tests::netns::Namespace;
use gateway_tests::services::IDENT;
use gateway_tests::testbed::Testbed;
use gateway_tests::topology::{Host, server};
use gateway_tests::traffic::{TcpFlow, transfer};
use gateway_tests::wait::{wait_for, wait_ok};
use serde_json::Value;

/// Timeout for an emulated machine, which is slow.
const TIMEOUT: Duration = Duration::from_secs(20);
const FAMILIES: [bool; 2] = [false, true];
/// Datagrams of a round.
const ROUND: usize = 24;
const BULK_BYTES: u64 = 1 << 20;

pub(super) fn status(testbed: &Testbed) -> Value {
    testbed.api().get("/status").expect("the status")["fast_path"].clone()
}

pub(super) fn wait_until(testbed: &Testbed, on: bool) {
    let waited = wait_for(TIMEOUT, "the fast path to change", || status(testbed)["on"] == on);
    waited.unwrap_or_else(|error| panic!("{error}: {}", describe(testbed)));
}

/// Returns everything that explains a failure. The daemon's log follows it.
fn describe(testbed: &Testbed) -> String {
    let gateway = &testbed.network.gateway;
    let run = |line: &str| gateway.run("sh", &["-c", line]).unwrap_or_else(|error| format!("{error:#}\n"));
    [
        format!("\n/status: {}\n", status(testbed)),
        run("curl -s http://127.0.0.1:8080/metrics | grep -e '^gateway_fast_path' -e 'drop'"),
        run("nft list table inet stack"),
        run("ip -s link; ip addr; ip neigh; ip -6 neigh"),
        run("for dev in $(ip -br link | cut -d @ -f 1 | cut -d \" \" -f 1); do echo $dev; tc filter show dev $dev ingress; \
             tc filter show dev $dev egress; done"),
    ]
    .concat()
}

/// Packets so far: of the fast path and of the IP stack, to the server and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub fast: [u64; 2],
    pub slow: [u64; 2],
}

impl Taken {
    pub(super) fn so_far(testbed: &Testbed) -> Taken {
        let status = status(testbed);
        let fast = ["forwarded_packets", "replied_packets"];
        let listed =
            testbed.network.gateway.run("nft", &["-j", "list", "counters", "table", "inet", "stack"]);
        let listed: Value = serde_json::from_str(&listed.expect("counters")).expect("JSON");
        let slow = |name: &str| {
            let all = listed["nftables"].as_array().expect("a list");
            let mut named = all.iter().map(|one| &one["counter"]).filter(|one| one["name"] == name);
            named.next().and_then(|one| one["packets"].as_u64()).expect("a counter")
        };
        Taken { fast: fast.map(|name| status[name].as_u64().expect(name)), slow: ["there", "back"].map(slow) }
    }

    pub(super) fn since(self, before: Taken) -> Taken {
        let less = |now: [u64; 2], then: [u64; 2]| [now[0] - then[0], now[1] - then[1]];
        Taken { fast: less(self.fast, before.fast), slow: less(self.slow, before.slow) }
    }

    /// Reports whether all but a few packets of both directions took the fast path.
    fn is_fast(&self) -> bool {
        (0..2).all(|direction| self.fast[direction] > 3 * self.slow[direction])
    }
}

/// A host, and the interface behind the gateway on which its packets arrive.
pub(super) struct Path<'a> {
    pub testbed: &'a Testbed,
    pub host: &'a Host,
    pub interface: &'a str,
    pub remote: (&'a Namespace, &'a str),
    /// Source address behind the gateway.
    pub source: fn(&Testbed, bool) -> IpAddr,
    /// Source address that the server sees.
    pub seen: fn(&Testbed, bool) -> IpAddr,
}

impl Path<'_> {
    /// Asserts that flows of both families take the fast path, or none of their packets does.
    pub(super) fn assert_flows(&self, fast: bool) {
        self.set_offload("on");
        for ipv6 in FAMILIES {
            self.assert_connections(ipv6, fast);
        }
        // So that the checksums in captures are complete.
        self.set_offload("off");
        for ipv6 in FAMILIES {
            self.assert_datagrams(ipv6, fast);
        }
    }

    fn set_offload(&self, value: &str) {
        let internet = &self.testbed.network.internet;
        for (namespace, link) in [(&self.host.namespace, "eth0"), (internet, "up0"), (internet, "to-exit-a")]
        {
            namespace.run("ethtool", &["-K", link, "tx", value]).expect("an offload");
        }
    }

    /// A connection with short segments, and one with bulk data in packets that are longer than the MTU.
    fn assert_connections(&self, ipv6: bool, fast: bool) {
        let seen = (self.seen)(self.testbed, ipv6);
        let mut connection = wait_ok(TIMEOUT, "a connection", || TcpFlow::open(self.host, server(ipv6)))
            .unwrap_or_else(|error| self.fail(ipv6, &format!("{error:#}")));
        self.assert_taken(ipv6, fast, || {
            for _ in 0..ROUND {
                let answer = connection.ask(TIMEOUT);
                if answer.seen() != Some(seen) {
                    self.fail(ipv6, &format!("seen as {answer}"));
                }
            }
        });
        self.assert_taken(ipv6, fast, || {
            let moved = transfer(self.host, server(ipv6), BULK_BYTES);
            moved.unwrap_or_else(|error| self.fail(ipv6, &format!("the transfer: {error}")));
        });
    }

    fn assert_datagrams(&self, ipv6: bool, fast: bool) {
        let flow = open_flow(self.host, ipv6);
        let answered = wait_ok(TIMEOUT, "the first answer", || Ok(ask(&flow, b"first")?));
        answered.unwrap_or_else(|error| self.fail(ipv6, &format!("{error:#}")));
        let here = Capture::open(&self.host.namespace, self.interface).expect("a capture");
        let there = Capture::open(self.remote.0, self.remote.1).expect("a capture");
        self.assert_taken(ipv6, fast, || {
            let before = Taken::so_far(self.testbed);
            for number in 0..ROUND {
                let payload = vec![number as u8; 1 + 41 * number];
                let answer = ask(&flow, &payload);
                let answer = answer.unwrap_or_else(|error| self.fail(ipv6, &format!("{error}")));
                assert!(answer.ends_with(&payload), "{answer:02x?}");
            }
            let taken = Taken::so_far(self.testbed).since(before);
            let total = [0, 1].map(|direction| taken.fast[direction] + taken.slow[direction]);
            if total != [ROUND as u64; 2] {
                self.fail(ipv6, &format!("not each packet is counted once: {taken:?}"));
            }
            let [here, there] = [&here, &there].map(|capture| {
                capture.datagrams(IDENT).unwrap_or_else(|error| self.fail(ipv6, &format!("{error:#}")))
            });
            self.assert_translated(&here, &there, ipv6);
        });
    }

    /// Asserts that the packets behind the gateway are those before it, with another source and a lower hop limit.
    fn assert_translated(&self, here: &[Datagram], there: &[Datagram], ipv6: bool) {
        assert_eq!((here.len(), there.len()), (2 * ROUND, 2 * ROUND), "{here:?}\n{there:?}");
        let source = (self.source)(self.testbed, ipv6);
        for (here, there) in here.chunks(2).zip(there.chunks(2)) {
            let ([sent, received], [arrived, answered]) = (here, there) else { panic!("an odd number") };
            let client = SocketAddr::new(source, arrived.source.port());
            let hop_limit = sent.hop_limit - 1;
            assert_eq!(*arrived, Datagram { source: client, hop_limit, ..sent.clone() }, "{sent:?}");
            assert_eq!((answered.source, answered.destination), (arrived.destination, client));
            let hop_limit = answered.hop_limit - 1;
            let expected = Datagram { destination: sent.source, hop_limit, ..answered.clone() };
            assert_eq!(*received, expected, "{answered:?}");
        }
    }

    /// Repeats some traffic until it takes the fast path, or asserts that none of it does. A change in the kernel
    /// may end an entry at any time.
    fn assert_taken(&self, ipv6: bool, fast: bool, mut traffic: impl FnMut()) {
        let started = Instant::now();
        let mut rounds = Vec::new();
        loop {
            let before = Taken::so_far(self.testbed);
            traffic();
            let taken = Taken::so_far(self.testbed).since(before);
            rounds.push(taken);
            if !fast && taken.fast != [0, 0] {
                self.fail(ipv6, &format!("the fast path took packets of the IP stack: {rounds:?}"));
            }
            let is_enough = if fast { taken.is_fast() } else { rounds.len() == 2 };
            if is_enough {
                println!("{}, IPv6: {ipv6}: {rounds:?}", self.interface);
                return;
            }
            if started.elapsed() > TIMEOUT {
                self.fail(ipv6, &format!("no round took the fast path: {rounds:?}"));
            }
        }
    }

    fn fail(&self, ipv6: bool, reason: &str) -> ! {
        let (name, interface) = (self.host.name, self.interface);
        panic!("{name} at {interface}, IPv6: {ipv6}: {reason}{}", describe(self.testbed))
    }
}

pub(super) fn open_flow(host: &Host, ipv6: bool) -> UdpSocket {
    let any = if ipv6 { "[::]:0" } else { "0.0.0.0:0" };
    let socket = host.namespace.within(|| UdpSocket::bind(any)).expect("a socket");
    socket.connect((server(ipv6), IDENT)).expect("a route");
    socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
    socket
}

fn ask(flow: &UdpSocket, payload: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut buffer = [0; 2048];
    flow.send(payload)?;
    flow.recv(&mut buffer).map(|length| buffer[..length].to_vec())
}
