//! Backups: the configuration as files encrypted with a passphrase, made on a schedule or on request.
//!
//! A run writes, reads back, decrypts and compares, and only then gives the file its name and removes the oldest. A
//! file with a backup's name is therefore complete. One run at a time; only the requester waits for it. Object stores
//! have no partial files and use the final name at once. The schedule follows from the runs alone, so restarts, missed
//! nights and clock steps need no catch-up.

mod encrypted_folder;
pub mod encryption;
mod error;
pub mod folder;
mod http;
mod names;
mod observed;
mod s3;
mod schedule;
mod sealed_file;
mod sftp;
mod target;
mod webdav;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gateway_model::export::Document;
use gateway_model::settings::Bootstrap;
use gateway_model::settings::group::Group;
use gateway_model::settings::groups::BackupConfig;
use gateway_model::settings::keys;
use gateway_model::{Revision, State};
use gateway_outbound::Resolver;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::json;
use zeroize::Zeroizing;

use crate::services::encrypted_storage::EncryptedStorage;
use crate::store::{self, AuditTicket, BackupOutcome, BackupRun, BackupTrigger, Store};
use crate::tls::Factory;
use names::Series;
use schedule::DueBackup;
use sealed_file::SealedFile;
use target::Target;

pub use error::Error as TargetError;
pub use target::Timeouts;

/// Poll interval. Timers do not notice when the wall clock is set, so the service checks this often.
const POLL_INTERVAL: Duration = Duration::from_secs(20);
/// Interval between two probes of the target while no run takes place.
const PROBE_EVERY: SignedDuration = SignedDuration::from_hours(1);
/// Maximum file size for probing a target, which reads no file.
const NOTHING: usize = 0;

/// Service that makes the backups of one store.
pub struct Service {
    store: Arc<Store>,
    /// Configuration file of this gateway.
    file: Bootstrap,
    tls: Arc<Factory>,
    /// Resolver for the host names of targets.
    endpoint_names: Resolver,
    timeouts: Timeouts,
    storage: EncryptedStorage,
    /// Lock that is held during a conversation with the target.
    turn: tokio::sync::Mutex<()>,
    seen: Mutex<TargetState>,
}

#[derive(Clone, Debug, Default)]
struct TargetState {
    health: Option<Health>,
    /// Revision of the configuration that the health belongs to.
    revision: Revision,
    running_since: Option<Timestamp>,
}

/// Health of the target at the last contact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    pub checked_at: Timestamp,
    /// Number of backups of this gateway on the target, or the reason why it is unknown.
    pub backups: Result<usize, String>,
}

/// Status of the backups.
#[derive(Clone, Debug)]
pub struct Report {
    pub config: BackupConfig,
    pub running_since: Option<Timestamp>,
    pub next: Option<Timestamp>,
    /// Time zone of the schedule.
    pub zone: String,
    pub health: Option<Health>,
    /// The target lies in the encrypted storage, which is not open.
    pub is_waiting: bool,
    /// Runs, newest first.
    pub runs: Vec<BackupRun>,
}

