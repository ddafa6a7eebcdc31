//! Log records of the hits. The resolver decides each query again, for the explanation.

use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gateway_common::wire::{FILTER_HEAD, FilterHit, MESSAGE_ID};
use jiff::Timestamp;

use crate::query_log::QueryRecord;
use crate::serve::kernel_cache::monotonic;
use crate::serve::{Now, QueryContext, Shared, Status, Trace, Transport};
use crate::wire::{HEADER, Request, rcode};

impl Shared {
    /// Logs the hits, and brings the table in the kernel to the inputs of the resolver.
    pub fn sync_kernel_filter(&self) {
        self.collect_filter_hits();
        self.kernel_filter.sync(&self.kernel_cache, &self.state);
    }

    /// Logs and counts the hits since the last call.
    pub fn collect_filter_hits(&self) {
        let Some(dataplane) = &self.kernel_filter.dataplane else { return };
        let mut hits = Vec::new();
        dataplane.take_filter_hits(&mut |hit| hits.push(hit));
        if hits.is_empty() {
            return;
        }
        let since_boot = i128::from(monotonic());
        let boot = i64::try_from(self.log.wall().now().as_nanosecond() - since_boot).unwrap_or(0);
        for hit in &hits {
            let time = Timestamp::from_nanosecond(i128::from(boot.saturating_add_unsigned(hit.time)));
            self.log_filter_hit(hit, time.unwrap_or_default());
        }
        self.kernel_filter.hits.fetch_add(hits.len() as u64, Ordering::Relaxed);
    }

    fn log_filter_hit(&self, hit: &FilterHit, wall: Timestamp) {
        let state = self.state.load();
        let length = (hit.query.length as usize).min(hit.query.question.len());
        let message = [&[0; MESSAGE_ID], &hit.query.question[..length]].concat();
        let from = IpAddr::from(hit.query.client);
        let mut writer = self.log.buffer(self.kernel_cache.buffer()).open();
        // The kernel answers well-formed queries only.
        let Ok(request) = Request::read(&message) else { return writer.lose() };
        let client = state.clients.client(from);
        let now = Now { wall, ..self.clock.now() };
        // Hits are queries of the client: they count for its rate limit.
        let _ = self.limit.take_client(state.settings.client_rate, from, now.ms);
        let query = QueryContext::new(&state, &request, &client, Transport::Udp, now);
        let mut decided = Vec::new();
        let trace = query.decided(&mut decided, &query.decide(request.asked()));
        let sent = self.kernel_filter.sent(hit, &message, &request);
        let (trace, answer) = match (trace, sent) {
            (Some(trace), Some(sent)) if sent == decided => (trace, sent),
            (Some(trace), None) => (trace, decided),
            (_, sent) => {
                self.kernel_filter.unexplained.fetch_add(1, Ordering::Relaxed);
                let Some(sent) = sent else { return writer.lose() };
                let refused = sent[3] & 0xf == rcode::REFUSED as u8;
                (Trace::new(if refused { Status::Refused } else { Status::Blocked }), sent)
            }
        };
        let (elapsed, transport) = (Duration::ZERO, Transport::Udp);
        let (client, trace, message) = (&client, &trace, &answer);
        writer.write(&QueryRecord { time: wall, elapsed, from, client, transport, trace, message });
    }
}

impl super::KernelFilter {
    /// Returns the answer that the kernel sent. `None`: its table is gone.
    fn sent(&self, hit: &FilterHit, message: &[u8], request: &Request<'_>) -> Option<Vec<u8>> {
        let answer = *self.lock().answers.get(&hit.answer)?;
        let mut sent = message.get(..HEADER + request.question.len())?.to_vec();
        let copied = [message[2] & 0x01, message[3] & 0x10];
        sent[MESSAGE_ID..MESSAGE_ID + FILTER_HEAD].copy_from_slice(&answer.head);
        sent[2] |= copied[0];
        sent[3] |= copied[1];
        sent.extend_from_slice(answer.tail.get(..usize::from(answer.length))?);
        Some(sent)
    }
}
