//! Flow log: follows the flows of LAN hosts in the tables of the kernel, and keeps their records on disk.
//!
//! No packet makes an event. The service reads conntrack, the flow table and the counters of the fast path every few
//! seconds, and the reports of connections that have ended. What it could not read in time is counted as lost.
//!
//! Decision 0200 says why.

mod asked_addresses;
mod format;
mod metrics;
mod observe;
mod pages;
mod pieces;
mod rollups;
mod server_names;
mod totals;
mod usage;

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use gateway_core::countries::Countries;
use gateway_core::flow_log::{
    FlowChange, FlowNames, FlowNews, FlowRecord, Surroundings, Tracker, UsageRow, encode,
};
use gateway_journal::{Journal, Settings};
use gateway_model::settings::bootstrap;
use gateway_model::settings::groups::WipeLevel;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::broadcast;
use tokio::time::MissedTickBehavior;

use crate::clock::SharedClock;
use crate::handles::Handle;
use crate::os::proxy::RelayedFlows;
use crate::reconcile::KernelDataplane;
use crate::service::{Context, Service};
use crate::services::countries::CountryDatabase;
use crate::services::encrypted_storage::{EncryptedStorage, OpenFolder, StorageContent, plain_folder};
use crate::supervise::blocking;
use crate::world::{World, Worlds};
pub use asked_addresses::AskedAddresses;
use format::FlowFormat;
pub use gateway_journal::{PageStart, SearchEnd};
pub use metrics::FlowLogStats;
use observe::Observer;
pub use pages::{FlowPage, FlowPageStart, FlowRow};
use rollups::Rollups;
pub use server_names::ServerNames;
pub use totals::FlowTotals;
use usage::UsageLog;
pub use usage::UsageQuery;

/// Folder of the records, in the state folder.
const FOLDER: &str = "flows";
/// Shortest time between two observations.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Observations take at most one of so many parts of the time.
const IDLE_SHARE: u32 = 20;
/// Time that adding up takes at most after each observation.
const ADDING_TIME: Duration = Duration::from_millis(100);
/// Newest records that are kept in memory.
const RECENT: usize = 4096;
/// News that wait for the slowest reader.
const NEWS: usize = 4096;

/// Flow log. Clones are the same log.
#[derive(Clone)]
pub struct FlowLog(Arc<Inner>);

struct Inner {
    journal: Mutex<Journal<FlowFormat>>,
    /// Locked before the journal.
    rollups: Mutex<Rollups>,
    usage: Mutex<UsageLog>,
    news: broadcast::Sender<Arc<FlowNews>>,
    following: Mutex<Following>,
    /// Set while the dataplane runs.
    kernel: OnceLock<Kernel>,
    asked: AskedAddresses,
    server_names: ServerNames,
}

/// Parts of the daemon that the log observes.
struct Kernel {
    worlds: Arc<Worlds>,
    dataplane: KernelDataplane,
    clock: SharedClock,
    storage: EncryptedStorage,
    relayed: RelayedFlows,
}

#[derive(Default)]
struct Following {
    tracker: Tracker,
    observer: Observer,
    /// Names of the last world.
    names: Option<(Arc<World>, FlowNames)>,
    last: Option<Instant>,
    /// Duration of the last observation.
    cost: Duration,
    /// Settings that the journal has.
    settings: Option<Settings>,
    /// Folder of the records; `None` while they wait for the encrypted storage.
    folder: Option<OpenFolder>,
    /// Nothing is logged any more.
    is_over: bool,
    written: u64,
    /// Connections whose end the kernel could not report.
    lost_reports: u64,
    failed: u64,
}

impl Handle for FlowLog {
    fn open(state_dir: &Path, now: Timestamp) -> FlowLog {
        // The configuration comes with the first observation, and records in encrypted storage with its mount.
        let base = plain_folder(state_dir, StorageContent::FlowLog);
        let base = base.as_deref();
        let settings = match base {
            Some(base) => Settings::unbounded(base.join(FOLDER), RECENT),
            None => Settings { directory: None, recent: RECENT, ..Settings::default() },
        };
        let journal = Journal::new(settings, now);
        FlowLog(Arc::new(Inner {
            rollups: Mutex::new(Rollups::open(base, journal.view().next_id(), now)),
            journal: Mutex::new(journal),
            usage: Mutex::new(UsageLog::open(base, now)),
            news: broadcast::channel(NEWS).0,
            following: Mutex::default(),
            kernel: OnceLock::new(),
            asked: AskedAddresses::default(),
            server_names: ServerNames::default(),
        }))
    }
}

