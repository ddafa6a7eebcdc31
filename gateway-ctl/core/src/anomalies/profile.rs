//! Profile of one device: its values of earlier weeks, and its traffic in this hour.

use std::collections::BTreeSet;

use gateway_model::kinds::anomaly::AnomalyKind;
use serde::{Deserialize, Serialize};

use super::baseline::{Baseline, BaselineBasis, Samples};
use super::destinations::{KnownDestinations, NewDestinations};
use super::finding::Detected;
use super::flows::{self, Beacon, FlowSeen, HourFlows, MAX_ADDRESSES, MAX_PORTS, MIN_BEACONS};
use super::observation_source::ObservationSource;
use super::queries::{HourQueries, MAX_BELOW_DOMAIN, MAX_GENERATED};
use super::sets::MAX_FLOWS;
use crate::flow_log::FlowId;

/// Bytes, queries and answers below which nothing is an anomaly.
const UPLOAD_FLOOR: f64 = 50.0 * 1024.0 * 1024.0;
/// Factor by which an upload exceeds what the device has sent in an hour before, once apart.
const RARE_FACTOR: f64 = 2.0;
const NIGHT_FLOOR: u64 = 1024 * 1024;
const QUERIES_FLOOR: f64 = 500.0;
const NXDOMAIN_FLOOR: f64 = 100.0;
/// First hour of the day.
const MORNING: usize = 6;
/// Ports from here on are chosen by chance.
const FIRST_EPHEMERAL: u16 = 32_768;

/// Device that is observed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Profile {
    /// Hours that were observed from begin to end.
    pub hours: u32,
    /// Of these, those in which its flows, and the countries of their destinations, were observed.
    pub flow_hours: u32,
    pub country_hours: u32,
    /// Bytes that it sent, by hour.
    pub sent: Samples,
    /// Its DNS queries, by hour.
    pub queries: Samples,
    /// Of these, those for names that do not exist.
    pub nxdomain: Samples,
    /// Destinations that it uses.
    known: KnownDestinations,
    #[serde(skip)]
    hour: Hour,
}

/// Observations of an hour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hour {
    pub sent: u64,
    pub queries: HourQueries,
    pub flows: HourFlows,
    new: NewDestinations,
    pub is_spoofed: bool,
}

/// Circumstances of a check.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check {
    /// Hour of the week.
    pub hour: usize,
    pub is_learning: bool,
    /// Its flows are still learned.
    pub is_learning_flows: bool,
    pub large_upload: u64,
}

impl Profile {
    /// Returns the profile of a device that was observed for some hours.
    pub fn known(hours: u32, sent: Samples, queries: Samples, nxdomain: Samples) -> Profile {
        let (flow_hours, country_hours) = (hours, hours);
        Profile { hours, flow_hours, country_hours, sent, queries, nxdomain, ..Profile::default() }
    }

    pub(super) fn hour(&mut self) -> &mut Hour {
        &mut self.hour
    }

    /// Notes a flow. While the device is learned, for so many hours, what is new becomes usual.
    pub(super) fn note_flow(&mut self, flow: &FlowSeen<'_>, learning_hours: u32) {
        self.hour.flows.note(flow);
        let is_learning = self.flow_hours < learning_hours;
        let learns_countries = self.country_hours < learning_hours;
        let Profile { known, hour, .. } = self;
        let new = &mut hour.new;
        if flow.port != 0 && flow.port < FIRST_EPHEMERAL && known.ports.is_new(flow.port, is_learning) {
            new.ports.add(flow.port, flow.id);
        }
        if let Some(country) = flow.country.filter(|_| !flow.is_local)
            && known.countries.is_new(country, learns_countries)
        {
            new.countries.add(country, flow.id);
        }
        if let Some(key) = flows::tunnel(flow)
            && known.tunnels.is_new(key, is_learning)
        {
            new.tunnel = Some((flow.destination, flow.port, flow.id));
        }
    }

    /// Ends an hour. Its values enter the baseline if it was observed from begin to end.
    pub(super) fn end_hour(&mut self, hour: usize, is_whole: bool, sources: &BTreeSet<ObservationSource>) {
        let ended = std::mem::take(&mut self.hour);
        ended.flows.beacons().for_each(|beacon| self.known.beacons.learn(beacon.target));
        if is_whole {
            self.sent.push(hour, ended.sent);
            self.queries.push(hour, ended.queries.count);
            self.nxdomain.push(hour, ended.queries.nxdomain);
            self.hours = self.hours.saturating_add(1);
            let more = |hours: u32, source| hours.saturating_add(u32::from(sources.contains(&source)));
            self.flow_hours = more(self.flow_hours, ObservationSource::FlowLog);
            self.country_hours = more(self.country_hours, ObservationSource::Countries);
        }
    }

