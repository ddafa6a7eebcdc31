//! Packet captures: at most three at a time, each in a process of its own, kept with their summaries until they are deleted
//! or too many.
//!
//! Decision 0196 says why.

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

use gateway_model::Id;
use gateway_model::settings::groups::WipeLevel;
use jiff::{SignedDuration, Timestamp};

use crate::handles::{Handle, in_memory};
use crate::service::{Context, Service};
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

/// Captures that run and that are kept, the oldest first.
#[derive(Clone)]
pub struct Captures(Arc<Inner>);

struct Inner {
    folder: PathBuf,
    /// Number of captures that are being started, and the captures.
    state: Mutex<(usize, Vec<Arc<Recording>>)>,
}

impl Handle for Captures {
    fn open(state_dir: &Path, now: Timestamp) -> Captures {
        let folder = state_dir.join("captures");
        let kept = CaptureFiles::read_all(&folder, now).into_iter();
        let kept = kept.map(|(session, files)| Arc::new(Recording::ended(session, files))).collect();
        Captures(Arc::new(Inner { folder, state: Mutex::new((0, kept)) }))
    }
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
        let recording = recording::start(context, &self.0.folder, request, created_by).await?;
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
        let folder = self.0.folder.clone();
        blocking(move || {
            let erased = all.iter().map(|recording| recording.erase()).fold(Ok(()), io::Result::and);
            erased.and(gateway_journal::erase::erase_files_of(&folder))
        })
        .await
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
    let mut ticks = tokio::time::interval(RETENTION_CHECK);
    loop {
        ticks.tick().await;
        captures.remove_expired(context.store.clock().now()).await;
    }
}
