//! UDP worker: a thread that reads sockets, answers on the fast path and hands other queries to the slow path.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use tokio::sync::mpsc;

use super::batch::Batch;
use super::peer::Peer;
use crate::hooks::{Arrival, ArrivalKind, Client, ClientLookup, Host};
use crate::query_log::QueryRecord;
use crate::query_log::worker_buffer::BufferWriter;
use crate::serve::kernel_cache::{AdmissionFilter, CacheCandidate, CachePolicy};
use crate::serve::kernel_filter::{AddedClients, ServedClient};
use crate::serve::rate_limit::Allowance;
use crate::serve::{Now, QueryContext, Shared, State, Trace, Transport};
use crate::wire::{Request, UnusableRequest, compose};

/// Query for the slow path.
pub struct SlowPathQuery {
    pub message: Vec<u8>,
    pub peer: Peer,
    pub host: Host,
    pub socket: Arc<UdpSocket>,
    pub at: Now,
}

/// Sockets of one worker, and the signal that they changed.
#[derive(Debug)]
pub(crate) struct WorkerControl {
    sockets: ArcSwap<Vec<Arc<UdpSocket>>>,
    wake: UnixDatagram,
    stop: AtomicBool,
}

impl WorkerControl {
    pub(crate) fn set(&self, sockets: Vec<Arc<UdpSocket>>) {
        self.sockets.store(Arc::new(sockets));
        self.pull();
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.pull();
    }

    fn pull(&self) {
        // A full buffer means that a wake-up is already pending.
        let _ = self.wake.send(&[1]);
    }
}

pub(crate) struct Worker {
    shared: Arc<Shared>,
    control: Arc<WorkerControl>,
    wake_receiver: UnixDatagram,
    slow_path: mpsc::Sender<SlowPathQuery>,
    known: ClientCache,
    admission: AdmissionFilter,
    added: AddedClients,
    /// Hosts that sent the datagrams of the batch, by index. None for one that is no query, or whose host is not known.
    hosts: Vec<Option<Host>>,
    /// Index of this worker.
    number: usize,
}

/// Maximum number of batches from one socket before the next one.
const ROUNDS: usize = 8;
/// Maximum number of sockets that one epoll_wait(2) call reports.
const EVENTS: usize = 16;
/// Event data of the wake-up socket. No socket has this index.
const WOKEN: u64 = u64::MAX;
/// Wait before the next attempt after an epoll error.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

impl Worker {
    pub(crate) fn new(
        shared: Arc<Shared>,
        slow_path: mpsc::Sender<SlowPathQuery>,
        number: usize,
    ) -> io::Result<(Worker, Arc<WorkerControl>)> {
        let (wake, wake_receiver) = UnixDatagram::pair()?;
        wake.set_nonblocking(true)?;
        wake_receiver.set_nonblocking(true)?;
        let control =
            Arc::new(WorkerControl { sockets: ArcSwap::default(), wake, stop: AtomicBool::new(false) });
        let (control, (known, admission, added, hosts)) = (control.clone(), Default::default());
        let own = control.clone();
        Ok((
            Worker { shared, control: own, wake_receiver, slow_path, known, admission, added, hosts, number },
            control,
        ))
    }

    /// Runs until the worker is stopped. A panic loses the queries of one round, but the worker continues. If it ended,
    /// the kernel would still deliver a share of the queries to its sockets.
    pub(crate) fn run(&mut self) {
        loop {
            match catch_unwind(AssertUnwindSafe(|| self.watch())) {
                Ok(Ok(())) => return,
                Ok(Err(error)) => {
                    tracing::error!(worker = self.number, %error, "failed to poll the DNS sockets");
                    std::thread::sleep(RETRY_INTERVAL);
                }
                Err(_) => tracing::error!(worker = self.number, "DNS query handler panicked"),
            }
        }
    }