    /// Returns what is an anomaly in this hour.
    pub(super) fn check(&self, check: Check) -> Vec<Detected> {
        let mut found = Vec::new();
        self.check_traffic(check, &mut found);
        self.check_queries(check, &mut found);
        self.check_flows(check, &mut found);
        self.check_destinations(&mut found);
        if self.hour.is_spoofed {
            let description = "Its MAC address is online at two interfaces at once.".to_owned();
            found.push(Detected {
                kind: AnomalyKind::MacSpoof,
                observed: 2.0,
                unit: "interfaces",
                baseline: None,
                rests_on: "hosts",
                flow_ids: Vec::new(),
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
            flow_ids: Vec::new(),
            description,
        };
        if sent >= check.large_upload {
            let text = format!("It has sent {} MiB within an hour.", sent >> 20);
            found.push(detected(AnomalyKind::LargeUpload, fixed(check.large_upload as f64), text));
        }
        if check.is_learning {
            return;
        }
        // Backups come at any hour.
        let is_rare = sent as f64 >= RARE_FACTOR * self.sent.second_largest();
        if is_rare && let Some(baseline) = exceeded(&self.sent, check.hour, sent, UPLOAD_FLOOR) {
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
            flow_ids: Vec::new(),
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

    fn check_flows(&self, check: Check, found: &mut Vec<Detected>) {
        let flows = &self.hour.flows;
        let (ports, addresses) = flows.scan();
        if let Some((address, count, ids)) = ports.filter(|(_, count, _)| *count >= MAX_PORTS) {
            let text = format!("Connections to {count} ports of {address}.");
            let limit = Some(fixed(MAX_PORTS as f64));
            found.push(of_flows(AnomalyKind::PortScan, (count, "ports"), limit, ids, text));
        } else if let Some((port, count, ids)) = addresses.filter(|(_, count, _)| *count >= MAX_ADDRESSES) {
            let text = format!("Connections to port {port} of {count} addresses.");
            let limit = Some(fixed(MAX_ADDRESSES as f64));
            found.push(of_flows(AnomalyKind::PortScan, (count, "addresses"), limit, ids, text));
        }
        let mut beacons = flows.beacons().filter(|beacon| !self.known.beacons.has(beacon.target));
        if !check.is_learning_flows
            && let Some(Beacon { address, port, interval, flows, .. }) = beacons.next()
        {
            let text = format!(
                "Connections to {address} port {port} every {interval} s, which it did not do before."
            );
            found.push(of_flows(AnomalyKind::Beaconing, (MIN_BEACONS, "connections"), None, flows, text));
        }
        if let Some((address, id)) = flows.doh {
            let text = format!("A connection to {address}, a public resolver of DNS over HTTPS.");
            found.push(of_flows(AnomalyKind::DohUsage, (1, "connections"), None, vec![id], text));
        }
    }

    fn check_destinations(&self, found: &mut Vec<Detected>) {
        let NewDestinations { ports, countries, tunnel } = &self.hour.new;
        if let Some((address, port, id)) = tunnel {
            let text = format!("A first connection to {address} port {port}, which Tor or VPNs use.");
            found.push(of_flows(AnomalyKind::TorOrVpnUsage, (1, "connections"), None, vec![*id], text));
        }
        if let Some(ports) = ports.get() {
            let text = format!("First connections to port {}.", listed(ports.keys()));
            let ids = ports.values().copied().take(MAX_FLOWS).collect();
            found.push(of_flows(AnomalyKind::NewPort, (ports.len(), "ports"), None, ids, text));
        }
        if let Some(countries) = countries.get() {
            let text = format!("First connections to {}.", listed(countries.keys()));
            let ids = countries.values().copied().take(MAX_FLOWS).collect();
            let count = (countries.len(), "countries");
            found.push(of_flows(AnomalyKind::NewDestinationCountry, count, None, ids, text));
        }
    }

    /// Returns the bytes of memory that the profile takes, at most.
    pub fn bytes(&self) -> usize {
        let samples = self.sent.bytes() + self.queries.bytes() + self.nxdomain.bytes();
        size_of::<Profile>()
            + samples
            + self.known.bytes()
            + self.hour.new.bytes()
            + self.hour.queries.bytes()
            + self.hour.flows.bytes()
    }
}

/// Returns a finding that rests on flows.
fn of_flows(
    kind: AnomalyKind,
    (count, unit): (usize, &'static str),
    baseline: Option<Baseline>,
    flow_ids: Vec<FlowId>,
    description: String,
) -> Detected {
    Detected { kind, observed: count as f64, unit, baseline, rests_on: "flow_log", flow_ids, description }
}

fn listed<T: ToString>(values: impl Iterator<Item = T>) -> String {
    values.map(|value| value.to_string()).collect::<Vec<_>>().join(", ")
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