/// Reason why no backup was made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("a backup is already running")]
    Busy,
    /// No run took place: nothing was tried.
    #[error("{0}")]
    NotSetUp(&'static str),
    /// No run took place.
    #[error("the backups live in the encrypted storage, which is not open")]
    Waiting,
    /// The run is stored, and its audit entry written.
    #[error("{cause}")]
    Failed {
        run: Box<BackupRun>,
        #[source]
        cause: Cause,
    },
    #[error(transparent)]
    Store(#[from] store::Error),
}

/// Cause of a failed run.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The file that is sent cannot be made.
    #[error("the state directory cannot hold the backup: {0}")]
    Spool(#[source] std::io::Error),
    #[error("what was read back from the target is not what was written")]
    Differs,
    #[error("operation was cancelled")]
    BrokenOff,
}

/// Result of a successful run.
struct MadeBackup {
    size: u64,
    /// Number of backups on the target after the run.
    backups: usize,
    warning: Option<String>,
}

impl Service {
    /// Creates the service. `file` is the configuration file of this gateway.
    pub fn new(
        store: Arc<Store>,
        file: Bootstrap,
        tls: Arc<Factory>,
        endpoint_names: Resolver,
        storage: EncryptedStorage,
    ) -> Arc<Service> {
        Self::with_timeouts(store, file, tls, endpoint_names, storage, Timeouts::default())
    }

    pub fn with_timeouts(
        store: Arc<Store>,
        file: Bootstrap,
        tls: Arc<Factory>,
        endpoint_names: Resolver,
        storage: EncryptedStorage,
        timeouts: Timeouts,
    ) -> Arc<Service> {
        let (turn, seen) = (tokio::sync::Mutex::new(()), Mutex::default());
        Arc::new(Service { store, file, tls, endpoint_names, timeouts, storage, turn, seen })
    }

    /// Makes backups on schedule until it is aborted.
    pub async fn follow(self: Arc<Self>) {
        let mut revisions = self.store.watch();
        loop {
            self.tick().await;
            tokio::select! {
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                changed = revisions.changed() => if changed.is_err() { return },
            }
        }
    }

    /// Makes a backup if one is due; otherwise probes the target if a probe is due.
    pub async fn tick(&self) {
        let due = match self.due().await {
            Ok(due) => due,
            Err(error) => {
                tracing::error!(%error, "failed to read the backup runs");
                return;
            }
        };
        let Some(due) = due else { return };
        if due.at <= self.store.clock().now() {
            let ticket = AuditTicket::system("run_backup", "backup");
            match self.run(ticket, due.trigger).await {
                // Already reported, or another request makes a backup, or it is made when the storage opens.
                Ok(_) | Err(Error::Failed { .. } | Error::Busy | Error::Waiting) => {}
                Err(error) => tracing::error!(%error, "no backup is made"),
            }
        } else if self.is_probe_due() {
            self.probe().await;
        }
    }

    /// Makes a backup now. Stores the result and writes one audit entry, except when nothing was tried.
    pub async fn run(&self, mut ticket: AuditTicket, trigger: BackupTrigger) -> Result<BackupRun, Error> {
        let Some(_running) = RunGuard::begin(self) else { return Err(Error::Busy) };
        // A probe of the target does not take long.
        let _turn = self.turn.lock().await;
        let state = self.store.current();
        let config = match set_up(&state).await {
            Ok(Ok(config)) => config,
            Ok(Err(missing)) => return Err(Error::NotSetUp(missing)),
            Err(_) => return Err(gone().into()),
        };
        // It stays mounted until the end of the run.
        let _folder = self.open_storage(&config.target)?;
        let at = self.store.clock().now();
        let store = self.store.clone();
        let series = Series::new(&blocking(move || store.backup_series()).await.unwrap_or(Err(gone()))?);
        let name = series.name(at);
        let made = self.make(&state, &config, &series, &name, at).await;
        let run = BackupRun {
            at,
            finished_at: self.store.clock().now(),
            trigger,
            result: if made.is_ok() { BackupOutcome::Ok } else { BackupOutcome::Failed },
            size: made.as_ref().ok().map(|made| made.size),
            name,
            target: config.target.label(),
            error: made.as_ref().err().map(ToString::to_string),
            warning: made.as_ref().ok().and_then(|made| made.warning.clone()),
        };
        self.note_health(
            &state,
            match &made {
                Ok(made) => Some(Ok(made.backups)),
                Err(Cause::Target(error)) => Some(Err(error.to_string())),
                Err(_) => None,
            },
        );
        ticket.details = json!({ "name": run.name, "target": run.target, "trigger": run.trigger,
            "size": run.size, "error": run.error, "warning": run.warning });
        let (store, kept) = (self.store.clone(), run.clone());
        blocking(move || store.keep_backup_run(ticket, &kept)).await.unwrap_or(Err(gone()))?;
        match made {
            Ok(_) => {
                tracing::info!(name = run.name, target = run.target, size = run.size, "backup made");
                if let Some(warning) = &run.warning {
                    tracing::warn!(target = run.target, warning, "backup made with errors");
                }
                Ok(run)
            }
            Err(cause) => {
                let next = self.due().await.ok().flatten().map(|due| due.at.to_string());
                tracing::error!(target = run.target, error = %cause, next, "backup failed");
                Err(Error::Failed { run: Box::new(run), cause })
            }
        }
    }

    /// Probes whether the target is reachable. Writes nothing.
    pub async fn probe(&self) {
        let Ok(_turn) = self.turn.try_lock() else { return };
        let state = self.store.current();
        let Ok(Ok(config)) = set_up(&state).await else { return };
        let Ok(_folder) = self.open_storage(&config.target) else { return };
        let store = self.store.clone();
        let Ok(Ok(series)) = blocking(move || store.backup_series()).await else { return };
        let found = async {
            let target = self.open(&config, NOTHING).await?;
            Ok::<_, TargetError>(Series::new(&series).count(&target.list().await?))
        };
        let found = found.await;
        if let Err(error) = &found {
            tracing::warn!(target = config.target.label(), %error, "backup target failed");
        }
        self.note_health(&state, Some(found.map_err(|error| error.to_string())));
    }

    /// Returns the current status. Reads the runs from the disk.
    pub fn report(&self) -> Result<Report, store::Error> {
        let state = self.store.current();
        let config: BackupConfig = state.group();
        let runs = self.store.backup_runs()?;
        let next = self.next(&state, &config, &runs).map(|due| due.at);
        let seen = self.seen.lock().clone();
        let zone = self.store.clock().zone();
        Ok(Report {
            running_since: seen.running_since,
            next,
            zone: zone.iana_name().unwrap_or("unknown").to_owned(),
            health: seen.health.filter(|_| seen.revision == configured(&state).0),
            is_waiting: self.is_waiting(&config.target),
            config,
            runs,
        })
    }

    /// Returns the state directory. No backup may be stored in it, except in the encrypted storage.
    pub fn own_folder(&self) -> PathBuf {
        self.store.path().parent().unwrap_or(Path::new("/")).to_owned()
    }

    async fn make(
        &self,
        state: &Arc<State>,
        config: &BackupConfig,
        series: &Series,
        name: &str,
        at: Timestamp,
    ) -> Result<MadeBackup, Cause> {
        let passphrase = Zeroizing::new(config.passphrase.expose().to_owned());
        let (held, file, secret) = (state.clone(), self.file.clone(), passphrase.clone());
        let folder = self.own_folder();
        let sealed = blocking(move || {
            SealedFile::make(&folder, &secret, |out| {
                Document::write(&held, &file, true, env!("CARGO_PKG_VERSION"), &node(&held), at, out)
            })
        })
        .await?
        .map_err(Cause::Spool)?;
        let length = usize::try_from(sealed.length).unwrap_or(usize::MAX);
        let target = self.open(config, length).await?;
        // Only this gateway writes files of this series, and this is the only run.
        for left in series.drafts(&target.list().await?) {
            target.remove(left).await?;
        }
        let written = if target.writes_whole() { name.to_owned() } else { series.draft(name) };
        let stored = async {
            target.write(&written, &sealed).await?;
            let back = target.read(&written, length).await?;
            if !blocking(move || sealed.is_equal(back, &passphrase)).await? {
                return Err(Cause::Differs);
            }
            if written != name {
                target.rename(&written, name).await?;
            }
            Ok(())
        };
        if let Err(cause) = stored.await {
            // The first error is the one that matters. The next run removes what cannot be removed now.
            let _ = target.remove(&written).await;
            return Err(cause);
        }
        let pruned = prune(&target, series, name, config.retain).await;
        let (backups, warning) = match pruned {
            Ok(backups) => (backups, None),
            Err((backups, error)) => (backups, Some(format!("old backups cannot be removed: {error}"))),
        };
        Ok(MadeBackup { size: length as u64, backups, warning })
    }

    async fn open(&self, config: &BackupConfig, largest: usize) -> Result<Target, TargetError> {
        let outbound = (&self.tls, &self.endpoint_names);
        let own = (self.own_folder(), self.storage_folder());
        Target::open(&config.target, &own, outbound, largest, self.timeouts).await
    }

    async fn due(&self) -> Result<Option<DueBackup>, store::Error> {
        let state = self.store.current();
        let config: BackupConfig = state.group();
        if !config.enabled {
            return Ok(None);
        }
        let store = self.store.clone();
        let runs = blocking(move || store.backup_runs()).await.unwrap_or(Err(gone()))?;
        Ok(self.next(&state, &config, &runs))
    }

    fn next(&self, state: &State, config: &BackupConfig, runs: &[BackupRun]) -> Option<DueBackup> {
        let clock = self.store.clock();
        schedule::next(config, configured(state).1, runs, clock.now(), &clock.zone())
    }

    fn is_probe_due(&self) -> bool {
        let (now, seen) = (self.store.clock().now(), self.seen.lock());
        let fresh = |health: &Health| {
            let age = now.duration_since(health.checked_at);
            !age.is_negative() && age < PROBE_EVERY
        };
        seen.revision != configured(&self.store.current()).0 || !seen.health.as_ref().is_some_and(fresh)
    }

    fn note_health(&self, state: &State, backups: Option<Result<usize, String>>) {
        let mut seen = self.seen.lock();
        let checked_at = self.store.clock().now();
        if let Some(backups) = backups {
            seen.health = Some(Health { checked_at, backups });
            seen.revision = configured(state).0;
        }
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("seen", &*self.seen.lock()).finish_non_exhaustive()
    }
}

/// Marker of a run in progress; the run ends when it is dropped.
struct RunGuard<'s>(&'s Service);

