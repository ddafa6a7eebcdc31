//! OpenVPN processes: one for each tunnel, supervised and controlled over its own management socket.
//!
//! A process gets its configuration on standard input. It gets user name, password and passphrase over the socket on
//! request, so no secret reaches the disk, a command line or the environment. The process creates the TUN device and
//! transports packets. Other modules manage addresses, routes and the link state.
//!
//! When this process ends for any reason, the kernel ends those processes, their devices vanish, and policies have no
//! egress. A missing tunnel is better than an unsupervised one.
//!
//! Decision 0029 says why.

mod command;
mod log_parser;
mod management;
mod resolve;
mod session;
mod status;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gateway_core::plan::OpenVpnProcess;
pub use gateway_outbound::Resolver;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::os::orphans;
use crate::supervise::Supervisor;
use session::Session;
use status::{DesiredSession, TERMINATION_TIMEOUT};
pub use status::{Stage, Status};

/// All processes of this daemon, by the id of their tunnel.
#[derive(Debug)]
pub struct OpenVpn {
    folder: PathBuf,
    endpoint_names: Resolver,
    sessions: Mutex<BTreeMap<String, Entry>>,
    /// Counter of events of all processes, except traffic.
    changes: watch::Sender<u64>,
    /// True once no process may be started any more.
    stopped: AtomicBool,
    supervisor: Supervisor,
}

#[derive(Debug)]
struct Entry {
    /// The wanted process. `None` ends the session.
    wanted: watch::Sender<DesiredSession>,
    status: watch::Receiver<Status>,
    task: JoinHandle<()>,
}

impl OpenVpn {
    /// Ends processes that an earlier daemon with this folder left behind. The folder holds the sockets. The resolver
    /// finds the servers.
    pub fn new(folder: PathBuf, endpoint_names: Resolver) -> OpenVpn {
        orphans::end("openvpn", &folder);
        OpenVpn {
            folder,
            endpoint_names,
            sessions: Mutex::default(),
            changes: watch::Sender::default(),
            stopped: AtomicBool::new(false),
            supervisor: Supervisor::default(),
        }
    }

    /// Makes this supervisor restart and report the sessions.
    pub fn with_supervisor(self, supervisor: Supervisor) -> OpenVpn {
        OpenVpn { supervisor, ..self }
    }

    /// Starts the tunnel's process, or ends the present one and starts another. Returns at once. A tunnel never has
    /// two processes.
    pub fn apply(&self, tunnel: &str, process: OpenVpnProcess) {
        let mut sessions = self.sessions.lock();
        // Checked under the lock, so that no process starts after the last one was ordered to end.
        if self.stopped.load(Ordering::SeqCst) {
            return;
        }
        let process = Some(Arc::new(process));
        let entry = sessions.entry(tunnel.to_owned()).or_insert_with(|| {
            let (wanted, receiver) = watch::channel(DesiredSession::default());
            let (sender, status) = watch::channel(Status::default());
            let folder = self.folder.join(tunnel);
            let names = self.endpoint_names.clone();
            let changes = self.changes.clone();
            let start = move || {
                let surroundings = (folder.clone(), names.clone());
                Session::new(surroundings, receiver.clone(), sender.clone(), changes.clone()).run()
            };
            let task = self.supervisor.restart_until_done(format!("openvpn {tunnel}"), start);
            Entry { wanted, status, task }
        });
        entry.wanted.send_if_modified(|wanted| {
            let differs = wanted.process != process;
            wanted.process = process;
            differs
        });
    }

    /// Ends the tunnel's process. Returns at once.
    pub fn remove(&self, tunnel: &str) {
        if let Some(entry) = self.sessions.lock().get(tunnel) {
            entry.wanted.send_modify(|wanted| wanted.process = None);
        }
    }

    /// Makes a tunnel that waits for its next attempt retry at once.
    pub fn retry_now(&self, tunnel: &str) {
        if let Some(entry) = self.sessions.lock().get(tunnel) {
            entry.wanted.send_modify(|wanted| wanted.retry_now += 1);
        }
    }

    /// Returns the wanted process of each tunnel.
    pub fn list(&self) -> BTreeMap<String, Arc<OpenVpnProcess>> {
        let mut sessions = self.sessions.lock();
        // Ended sessions that are not wanted any more are removed. Their tasks end with their senders.
        sessions.retain(|_, entry| {
            entry.wanted.borrow().process.is_some() || entry.status.borrow().stage != Stage::Idle
        });
        let wanted = sessions.iter().map(|(id, entry)| (id.clone(), entry.wanted.borrow().process.clone()));
        wanted.filter_map(|(id, process)| Some((id, process?))).collect()
    }

    pub fn status(&self, tunnel: &str) -> Option<Status> {
        self.sessions.lock().get(tunnel).map(|entry| entry.status.borrow().clone())
    }

    /// Returns a receiver that wakes on every process event, except traffic.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Ends all processes for good and waits for their end.
    pub async fn stop(&self) {
        let entries: Vec<Entry> = {
            let mut sessions = self.sessions.lock();
            self.stopped.store(true, Ordering::SeqCst);
            std::mem::take(&mut *sessions).into_values().collect()
        };
        for entry in &entries {
            entry.wanted.send_modify(|wanted| wanted.process = None);
        }
        let deadline = tokio::time::Instant::now() + TERMINATION_TIMEOUT * 2;
        for Entry { wanted, task, .. } in entries {
            drop(wanted);
            // The kernel kills a remaining process when this process ends.
            let _ = tokio::time::timeout_at(deadline, task).await;
        }
    }
}
