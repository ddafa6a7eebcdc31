//! An upstream by one path: its connections, its health, and what was learned of its manners.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use gateway_model::upstream::DnsProtocol;
use gateway_outbound::Egress;
use tokio::time::{Instant, timeout};

use super::bootstrap::Addresses;
use super::connection::{self, Connection};
use super::context::{Context, Event};
use super::error::{Error, random};
use super::health::{Change, Health, probe_after};
use super::message::{FORMERR, Form, Head, UpstreamQuery, root_question, unmix};
use super::udp::{self, Outcome};
use crate::hooks::Server;

/// A connection that is being made may take this much longer than an answer.
const CONNECTING: Duration = Duration::from_millis(1500);
/// That a question may be put on, one after the other, if each is closed before its answer.
const CONNECTIONS: usize = 32;
/// A probe may take longer than anybody would wait.
const PROBE: Duration = Duration::from_secs(4);
/// Without a question for so long there are no probes either.
const SILENT_AFTER: Duration = Duration::from_secs(180);
/// Answers with letters of another case that TCP confirmed, after which a server is believed not to keep it.
const FOLDS_AFTER: u8 = 3;

type Opening = Shared<BoxFuture<'static, Result<Connection, Error>>>;

pub struct UpstreamClient {
    pub server: Arc<Server>,
    pub path: Egress,
    /// As it is shown.
    pub egress: Arc<str>,
    pub health: Health,
    context: Arc<Context>,
    addresses: Arc<Addresses>,
    channel: Mutex<Option<Opening>>,
    /// It does not know EDNS.
    plain: AtomicBool,
    folded: AtomicU8,
    /// TLS sessions are resumed by the path they were made by only: a ticket would tie paths together.
    tls: Arc<connection::Tickets>,
    /// Time of the last query.
    wanted: Mutex<Instant>,
}

/// Reply, and the time between the query and the reply.
pub type Answer = (Vec<u8>, Head, Duration);

