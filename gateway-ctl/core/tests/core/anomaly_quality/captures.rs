//! Flows and queries of hosts in public captures (`tests/data/flows`).

use gateway_core::doh_servers;

use super::traffic::{Service, Traffic};

/// Captures of traffic without an incident.
pub(super) const ORDINARY: &[&str] =
    &["chrome", "discord", "google_meet", "iphone", "stun_google_meet", "stun_zoom", "wa_voice", "zoom2"];

const CAPTURES: &str = include_str!("../../../../../tests/data/flows/captures.txt");

/// Adds the traffic of a capture, from a time of the hour on, in milliseconds.
pub(super) fn replay(name: &str, from: i64, traffic: &mut Traffic) {
    let mut lines =
        CAPTURES.lines().skip_while(|line| line.strip_prefix("= ") != Some(name)).skip(1).peekable();
    assert!(lines.peek().is_some(), "no capture {name}");
    for line in lines.take_while(|line| !line.starts_with('=')) {
        let words: Vec<&str> = line.split(' ').collect();
        let at: i64 = words[0].parse().expect("a time");
        match &words[1..] {
            ["F", protocol, address, port] => {
                let address = address.parse().expect("an address");
                let is_doh = doh_servers::networks().any(|network| network.contains(&address));
                let service = Service {
                    name: None,
                    address,
                    port: port.parse().expect("a port"),
                    protocol: protocol.parse().expect("a protocol"),
                    country: None,
                    is_doh,
                };
                traffic.flow(from + at, &service);
            }
            ["Q", name, nxdomain] => {
                let is_doh = doh_servers::NAMES.contains(name);
                traffic.query(*name, *nxdomain == "1", is_doh);
            }
            _ => panic!("{line}"),
        }
    }
}
