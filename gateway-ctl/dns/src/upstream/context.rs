//! Dependencies of upstream queries on the rest of the gateway: sockets, TLS, and a callback for events.

use std::sync::Arc;
use std::time::Duration;

use gateway_outbound::{KernelSockets, Resolver, Sockets, Tls};
use hickory_proto::dnssec::TrustAnchors;
use tokio::sync::Semaphore;

/// Event that is worth an alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An upstream has failed too often and is not used.
    Down { upstream: Arc<str>, egress: Arc<str>, error: String },
    /// The upstream answers again.
    Up { upstream: Arc<str>, egress: Arc<str> },
}

pub struct Context {
    pub sockets: Box<dyn Sockets>,
    pub tls: Box<dyn Tls>,
    /// Resolves the hosts of lists and of the external filter.
    pub names: Resolver,
    /// Callback for events. The query calls it directly, so it must not block.
    pub tell: Box<dyn Fn(Event) + Send + Sync>,
    /// DNSSEC trust anchors.
    pub anchors: Arc<TrustAnchors>,
    /// Factor for all timeouts: 1, but more where paths are slow.
    pub pace: u32,
    /// Permits for concurrent queries over UDP. Each has its own socket; further queries wait.
    pub(super) sockets_left: Semaphore,
}

const MAX_SOCKETS: usize = 2048;

impl Context {
    /// Creates a context with the sockets of the system and the keys of the root.
    pub fn new(names: Resolver, tls: impl Tls, tell: impl Fn(Event) + Send + Sync + 'static) -> Context {
        Context {
            sockets: Box::new(KernelSockets::QUICK),
            tls: Box::new(tls),
            names,
            tell: Box::new(tell),
            anchors: Arc::new(TrustAnchors::default()),
            pace: 1,
            sockets_left: Semaphore::new(MAX_SOCKETS),
        }
    }

    /// Returns the usual timeout scaled by `pace`.
    pub(crate) fn wait(&self, usual: Duration) -> Duration {
        usual.saturating_mul(self.pace.max(1))
    }
}
