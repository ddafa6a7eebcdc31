//! Anomalies in the traffic of devices: the engine of `gateway_core::anomalies` between the counters of devices, the query log,
//! the flow log and the observed hosts on one side, and the API on the other.

mod flows;
mod observe;
mod sources;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gateway_core::anomalies::{
    Anomaly, AnomalyEngine, AnomalyFilter, AnomalySettings, AnomalyStats, Clock, ObservationSource, Stored,
};
use gateway_model::kinds::anomaly::AnomalyKind;
use gateway_model::settings::bootstrap;
use gateway_model::settings::groups::WipeLevel;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use crate::handles::Handle;
use crate::os::json_file;
use crate::service::Service;
use crate::supervise::blocking;

use observe::Positions;
pub use sources::AnomalySources;

/// File of the state folder.
const FILE: &str = "anomalies.json";
/// Interval of observations.
const INTERVAL: Duration = Duration::from_secs(10);
/// Interval at which the file is written.
const SAVE_INTERVAL: SignedDuration = SignedDuration::from_hours(1);

/// Anomalies that the service finds and the API shows. Clones are the same.
#[derive(Clone, Debug)]
pub struct Anomalies(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    engine: AnomalyEngine,
    positions: Positions,
    is_enabled: bool,
    saved_at: Option<Timestamp>,
    /// Nothing is kept any more.
    is_silent: bool,
}

impl Handle for Anomalies {
    fn open(state_dir: &Path, _: Timestamp) -> Anomalies {
        let path = state_dir.join(FILE);
        let stored: Stored = json_file::read(&path);
        let state = State { engine: AnomalyEngine::restore(stored), ..State::default() };
        Anomalies(Arc::new(Inner { path, state: Mutex::new(state) }))
    }
}

impl Anomalies {
    /// Returns the anomalies that match, newest first: those before an anomaly or a time, at most so many, and the number of
    /// all matches.
    pub fn list(
        &self,
        filter: &AnomalyFilter,
        is_before: impl Fn(&Anomaly) -> bool,
        limit: usize,
    ) -> (Vec<Anomaly>, usize) {
        let state = self.0.state.lock();
        let matching = || state.engine.anomalies().filter(|anomaly| filter.matches(anomaly));
        let page = matching().filter(|anomaly| is_before(anomaly)).take(limit).cloned().collect();
        (page, matching().count())
    }

    pub fn stats(&self, now: Timestamp) -> AnomalyStats {
        let state = self.0.state.lock();
        state.engine.stats(state.is_enabled, state.positions.missed(), now)
    }

    /// Takes observations and compares them. Blocks on the kernel and the disk.
    fn observe(&self, sources: &AnomalySources) {
        let world = sources.worlds.last();
        let config = &world.config.anomalies;
        let now = sources.store.clock().now();
        let mut state = self.0.state.lock();
        state.is_enabled = config.enabled;
        if !config.enabled || state.is_silent {
            return;
        }
        state.observe(sources, &world, config, now);
        if state.saved_at.is_none_or(|saved| now.duration_since(saved) >= SAVE_INTERVAL) {
            let is_first = state.saved_at.replace(now).is_none();
            if !is_first {
                self.save(&state);
            }
        }
    }

    fn save(&self, state: &State) {
        if state.is_silent {
            return;
        }
        if let Err(error) = json_file::write(&self.0.path, &state.engine.stored()) {
            tracing::warn!(%error, "failed to store what is usual of devices");
        }
    }

    /// Erases all that is known of devices, in memory and on disk.
    fn erase(&self, level: WipeLevel) -> io::Result<()> {
        let mut state = self.0.state.lock();
        state.engine = AnomalyEngine::default();
        state.is_silent |= level == WipeLevel::Hard;
        // Under the lock: a save in between would write the file again.
        json_file::erase(&self.0.path)
    }
}

impl State {
    fn observe(
        &mut self,
        from: &AnomalySources,
        world: &crate::world::World,
        config: &bootstrap::Anomalies,
        now: Timestamp,
    ) {
        let offset = TimeZone::system().to_offset(now).seconds();
        let clock = Clock { now, offset };
        let State { engine, positions, .. } = self;
        engine.set(AnomalySettings {
            learning_hours: config.learning_hours,
            large_upload: u64::from(config.large_upload_mib) << 20,
            disabled: config.disabled_kinds.iter().copied().collect(),
        });
        engine.begin(clock, &world.state.devices.iter().map(|device| device.meta.id).collect());
        let sources = positions.observe(from, world, engine);
        let has_flows = sources.contains(&ObservationSource::FlowLog);
        engine.set_sources(sources);
        for anomaly in engine.check(clock) {
            tracing::info!(
                kind = anomaly.kind.as_str(),
                device = %anomaly.device_id,
                score = anomaly.score,
                "found an anomaly"
            );
            if has_flows && is_of_upload(anomaly.kind) {
                flows::attach_largest(from, engine, &anomaly);
            }
        }
    }
}

fn is_of_upload(kind: AnomalyKind) -> bool {
    matches!(kind, AnomalyKind::AbnormalUpload | AnomalyKind::LargeUpload | AnomalyKind::NightActivity)
}

/// Returns the service.
pub fn service(sources: &AnomalySources) -> Service {
    let anomalies = sources.handles.get::<Anomalies>();
    let (erased, stored) = (anomalies.clone(), anomalies);
    Service::new("anomalies", sources, run)
        .erases(move |level| {
            let anomalies = erased.clone();
            blocking(move || anomalies.erase(level))
        })
        .releases(move || {
            blocking(move || {
                let state = stored.0.state.lock();
                stored.save(&state);
            })
        })
}

async fn run(sources: AnomalySources) {
    let anomalies = sources.handles.get::<Anomalies>();
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let (anomalies, sources) = (anomalies.clone(), sources.clone());
        blocking(move || anomalies.observe(&sources)).await;
    }
}
