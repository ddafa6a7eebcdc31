//! Health of the tables of the kernel and of the memory, by their level. A full table cuts off hosts that are well.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gateway_core::health::{Check, CheckState, Finding};
use parking_lot::Mutex;

use crate::os::bpf::TableUse;
use crate::reconcile::KernelDataplane;
use crate::service::{Health, Service};
use crate::supervise::blocking;

/// Available memory, in percent, below which the health is degraded.
const LOW_MEMORY_PERCENT: u64 = 5;
/// Interval at which the counter of unrecorded flows is compared, and the flow table is counted.
const FLOW_PERIOD: Duration = Duration::from_secs(10);
/// Silence, in seconds, after which a flow counts no more. Conntrack forgets UDP after as long.
const RECENT_SECONDS: u16 = 120;
/// Tables of flows: that of IPv4, and that of all others.
const FLOW_TABLES: [&str; 2] = ["flows_ipv4", "flows_ipv6"];
const FAST_TABLES: [&str; 2] = ["fast_path_ipv4", "fast_path_ipv6"];

/// Files of the kernel.
#[derive(Clone, Debug)]
struct Sources {
    net: PathBuf,
    memory: PathBuf,
    /// Statistics of the neighbour tables.
    statistics: PathBuf,
}

/// Check, statistics of the kernel, and family of each neighbour table.
const NEIGHBOUR_TABLES: [(&str, &str, &str); 2] =
    [("neighbours", "arp_cache", "ipv4"), ("neighbours_ipv6", "ndisc_cache", "ipv6")];

impl Default for Sources {
    fn default() -> Sources {
        Sources {
            net: "/proc/sys/net".into(),
            memory: "/proc/meminfo".into(),
            statistics: "/proc/thread-self/net/stat".into(),
        }
    }
}

/// Returns the services that report the tables and the memory.
pub fn reports(dataplane: &KernelDataplane) -> [Service; 3] {
    let (sources, flows) = (Sources::default(), std::sync::Arc::new(FlowTable::default()));
    let (dataplane, fast_path) = (dataplane.clone(), dataplane.fast_path().clone());
    [
        Service::idle("kernel_tables").reports(move || {
            let sources = sources.clone();
            blocking(move || sources.checks())
        }),
        Service::idle("flow_table").reports(move || {
            let (dataplane, flows) = (dataplane.clone(), flows.clone());
            blocking(move || {
                let read = || {
                    let (unrecorded, reader) =
                        dataplane.with(|programs| (programs.unrecorded(), programs.flow_reader()));
                    Some((unrecorded.ok()?.packets, reader.ok()?.recent_use(RECENT_SECONDS).ok()?))
                };
                flows.check(read, Instant::now()).map(Health::from)
            })
        }),
        Service::idle("fast_path_table").reports(move || {
            let check = fast_path.table_use().map(fast_path_check);
            async move { check.map(Health::from) }
        }),
    ]
}

/// Returns the checks of the kernel's tables and of the memory, as far as this host shows them.
pub fn checks() -> Vec<Check> {
    Sources::default().checks().into_iter().map(|health| health.check).collect()
}

impl Sources {
    /// Returns the checks whose inputs this host has.
    fn checks(&self) -> Vec<Health> {
        let [ipv4, ipv6] = NEIGHBOUR_TABLES.map(|table| self.neighbours(table));
        [self.conntrack(), ipv4, ipv6, self.memory()].into_iter().flatten().map(Health::from).collect()
    }

    fn conntrack(&self) -> Option<Check> {
        let entries = number(&self.net.join("netfilter/nf_conntrack_count"))?;
        let limit = number(&self.net.join("netfilter/nf_conntrack_max"))?;
        let lost = "new connections of all hosts fail when it is full";
        let remedy =
            "find the host with most connections (`conntrack -L`), or raise net.netfilter.nf_conntrack_max";
        Some(table("conntrack", entries, limit, lost, remedy))
    }

