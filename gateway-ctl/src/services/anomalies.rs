//! Anomalies in the traffic of devices: the engine of `gateway_core::anomalies` between the counters of devices, the query log,
//! the flow log and the observed hosts on one side, and the API on the other.

mod flows;
mod observe;
mod sources;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::anomalies::{
    Anomaly, AnomalyEngine, AnomalyFilter, AnomalySettings, AnomalyStats, Clock, ObservationSource,
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
use crate::services::encrypted_storage::{EncryptedStorage, StorageContent, StoredFile};
use crate::supervise::blocking;

use observe::Positions;
pub use sources::AnomalySources;

/// File of the state folder, or of the encrypted storage.
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
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    engine: AnomalyEngine,
    file: StoredFile,
    /// The file was read. Before, nothing is compared: what is usual is unknown.
    is_loaded: bool,
    positions: Positions,
    is_enabled: bool,
    saved_at: Option<Timestamp>,
    /// Nothing is kept any more.
    is_silent: bool,
}

impl Handle for Anomalies {
    fn open(state_dir: &Path, _: Timestamp) -> Anomalies {
        let file = StoredFile::new(state_dir, StorageContent::Anomalies, FILE);
        let mut state = State {
            engine: AnomalyEngine::default(),
            file,
            is_loaded: false,
            positions: Positions::default(),
            is_enabled: false,
            saved_at: None,
            is_silent: false,
        };
        state.load();
        Anomalies(Arc::new(Inner { state: Mutex::new(state) }))
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
        let mut stats = state.engine.stats(state.is_enabled, state.positions.missed(), now);
        if !state.is_loaded {
            stats.waits_for = Some("encrypted_storage");
            for kind in stats.kinds.iter_mut().filter(|_| state.is_enabled) {
                (kind.observed, kind.reason) =
                    (false, Some("It waits for the encrypted storage.".to_owned()));
            }
        }
        stats
    }

    /// Takes observations and compares them. Blocks on the kernel and the disk.
    fn observe(&self, sources: &AnomalySources) {
        let world = sources.worlds.last();
        let config = &world.config.anomalies;
        let now = sources.store.clock().now();
        let mut state = self.0.state.lock();
        state.is_enabled = config.enabled;
        state.follow(&sources.handles.get::<EncryptedStorage>());
        if !config.enabled || state.is_silent || !state.is_loaded {
            return;
        }
        state.observe(sources, &world, config, now);
        if state.saved_at.is_none_or(|saved| now.duration_since(saved) >= SAVE_INTERVAL) {
            let is_first = state.saved_at.replace(now).is_none();
            if !is_first {
                state.save();
            }
        }
    }

    /// Erases all that is known of devices, in memory and on disk.
    fn erase(&self, level: WipeLevel) -> io::Result<()> {
        let mut state = self.0.state.lock();
        state.engine = AnomalyEngine::default();
        state.is_silent |= level == WipeLevel::Hard;
        // Under the lock: a save in between would write the file again.
        state.file.path().map_or(Ok(()), |path| json_file::erase(&path))
    }
}

impl State {
    /// Reads the file, if it has a folder and was not read before.
    fn load(&mut self) {
        let Some(path) = self.file.path().filter(|_| !self.is_loaded) else { return };
        self.engine = AnomalyEngine::restore(json_file::read(&path));
        self.is_loaded = true;
    }

    /// Follows the file into the encrypted storage and out of it. What is in memory is newer than what is stored.
    fn follow(&mut self, storage: &EncryptedStorage) {
        let Some(next) = self.file.follow(storage) else { return };
        self.save();
        self.file = next;
        self.load();
        self.save();
    }

    /// Writes the file. Without a folder, all stays in memory only.
    fn save(&self) {
        let Some(path) = self.file.path().filter(|_| self.is_loaded && !self.is_silent) else { return };
        if let Err(error) = json_file::write(&path, &self.engine.stored()) {
            tracing::warn!(%error, "failed to store what is usual of devices");
        }
    }

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
        .releases(move || blocking(move || stored.0.state.lock().save()))
}

async fn run(sources: AnomalySources) {
    let anomalies = sources.handles.get::<Anomalies>();
    let mut folders = sources.handles.get::<EncryptedStorage>().watch();
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            Ok(()) = folders.changed() => {}
        }
        let (anomalies, sources) = (anomalies.clone(), sources.clone());
        blocking(move || anomalies.observe(&sources)).await;
    }
}

#[cfg(test)]
mod tests {
    use gateway_core::anomalies::Stored;

    use super::*;
    use crate::services::encrypted_storage::fixture::StorageFixture;

    fn stored(path: &Path) -> Stored {
        json_file::read(path)
    }

    #[test]
    fn what_is_usual_of_devices_waits_for_the_encrypted_storage() {
        let mut fixture = StorageFixture::new();
        let learned: Timestamp = "2026-11-01T00:00:00Z".parse().expect("a time");
        let before = Stored { next: 7, learned_since: Some(learned), ..Stored::default() };
        json_file::write(&fixture.state_dir().join(FILE), &before).expect("written");
        let anomalies = Anomalies::open(&fixture.state_dir(), learned);
        let follow = |storage: &EncryptedStorage| anomalies.0.state.lock().follow(storage);
        assert_eq!(anomalies.stats(learned).waits_for, None);
        fixture.set_up(StorageContent::Anomalies, || follow(&fixture.storage));
        assert_eq!(stored(&fixture.inside(FILE)), before);
        assert!(!fixture.state_dir().join(FILE).exists());
        fixture.lock(|| follow(&fixture.storage));
        assert_eq!(anomalies.stats(learned).waits_for, None, "it is in memory still");

        fixture.reboot();
        let anomalies = Anomalies::open(&fixture.state_dir(), learned);
        assert_eq!(anomalies.stats(learned).waits_for, Some("encrypted_storage"));
        anomalies.0.state.lock().save();
        fixture.unlock();
        anomalies.0.state.lock().follow(&fixture.storage);
        let stats = anomalies.stats(learned);
        assert_eq!((stats.waits_for, stats.learned_since), (None, Some(learned)));
        assert_eq!(stored(&fixture.inside(FILE)), before);
        anomalies.erase(WipeLevel::Soft).expect("erased");
        assert!(!fixture.inside(FILE).exists());
    }
}
