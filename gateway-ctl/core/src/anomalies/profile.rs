//! Profile of one device: its values of earlier weeks, and its traffic in this hour.

use std::collections::BTreeSet;

use gateway_model::kinds::anomaly::AnomalyKind;
use serde::{Deserialize, Serialize};

use super::baseline::{Baseline, BaselineBasis, Samples};
use super::finding::Detected;
use super::flows::{HourFlows, MAX_ADDRESSES, MAX_PORTS, MIN_BEACONS};
use super::queries::{HourQueries, MAX_BELOW_DOMAIN, MAX_GENERATED};

/// Bytes, queries and answers below which nothing is an anomaly.
const UPLOAD_FLOOR: f64 = 50.0 * 1024.0 * 1024.0;
const NIGHT_FLOOR: u64 = 1024 * 1024;
const QUERIES_FLOOR: f64 = 500.0;
const NXDOMAIN_FLOOR: f64 = 100.0;
/// First hour of the day.
const MORNING: usize = 6;
/// Ports that are remembered of a device.
const MAX_KNOWN_PORTS: usize = 512;
/// Ports from here on are chosen by chance.
const FIRST_EPHEMERAL: u16 = 32_768;

/// Device that is observed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Profile {
    /// Hours that were observed from begin to end.
    pub hours: u32,
    /// Bytes that it sent, by hour.
    pub sent: Samples,
    /// Its DNS queries, by hour.
    pub queries: Samples,
    /// Of these, those for names that do not exist.
    pub nxdomain: Samples,
    /// Ports to which it has connected.
    ports: BTreeSet<u16>,
    #[serde(skip)]
    hour: Hour,
}

/// Observations of an hour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hour {
    pub sent: u64,
    pub queries: HourQueries,
    pub flows: HourFlows,
    new_ports: BTreeSet<u16>,
    pub is_spoofed: bool,
}

/// Circumstances of a check.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check {
    /// Hour of the week.
    pub hour: usize,
    pub is_learning: bool,
    pub large_upload: u64,
}

impl Profile {
    /// Returns the profile of a device that was observed for some hours.
    pub fn known(hours: u32, sent: Samples, queries: Samples, nxdomain: Samples) -> Profile {
        Profile { hours, sent, queries, nxdomain, ..Profile::default() }
    }

    pub(super) fn hour(&mut self) -> &mut Hour {
        &mut self.hour
    }

    /// Notes the port of a flow.
    pub(super) fn note_port(&mut self, port: u16, is_learning: bool) {
        if port >= FIRST_EPHEMERAL || port == 0 || self.ports.contains(&port) {
            return;
        }
        if !is_learning && self.hour.new_ports.len() < MAX_PORTS {
            self.hour.new_ports.insert(port);
        }
        if self.ports.len() < MAX_KNOWN_PORTS {
            self.ports.insert(port);
        }
    }

    /// Ends an hour. Its values enter the baseline if it was observed from begin to end.
    pub(super) fn end_hour(&mut self, hour: usize, is_whole: bool) {
        let ended = std::mem::take(&mut self.hour);
        if is_whole {
            self.sent.push(hour, ended.sent);
            self.queries.push(hour, ended.queries.count);
            self.nxdomain.push(hour, ended.queries.nxdomain);
            self.hours = self.hours.saturating_add(1);
        }
    }

    /// Returns what is an anomaly in this hour.
    pub(super) fn check(&self, check: Check) -> Vec<Detected> {
        let mut found = Vec::new();
        self.check_traffic(check, &mut found);
        self.check_queries(check, &mut found);
        self.check_flows(&mut found);
        if self.hour.is_spoofed {
            let description = "Its MAC address is online at two interfaces at once.".to_owned();
            found.push(Detected {
                kind: AnomalyKind::MacSpoof,
                observed: 2.0,
                unit: "interfaces",
                baseline: None,
                rests_on: "hosts",
                description,
            });
        }
        found
    }

    fn check_traffic(&self, check: Check, found: &mut Vec<Detected>) {
        let sent = self.hour.sent;
        let detected = |kind, baseline, description| Detected {
            kind,
            observed: sent as f64,
            unit: "bytes",
            baseline: Some(baseline),
            rests_on: "device_counters",
            description,
        };
        if sent >= check.large_upload {
            let text = format!("It has sent {} MiB within an hour.", sent >> 20);
            found.push(detected(AnomalyKind::LargeUpload, fixed(check.large_upload as f64), text));
        }
        if check.is_learning {
            return;
        }
        if let Some(baseline) = exceeded(&self.sent, check.hour, sent, UPLOAD_FLOOR) {
            let usual = baseline.median as u64 >> 20;
            let text = format!("It has sent {} MiB in this hour, usually {usual} MiB.", sent >> 20);
            found.push(detected(AnomalyKind::AbnormalUpload, baseline, text));
        }
        let is_night = check.hour % 24 < MORNING;
        if is_night && let Some(mut baseline) = exceeded(&self.sent, check.hour, sent, NIGHT_FLOOR as f64) {
            let is_quiet = baseline.median * 10.0 < NIGHT_FLOOR as f64;
            if is_quiet && baseline.basis != BaselineBasis::AllHours {
                baseline.threshold = baseline.threshold.max(NIGHT_FLOOR as f64);
                let text = format!("It has sent {} MiB at night, when it is usually quiet.", sent >> 20);
                found.push(detected(AnomalyKind::NightActivity, baseline, text));
            }
        }
    }