    /// The kernel shows the limits only in the first network namespace, which all share the tables.
    fn neighbours(&self, (name, statistics, family): (&'static str, &str, &str)) -> Option<Check> {
        let statistics = fs::read_to_string(self.statistics.join(statistics)).ok()?;
        let entries = statistics.lines().nth(1)?.split_ascii_whitespace().next()?;
        let entries = u64::from_str_radix(entries, 16).ok()?;
        let limit = number(&self.net.join(family).join("neigh/default/gc_thresh3"))?;
        let lost = "hosts that are new cannot be reached when it is full";
        let remedy = format!(
            "find who scans the LAN (`ip neighbour`), or raise net.{family}.neigh.default.gc_thresh3"
        );
        Some(table(name, entries, limit, lost, &remedy))
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

/// Fill of the flow table, and growth of the counter of packets whose flows were not recorded.
#[derive(Debug, Default)]
struct FlowTable(Mutex<Option<Sample>>);

#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Instant,
    packets: u64,
    growth: u64,
    tables: [TableUse; 2],
}

impl FlowTable {
    /// Returns the check. `read` returns the counter of packets and the use of the tables.
    fn check(&self, read: impl FnOnce() -> Option<(u64, [TableUse; 2])>, now: Instant) -> Option<Check> {
        let mut last = self.0.lock();
        let sample = match *last {
            Some(sample) if now.saturating_duration_since(sample.at) < FLOW_PERIOD => sample,
            before => {
                let (packets, tables) = read()?;
                let growth = before.map_or(0, |before| packets.saturating_sub(before.packets));
                Sample { at: now, packets, growth, tables }
            }
        };
        *last = Some(sample);
        let lost = "the flows that were silent longest lose their record, and are evaluated again";
        let remedy = "find the host with most flows (`conntrack -L`, /metrics), and stop it";
        let mut findings = filling(FLOW_TABLES, sample.tables, lost, remedy);
        findings.extend((sample.growth > 0).then(|| Finding::flows_unrecorded(sample.growth)));
        Some(Check::of("flow_table", findings, uses(FLOW_TABLES, sample.tables)))
    }
}

fn fast_path_check(tables: [TableUse; 2]) -> Check {
    let lost = "further flows take the IP stack, which is slower";
    let remedy = "find the host with most flows (`conntrack -L`)";
    Check::of("fast_path_table", filling(FAST_TABLES, tables, lost, remedy), uses(FAST_TABLES, tables))
}

/// Returns the findings of tables that go on working when they are full.
fn filling(names: [&str; 2], tables: [TableUse; 2], lost: &str, remedy: &str) -> Vec<Finding> {
    let findings = names.iter().zip(tables).filter_map(|(name, table)| {
        let finding = Finding::table(name, table.entries, table.capacity, lost, remedy)?;
        Some(Finding { state: CheckState::Degraded, ..finding })
    });
    findings.collect()
}

fn uses(names: [&str; 2], tables: [TableUse; 2]) -> String {
    let [first, second] = tables.map(|table| format!("{} of {}", table.entries, table.capacity));
    format!("{}: {first} entries; {}: {second}", names[0], names[1])
}

#[cfg(test)]
mod tests {
    use gateway_core::health::Code;

    use super::*;

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }

    #[test]
    fn a_table_degrades_before_it_is_full_and_recovers() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let sources = Sources { net: at("net"), memory: at("meminfo"), statistics: at("stat") };
        assert!(sources.checks().is_empty(), "a host without these files has no such checks");
        write(&at("net/netfilter/nf_conntrack_max"), "1000\n");
        for family in ["ipv4", "ipv6"] {
            write(&at("net").join(family).join("neigh/default/gc_thresh3"), "1000\n");
        }
        for (entries, state, code) in [
            (10, CheckState::Ok, Code::Ok),
            (800, CheckState::Degraded, Code::TableFilling),
            (1000, CheckState::Failed, Code::TableFull),
            (3, CheckState::Ok, Code::Ok),
        ] {
            write(&at("net/netfilter/nf_conntrack_count"), &format!("{entries}\n"));
            for statistics in ["stat/arp_cache", "stat/ndisc_cache"] {
                write(&at(statistics), &format!("entries  allocs\n{entries:08x}  00000001\n"));
            }
            let checks = sources.checks();
            let seen: Vec<_> = checks.iter().map(|health| (health.check.state, health.check.code)).collect();
            assert_eq!(seen, [(state, code); 3], "{entries}: {checks:?}");
            let remedy = &checks[2].check.remedy;
            assert!(code == Code::Ok || remedy.contains("net.ipv6.neigh"), "{remedy}");
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
        let (flows, start) = (FlowTable::default(), Instant::now());
        let tables = [TableUse { entries: 0, capacity: 100 }; 2];
        let states = [(0, 7), (10, 7), (20, 9), (25, 9), (30, 9)].map(|(second, packets)| {
            let read = || Some((packets, tables));
            flows.check(read, start + Duration::from_secs(second)).expect("a check").state
        });
        use CheckState::{Degraded, Ok};
        assert_eq!(states, [Ok, Ok, Degraded, Degraded, Ok]);
    }

    #[test]
    fn tables_of_flows_degrade_by_their_level_and_never_fail() {
        let of = |four: u64, six: u64| [four, six].map(|entries| TableUse { entries, capacity: 100 });
        for (tables, state, code, table) in [
            (of(79, 0), CheckState::Ok, Code::Ok, None),
            (of(80, 0), CheckState::Degraded, Code::TableFilling, Some("ipv4")),
            (of(0, 80), CheckState::Degraded, Code::TableFilling, Some("ipv6")),
            (of(0, 100), CheckState::Degraded, Code::TableFull, Some("ipv6")),
        ] {
            let flows = FlowTable::default().check(|| Some((0, tables)), Instant::now());
            for check in [flows.expect("a check"), fast_path_check(tables)] {
                assert_eq!((check.state, check.code), (state, code), "{check:?}");
                let named = check.params.get("table").map(|name| name.rsplit_once('_').expect("a family").1);
                assert_eq!((named, check.remedy.is_empty()), (table, table.is_none()), "{check:?}");
            }
        }
    }
}
