//! Traffic of a device in an hour, and the randomness of it.

use std::net::{IpAddr, Ipv4Addr};

use gateway_core::anomalies::{AnomalyEngine, FlowSeen, QuerySeen};
use gateway_core::countries::CountryCode;
use gateway_core::flow_log::FlowId;
use gateway_model::Id;
use jiff::{SignedDuration, Timestamp};

/// Random numbers that are the same in each run (SplitMix64).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        // Seeds that follow one another would give the same numbers, one place apart.
        let first = Random(seed).next();
        Random(first)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    pub(super) fn is_one_in(&mut self, number: u64) -> bool {
        self.below(number) == 0
    }

    /// Returns a value around another one: mostly near it, rarely several times as much.
    pub(super) fn around(&mut self, value: f64) -> f64 {
        let spread = (0..4).map(|_| self.below(1000) as f64 / 1000.0 - 0.5).sum::<f64>();
        value * (spread * 0.9).exp()
    }

    pub(super) fn choose<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }
}

/// Place that is connected to.
#[derive(Clone, Debug)]
pub(super) struct Service {
    pub name: Option<String>,
    pub address: IpAddr,
    pub port: u16,
    pub protocol: u8,
    pub country: Option<CountryCode>,
    pub is_doh: bool,
}

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;

impl Service {
    /// Returns a service of HTTPS whose name has several addresses.
    pub(super) fn web(number: u64, country: &str, random: &mut Random) -> Service {
        let host = random.below(8) as u8;
        let address = Ipv4Addr::new(100 + (number >> 8) as u8 % 50, number as u8, (number % 7) as u8, host);
        Service {
            name: Some(format!("www.site-{number}.example")),
            address: address.into(),
            port: 443,
            protocol: TCP,
            country: country.parse().ok(),
            is_doh: false,
        }
    }

    /// Returns a service at an address of its own, without a name.
    pub(super) fn unnamed(random: &mut Random, port: u16, protocol: u8, country: &str) -> Service {
        let [a, b, c, d, ..] = random.next().to_le_bytes();
        let address = Ipv4Addr::new(151 + a % 40, b, c, d).into();
        Service { name: None, address, port, protocol, country: country.parse().ok(), is_doh: false }
    }
}

/// Traffic of a device in an hour.
pub(super) struct Traffic {
    begin: Timestamp,
    pub sent: u64,
    queries: Vec<(String, bool, bool)>,
    flows: Vec<(i64, Service)>,
}

impl Traffic {
    pub(super) fn new(begin: Timestamp) -> Traffic {
        Traffic { begin, sent: 0, queries: Vec::new(), flows: Vec::new() }
    }

    pub(super) fn query(&mut self, name: impl Into<String>, nxdomain: bool, is_doh: bool) {
        self.queries.push((name.into(), nxdomain, is_doh));
    }

    pub(super) fn queries(&mut self, count: u64, name: &str) {
        (0..count).for_each(|_| self.query(name, false, false));
    }

    /// Begins a flow at a time of the hour, in milliseconds.
    pub(super) fn flow(&mut self, at: i64, service: &Service) {
        self.flows.push((at.clamp(0, 3_599_000), service.clone()));
    }

    /// Begins a flow at any time of the hour.
    pub(super) fn some_flow(&mut self, random: &mut Random, service: &Service) {
        self.flow(random.below(3_590_000) as i64, service);
    }

    /// Begins flows at regular intervals, in seconds.
    pub(super) fn beacon(&mut self, random: &mut Random, service: &Service, interval: i64) {
        let mut at = random.below(30_000) as i64;
        while at < 3_590_000 {
            self.flow(at, service);
            at += interval * 1000 + random.below(1000 + interval as u64 * 20) as i64;
        }
    }

    /// Shows the traffic to the engine.
    pub(super) fn observe(mut self, engine: &mut AnomalyEngine, device: Id) {
        engine.note_sent(device, self.sent);
        for (name, nxdomain, is_doh) in &self.queries {
            engine.note_query(device, &QuerySeen { name, nxdomain: *nxdomain, is_doh: *is_doh });
        }
        self.flows.sort_by_key(|(at, _)| *at);
        for (number, (at, service)) in self.flows.iter().enumerate() {
            let start = self.begin + SignedDuration::from_millis(*at);
            let Service { name, address, port, protocol, country, is_doh } = service;
            let flow = FlowSeen {
                id: FlowId::new(start, &number.to_le_bytes()),
                destination: *address,
                port: *port,
                protocol: *protocol,
                name: name.as_deref(),
                country: *country,
                is_doh: *is_doh,
                is_local: false,
            };
            engine.note_flow(device, &flow);
        }
    }
}
