//! Requests of a connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Number of open requests, and of all requests so far.
#[derive(Debug)]
pub(super) struct Activity {
    open: AtomicUsize,
    seen: AtomicUsize,
    /// Begin or end of the last request; of the connection if it had none.
    last_use: Mutex<Instant>,
}

impl Default for Activity {
    fn default() -> Self {
        Self {
            open: AtomicUsize::default(),
            seen: AtomicUsize::default(),
            last_use: Mutex::new(Instant::now()),
        }
    }
}

impl Activity {
    /// Returns after a full pause without any request.
    pub(super) async fn idle(&self, pause: Duration) {
        loop {
            let before = self.seen.load(Ordering::Relaxed);
            tokio::time::sleep(pause).await;
            if !self.is_used() && self.seen.load(Ordering::Relaxed) == before {
                return;
            }
        }
    }

    /// Reports whether a request is open.
    pub(super) fn is_used(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }

    /// Orders connections: those without an open request first, and of them the one that was idle longest.
    pub(super) fn last_use(&self) -> (bool, Instant) {
        (self.is_used(), *self.last_use.lock())
    }

    /// Notes a request that is open until the value is dropped.
    pub(super) fn used(self: &Arc<Self>) -> OpenRequest {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.seen.fetch_add(1, Ordering::Relaxed);
        self.touch();
        OpenRequest(self.clone())
    }

    fn touch(&self) {
        *self.last_use.lock() = Instant::now();
    }
}

/// Open request, until the last byte of its response.
pub(super) struct OpenRequest(Arc<Activity>);

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.touch();
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
