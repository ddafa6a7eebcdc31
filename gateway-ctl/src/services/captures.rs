//! Packet captures: at most three at a time, each in a process of its own, kept with their summaries until they are deleted
//! or too many.
//!
//! Decision 0154 says why.

mod annotations;
mod captured_interfaces;
mod context;
mod files;
mod metrics;
mod presets;
mod recording;
mod request;
mod session;

use parking_lot::{Mutex, MutexGuard};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use gateway_journal::erase::erase_files_of;
use gateway_model::Id;
use gateway_model::settings::groups::WipeLevel;
use jiff::{SignedDuration, Timestamp};

use crate::handles::{Handle, in_memory};
use crate::service::{Context, Service};
use crate::services::encrypted_storage::{EncryptedStorage, OpenFolder, StorageContent, plain_folder};
use crate::supervise::blocking;
pub use captured_interfaces::CapturedInterfaces;
pub use context::{CaptureContext, MAX_RUNNING, StartError};
use files::CaptureFiles;
use metrics::CaptureTotals;
pub use presets::{CapturePreset, CapturePresetName, presets};
pub use recording::{Packets, Recording};
pub use request::{CaptureRequest, own_addresses};
pub use session::{CaptureEnd, CaptureSession, CaptureState, CapturedPacket};

/// Maximum number of captures that are kept.
pub const MAX_KEPT: usize = 20;
/// Time for which a capture is kept.
const RETENTION: SignedDuration = SignedDuration::from_hours(7 * 24);
const RETENTION_CHECK: Duration = Duration::from_secs(600);
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Folder of the captures, in that of all records.
const FOLDER: &str = "captures";

/// Captures that run and that are kept, the oldest first.
#[derive(Clone)]
pub struct Captures(Arc<Inner>);

struct Inner {
    /// Folder of unencrypted captures.
    plain: PathBuf,
    /// Folder of the captures; `None` while they wait for the encrypted storage, and until the service runs.
    folder: Mutex<Option<Arc<OpenFolder>>>,
    /// Number of captures that are being started, and the captures.
    state: Mutex<(usize, Vec<Arc<Recording>>)>,
}

impl Handle for Captures {
    fn open(state_dir: &Path, now: Timestamp) -> Captures {
        let plain = state_dir.join(FOLDER);
        let is_plain = plain_folder(state_dir, StorageContent::Captures).is_some();
        let kept = if is_plain { read_all(&plain, now) } else { Vec::new() };
        Captures(Arc::new(Inner { plain, folder: Mutex::default(), state: Mutex::new((0, kept)) }))
    }
}

fn read_all(folder: &Path, now: Timestamp) -> Vec<Arc<Recording>> {
    let kept = CaptureFiles::read_all(folder, now).into_iter();
    kept.map(|(session, files)| Arc::new(Recording::ended(session, files))).collect()
}

impl Captures {
    /// Returns the captures, the newest first.
    pub fn list(&self) -> Vec<CaptureSession> {
        self.lock().1.iter().rev().map(|recording| recording.session()).collect()
    }

    pub fn find(&self, id: Id) -> Option<Arc<Recording>> {
        self.lock().1.iter().find(|recording| recording.id() == id).cloned()
    }

    /// Starts a capture. Returns when all its sockets receive.
    pub async fn start(
        &self,
        context: &CaptureContext,
        request: &CaptureRequest,
        created_by: &str,
    ) -> Result<CaptureSession, StartError> {
        let _start = self.reserve()?;
        let folder = self.0.folder.lock().clone().ok_or(StartError::Waiting)?;
        let recording = recording::start(context, &folder.base().join(FOLDER), request, created_by).await?;
        let session = recording.session();
        self.lock().1.push(recording);
        self.remove_surplus().await;
        Ok(session)
    }

    /// Removes a capture that has ended, with its files.
    pub async fn remove(&self, id: Id) -> io::Result<()> {
        let removed = {
            let mut state = self.lock();
            let position = state.1.iter().position(|recording| recording.id() == id);
            position.map(|position| state.1.remove(position))
        };
        match removed {
            Some(recording) => blocking(move || recording.erase()).await,
            None => Ok(()),
        }
    }

    /// Ends all captures and erases their files.
    async fn erase(&self) -> io::Result<()> {
        let all = std::mem::take(&mut self.lock().1);
        for recording in &all {
            recording.kill().await;
        }
        let mut folders = vec![self.0.plain.clone()];
        folders.extend(self.0.folder.lock().as_ref().map(|folder| folder.base().join(FOLDER)));
        blocking(move || {
            let erased = all.iter().map(|recording| recording.erase()).fold(Ok(()), io::Result::and);
            folders.iter().map(|folder| erase_files_of(folder)).fold(erased, io::Result::and)
        })
        .await
    }