fn settings(base: Option<&Path>, config: &bootstrap::FlowLog) -> Settings {
    Settings {
        directory: base.map(|base| base.join(FOLDER)),
        keep: Duration::from_secs(86_400) * config.keep_days,
        bytes: u64::from(config.max_mb) << 20,
        recent: RECENT,
    }
}

/// Returns the service that follows flows. At its end it writes the parts of the flows that go on.
pub(crate) fn service(context: &Context) -> Service {
    let log = context.handles.get::<FlowLog>();
    let (measured, erased, ended) = (log.clone(), log.clone(), log);
    let clock = context.store.clock().clone();
    Service::new("flow_log", context, run)
        .measures(move |registry| metrics::register(registry, &measured.stats()))
        .erases(move |level| {
            let log = erased.clone();
            blocking(move || log.erase(level))
        })
        .releases(move || blocking(move || ended.stop(clock.now())))
}

/// Observes until it is aborted.
async fn run(context: Context) {
    let log = context.handles.get::<FlowLog>();
    let countries = context.handles.get::<CountryDatabase>();
    let (worlds, dataplane) = (context.worlds.clone(), context.dataplane.clone());
    let clock = context.store.clock().clone();
    let storage = context.handles.get::<EncryptedStorage>();
    let relayed = context.engines.relay.flows();
    let kernel = Kernel { worlds, dataplane, clock: clock.clone(), storage, relayed };
    // It is the same after a restart of the task.
    let _ = log.0.kernel.set(kernel);
    let mut ticks = tokio::time::interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let (log, countries, clock) = (log.clone(), countries.clone(), clock.clone());
        blocking(move || {
            log.observe(POLL_INTERVAL);
            let known = countries.is_open().then_some(&countries as &dyn Countries);
            log.add_up(ADDING_TIME, known, clock.now());
        })
        .await;
    }
}

impl FlowLog {
    /// Returns the addresses that clients have resolved, which name the destinations of flows.
    pub fn asked(&self) -> &AskedAddresses {
        &self.0.asked
    }

    /// Returns the names of servers that clients have sent a short time ago.
    pub fn server_names(&self) -> &ServerNames {
        &self.0.server_names
    }

    pub fn stats(&self) -> FlowLogStats {
        let following = self.0.following.lock();
        FlowLogStats {
            active: following.tracker.active().count(),
            written: following.written,
            losses: following.tracker.losses,
            lost_reports: following.lost_reports,
            failed: following.failed,
        }
    }

    /// Returns the reason for which nothing is written to files.
    pub fn error(&self) -> Option<String> {
        self.0.journal.lock().error().map(str::to_owned)
    }

    /// Observes the flows, unless that was done in the last `interval`, or would take too large a share of the time.
    /// Blocks on the kernel and on files.
    fn observe(&self, interval: Duration) {
        let Some(kernel) = self.0.kernel.get() else { return };
        let mut following = self.0.following.lock();
        let pause = interval.max(following.cost * IDLE_SHARE);
        let begun = Instant::now();
        if following.is_over || following.last.is_some_and(|last| begun.duration_since(last) < pause) {
            return;
        }
        self.read_kernel(&mut following, kernel, begun);
    }

    fn read_kernel(&self, following: &mut Following, kernel: &Kernel, begun: Instant) {
        let world = kernel.worlds.last();
        let now = kernel.clock.now();
        let config = world.config.flow_log;
        let folder = kernel.storage.open_folder(StorageContent::FlowLog);
        let base = folder.as_ref().map(OpenFolder::base);
        let wanted = settings(base, &config);
        if following.settings.as_ref() != Some(&wanted) {
            self.set(&wanted, base, now);
            following.settings = Some(wanted);
        }
        // The files in the earlier folder are closed.
        following.folder = folder;
        self.0.server_names.want(config.enabled && config.server_names);
        if !config.enabled {
            following.tracker.forget();
            following.observer = Observer::default();
            // Records of the time before still go when they are too old.
            self.0.journal.lock().tick(now);
            return;
        }
        following.tracker.has_listeners = self.0.news.receiver_count() > 0;
        let records = following.advance(kernel, &world, &self.0, now);
        self.0.usage.lock().add(following.tracker.take_usage(), now);
        following.tracker.take_news().into_iter().for_each(|news| self.publish(news));
        following.last = Some(begun);
        following.cost = begun.elapsed();
        self.write(following, &records, now);
        self.0.journal.lock().tick(now);
    }

