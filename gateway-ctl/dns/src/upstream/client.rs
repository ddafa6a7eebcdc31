//! Client of one upstream over one path: its connections, its health, and its observed deviations from the protocol.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use gateway_model::upstream::DnsProtocol;
use gateway_outbound::Egress;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

use super::bootstrap::Addresses;
use super::connection::{self, Connection};
use super::context::{Context, Event};
use super::error::{Error, random};
use super::health::{Health, HealthChange, probe_after};
use super::message::{FORMERR, QueryEncoding, ReplyHeader, UpstreamQuery, root_question, unmix};
use super::udp::{self, Outcome};
use crate::hooks::Server;

/// Extra time for an answer while the connection is still being opened.
const CONNECT_ALLOWANCE: Duration = Duration::from_millis(1500);
/// Maximum number of connections tried in sequence for one query, if each closes before its answer.
const MAX_CONNECTIONS: usize = 32;
/// Timeout of a probe; longer than that of a query.
const PROBE: Duration = Duration::from_secs(4);
/// Time without a query after which probes stop.
const SILENT_AFTER: Duration = Duration::from_secs(180);
/// Number of answers with changed letter case, each confirmed over TCP, after which queries no longer mix the case.
const FOLDS_AFTER: u8 = 3;

/// Time for which queries have no EDNS after a FORMERR. One such answer may be that of a server behind the address which
/// is replaced, or of a middlebox.
const PLAIN_TIME: Duration = Duration::from_secs(900);

type Opening = Shared<BoxFuture<'static, Result<Connection, Error>>>;

pub(super) struct UpstreamClient {
    pub server: Arc<Server>,
    pub path: Egress,
    /// Display name of the egress.
    pub egress: Arc<str>,
    pub health: Health,
    context: Arc<Context>,
    addresses: Arc<Addresses>,
    channel: Mutex<Option<Opening>>,
    /// Time until which queries have no EDNS, because the upstream did not support it. In milliseconds since `created`.
    plain_until_ms: AtomicU64,
    created: Instant,
    folded: AtomicU8,
    /// TLS sessions, resumed only over the path that created them: a ticket would link paths.
    tls: Arc<connection::Tickets>,
    /// Time of the last query that could have used this upstream.
    wanted: Mutex<Instant>,
}

/// Answer with its header data and the time since the query was sent.
pub(super) type Answer = (Vec<u8>, ReplyHeader, Duration);

impl UpstreamClient {
    pub(super) fn new(
        server: Arc<Server>,
        path: Egress,
        egress: Arc<str>,
        context: Arc<Context>,
    ) -> Arc<UpstreamClient> {
        let addresses = Arc::new(Addresses::of(&server));
        Arc::new(UpstreamClient {
            server,
            path,
            egress,
            health: Health::default(),
            context,
            addresses,
            channel: Mutex::default(),
            plain_until_ms: AtomicU64::default(),
            created: Instant::now(),
            folded: AtomicU8::default(),
            tls: Arc::default(),
            wanted: Mutex::new(Instant::now()),
        })
    }

    /// Records that a query may use this upstream.
    pub(super) fn touch(&self) {
        *self.wanted.lock() = Instant::now();
    }

    /// Returns the time since the last query that could have used this upstream.
    pub(super) fn unwanted(&self) -> Duration {
        self.wanted.lock().elapsed()
    }

    /// Returns the time without an answer after which another upstream is queried as well.
    pub(super) fn hedge_delay(&self) -> Duration {
        self.context.wait(self.health.hedge_delay())
    }

    /// Sends one query and records the outcome. With `patient` it may take all the time that is left.
    pub(super) async fn send_query(
        self: Arc<UpstreamClient>,
        query: Arc<UpstreamQuery>,
        until: Instant,
        patient: bool,
    ) -> Result<Answer, Error> {
        let left = until.saturating_duration_since(Instant::now());
        let usual =
            self.health.timeout() + if self.is_connected() { Duration::ZERO } else { CONNECT_ALLOWANCE };
        let limit = if patient { left } else { self.context.wait(usual).min(left) };
        let outcome = timeout(limit, self.exchange(&query)).await.unwrap_or(Err(Error::Timeout));
        self.account(&outcome);
        outcome
    }

