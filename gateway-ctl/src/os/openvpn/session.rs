//! Life cycle of one tunnel's process: start, replies to its requests, supervision, restart after a delay.

use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::plan::OpenVpnProcess;
use gateway_outbound::Resolver;
use gateway_outbound::backoff::give_or_take_a_quarter;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{DesiredSession, Stage, Status, orphans};

mod backoff;
mod log;
mod management_session;

use backoff::{Backoff, ExitReason};
use management_session::ManagementSession;

/// The task of one tunnel.
pub struct Session {
    folder: PathBuf,
    endpoint_names: Resolver,
    wanted: watch::Receiver<DesiredSession>,
    teller: StatePublisher,
}

/// Publisher of the state. It wakes receivers on relevant changes.
pub struct StatePublisher {
    status: watch::Sender<Status>,
    changes: watch::Sender<u64>,
}

impl StatePublisher {
    /// Publishes a change. Receivers wake if it changes anything.
    fn update(&self, change: impl FnOnce(&mut Status)) {
        let changed = self.status.send_if_modified(|status| {
            let before = status.clone();
            change(status);
            *status != before
        });
        if changed {
            self.changes.send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    /// Updates the byte counters without waking a receiver.
    fn count(&self, received: u64, sent: u64) {
        self.status.send_modify(|status| (status.rx_bytes, status.tx_bytes) = (received, sent));
    }

    fn status(&self) -> Status {
        self.status.borrow().clone()
    }
}

impl Session {
    pub fn new(
        (folder, endpoint_names): (PathBuf, Resolver),
        wanted: watch::Receiver<DesiredSession>,
        status: watch::Sender<Status>,
        changes: watch::Sender<u64>,
    ) -> Session {
        Session { folder, endpoint_names, wanted, teller: StatePublisher { status, changes } }
    }

    /// Runs until no sender of wanted states remains.
    pub async fn run(mut self) {
        let mut backoff = Backoff::default();
        let mut last: Option<Arc<OpenVpnProcess>> = None;
        // Without a sender there can be no further work.
        while self.wanted.has_changed().is_ok() {
            let wanted = self.wanted.borrow_and_update().process.clone();
            if wanted != last {
                // Observations about another configuration do not apply to this one.
                backoff = Backoff::default();
                last.clone_from(&wanted);
                self.teller.update(|status| *status = Status::default());
            }
            let Some(process) = wanted else {
                match self.wanted.changed().await {
                    Ok(()) => continue,
                    Err(_) => break,
                }
            };
            let ending = self.run_once(&process, &mut backoff).await;
            let Some(pause) = backoff.after(&ending) else { continue };
            self.teller.update(|status| {
                let error = ending.words().or_else(|| status.error.take());
                let (restarts, attempts) = (status.restarts + 1, status.attempts);
                *status = Status { stage: Stage::Failed, error, restarts, attempts, ..Status::default() };
            });
            let status = self.teller.status();
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
        self.teller.update(|status| *status = Status::default());
        // A folder that contains foreign files stays.
        let _ = std::fs::remove_dir(&self.folder);
    }

    /// Runs one process from its start to its end.
    async fn run_once(&mut self, process: &OpenVpnProcess, backoff: &mut Backoff) -> ExitReason {
        self.teller.update(|status| {
            status.stage = Stage::Connecting;
            status.mtu = process.mtu;
            status.attempts += 1;
        });
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
        if let Err(error) = made {
            return ExitReason::Broken(format!("the folder of its socket cannot be made: {error}"));
        }
        orphans::end(&self.folder);
        match ManagementSession::open((&self.folder, &self.endpoint_names), process).await {
            Ok(conversation) => conversation.run(process, &mut self.wanted, &self.teller, backoff).await,
            Err(ending) => ending,
        }
    }
}

fn after(pause: Duration) -> Instant {
    Instant::now() + give_or_take_a_quarter(pause)
}
