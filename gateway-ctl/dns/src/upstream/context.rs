//! Dependencies of upstream queries: sockets, TLS, and a receiver of events.

use std::sync::Arc;
use std::time::Duration;

use gateway_outbound::{KernelSockets, Resolver, Sockets, Tls};
use hickory_proto::dnssec::TrustAnchors;
use tokio::sync::Semaphore;

/// Event for an alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An upstream has failed too often and is left out.
    Down { upstream: Arc<str>, egress: Arc<str>, error: String },
    /// It answers again.
    Up { upstream: Arc<str>, egress: Arc<str> },
}

pub struct Context {
    pub sockets: Box<dyn Sockets>,
    pub tls: Box<dyn Tls>,
    /// Resolves the hosts of lists and of the external filter.
    pub names: Resolver,
    /// Called from within the asking: it must not wait.
    pub tell: Box<dyn Fn(Event) + Send + Sync>,
    /// Trust anchors for validation.
    pub anchors: Arc<TrustAnchors>,
    /// Everything is waited for so many times as long as usual: 1, but more where ways are slow.
    pub pace: u32,
    /// Questions over UDP that may be on their way at once, each with a socket of its own; others wait.
    pub(super) places: Semaphore,
}

const PLACES: usize = 2048;

impl Context {
    /// With the sockets of the system and the keys of the root.
    pub fn new(names: Resolver, tls: impl Tls, tell: impl Fn(Event) + Send + Sync + 'static) -> Context {
        Context {
            sockets: Box::new(KernelSockets::QUICK),
            tls: Box::new(tls),
            names,
            tell: Box::new(tell),
            anchors: Arc::new(TrustAnchors::default()),
            pace: 1,
            places: Semaphore::new(PLACES),
        }
    }

    /// As long as that is here.
    pub(crate) fn wait(&self, usual: Duration) -> Duration {
        usual.saturating_mul(self.pace.max(1))
    }
}
