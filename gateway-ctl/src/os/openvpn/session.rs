//! Life cycle of one tunnel's process: start, replies to its requests, supervision, restart after a delay.

use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;

use gateway_core::plan::OpenVpnProcess;
use gateway_outbound::Resolver;
use tokio::sync::watch;

use super::status::{DesiredSession, Stage, StatePublisher, Status};
use crate::os::orphans;

mod backoff;
mod log;
mod management_session;

use backoff::{Backoff, ExitReason};
use management_session::ManagementSession;

/// The task of one tunnel.
pub(super) struct Session {
    folder: PathBuf,
    endpoint_names: Resolver,
    wanted: watch::Receiver<DesiredSession>,
    publisher: StatePublisher,
}

impl Session {
    pub(super) fn new(
        (folder, endpoint_names): (PathBuf, Resolver),
        wanted: watch::Receiver<DesiredSession>,
        status: watch::Sender<Status>,
        changes: watch::Sender<u64>,
    ) -> Session {
        Session { folder, endpoint_names, wanted, publisher: StatePublisher { status, changes } }
    }

    /// Runs until no sender of wanted states remains.
    pub(super) async fn run(mut self) {
        let mut backoff = Backoff::default();
        let mut last: Option<Arc<OpenVpnProcess>> = None;
        // Without a sender there can be no further work.
        while self.wanted.has_changed().is_ok() {
            let wanted = self.wanted.borrow_and_update().process.clone();
            if wanted != last {
                // Observations about another configuration do not apply to this one.
                backoff = Backoff::default();
                last.clone_from(&wanted);
                self.publisher.update(|status| *status = Status::default());
            }
            let Some(process) = wanted else {
                match self.wanted.changed().await {
                    Ok(()) => continue,
                    Err(_) => break,
                }
            };
            let ending = self.run_once(&process, &mut backoff).await;
            let Some(pause) = backoff.after(&ending) else { continue };
            self.publisher.update(|status| {
                let error = ending.words().or_else(|| status.error.take());
                let (restarts, attempts) = (status.restarts + 1, status.attempts);
                *status = Status { stage: Stage::Failed, error, restarts, attempts, ..Status::default() };
            });
            let status = self.publisher.status();
            tracing::warn!(
                interface = process.interface,
                error = status.error,
                again_after_ms = pause.as_millis(),
                "openvpn ended"
            );
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                changed = self.wanted.changed() => if changed.is_err() { break },
            }
        }
        self.publisher.update(|status| *status = Status::default());
        // A folder that contains foreign files stays.
        let _ = std::fs::remove_dir(&self.folder);
    }

    /// Runs one process from its start to its end.
    async fn run_once(&mut self, process: &OpenVpnProcess, backoff: &mut Backoff) -> ExitReason {
        self.publisher.update(|status| {
            status.stage = Stage::Connecting;
            status.mtu = process.mtu;
            status.attempts += 1;
        });
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
        if let Err(error) = made {
            return ExitReason::Broken(format!("the folder of its socket cannot be made: {error}"));
        }
        orphans::end("openvpn", &self.folder);
        match ManagementSession::open((&self.folder, &self.endpoint_names), process).await {
            Ok(conversation) => conversation.run(process, &mut self.wanted, &self.publisher, backoff).await,
            Err(ending) => ending,
        }
    }
}
