//! Log records of the hits. The resolver decides each query again, for the explanation.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gateway_common::wire::{FILTER_HEAD, FilterAnswer, FilterHit, MESSAGE_ID};
use hashbrown::HashMap;
use jiff::Timestamp;

use crate::hooks::{Client, Host, Ingress};
use crate::query_log::QueryRecord;
use crate::serve::kernel_cache::monotonic;
use crate::serve::{Now, QueryContext, Shared, Status, Trace, Transport};
use crate::wire::{HEADER, Request, rcode};

/// Number of hits whose names are looked up in memory at once.
const PREFETCHED: usize = 16;

impl Shared {
    /// Logs and counts the hits since the last call. Returns their number.
    pub fn collect_filter_hits(&self) -> usize {
        let Some(dataplane) = &self.kernel_filter.dataplane else { return 0 };
        let mut hits = Vec::new();
        dataplane.take_filter_hits(&mut |hit| hits.push(hit));
        if hits.is_empty() {
            return 0;
        }
        let since_boot = i128::from(monotonic());
        let boot = i64::try_from(self.log.wall().now().as_nanosecond() - since_boot).unwrap_or(0);
        let state = self.state.load_full();
        // A lookup may query the kernel, so it comes before the locks.
        let mut clients: HashMap<Host, Arc<Client>> = HashMap::new();
        for hit in &hits {
            let host = host_of(hit);
            clients.entry(host).or_insert_with(|| state.clients.client(&host));
        }
        let loaded = self.kernel_filter.lock();
        let mut writer = self.log.buffer(self.kernel_cache.buffer()).open();
        let (mut message, mut decided, now) = (Vec::new(), Vec::new(), self.clock.now());
        let filter = state.local_answers.filter();
        for (index, hit) in hits.iter().enumerate() {
            if let Some(filter) = filter.as_ref().filter(|_| index.is_multiple_of(PREFETCHED)) {
                let next = hits[index..].iter().take(PREFETCHED);
                filter.prefetch(next.map(|hit| &hit.query.question[FILTER_HEAD..]));
            }
            let time = Timestamp::from_nanosecond(i128::from(boot.saturating_add_unsigned(hit.time)));
            let now = Now { wall: time.unwrap_or_default(), ..now };
            write_query(&mut message, hit);
            // The kernel answers well-formed queries only, and each client is in the map.
            let (Ok(request), Some(client)) = (Request::read(&message), clients.get(&host_of(hit))) else {
                writer.lose();
                continue;
            };
            let from = IpAddr::from(hit.query.client);
            // Hits are queries of the client: they count for its rate limit.
            let _ = self.limit.take_client(state.settings.client_rate, from, now.ms);
            let query = QueryContext::new(&state, &request, client, Transport::Udp, now);
            decided.clear();
            let explained = query.decided(&mut decided, &query.decide(request.asked()));
            let sent = loaded.answers.get(&hit.answer);
            let trace = match (explained, sent) {
                (Some(trace), None) => trace,
                (Some(trace), Some(sent)) if is_sent(&decided, &message, &request, sent) => trace,
                (_, sent) => {
                    self.kernel_filter.unexplained.fetch_add(1, Ordering::Relaxed);
                    let Some(sent) = sent else {
                        writer.lose();
                        continue;
                    };
                    write_sent(&mut decided, &message, &request, sent);
                    Trace::new(status_of(sent))
                }
            };
            let (time, elapsed, transport) = (now.wall, Duration::ZERO, Transport::Udp);
            writer.write(&QueryRecord {
                time,
                elapsed,
                from,
                client,
                transport,
                trace: &trace,
                message: &decided,
            });
        }
        drop(writer);
        self.kernel_filter.hits.fetch_add(hits.len() as u64, Ordering::Relaxed);
        hits.len()
    }
}

/// Writes the query as the client sent it, without its ID.
fn write_query(message: &mut Vec<u8>, hit: &FilterHit) {
    let length = usize::from(hit.query.length).min(hit.query.question.len());
    message.clear();
    message.extend_from_slice(&[0; MESSAGE_ID]);
    message.extend_from_slice(&hit.query.question[..length]);
}

fn status_of(sent: &FilterAnswer) -> Status {
    if sent.head[1] & 0xf == rcode::REFUSED as u8 { Status::Refused } else { Status::Blocked }
}

/// Returns the flags and counts of an answer to a query. RD and CD are those of the query.
fn head_of(sent: &FilterAnswer, query: &[u8]) -> [u8; FILTER_HEAD] {
    let mut head = sent.head;
    head[0] |= query[MESSAGE_ID] & 0x01;
    head[1] |= query[MESSAGE_ID + 1] & 0x10;
    head
}

/// Returns the part of an answer behind the question.
fn tail_of(sent: &FilterAnswer) -> &[u8] {
    &sent.tail[..usize::from(sent.length).min(sent.tail.len())]
}

/// Reports whether an answer of the resolver is the one that the kernel sent.
fn is_sent(answer: &[u8], query: &[u8], request: &Request<'_>, sent: &FilterAnswer) -> bool {
    let end = HEADER + request.question.len();
    answer.get(MESSAGE_ID..HEADER) == Some(&head_of(sent, query))
        && answer.get(HEADER..end) == query.get(HEADER..end)
        && answer.get(end..) == Some(tail_of(sent))
}

/// Writes the answer that the kernel sent.
fn write_sent(answer: &mut Vec<u8>, query: &[u8], request: &Request<'_>, sent: &FilterAnswer) {
    answer.clear();
    answer.extend_from_slice(&[0; MESSAGE_ID]);
    answer.extend_from_slice(&head_of(sent, query));
    answer.extend_from_slice(request.question);
    answer.extend_from_slice(tail_of(sent));
}

/// Returns the host of a query. The programs answer no packets with a VLAN tag.
fn host_of(hit: &FilterHit) -> Host {
    let query = &hit.query;
    let ingress = Ingress { mac: query.host.octets(), interface: query.interface, vlan: 0 };
    Host { address: query.client.into(), ingress: Some(ingress) }
}