    fn watch(&mut self) -> io::Result<()> {
        let mut batch = Batch::new();
        while !self.control.stop.load(Ordering::Acquire) {
            let sockets = self.control.sockets.load_full();
            let watched = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            epoll::add(&watched, &self.wake_receiver, EventData::new_u64(WOKEN), EventFlags::IN)?;
            for (index, socket) in (0..).zip(&*sockets) {
                epoll::add(&watched, socket, EventData::new_u64(index), EventFlags::IN)?;
            }
            while !self.is_called(&watched, &sockets, &mut batch) {}
        }
        Ok(())
    }

    /// Answers the queries that have arrived. Returns true if the sockets have changed or the worker must stop.
    fn is_called(&mut self, watched: &OwnedFd, sockets: &[Arc<UdpSocket>], batch: &mut Batch) -> bool {
        let mut events = [Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; EVENTS];
        // After an error, such as an interruption, the caller waits again.
        let ready = epoll::wait(watched, &mut events, None).unwrap_or(0);
        let mut called = false;
        for event in &events[..ready] {
            match event.data.u64() {
                WOKEN => called = true,
                index => {
                    if let Some(socket) = usize::try_from(index).ok().and_then(|index| sockets.get(index)) {
                        self.drain(socket, batch);
                    }
                }
            }
        }
        let mut rest = [0; 16];
        while called && self.wake_receiver.recv(&mut rest).is_ok() {}
        called
    }

    fn drain(&mut self, socket: &Arc<UdpSocket>, batch: &mut Batch) {
        for _ in 0..ROUNDS {
            // An error belongs to a datagram that was sent before. The kernel reports it once.
            let (count, more) = batch.receive(socket).unwrap_or_default();
            if count > 0 {
                self.round(socket, batch, count);
            }
            if !more {
                return;
            }
        }
    }

