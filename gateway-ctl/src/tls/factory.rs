//! State that all TLS clients and servers share: the mode, the trusted authorities, what was negotiated.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::crypto::SupportedKxGroup;
use rustls::{NamedGroup, RootCertStore};
use serde::Serialize;
use tokio::sync::watch;

use super::key_exchange::{RecordingKxGroup, recording_groups};
use super::mode::{PqMode, group_name, is_post_quantum};
use super::posture::Posture;

/// Factory of the configurations of all TLS clients and servers.
pub struct Factory {
    posture: watch::Sender<Posture>,
    clients: Mutex<BTreeMap<&'static str, NamedClient>>,
    inbound: Mutex<InboundExchanges>,
    roots: Mutex<Option<Arc<RootCertStore>>>,
}

struct NamedClient {
    recorder: Arc<RecordingKxGroup>,
    groups: Vec<&'static dyn SupportedKxGroup>,
}

/// Parameters that a named client negotiated last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ClientReport {
    pub name: String,
    /// Key exchange group of the last session; null before the first.
    pub last_group: Option<String>,
    /// True if that group is post-quantum.
    pub pq: bool,
}

/// Negotiated key exchanges of inbound sessions since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct InboundExchanges {
    /// Number of sessions by key exchange group.
    pub sessions: BTreeMap<String, u64>,
    /// Number of handshakes that failed because the peer supports only what the mode forbids.
    pub refused: u64,
}

/// Notification that configurations are outdated.
#[derive(Clone, Debug)]
pub struct ConfigChanges(watch::Receiver<Posture>);

impl ConfigChanges {
    /// Waits for the next change, or forever once the factory is gone.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Factory {
    pub fn new(mode: PqMode) -> Arc<Self> {
        Arc::new(Self {
            posture: watch::channel(Posture { mode, generation: 0 }).0,
            clients: Mutex::default(),
            inbound: Mutex::default(),
            roots: Mutex::default(),
        })
    }

    pub fn mode(&self) -> PqMode {
        self.posture().mode
    }

    /// Sets the mode for all sessions that begin from now on. Does nothing if the mode is already in force.
    pub fn set_mode(&self, mode: PqMode) {
        let changed = self.posture.send_if_modified(|posture| {
            let changes = posture.mode != mode;
            if changes {
                *posture = Posture { mode, generation: posture.generation + 1 };
            }
            changes
        });
        if changed {
            tracing::info!(%mode, "post-quantum mode");
        }
    }

    /// Returns a notification for outdated configurations. Callers need it if they keep a whole client, such as one
    /// with a connection pool.
    pub fn changes(&self) -> ConfigChanges {
        ConfigChanges(self.posture.subscribe())
    }

    /// Reloads the system's certificate authorities at the next use, and invalidates all tickets.
    pub fn renew(&self) {
        *self.roots.lock() = None;
        self.posture.send_modify(|posture| posture.generation += 1);
    }

    /// Returns the named clients so far, sorted by name.
    pub fn clients(&self) -> Vec<ClientReport> {
        let report = |named: &NamedClient| {
            let last = named.recorder.last();
            ClientReport {
                name: named.recorder.name.to_owned(),
                last_group: last.map(group_name),
                pq: last.is_some_and(is_post_quantum),
            }
        };
        self.clients.lock().values().map(report).collect()
    }

    pub fn inbound(&self) -> InboundExchanges {
        self.inbound.lock().clone()
    }

    pub(super) fn posture(&self) -> Posture {
        *self.posture.borrow()
    }

    /// Returns the key exchange groups of this mode, wrapped for this client.
    pub(super) fn groups(&self, name: &'static str, mode: PqMode) -> Vec<&'static dyn SupportedKxGroup> {
        let mut clients = self.clients.lock();
        let named = clients.entry(name).or_insert_with(|| {
            let recorder = RecordingKxGroup::new(name, self.posture.subscribe());
            NamedClient { groups: recording_groups(&recorder), recorder }
        });
        let find = |group: &&'static dyn SupportedKxGroup| {
            named.groups.iter().find(|known| known.name() == group.name()).copied()
        };
        mode.groups().iter().filter_map(find).collect()
    }

    /// Returns the certificate authorities that the system trusts.
    pub(super) fn system_roots(&self) -> Arc<RootCertStore> {
        let mut roots = self.roots.lock();
        if let Some(roots) = &*roots {
            return roots.clone();
        }
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(%error, "failed to read a certificate authority of the system");
        }
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(found.certs);
        if store.is_empty() {
            tracing::warn!("system has no trusted certificate authority: outgoing TLS connections will fail");
        }
        roots.insert(Arc::new(store)).clone()
    }

    pub(super) fn note_session(&self, group: Option<NamedGroup>) {
        let name = group.map_or_else(|| "unknown".to_owned(), group_name);
        *self.inbound.lock().sessions.entry(name).or_default() += 1;
    }

    /// Counts a refused handshake, and returns the number so far.
    pub(super) fn note_refusal(&self) -> u64 {
        let mut inbound = self.inbound.lock();
        inbound.refused += 1;
        inbound.refused
    }
}

impl std::fmt::Debug for Factory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Factory").field("posture", &self.posture()).finish_non_exhaustive()
    }
}
