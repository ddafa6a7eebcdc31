//! Wanted and known state of a tunnel's process.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use gateway_core::plan::OpenVpnProcess;
use tokio::sync::watch;

/// Wanted state of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct DesiredSession {
    pub process: Option<Arc<OpenVpnProcess>>,
    /// Counter of requests to retry at once.
    pub retry_now: u64,
}

/// Stage of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// No process.
    #[default]
    Idle,
    Connecting,
    Connected,
    /// It was connected before and is not connected now.
    Reconnecting,
    /// It ended or failed, and the session retries after a delay.
    Failed,
    Stopping,
}

/// Known state of a tunnel's process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    pub stage: Stage,
    pub pid: Option<u32>,
    /// Addresses from the server or from the file, empty before the first connection.
    pub addresses: Vec<IpAddr>,
    pub remote: Option<SocketAddr>,
    /// Outer bytes since the start of the process.
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    /// The negotiated cipher.
    pub cipher: Option<String>,
    /// Largest inner packet that both ends agreed on, in bytes.
    pub mtu: Option<u16>,
    /// Seconds between two pings of the server, or `None` if it did not announce pings.
    pub ping_sec: Option<u16>,
    /// Options that the server pushed and the client ignored.
    pub pushed: Vec<String>,
    /// Human-readable error.
    pub error: Option<String>,
    /// Number of reconnects and restarts.
    pub restarts: u32,
    /// Attempts since the last connection.
    pub attempts: u32,
}

/// Time limit for a process to end by itself.
pub(super) const TERMINATION_TIMEOUT: Duration = Duration::from_secs(3);

/// Publisher of the state. It wakes receivers on relevant changes.
pub(super) struct StatePublisher {
    pub status: watch::Sender<Status>,
    pub changes: watch::Sender<u64>,
}

impl StatePublisher {
    /// Publishes a change. Receivers wake if it changes anything.
    pub(super) fn update(&self, change: impl FnOnce(&mut Status)) {
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
    pub(super) fn count(&self, received: u64, sent: u64) {
        self.status.send_modify(|status| (status.rx_bytes, status.tx_bytes) = (received, sent));
    }

    pub(super) fn status(&self) -> Status {
        self.status.borrow().clone()
    }
}