    fn account(self: &Arc<UpstreamClient>, outcome: &Result<Answer, Error>) {
        match outcome {
            Ok((_, _, elapsed)) => {
                if self.health.answered(*elapsed) == HealthChange::Revived {
                    self.report(Event::Up { upstream: self.shown(), egress: self.egress.clone() });
                }
            }
            Err(error) if error.is_ours() => {}
            Err(error) => {
                if self.health.failed(error) == HealthChange::Died {
                    self.report(Event::Down {
                        upstream: self.shown(),
                        egress: self.egress.clone(),
                        error: error.to_string(),
                    });
                    tokio::spawn(probe(Arc::downgrade(self)));
                }
            }
        }
    }

    fn shown(&self) -> Arc<str> {
        self.server.shown.clone()
    }

    fn report(&self, event: Event) {
        (self.context.tell)(event);
    }

    /// Reports whether a query can be sent at once.
    fn is_connected(&self) -> bool {
        if self.server.protocol == DnsProtocol::Udp && self.path.proxy.is_none() {
            return true;
        }
        let slot = self.channel.lock();
        slot.as_ref().is_some_and(|opening| matches!(opening.peek(), Some(Ok(channel)) if channel.is_open()))
    }

    async fn exchange(self: &Arc<UpstreamClient>, query: &UpstreamQuery) -> Result<Answer, Error> {
        let edns = query.dnssec_ok || self.has_edns();
        let answer = self.exchange_as(query, edns).await?;
        if !edns || answer.1.rcode != FORMERR || answer.1.edns {
            return Ok(answer);
        }
        // RFC 6891, section 7: a server without EDNS returns FORMERR.
        let again = self.exchange_as(query, false).await?;
        if again.1.rcode != FORMERR {
            self.stop_edns();
        }
        Ok(again)
    }