    fn round(&mut self, socket: &Arc<UdpSocket>, batch: &mut Batch, count: usize) {
        let shared = self.shared.clone();
        // Read before the state, so that an answer from an old state never enters a newer epoch.
        let epoch = shared.kernel_cache.epoch();
        let state = shared.state.load();
        let now = shared.clock.now();
        self.known.renew(&state);
        let mut writer = shared.log.buffer(self.number).open();
        let mut repeatable = Vec::new();
        self.hosts.clear();
        self.hosts.resize(count, None);
        for index in 0..count {
            let Some((datagram, from, out)) = batch.datagram(index) else { continue };
            let mut host = None;
            let answered = self.answer(&state, datagram, (from, &mut host), now, out, &mut writer);
            self.hosts[index] = host;
            match answered {
                WorkerOutcome::Now => {}
                WorkerOutcome::Repeatable(host, client, trace, policy) => {
                    repeatable.push((index, host, client, trace, policy));
                }
                WorkerOutcome::Later(host) => {
                    let message = datagram.to_vec();
                    out.clear();
                    let peer = batch.peer(index);
                    let handed = SlowPathQuery { message, peer, host, socket: socket.clone(), at: now };
                    if self.slow_path.try_send(handed).is_err() {
                        shared.counts.overloaded.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        }
        drop(writer);
        batch.send(socket, count);
        if shared.kernel_filter.is_active(&state, epoch) {
            self.add_clients(&state, epoch, now, batch, count);
        }
        for (index, host, client, trace, policy) in &repeatable {
            let (Some((interface, server)), policy) = (batch.arrival(*index), *policy) else { continue };
            let (question, answer) = (batch.question(*index), batch.answer(*index));
            let offer =
                CacheCandidate { host, server, interface, question, answer, client, trace, policy, epoch };
            shared.kernel_cache.offer(&offer, &state.settings.blocking, now);
        }
    }

    /// Adds the clients of a batch to the filter in the kernel. A client without an answer waits for the slow path, or is
    /// over its rate limit; it is added with its next query.
    fn add_clients(&mut self, state: &Arc<State>, epoch: u64, now: Now, batch: &mut Batch, count: usize) {
        for index in 0..count {
            // A query that is no query led to no lookup of its host.
            let (Some((_, _, answer)), Some(host)) = (batch.datagram(index), self.hosts[index]) else {
                continue;
            };
            let is_whole = answer.get(2).is_some_and(|flags| flags & 2 == 0);
            let (true, Some((interface, server))) = (is_whole, batch.arrival(index)) else { continue };
            let Some(client) = self.known.clients.get(&host) else { continue };
            if self.added.is_due(host, server, interface, epoch, now) {
                let offer = ServedClient { host: &host, server, interface, client };
                self.shared.kernel_filter.offer(&offer, state, epoch, now);
            }
        }
    }

    fn answer(
        &mut self,
        state: &State,
        datagram: &[u8],
        (source, found): (SocketAddr, &mut Option<Host>),
        now: Now,
        out: &mut Vec<u8>,
        writer: &mut BufferWriter<'_>,
    ) -> WorkerOutcome {
        let from = source.ip();
        let request = match Request::read(datagram) {
            Ok(request) => request,
            Err(UnusableRequest::Silent) => return WorkerOutcome::Now,
            Err(UnusableRequest::Notify) => {
                state.notified(datagram, from, out);
                return WorkerOutcome::Now;
            }
            Err(UnusableRequest::Reply { id, flags, rcode }) => {
                compose::header_only(out, id, flags, rcode);
                return WorkerOutcome::Now;
            }
        };
        let id = datagram.first_chunk().copied().unwrap_or_default();
        let Some(host) = state.clients.host(&Arrival { source, kind: ArrivalKind::Datagram(id) }) else {
            self.shared.counts.unidentified.fetch_add(1, Ordering::Relaxed);
            return WorkerOutcome::Now;
        };
        *found = Some(host);
        // Queries of unknown addresses are rate-limited before the lookup. Source addresses can be forged at will, and
        // a lookup queries the kernel. A device that is known by its MAC address has a limit of its own meanwhile.
        let unknown = !self.known.has(&state.clients, host);
        let allowance = |near: bool| match near {
            true => self.shared.limit.take_client(state.settings.client_rate, from, now.ms),
            false => self.shared.limit.take(state.settings.rate, from, now.ms),
        };
        let mut allowed = match unknown.then(|| state.clients.device_limit(&host)) {
            None => Allowance::Answer,
            Some(None) => allowance(false),
            Some(Some(key)) => self.shared.limit.take_client(state.settings.client_rate, key, now.ms),
        };
        if allowed == Allowance::Answer {
            let near = self.known.client(&state.clients, host).near;
            if near || !unknown {
                allowed = allowance(near);
            }
        }
        match allowed {
            Allowance::Answer => {}
            Allowance::Slip => {
                Transport::Udp.envelope(&request, state).truncated(out, &request);
                return WorkerOutcome::Now;
            }
            Allowance::Drop => return WorkerOutcome::Now,
        }
        let client = self.known.client(&state.clients, host);
        let asking = QueryContext::new(state, &request, client, Transport::Udp, now);
        let Some((trace, policy)) = self.shared.answer_fast(&asking, out) else {
            return WorkerOutcome::Later(host);
        };
        let (time, elapsed, transport) = (now.wall, Duration::ZERO, Transport::Udp);
        writer.write(&QueryRecord { time, elapsed, from, client, transport, trace: &trace, message: out });
        let repeatable = client.near && policy != CachePolicy::Never && self.shared.kernel_cache.works();
        match repeatable && self.admission.is_repeated(&host, datagram, now) {
            true => WorkerOutcome::Repeatable(host, client.clone(), trace, policy),
            false => WorkerOutcome::Now,
        }
    }
}

/// Outcome of a query in the worker.
enum WorkerOutcome {
    /// Needs the slow path.
    Later(Host),
    Now,
    /// Answered, and the same client sent the same query before: the kernel cache may take the answer.
    Repeatable(Host, Arc<Client>, Trace, CachePolicy),
}

/// Cached clients by host, until the lookup or its version changes.
#[derive(Default)]
struct ClientCache {
    clients: HashMap<Host, Arc<Client>, rapidhash::fast::RandomState>,
    source: Option<Arc<dyn ClientLookup>>,
    version: u64,
}

/// Maximum number of cached clients.
const MAX_CACHED_CLIENTS: usize = 8192;

impl ClientCache {
    fn renew(&mut self, state: &State) {
        let same = self.source.as_ref().is_some_and(|source| Arc::ptr_eq(source, &state.clients));
        // Read before any client. A client that changes later is looked up again in the next round.
        let version = state.clients.version();
        if !same || version != self.version || self.clients.len() > MAX_CACHED_CLIENTS {
            self.clients.clear();
            self.source = Some(state.clients.clone());
            self.version = version;
        }
    }

    /// Reports whether the client is known without a slow lookup.
    fn has(&mut self, clients: &Arc<dyn ClientLookup>, host: Host) -> bool {
        match self.clients.entry(host) {
            Entry::Occupied(_) => true,
            Entry::Vacant(entry) => match clients.known(&host) {
                Some(client) => {
                    entry.insert(client);
                    true
                }
                None => false,
            },
        }
    }

    fn client(&mut self, clients: &Arc<dyn ClientLookup>, host: Host) -> &Arc<Client> {
        self.clients.entry(host).or_insert_with(|| clients.client(&host))
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::serve::Settings;
    use crate::serve::settings::Rate;
    use crate::serve::test_doubles::*;
    use crate::wire::rtype;

    /// Sends one query from each address and returns the number of answers.
    fn answered(world: &Fixture, from: impl Iterator<Item = IpAddr>) -> usize {
        let (slow_path, _handed) = mpsc::channel(1);
        let (mut worker, _control) = Worker::new(world.shared.clone(), slow_path, 0).expect("a worker");
        let (state, now) = (world.shared.state.load(), world.shared.clock.now());
        worker.known.renew(&state);
        let (query, mut out) = (question("ads.example", rtype::A), Vec::new());
        let mut count = 0;
        for from in from {
            out.clear();
            let mut writer = world.shared.log.buffer(0).open();
            worker.answer(&state, &query, ((from, 5300).into(), &mut None), now, &mut out, &mut writer);
            // Truncated answers do not count: they only request a retry over TCP.
            count += usize::from(!out.is_empty() && out[2] & 2 == 0);
        }
        count
    }

    fn world(settings: Settings) -> Fixture {
        use gateway_core::dns::{Action, Cause};
        Fixture::with(
            Rules::default().rule("ads.example", Action::Block, Cause::Blocklist),
            FakeFqdnPolicy::default(),
            settings,
        )
    }

    fn addresses(count: u32) -> impl Iterator<Item = IpAddr> {
        // Addresses of one /24, as a host of the LAN can forge them.
        (0..count).map(|n| IpAddr::from([192, 0, 2, (n % 250) as u8]))
    }

    #[tokio::test]
    async fn unknown_addresses_are_rate_limited_before_a_neighbour_lookup() {
        let rate = Rate { per_second: 5, burst: 2 };
        let world = world(Settings { rate, ..Settings::default() });
        answered(&world, (0..10_000_u32).map(|n| IpAddr::from([192, 0, 2, (n / 40) as u8])));
        let found = world.clients.found.load(Ordering::Acquire);
        assert!((1..=10).contains(&found), "{found} addresses were looked up");
    }

    #[tokio::test]
    async fn queries_of_a_host_that_is_not_known_get_no_answer() {
        let world = world(Settings::default());
        assert_eq!(answered(&world, [UNIDENTIFIED].into_iter()), 0);
        assert_eq!(world.shared.counts.unidentified.load(Ordering::Relaxed), 1);
        assert_eq!(world.clients.found.load(Ordering::Acquire), 0, "no client was looked up for it");
    }

    #[tokio::test]
    async fn a_host_of_the_lan_has_a_rate_of_its_own() {
        let rate = Rate { per_second: 0, burst: 1 };
        let client_rate = Rate { per_second: 10, burst: 2 };
        let world = world(Settings { rate, client_rate, ..Settings::default() });
        assert_eq!(answered(&world, std::iter::repeat_n(IpAddr::from([192, 0, 2, 1]), 1000)), 20);
        assert_eq!(answered(&world, addresses(250)), 249, "others are not held back by it");
    }

    #[tokio::test]
    async fn without_a_limit_every_query_is_answered() {
        let rate = Rate { per_second: 0, burst: 1 };
        let world = world(Settings { rate, ..Settings::default() });
        assert_eq!(answered(&world, addresses(1000)), 1000);
    }
}