    /// Takes other settings. Records that no file could take before are written now.
    fn set(&self, wanted: &Settings, base: Option<&Path>, now: Timestamp) {
        let mut rollups = self.0.rollups.lock();
        let next = {
            let mut journal = self.0.journal.lock();
            if journal.settings().directory == wanted.directory {
                journal.set(wanted.clone(), now);
                return;
            }
            let unstored = journal.take_unstored();
            journal.set(wanted.clone(), now);
            journal.add(unstored, now, format::note);
            journal.view().next_id()
        };
        // They follow from the records.
        *rollups = Rollups::open(base, next, now);
        self.0.usage.lock().set_base(base, now);
    }

    /// Returns the changes of flows from now on. A reader that is too slow loses some.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<FlowNews>> {
        self.0.news.subscribe()
    }

    /// Returns bytes by hour or day. Blocks on files.
    pub fn usage(&self, query: &UsageQuery) -> Vec<UsageRow> {
        self.0.usage.lock().read(query)
    }

    fn publish(&self, news: FlowNews) {
        // Without a reader, it is lost.
        let _ = self.0.news.send(Arc::new(news));
    }

    fn write(&self, following: &mut Following, records: &[FlowRecord], now: Timestamp) {
        if self.0.news.receiver_count() > 0 {
            let ended =
                records.iter().map(|record| FlowNews { change: FlowChange::Ended, record: record.clone() });
            ended.for_each(|news| self.publish(news));
        }
        following.written += records.len() as u64;
        self.keep(records, now);
    }

    /// Adds records to those that are stored. Blocks on files.
    pub fn keep(&self, records: &[FlowRecord], now: Timestamp) {
        let mut bytes = Vec::new();
        records.iter().for_each(|record| encode(&mut bytes, record));
        self.0.journal.lock().add(bytes, now, format::note);
    }

    /// Adds records as they are, and writes them down. The records of another log become those of this one.
    pub fn import(&self, records: &[FlowRecord], now: Timestamp) {
        self.write(&mut self.0.following.lock(), records, now);
        self.flush(now);
    }

    /// Writes the records that are in memory only.
    pub fn flush(&self, now: Timestamp) {
        self.0.journal.lock().flush(now);
    }

    /// Reads the kernel once more, writes the parts of flows that go on, and ends the log.
    fn stop(&self, now: Timestamp) {
        let mut following = self.0.following.lock();
        if !following.is_over {
            if let Some(kernel) = self.0.kernel.get() {
                self.read_kernel(&mut following, kernel, Instant::now());
            }
            following.is_over = true;
            let records = following.tracker.stop(now);
            self.write(&mut following, &records, now);
            self.flush(now);
            let mut usage = self.0.usage.lock();
            usage.add(following.tracker.take_usage(), now);
            usage.write(now);
        }
    }

    /// Erases all records, in memory and on disk. After a hard wipe, none is written any more.
    fn erase(&self, level: WipeLevel) -> std::io::Result<()> {
        let mut following = self.0.following.lock();
        if let Some(kernel) = self.0.kernel.get() {
            following.tracker.forget_past(kernel.clock.now());
            observe::discard_hello_segments(&kernel.dataplane);
        }
        self.0.asked.clear();
        self.0.server_names.clear();
        following.is_over |= level == WipeLevel::Hard;
        let _ = following.tracker.take_usage();
        let mut rollups = self.0.rollups.lock();
        let (erased, next) = {
            let mut journal = self.0.journal.lock();
            (journal.erase(), journal.view().next_id())
        };
        erased.and(rollups.erase(next)).and(self.0.usage.lock().erase())
    }
}

impl Following {
    /// Reads the kernel. Returns the records that are finished.
    fn advance(
        &mut self,
        kernel: &Kernel,
        world: &Arc<World>,
        log: &Inner,
        now: Timestamp,
    ) -> Vec<FlowRecord> {
        if self.names.as_ref().is_none_or(|(known, _)| !Arc::ptr_eq(known, world)) {
            self.names = Some((world.clone(), FlowNames::new(&world.input(), world.live())));
        }
        let Some((_, names)) = &self.names else { return Vec::new() };
        match self.observer.observe(&kernel.dataplane, &kernel.relayed, &log.server_names, now) {
            Ok(seen) => {
                self.lost_reports += u64::from(seen.is_incomplete);
                self.tracker.observe(seen, &Surroundings { names, asked: &log.asked, now })
            }
            Err(error) => {
                if self.failed == 0 {
                    tracing::warn!(%error, "failed to read the flows of the kernel");
                }
                self.failed += 1;
                Vec::new()
            }
        }
    }
}

#[cfg(test)]
mod rollup_tests;
