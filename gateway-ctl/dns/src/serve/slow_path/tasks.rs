//! Tasks of the slow path: queries that workers handed on, and queries of connections.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::{Mutex, Semaphore, mpsc};

use crate::query_log::QueryRecord;
use crate::serve::udp::Handed;
use crate::serve::{Now, QueryContext, Shared, Transport};
use crate::wire::{Request, Unreadable, compose};

/// So many questions wait at once; more stay in the queue, and what that does not hold is dropped.
const WAITING: usize = 8192;

/// The log buffer of the tasks: the last one.
pub const TASKS: usize = usize::MAX;

/// Room between the workers and the tasks.
pub const QUEUE: usize = 4096;

impl Shared {
    /// Writes the answer to any message; leaves `out` empty when there is none.
    pub async fn answer(
        self: &Arc<Self>,
        message: &[u8],
        from: IpAddr,
        transport: Transport,
        now: Now,
        out: &mut Vec<u8>,
    ) {
        out.clear();
        let request = match Request::read(message) {
            Ok(request) => request,
            Err(Unreadable::Silent) => return,
            Err(Unreadable::Notify) => return self.state.load().notified(message, from, out),
            Err(Unreadable::Reply { id, flags, rcode }) => {
                return compose::header_only(out, id, flags, rcode);
            }
        };
        let state = self.state.load_full();
        let client = state.clients.client(from);
        let query = QueryContext::new(&state, &request, &client, transport, now);
        let trace = self.resolve(&query, out).await;
        let (time, elapsed) = (now.wall, now.instant.elapsed());
        let told =
            QueryRecord { time, elapsed, from, client: &client, transport, trace: &trace, message: out };
        self.log.buffer(TASKS).open().write(&told);
    }

    /// Answers what is handed on, until nobody can hand on any more.
    pub async fn attend(self: Arc<Self>, handed: Arc<Mutex<mpsc::Receiver<Handed>>>) {
        let mut handed = handed.lock().await;
        let room = Arc::new(Semaphore::new(WAITING));
        while let Some(Handed { message, mut peer, from, socket, at }) = handed.recv().await {
            let Ok(place) = room.clone().acquire_owned().await else { return };
            let shared = self.clone();
            tokio::spawn(async move {
                let mut out = Vec::with_capacity(512);
                shared.answer(&message, from, Transport::Udp, at, &mut out).await;
                if !out.is_empty() && peer.send(&socket, &out).is_err() {
                    shared.counts.unsent.fetch_add(1, Ordering::Relaxed);
                }
                drop(place);
            });
        }
    }
}