impl<'s> RunGuard<'s> {
    /// Begins a run; returns `None` if another one is in progress.
    fn begin(service: &'s Service) -> Option<Self> {
        let now = service.store.clock().now();
        let mut seen = service.seen.lock();
        if seen.running_since.is_some() {
            return None;
        }
        seen.running_since = Some(now);
        Some(Self(service))
    }
}

impl Drop for RunGuard<'_> {
    fn drop(&mut self) {
        self.0.seen.lock().running_since = None;
    }
}

/// Removes the oldest backups. Returns how many are left, also if one could not be removed.
async fn prune(
    target: &Target,
    series: &Series,
    made: &str,
    retain: u64,
) -> Result<usize, (usize, TargetError)> {
    let names = match target.list().await {
        Ok(names) => names,
        Err(error) => return Err((1, error)),
    };
    let mut left = series.count(&names);
    for name in series.surplus(&names, made, usize::try_from(retain).unwrap_or(usize::MAX)) {
        target.remove(name).await.map_err(|error| (left, error))?;
        left -= 1;
    }
    Ok(left)
}

/// Returns the configuration, or the setting that is missing in it. The first call takes a while to decrypt the
/// secrets.
async fn set_up(state: &Arc<State>) -> Result<Result<BackupConfig, &'static str>, Cause> {
    let state = state.clone();
    blocking(move || {
        let config: BackupConfig = state.group();
        config.missing().map_or(Ok(config), Err)
    })
    .await
}

/// Returns revision and time of the last change of the configuration.
fn configured(state: &State) -> (Revision, Timestamp) {
    let setting = state.settings.setting(BackupConfig::KEY);
    setting.map_or((Revision(0), Timestamp::UNIX_EPOCH), |setting| (setting.revision, setting.updated_at))
}

/// Returns the ID of this installation, or its host name.
pub fn node(state: &State) -> String {
    let id = state.settings.get(keys::NODE_ID).and_then(|id| id.as_str());
    id.map(str::to_owned).unwrap_or_else(|| {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        name.trim().to_owned()
    })
}

/// Runs disk or CPU work on the blocking thread pool.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Cause> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Cause::BrokenOff)
}

fn gone() -> store::Error {
    store::Error::Damaged { what: "reading the runs of backups was broken off".to_owned() }
}

#[cfg(test)]
mod tests;