    fn stop_edns(&self) {
        let until = self.created.elapsed() + PLAIN_TIME;
        self.plain_until_ms.store(u64::try_from(until.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn has_edns(&self) -> bool {
        match self.plain_until_ms.load(Ordering::Relaxed) {
            0 => true,
            until => self.created.elapsed().as_millis() >= u128::from(until),
        }
    }

    async fn exchange_as(
        self: &Arc<UpstreamClient>,
        query: &UpstreamQuery,
        edns: bool,
    ) -> Result<Answer, Error> {
        match self.server.protocol {
            DnsProtocol::Udp if self.path.proxy.is_none() => self.datagram(query, edns).await,
            _ => self.connection(query, edns).await,
        }
    }

    async fn datagram(
        self: &Arc<UpstreamClient>,
        query: &UpstreamQuery,
        edns: bool,
    ) -> Result<Answer, Error> {
        let to = self.first_address().await?;
        let mixed = self.folded.load(Ordering::Relaxed) < FOLDS_AFTER;
        let since = Instant::now();
        let asking = udp::exchange(&self.context, self.path.mark, to, query, edns, mixed);
        let outcome = match asking.await {
            Ok(outcome) => outcome,
            Err(error) => {
                self.addresses.failed(to);
                return Err(error);
            }
        };
        match outcome {
            Outcome::Answer(mut message, head) if !head.truncated => {
                unmix(&mut message);
                Ok((message, head, since.elapsed()))
            }
            Outcome::Answer(..) => self.connection(query, edns).await,
            Outcome::OtherCase => {
                let answer = self.connection(query, edns).await?;
                let once_more = |folded: u8| Some(folded.saturating_add(1));
                // The closure always returns a value.
                let _ = self.folded.fetch_update(Ordering::Relaxed, Ordering::Relaxed, once_more);
                Ok(answer)
            }
        }
    }

    /// Sends the query over the open connection or a new one. The remote end may close an idle connection just as a
    /// query is sent: then the query is sent again.
    async fn connection(
        self: &Arc<UpstreamClient>,
        query: &UpstreamQuery,
        edns: bool,
    ) -> Result<Answer, Error> {
        let form =
            QueryEncoding { edns, padded: self.server.protocol.is_encrypted(), ..QueryEncoding::default() };
        for left in (0..MAX_CONNECTIONS).rev() {
            let (channel, was_open) = self.channel().await?;
            let since = Instant::now();
            match channel.send_query(query.message(&form)).await {
                Err(error) => {
                    let closed = matches!(error, Error::Closed) || !channel.is_open();
                    if closed {
                        self.forget(&channel);
                    }
                    if !closed || left == 0 || !(was_open || channel.has_answered()) {
                        return Err(error);
                    }
                }
                Ok((message, head)) => return Ok((message, head, since.elapsed())),
            }
        }
        Err(Error::Closed)
    }

    /// Returns the connection, and whether it was already open.
    async fn channel(self: &Arc<UpstreamClient>) -> Result<(Connection, bool), Error> {
        let (opening, was_open) = {
            let mut slot = self.channel.lock();
            let usable = slot.clone().filter(|opening| match opening.peek() {
                None => true,
                Some(Ok(channel)) => channel.is_open(),
                Some(Err(_)) => false,
            });
            match usable {
                Some(opening) => {
                    let was_open = opening.peek().is_some();
                    (opening, was_open)
                }
                None => {
                    let opening = self.open();
                    *slot = Some(opening.clone());
                    (opening, false)
                }
            }
        };
        opening.await.map(|channel| (channel, was_open))
    }

    /// Opens a connection. The task continues if the first query gives up, because other queries may wait for it.
    fn open(self: &Arc<UpstreamClient>) -> Opening {
        let (context, server, path) = (self.context.clone(), self.server.clone(), self.path.clone());
        let (addresses, tickets) = (self.addresses.clone(), self.tls.clone());
        let task = tokio::spawn(async move {
            let found = addresses.find(&context, &path).await?;
            let mut outcome = Err(Error::Timeout);
            for address in found {
                outcome = connection::open(&context, &server, &path, &tickets, address).await;
                match &outcome {
                    Ok(_) => break,
                    Err(_) => addresses.failed(address),
                }
            }
            outcome
        });
        async move { task.await.unwrap_or(Err(Error::Closed)) }.boxed().shared()
    }

    /// Removes this connection, unless another one has already replaced it.
    fn forget(&self, channel: &Connection) {
        let mut slot = self.channel.lock();
        slot.take_if(|opening| matches!(opening.peek(), Some(Ok(other)) if other.is(channel)));
    }

    async fn first_address(&self) -> Result<SocketAddr, Error> {
        let found = self.addresses.find(&self.context, &self.path).await?;
        found.first().copied().ok_or_else(|| Error::Address("it has none".into()))
    }
}

impl UpstreamClient {
    /// Asks for the name servers of the root, and records the outcome. A dead upstream has probes of its own.
    pub(super) async fn probe_now(self: &Arc<UpstreamClient>) {
        if !self.health.is_dead() {
            let query = root_question();
            let outcome =
                timeout(self.context.wait(PROBE), self.exchange(&query)).await.unwrap_or(Err(Error::Timeout));
            self.account(&outcome);
        }
    }
}

/// Probes a dead upstream until it answers. A path without recent queries sends no probes.
async fn probe(line: Weak<UpstreamClient>) {
    for attempt in 0.. {
        let jitter = random::<1>().map_or(0, |[jitter]| jitter);
        tokio::time::sleep(probe_after(attempt, jitter)).await;
        let Some(line) = line.upgrade().filter(|line| line.health.is_dead()) else {
            return;
        };
        if line.unwanted() > SILENT_AFTER {
            continue;
        }
        let outcome = timeout(line.context.wait(PROBE), line.exchange(&root_question()))
            .await
            .unwrap_or(Err(Error::Timeout));
        line.account(&outcome);
        if outcome.is_ok() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use gateway_outbound::Resolver;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_format_error_stops_edns_for_a_time_only() {
        let server = Arc::new(Server::plain(([192, 0, 2, 53], 53).into()));
        let context = Arc::new(Context::new(Resolver::default(), || Err("no TLS here".to_owned()), |_| {}));
        let client = UpstreamClient::new(server, Egress::DEFAULT, "auto".into(), context);
        assert!(client.has_edns());
        client.stop_edns();
        tokio::time::advance(PLAIN_TIME - Duration::from_secs(1)).await;
        assert!(!client.has_edns());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(client.has_edns(), "the server behind the address may be another one");
        client.stop_edns();
        assert!(!client.has_edns());
    }
}