    /// Moves to where the captures lie now. Those that run are stopped.
    async fn follow(&self, storage: &EncryptedStorage, now: Timestamp) {
        let base = |folder: &Option<Arc<OpenFolder>>| folder.as_ref().map(|open| open.base().to_owned());
        let next = storage.open_folder(StorageContent::Captures).map(Arc::new);
        let earlier = {
            let mut folder = self.0.folder.lock();
            if base(&folder) == base(&next) {
                return;
            }
            folder.take()
        };
        self.stop_all().await;
        drop(earlier);
        if let Some(folder) = base(&next) {
            let kept = blocking(move || read_all(&folder.join(FOLDER), now)).await;
            self.lock().1 = kept;
        }
        *self.0.folder.lock() = next;
    }

    /// Stops all captures and those that are being started, and lets their files go.
    async fn stop_all(&self) {
        loop {
            let (starting, all) = {
                let mut state = self.lock();
                (state.0, std::mem::take(&mut state.1))
            };
            for recording in &all {
                recording.stop().await;
            }
            if starting == 0 && all.is_empty() {
                return;
            }
            tokio::time::sleep(STOP_POLL_INTERVAL).await;
        }
    }

    async fn remove_surplus(&self) {
        let surplus: Vec<Id> = {
            let state = self.lock();
            let count = state.1.len().saturating_sub(MAX_KEPT);
            state
                .1
                .iter()
                .filter(|recording| !recording.is_running())
                .take(count)
                .map(|one| one.id())
                .collect()
        };
        self.remove_all(surplus).await;
    }

    async fn remove_expired(&self, now: Timestamp) {
        let is_expired = |recording: &&Arc<Recording>| {
            recording.session().ended_at.is_some_and(|ended| now.duration_since(ended) > RETENTION)
        };
        let expired: Vec<Id> = self.lock().1.iter().filter(is_expired).map(|one| one.id()).collect();
        self.remove_all(expired).await;
    }

    async fn remove_all(&self, ids: Vec<Id>) {
        for id in ids {
            if let Err(error) = self.remove(id).await {
                tracing::warn!(capture = %id, %error, "failed to remove a capture");
            }
        }
    }

    fn reserve(&self) -> Result<StartPermit<'_>, StartError> {
        let mut state = self.lock();
        let running = state.1.iter().filter(|recording| recording.is_running()).count();
        if running + state.0 >= MAX_RUNNING {
            return Err(StartError::LimitReached);
        }
        state.0 += 1;
        Ok(StartPermit(self))
    }

    fn lock(&self) -> MutexGuard<'_, (usize, Vec<Arc<Recording>>)> {
        self.0.state.lock()
    }
}

/// A start that counts against the limit of captures at a time.
struct StartPermit<'a>(&'a Captures);

impl Drop for StartPermit<'_> {
    fn drop(&mut self) {
        self.0.lock().0 -= 1;
    }
}

/// Context of captures, once the service runs.
#[derive(Clone, Default)]
pub struct RunningCaptures(Arc<OnceLock<CaptureContext>>);

in_memory!(RunningCaptures);

impl RunningCaptures {
    /// Returns the context. `None` without a kernel.
    pub fn context(&self) -> Option<&CaptureContext> {
        self.0.get()
    }
}

/// Returns the service that ends captures with the daemon and removes those that are too old.
pub fn service(context: &Context) -> Service {
    let captures = context.handles.get::<Captures>();
    let storage = context.handles.get::<EncryptedStorage>();
    *captures.0.folder.lock() = storage.open_folder(StorageContent::Captures).map(Arc::new);
    let for_captures = CaptureContext {
        worlds: context.worlds.clone(),
        dataplane: context.dataplane.clone(),
        captured: context.handles.get::<CapturedInterfaces>(),
        clock: context.store.clock().clone(),
        totals: CaptureTotals::default(),
    };
    let (measured, totals) = (captures.clone(), for_captures.totals.clone());
    // The engine starts once.
    let _ = context.handles.get::<RunningCaptures>().0.set(for_captures);
    let erased = captures.clone();
    Service::new("captures", context, run)
        .measures(move |registry| totals.register(registry, || measured.list()))
        .erases(move |_: WipeLevel| {
            let captures = erased.clone();
            async move { captures.erase().await }
        })
        .releases(move || async move {
            let all = captures.lock().1.clone();
            for recording in all {
                recording.stop().await;
            }
        })
}

/// Runs until it is aborted.
async fn run(context: Context) {
    let captures = context.handles.get::<Captures>();
    let storage = context.handles.get::<EncryptedStorage>();
    let mut changes = storage.watch();
    let mut ticks = tokio::time::interval(RETENTION_CHECK);
    loop {
        tokio::select! {
            _ = ticks.tick() => captures.remove_expired(context.store.clock().now()).await,
            // The handle keeps the sender.
            _ = changes.changed() => captures.follow(&storage, context.store.clock().now()).await,
        }
    }
}