    fn check_queries(&self, check: Check, found: &mut Vec<Detected>) {
        let queries = &self.hour.queries;
        let detected = |kind, observed, unit, baseline, description| Detected {
            kind,
            observed,
            unit,
            baseline,
            rests_on: "query_log",
            description,
        };
        if !check.is_learning {
            if let Some(baseline) = exceeded(&self.queries, check.hour, queries.count, QUERIES_FLOOR) {
                let text =
                    format!("{} DNS queries in this hour, usually {:.0}.", queries.count, baseline.median);
                let count = queries.count as f64;
                found.push(detected(AnomalyKind::DnsVolume, count, "queries", Some(baseline), text));
            }
            if let Some(baseline) = exceeded(&self.nxdomain, check.hour, queries.nxdomain, NXDOMAIN_FLOOR) {
                let text = format!(
                    "{} queries in this hour for names that do not exist, usually {:.0}.",
                    queries.nxdomain, baseline.median
                );
                let count = queries.nxdomain as f64;
                found.push(detected(AnomalyKind::DnsNxdomainBurst, count, "queries", Some(baseline), text));
            }
        }
        let generated = queries.generated();
        if generated >= MAX_GENERATED {
            let text = format!("Queries for {generated} names that look generated and do not exist.");
            let limit = Some(fixed(MAX_GENERATED as f64));
            found.push(detected(AnomalyKind::DgaLike, generated as f64, "names", limit, text));
        }
        if let Some((domain, names)) = queries.tunnel().filter(|(_, names)| *names >= MAX_BELOW_DOMAIN) {
            let text = format!("Queries for {names} long names below {domain}.");
            let limit = Some(fixed(MAX_BELOW_DOMAIN as f64));
            found.push(detected(AnomalyKind::DnsTunnelLike, names as f64, "names", limit, text));
        }
        if let Some(name) = &queries.doh {
            let text = format!("It looks up {name}, a public resolver of DNS over HTTPS.");
            found.push(detected(AnomalyKind::DohUsage, 1.0, "queries", None, text));
        }
    }

    fn check_flows(&self, found: &mut Vec<Detected>) {
        let flows = &self.hour.flows;
        let mut add = |kind, observed: usize, unit, baseline, description| {
            let observed = observed as f64;
            found.push(Detected { kind, observed, unit, baseline, rests_on: "flow_log", description });
        };
        let (ports, addresses) = flows.scan();
        if let Some((address, count)) = ports.filter(|(_, count)| *count >= MAX_PORTS) {
            let text = format!("Connections to {count} ports of {address}.");
            add(AnomalyKind::PortScan, count, "ports", Some(fixed(MAX_PORTS as f64)), text);
        } else if let Some((port, count)) = addresses.filter(|(_, count)| *count >= MAX_ADDRESSES) {
            let text = format!("Connections to port {port} of {count} addresses.");
            add(AnomalyKind::PortScan, count, "addresses", Some(fixed(MAX_ADDRESSES as f64)), text);
        }
        if let Some(((address, port), interval)) = flows.beacon() {
            let text = format!("Connections to {address} port {port} every {interval} s.");
            add(AnomalyKind::Beaconing, MIN_BEACONS, "connections", None, text);
        }
        if let Some((address, port)) = flows.tunnel {
            let text = format!("A connection to {address} port {port}, which Tor or VPNs use.");
            add(AnomalyKind::TorOrVpnUsage, 1, "connections", None, text);
        }
        if let Some(address) = flows.doh {
            let text = format!("A connection to {address}, a public resolver of DNS over HTTPS.");
            add(AnomalyKind::DohUsage, 1, "connections", None, text);
        }
        if !self.hour.new_ports.is_empty() {
            let ports: Vec<String> = self.hour.new_ports.iter().map(u16::to_string).collect();
            let text = format!("First connections to port {}.", ports.join(", "));
            add(AnomalyKind::NewPort, ports.len(), "ports", None, text);
        }
    }

    /// Returns the bytes of memory that the profile takes, at most.
    pub fn bytes(&self) -> usize {
        let samples = self.sent.bytes() + self.queries.bytes() + self.nxdomain.bytes();
        let ports = 8 * (self.ports.len() + self.hour.new_ports.len());
        size_of::<Profile>() + samples + ports + self.hour.queries.bytes() + self.hour.flows.bytes()
    }
}

fn exceeded(samples: &Samples, hour: usize, value: u64, floor: f64) -> Option<Baseline> {
    let value = value as f64;
    if value < floor {
        return None;
    }
    samples.baseline(hour, floor).filter(|baseline| value >= baseline.threshold)
}

/// Returns the baseline of a threshold that is the same for all devices.
fn fixed(threshold: f64) -> Baseline {
    Baseline { median: 0.0, deviation: 0.0, samples: 0, basis: BaselineBasis::Fixed, threshold }
}
