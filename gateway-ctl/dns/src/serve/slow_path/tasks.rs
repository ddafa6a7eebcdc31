//! Tasks of the slow path. They answer queries that workers hand over and queries of connections.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::{Mutex, Semaphore, mpsc};

use crate::hooks::Host;
use crate::query_log::QueryRecord;
use crate::serve::udp::SlowPathQuery;
use crate::serve::{Now, QueryContext, Shared, Transport};
use crate::wire::{Request, UnusableRequest, compose};

/// Maximum number of queries that wait at once. More queries stay in the queue; a full queue drops them.
const MAX_WAITING_QUERIES: usize = 8192;

/// Log buffer of the tasks: the last one.
pub(crate) const TASKS: usize = usize::MAX;

/// Capacity of the queue between the workers and the tasks.
pub(crate) const QUEUE: usize = 4096;

impl Shared {
    /// Writes the answer to a message in wire format. Leaves `out` empty if the message gets no answer.
    pub async fn answer(
        self: &Arc<Self>,
        message: &[u8],
        host: Host,
        transport: Transport,
        now: Now,
        out: &mut Vec<u8>,
    ) {
        out.clear();
        let request = match Request::read(message) {
            Ok(request) => request,
            Err(UnusableRequest::Silent) => return,
            Err(UnusableRequest::Notify) => return self.state.load().notified(message, host.address, out),
            Err(UnusableRequest::Reply { id, flags, rcode }) => {
                return compose::header_only(out, id, flags, rcode);
            }
        };
        let state = self.state.load_full();
        let client = state.clients.client(&host);
        let query = QueryContext::new(&state, &request, &client, transport, now);
        let trace = self.resolve(&query, out).await;
        let (time, elapsed, from) = (now.wall, now.instant.elapsed(), host.address);
        let reply =
            QueryRecord { time, elapsed, from, client: &client, transport, trace: &trace, message: out };
        self.log.buffer(TASKS).open().write(&reply);
    }

    /// Answers the queries in the queue until all senders are gone.
    pub async fn serve_queue(self: Arc<Self>, handed: Arc<Mutex<mpsc::Receiver<SlowPathQuery>>>) {
        let mut handed = handed.lock().await;
        let room = Arc::new(Semaphore::new(MAX_WAITING_QUERIES));
        while let Some(SlowPathQuery { message, mut peer, host, socket, at }) = handed.recv().await {
            let Ok(place) = room.clone().acquire_owned().await else { return };
            let shared = self.clone();
            tokio::spawn(async move {
                let mut out = Vec::with_capacity(512);
                shared.answer(&message, host, Transport::Udp, at, &mut out).await;
                if !out.is_empty() && peer.send(&socket, &out).is_err() {
                    shared.counts.unsent.fetch_add(1, Ordering::Relaxed);
                }
                drop(place);
            });
        }
    }
}