impl UpstreamClient {
    pub fn new(
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
            plain: AtomicBool::default(),
            folded: AtomicU8::default(),
            tls: Arc::default(),
            wanted: Mutex::new(Instant::now()),
        })
    }

    /// A question may come this way.
    pub fn touch(&self) {
        *self.wanted.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Since the last question that might have come this way.
    pub fn unwanted(&self) -> Duration {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// After so long without an answer it is time to ask somebody else as well.
    pub fn hedge_delay(&self) -> Duration {
        self.context.wait(self.health.hedge_delay())
    }

    /// Asks once and keeps account of it. `patient`: it may take as long as there is time.
    pub async fn ask(
        self: Arc<UpstreamClient>,
        asked: Arc<UpstreamQuery>,
        until: Instant,
        patient: bool,
    ) -> Result<Answer, Error> {
        let left = until.saturating_duration_since(Instant::now());
        let usual = self.health.timeout() + if self.is_connected() { Duration::ZERO } else { CONNECTING };
        let limit = if patient { left } else { self.context.wait(usual).min(left) };
        let outcome = timeout(limit, self.exchange(&asked)).await.unwrap_or(Err(Error::Timeout));
        self.account(&outcome);
        outcome
    }

    fn account(self: &Arc<UpstreamClient>, outcome: &Result<Answer, Error>) {
        match outcome {
            Ok((_, _, elapsed)) => {
                if self.health.answered(*elapsed) == Change::Revived {
                    self.tell(Event::Up { upstream: self.shown(), egress: self.egress.clone() });
                }
            }
            Err(error) if error.is_ours() => {}
            Err(error) => {
                if self.health.failed(error) == Change::Died {
                    self.tell(Event::Down {
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

    fn tell(&self, event: Event) {
        (self.context.tell)(event);
    }

    /// Reports whether a query can be sent at once.
    fn is_connected(&self) -> bool {
        if self.server.protocol == DnsProtocol::Udp && self.path.proxy.is_none() {
            return true;
        }
        let slot = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        slot.as_ref().is_some_and(|opening| matches!(opening.peek(), Some(Ok(channel)) if channel.is_open()))
    }

    async fn exchange(self: &Arc<UpstreamClient>, asked: &UpstreamQuery) -> Result<Answer, Error> {
        let edns = !self.plain.load(Ordering::Relaxed) || asked.dnssec_ok;
        let answer = self.exchange_as(asked, edns).await?;
        if !edns || answer.1.rcode != FORMERR || answer.1.edns {
            return Ok(answer);
        }
        // RFC 6891, section 7: who does not know EDNS says that it cannot read the question.
        let again = self.exchange_as(asked, false).await?;
        if again.1.rcode != FORMERR {
            self.plain.store(true, Ordering::Relaxed);
        }
        Ok(again)
    }

    async fn exchange_as(
        self: &Arc<UpstreamClient>,
        asked: &UpstreamQuery,
        edns: bool,
    ) -> Result<Answer, Error> {
        match self.server.protocol {
            DnsProtocol::Udp if self.path.proxy.is_none() => self.datagram(asked, edns).await,
            _ => self.connection(asked, edns).await,
        }
    }

    async fn datagram(
        self: &Arc<UpstreamClient>,
        asked: &UpstreamQuery,
        edns: bool,
    ) -> Result<Answer, Error> {
        let to = self.first_address().await?;
        let mixed = self.folded.load(Ordering::Relaxed) < FOLDS_AFTER;
        let since = Instant::now();
        let asking = udp::exchange(&self.context, self.path.mark, to, asked, edns, mixed);
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
            Outcome::Answer(..) => self.connection(asked, edns).await,
            Outcome::OtherCase => {
                let answer = self.connection(asked, edns).await?;
                let once_more = |folded: u8| Some(folded.saturating_add(1));
                // It always is some.
                let _ = self.folded.fetch_update(Ordering::Relaxed, Ordering::Relaxed, once_more);
                Ok(answer)
            }
        }
    }

    /// Over the connection that stands, or a new one. The other side may close one that was idle just as a question
    /// leaves: then it is asked once more.
    async fn connection(
        self: &Arc<UpstreamClient>,
        asked: &UpstreamQuery,
        edns: bool,
    ) -> Result<Answer, Error> {
        let form = Form { edns, padded: self.server.protocol.is_encrypted(), ..Form::default() };
        for left in (0..CONNECTIONS).rev() {
            let (channel, stood) = self.channel().await?;
            let since = Instant::now();
            match channel.ask(asked.message(&form)).await {
                Err(error) => {
                    let closed = matches!(error, Error::Closed) || !channel.is_open();
                    if closed {
                        self.forget(&channel);
                    }
                    if !closed || left == 0 || !(stood || channel.has_answered()) {
                        return Err(error);
                    }
                }
                Ok((message, head)) => return Ok((message, head, since.elapsed())),
            }
        }
        Err(Error::Closed)
    }

    /// And whether it stood already.
    async fn channel(self: &Arc<UpstreamClient>) -> Result<(Connection, bool), Error> {
        let (opening, stood) = {
            let mut slot = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
            let usable = slot.clone().filter(|opening| match opening.peek() {
                None => true,
                Some(Ok(channel)) => channel.is_open(),
                Some(Err(_)) => false,
            });
            match usable {
                Some(opening) => {
                    let stood = opening.peek().is_some();
                    (opening, stood)
                }
                None => {
                    let opening = self.open();
                    *slot = Some(opening.clone());
                    (opening, false)
                }
            }
        };
        opening.await.map(|channel| (channel, stood))
    }

    /// Goes on when the one who asked first gives up: others wait for it, or will.
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

    /// Unless there is another one already.
    fn forget(&self, channel: &Connection) {
        let mut slot = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        slot.take_if(|opening| matches!(opening.peek(), Some(Ok(other)) if other.is(channel)));
    }

    async fn first_address(&self) -> Result<SocketAddr, Error> {
        let found = self.addresses.find(&self.context, &self.path).await?;
        found.first().copied().ok_or_else(|| Error::Address("it has none".into()))
    }
}

/// Asks a dead upstream now and then until it answers. A path that nobody uses any longer stays silent.
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
