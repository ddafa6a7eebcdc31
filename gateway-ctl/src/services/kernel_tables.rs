//! Health of the tables of the kernel and of the memory, by their level. A full table cuts off hosts that are well.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use gateway_core::health::{Check, Finding};

use crate::reconcile::KernelDataplane;
use crate::service::{Health, Service};
use crate::supervise::blocking;

/// Available memory, in percent, below which the health is degraded.
const LOW_MEMORY_PERCENT: u64 = 5;
/// Interval at which the counter of unrecorded flows is compared.
const FLOW_PERIOD: Duration = Duration::from_secs(10);

/// Files of the kernel.
#[derive(Clone, Debug)]
struct Sources {
    net: PathBuf,
    memory: PathBuf,
    neighbours: PathBuf,
}

impl Default for Sources {
    fn default() -> Sources {
        Sources {
            net: "/proc/sys/net".into(),
            memory: "/proc/meminfo".into(),
            neighbours: "/proc/thread-self/net/stat/arp_cache".into(),
        }
    }
}

/// Returns the services that report the tables and the memory.
pub fn reports(dataplane: &KernelDataplane) -> [Service; 2] {
    let (sources, unrecorded) = (Sources::default(), UnrecordedFlows::default());
    let unrecorded = std::sync::Arc::new(unrecorded);
    let dataplane = dataplane.clone();
    [
        Service::idle("kernel_tables").reports(move || {
            let sources = sources.clone();
            blocking(move || sources.checks())
        }),
        Service::idle("flow_table").reports(move || {
            let (dataplane, unrecorded) = (dataplane.clone(), unrecorded.clone());
            blocking(move || {
                let packets = dataplane.with(|programs| programs.unrecorded()).ok()?.packets;
                Some(Health::from(unrecorded.check(packets, Instant::now())))
            })
        }),
    ]
}

impl Sources {
    /// Returns the checks whose inputs this host has.
    fn checks(&self) -> Vec<Health> {
        [self.conntrack(), self.neighbours(), self.memory()].into_iter().flatten().map(Health::from).collect()
    }

    fn conntrack(&self) -> Option<Check> {
        let entries = number(&self.net.join("netfilter/nf_conntrack_count"))?;
        let limit = number(&self.net.join("netfilter/nf_conntrack_max"))?;
        let lost = "new connections of all hosts fail when it is full";
        let remedy =
            "find the host with most connections (`conntrack -L`), or raise net.netfilter.nf_conntrack_max";
        Some(table("conntrack", entries, limit, lost, remedy))
    }

    /// The kernel shows the table of IPv4, and its limit, only in the first network namespace.
    fn neighbours(&self) -> Option<Check> {
        let statistics = fs::read_to_string(&self.neighbours).ok()?;
        let entries = statistics.lines().nth(1)?.split_ascii_whitespace().next()?;
        let entries = u64::from_str_radix(entries, 16).ok()?;
        let limit = number(&self.net.join("ipv4/neigh/default/gc_thresh3"))?;
        let lost = "hosts that are new cannot be reached when it is full";
        let remedy = "find who scans the LAN, or raise net.ipv4.neigh.default.gc_thresh3";
        Some(table("neighbours", entries, limit, lost, remedy))
    }

    fn memory(&self) -> Option<Check> {
        let text = fs::read_to_string(&self.memory).ok()?;
        let kib = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            line.split_ascii_whitespace().next()?.parse::<u64>().ok()
        };
        let percent = kib("MemAvailable")?.saturating_mul(100) / kib("MemTotal")?.max(1);
        let low = (percent < LOW_MEMORY_PERCENT).then(|| Finding::memory_low(percent));
        Some(Check::of("memory", low.into_iter().collect(), format!("{percent} % are available")))
    }
}

fn table(name: &'static str, entries: u64, limit: u64, lost: &str, remedy: &str) -> Check {
    let finding = Finding::table(name, entries, limit, lost, remedy);
    Check::of(name, finding.into_iter().collect(), format!("{entries} of {limit} entries"))
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Growth of the counter of packets whose flows were not recorded.
#[derive(Debug, Default)]
struct UnrecordedFlows(Mutex<Option<Sample>>);

#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Instant,
    packets: u64,
    growth: u64,
}

impl UnrecordedFlows {
    fn check(&self, packets: u64, now: Instant) -> Check {
        let mut last = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let sample = match *last {
            Some(sample) if now.saturating_duration_since(sample.at) < FLOW_PERIOD => sample,
            Some(sample) => Sample { at: now, packets, growth: packets.saturating_sub(sample.packets) },
            None => Sample { at: now, packets, growth: 0 },
        };
        *last = Some(sample);
        let finding = (sample.growth > 0).then(|| Finding::flows_unrecorded(sample.growth));
        Check::of("flow_table", finding.into_iter().collect(), "all new flows are recorded")
    }
}

#[cfg(test)]
mod tests {
    use gateway_core::health::{CheckState, Code};

    use super::*;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }

    #[test]
    fn a_table_degrades_before_it_is_full_and_recovers() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let sources = Sources { net: at("net"), memory: at("meminfo"), neighbours: at("arp_cache") };
        assert!(sources.checks().is_empty(), "a host without these files has no such checks");
        write(&at("net/netfilter/nf_conntrack_max"), "1000\n");
        write(&at("net/ipv4/neigh/default/gc_thresh3"), "1000\n");
        for (entries, state, code) in [
            (10, CheckState::Ok, Code::Ok),
            (800, CheckState::Degraded, Code::TableFilling),
            (1000, CheckState::Failed, Code::TableFull),
            (3, CheckState::Ok, Code::Ok),
        ] {
            write(&at("net/netfilter/nf_conntrack_count"), &format!("{entries}\n"));
            write(&at("arp_cache"), &format!("entries  allocs\n{entries:08x}  00000001\n"));
            let checks = sources.checks();
            let seen: Vec<_> = checks.iter().map(|health| (health.check.state, health.check.code)).collect();
            assert_eq!(seen, [(state, code); 2], "{entries}: {checks:?}");
        }
    }

    #[test]
    fn memory_is_low_by_what_is_available() {
        let folder = tempfile::tempdir().expect("a folder");
        let memory = folder.path().join("meminfo");
        let sources = Sources { memory: memory.clone(), ..Sources::default() };
        for (available, state) in [(4, CheckState::Degraded), (5, CheckState::Ok)] {
            write(&memory, &format!("MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable: {available} kB\n"));
            assert_eq!(sources.memory().expect("a check").state, state, "{available}");
        }
    }

    #[test]
    fn flows_count_as_unrecorded_only_while_more_come() {
        let (flows, start) = (UnrecordedFlows::default(), Instant::now());
        let states = [(0, 7), (10, 7), (20, 9), (25, 9), (30, 9)]
            .map(|(second, packets)| flows.check(packets, start + Duration::from_secs(second)).state);
        use CheckState::{Degraded, Ok};
        assert_eq!(states, [Ok, Ok, Degraded, Degraded, Ok]);
    }
}
