//! Blocks protocols that would reveal names or addresses past the policies.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use anyhow::{Context, Result};
use gateway_tests::topology::{Host, server};
use serde_json::json;

use super::{Walk, text};

/// Address of a public resolver, which the internet of the demonstration has for itself.
const PUBLIC_RESOLVER: Ipv4Addr = Ipv4Addr::new(1, 1, 1, 1);
const TIMEOUT: Duration = Duration::from_secs(2);

impl Walk {
    pub(super) fn block_protocols(&mut self) -> Result<()> {
        self.console.step("privacy", "DNS over HTTPS to a public resolver, and STUN as of a video call");
        let internet = &self.testbed.network.internet;
        internet.ip(&format!("address add {PUBLIC_RESOLVER}/32 dev lo\n"))?;
        let https = SocketAddr::from((PUBLIC_RESOLVER, 443));
        let resolver = internet.within(|| TcpListener::bind(https)).context("a public resolver")?;
        let call = SocketAddr::from((server(false), 50_000));
        let peer = internet.within(|| UdpSocket::bind(call)).context("the peer of a call")?;
        peer.set_read_timeout(Some(TIMEOUT))?;
        for (is_blocked, word) in [(false, "yes"), (true, "no")] {
            if is_blocked {
                for (path, body) in
                    [("block-doh", json!({"enabled": true})), ("block-webrtc", json!({"mode": "block"}))]
                {
                    self.console.call(&self.curl("POST", &format!("/privacy/{path}"), Some(&body)))?;
                }
                self.console.call(&self.curl("POST", "/enforce/reconcile", None))?;
            }
            let tv = &self.testbed.network.tv;
            let (connects, arrives) = (connects(tv, https), arrives(tv, call, &peer)?);
            self.console.claim("the tv connects to 1.1.1.1 port 443", word, connects);
            self.console.claim("its STUN request arrives", word, arrives);
            self.check_for_leaks(is_blocked)?;
        }
        drop(resolver);
        let question =
            json!({"mac": self.testbed.network.tv.mac, "destination": "1.1.1.1:443", "protocol": "tcp"});
        let answer = self.console.call(&self.curl("POST", "/policy/evaluate", Some(&question)))?;
        self.console.say(text(&answer["sentence"]));
        let monitor = self.console.call(&self.curl("GET", "/privacy/leak-monitor", None))?;
        let counter = |name: &str| {
            let policies = monitor["counters"].as_array().into_iter().flatten();
            policies.filter_map(|policy| policy[name].as_u64()).sum::<u64>()
        };
        self.console.say(format!(
            "counted: {} packets to resolvers, {} of STUN",
            counter("doh_hits"),
            counter("stun_blocked")
        ));
        self.console.claim("packets that the egress guard had to drop", 0, counter("wrong_egress_packets"));
        for path in ["block-doh", "block-webrtc"] {
            let body = json!({"enabled": false});
            self.console.call(&self.curl("POST", &format!("/privacy/{path}"), Some(&body)))?;
        }
        self.console.call(&self.curl("POST", "/enforce/reconcile", None))?;
        // It has seen the tv.
        self.testbed.network.tap.reset();
        Ok(())
    }

    /// Sends probes as a host that the gateway does not know, and shows which of them leave.
    fn check_for_leaks(&mut self, is_blocked: bool) -> Result<()> {
        let checks = json!({"checks": ["doh", "webrtc", "route"]});
        let report = self.console.call(&self.curl("POST", "/privacy/leak-check", Some(&checks)))?;
        for result in report["results"].as_array().into_iter().flatten() {
            let (check, observed) = (text(&result["check"]), text(&result["observed"]));
            self.console.say(format!("leak check {check}: {observed}"));
        }
        let left = |check: &str| {
            let mut results = report["results"].as_array().into_iter().flatten();
            let packets = results.find(|result| result["check"] == check).map(|result| &result["packets"]);
            packets.and_then(|packets| packets.as_array()).is_some_and(|packets| !packets.is_empty())
        };
        let expected = if is_blocked { "pass, none left" } else { "pass, all left as expected" };
        let words = match (left("doh"), left("webrtc")) {
            (false, false) => "none left",
            (true, true) => "all left as expected",
            _ => "some left",
        };
        let verdict = text(&report["verdict"]);
        self.console.claim(
            "the leak check's verdict on DoH and STUN",
            expected,
            format!("{verdict}, {words}"),
        );
        Ok(())
    }
}

fn connects(host: &Host, to: SocketAddr) -> &'static str {
    let connection = host.namespace.within(|| TcpStream::connect_timeout(&to, TIMEOUT));
    if connection.is_ok() { "yes" } else { "no" }
}

/// Sends a binding request without attributes (RFC 8489, section 6).
fn arrives(host: &Host, to: SocketAddr, peer: &UdpSocket) -> Result<&'static str> {
    let request = [&[0u8, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42][..], &[7; 12]].concat();
    let socket = host.namespace.within(|| UdpSocket::bind("0.0.0.0:0"))?;
    socket.send_to(&request, to)?;
    Ok(if peer.recv_from(&mut [0; 64]).is_ok() { "yes" } else { "no" })
}
