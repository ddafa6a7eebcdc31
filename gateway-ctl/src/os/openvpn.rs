//! OpenVPN processes: one for each tunnel, kept running, driven over a socket of their own.
//!
//! A process gets its configuration on standard input and user name, password and passphrase over the socket when it
//! asks for them, so no secret touches the disk, a command line or the environment. It makes the TUN device and carries
//! packets; addresses, routes and the link's state are other modules' work. When this process ends in whatever way, the
//! kernel ends those processes, their devices vanish, and policies have no way: no tunnel is better than one that
//! nobody tends.

mod command;
mod log_parser;
mod management;
mod orphans;
mod resolve;
mod session;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gateway_core::plan::OpenVpnProcess;
pub use gateway_outbound::Resolver;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::supervise::Supervisor;
use session::Session;

/// All processes of this daemon, by the id of their tunnel.
#[derive(Debug)]
pub struct OpenVpn {
    folder: PathBuf,
    endpoint_names: Resolver,
    sessions: Mutex<BTreeMap<String, Entry>>,
    /// Counts what happened to any of them, traffic apart.
    changes: watch::Sender<u64>,
    /// Nothing is started any more.
    stopped: AtomicBool,
    supervisor: Supervisor,
}

#[derive(Debug)]
struct Entry {
    /// None: it shall end.
    wanted: watch::Sender<Wanted>,
    status: watch::Receiver<Status>,
    task: JoinHandle<()>,
}

/// What a session shall do.
#[derive(Clone, Debug, Default, PartialEq)]
struct Wanted {
    process: Option<Arc<OpenVpnProcess>>,
    /// Counts the demands to try at once instead of waiting any longer.
    hurry: u64,
}

/// What a process is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// No process.
    #[default]
    Idle,
    Connecting,
    Connected,
    /// It was connected and is not any more.
    Reconnecting,
    /// It ended or could not do what it should, and is tried again after a while.
    Failed,
    Ending,
}

/// What is known of a tunnel's process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    pub stage: Stage,
    pub pid: Option<u32>,
    /// Given by the server, or by the file; none before the first connection.
    pub addresses: Vec<IpAddr>,
    pub remote: Option<SocketAddr>,
    /// Outer bytes since the process was started.
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    /// The cipher that was agreed on.
    pub cipher: Option<String>,
    /// Largest inner packet that both ends agreed on.
    pub mtu: Option<u16>,
    /// Seconds between two pings of the server; none if it did not say that it sends any.
    pub ping_sec: Option<u16>,
    /// What the server asked for and was not obeyed.
    pub pushed: Vec<String>,
    /// In words for people.
    pub error: Option<String>,
    /// How often it connected anew or was started anew.
    pub restarts: u32,
    /// Attempts since it was last connected.
    pub attempts: u32,
}

/// How long a process may take to end by itself.
const GRACE: Duration = Duration::from_secs(3);

impl OpenVpn {
    /// Ends what an earlier daemon with this folder has left behind. The folder is for sockets. The resolver finds
    /// the servers.
    pub fn new(folder: PathBuf, endpoint_names: Resolver) -> OpenVpn {
        orphans::end(&folder);
        OpenVpn {
            folder,
            endpoint_names,
            sessions: Mutex::default(),
            changes: watch::Sender::default(),
            stopped: AtomicBool::new(false),
            supervisor: Supervisor::default(),
        }
    }

    /// Has its sessions restarted and reported by this supervisor.
    pub fn with_supervisor(self, supervisor: Supervisor) -> OpenVpn {
        OpenVpn { supervisor, ..self }
    }

    /// Starts the tunnel's process, or ends the one it has and starts another. Returns at once; one tunnel never has two.
    pub fn apply(&self, tunnel: &str, process: OpenVpnProcess) {
        let mut sessions = self.sessions();
        // Asked under the lock, so that none begins after the last one was told to end.
        if self.stopped.load(Ordering::SeqCst) {
            return;
        }
        let process = Some(Arc::new(process));
        let entry = sessions.entry(tunnel.to_owned()).or_insert_with(|| {
            let (wanted, receiver) = watch::channel(Wanted::default());
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
        if let Some(entry) = self.sessions().get(tunnel) {
            entry.wanted.send_modify(|wanted| wanted.process = None);
        }
    }

    /// A tunnel that waits for its next attempt makes it now.
    pub fn hurry(&self, tunnel: &str) {
        if let Some(entry) = self.sessions().get(tunnel) {
            entry.wanted.send_modify(|wanted| wanted.hurry += 1);
        }
    }

    /// What is wanted of each tunnel that has or shall have a process.
    pub fn list(&self) -> BTreeMap<String, Arc<OpenVpnProcess>> {
        let mut sessions = self.sessions();
        // What has ended and is not wanted any more is forgotten; its task ends with its sender.
        sessions.retain(|_, entry| {
            entry.wanted.borrow().process.is_some() || entry.status.borrow().stage != Stage::Idle
        });
        let wanted = sessions.iter().map(|(id, entry)| (id.clone(), entry.wanted.borrow().process.clone()));
        wanted.filter_map(|(id, process)| Some((id, process?))).collect()
    }

    pub fn status(&self, tunnel: &str) -> Option<Status> {
        self.sessions().get(tunnel).map(|entry| entry.status.borrow().clone())
    }

    /// Wakes when something has happened to a process, traffic apart.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Ends all processes for good and waits for their end.
    pub async fn stop(&self) {
        let entries: Vec<Entry> = {
            let mut sessions = self.sessions();
            self.stopped.store(true, Ordering::SeqCst);
            std::mem::take(&mut *sessions).into_values().collect()
        };
        for entry in &entries {
            entry.wanted.send_modify(|wanted| wanted.process = None);
        }
        let deadline = tokio::time::Instant::now() + GRACE * 2;
        for Entry { wanted, task, .. } in entries {
            drop(wanted);
            // One that does not end is killed by the kernel when this process ends.
            let _ = tokio::time::timeout_at(deadline, task).await;
        }
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
