//! Traces of hosts after a wipe: everything that a host was observed by is gone from each answer of the API and from
//! each file.

use std::time::Duration;

use anyhow::ensure;
use gateway_tests::dhcp::{DISCOVER, OFFER, REQUEST, Relay, address_option};
use gateway_tests::dns::{A, Client, Upstream};
use gateway_tests::name_server;
use gateway_tests::testbed::Testbed;
use gateway_tests::topology::{Host, LAN_V4, server};
use gateway_tests::traffic::ask_server;
use gateway_tests::wait::wait_ok;
use serde_json::json;

use super::traces::is_in;

/// Area, method and path of each endpoint.
const ENDPOINTS: [&str; 2] =
    [include_str!("../../contract/endpoints.tsv"), include_str!("../../contract/additions.tsv")];
const SOON: Duration = Duration::from_secs(45);
const VISITED: &str = "a-visited-name.example";
/// Name that the host gives itself by DHCP.
const HOST_NAME: &str = "phone-of-a-guest";
const MAC: [u8; 6] = [0x02, 0, 0, 0x5e, 0xc7, 0xe7];
const OTHER_MAC: [u8; 6] = [0x02, 0, 0, 0x5e, 0xc7, 0xe8];
const MAC_TEXT: &str = "02:00:00:5e:c7:e7";

/// Host that was there, and what names it: its name, its addresses, and what it has visited.
struct Guest {
    testbed: Testbed,
    _upstream: Upstream,
    traces: Vec<String>,
}

impl Guest {
    /// Returns a gateway that has observed a host in every way, and whose LAN the host has left.
    fn has_left() -> Guest {
        let mut testbed = Testbed::prepare().expect("scene");
        let upstream = Upstream::start(&testbed.network.internet).expect("upstream");
        let settings = json!({"dns": {"upstream_servers": [name_server::ADDRESS]}});
        testbed.daemon.configure(&settings).expect("configured");
        testbed.daemon.start().expect("daemon");
        let host = testbed.network.add_host("guest", MAC_TEXT, 77).expect("a host");
        let leased = lease(&testbed, &host);
        Client::of(&host, LAN_V4.into()).expect("client").ask(VISITED, A).expect("an answer");
        let mut traces: Vec<String> =
            [MAC_TEXT, HOST_NAME, VISITED].iter().map(|text| (*text).to_owned()).collect();
        traces.extend([host.v4.to_string(), host.v6.to_string(), leased]);
        let guest = Guest { testbed, _upstream: upstream, traces };
        wait_ok(SOON, "everything to be observed", || {
            // The verdicts on new flows are sampled.
            for ipv6 in [false, true] {
                ensure!(ask_server(&host, server(ipv6)).seen().is_some(), "no answer");
            }
            let answers = guest.answers()?;
            for trace in &guest.traces {
                ensure!(answers.iter().any(|(_, text)| text.contains(trace)), "{trace} is nowhere");
            }
            for (path, trace) in [("/render", &guest.traces[3]), ("/hosts", &guest.traces[0])] {
                let answer = answers.iter().find(|(answered, _)| answered == path);
                ensure!(answer.is_some_and(|(_, text)| text.contains(trace)), "{trace} is not at {path}");
            }
            Ok(())
        })
        .expect("observed");
        drop(host);
        guest.testbed.network.gateway.ip("neighbour flush dev eth1").expect("flushed");
        guest
    }

    /// Returns the answer to each GET without parameters that succeeds.
    fn answers(&self) -> anyhow::Result<Vec<(String, String)>> {
        let api = self.testbed.api();
        let mut answers = Vec::new();
        for line in ENDPOINTS.iter().flat_map(|endpoints| endpoints.lines()) {
            let mut fields = line.split('\t').skip(1);
            let (Some("GET"), Some(path)) = (fields.next(), fields.next()) else { continue };
            // Streams do not end. Paths outside of the API root answer 404 here: `/metrics` is not searched.
            if path.contains('{') || path.starts_with("/events") || path.ends_with("/stream") {
                continue;
            }
            answers.push((path.to_owned(), api.text(path)?));
        }
        ensure!(answers.len() > 90, "only {} answers", answers.len());
        Ok(answers)
    }

    fn wipe(&self, level: &str) {
        self.testbed.api().post("/system/wipe", &json!({"level": level})).expect("wiped");
    }

    /// Asserts that no answer and no file has a trace. A round of observation that was under way may end first.
    fn assert_forgotten(&self) {
        let folder = self.testbed.daemon.state_directory();
        wait_ok(SOON, "no trace", || {
            for (path, text) in self.answers()? {
                let found = self.traces.iter().find(|trace| text.contains(*trace));
                ensure!(found.is_none(), "{path} names {found:?}: {text}");
            }
            for trace in &self.traces {
                ensure!(!is_in(&folder, trace), "a file names {trace}");
            }
            Ok(())
        })
        .expect("forgotten");
    }
}

/// Makes a host get an address under its name. Returns the address.
fn lease(testbed: &Testbed, host: &Host) -> String {
    let settings = json!({
        "enabled": true, "interface": "eth1", "lease_sec": 600,
        "range_start": "192.168.10.180", "range_end": "192.168.10.189",
    });
    testbed.api().put("/dhcp", &settings).expect("enabled");
    let relay = Relay::on(host, Duration::from_secs(2)).expect("a relay");
    let name = [&[12, u8::try_from(HOST_NAME.len()).expect("short")][..], HOST_NAME.as_bytes()].concat();
    wait_ok(SOON, "a lease", || {
        // The first address of the range is in the settings, which a soft wipe keeps.
        relay.lease(OTHER_MAC).ok_or_else(|| anyhow::anyhow!("no lease of another host"))?;
        let offer = relay.ask(MAC, DISCOVER, &[&name]).filter(|offer| offer.kind == OFFER);
        let offer = offer.ok_or_else(|| anyhow::anyhow!("no offer"))?;
        let (from, address) = (address_option(54, LAN_V4), address_option(50, offer.address));
        let ack = relay.ask(MAC, REQUEST, &[&from, &address, &name]);
        ensure!(ack.is_some(), "no acknowledgement");
        Ok(offer.address.to_string())
    })
    .expect("leased")
}

#[test]
fn soft_wipe_takes_what_was_observed_of_hosts_with_it() {
    let guest = Guest::has_left();
    guest.wipe("soft");
    guest.assert_forgotten();
}

#[test]
fn medium_wipe_takes_what_was_observed_of_hosts_with_it() {
    let guest = Guest::has_left();
    guest.wipe("medium");
    guest.assert_forgotten();
}
