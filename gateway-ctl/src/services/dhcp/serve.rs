//! Task of the server: reads requests in batches, makes the leases of a batch durable together, and sends the
//! acknowledgements after that.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use gateway_common::link_protocol::LinkProtocol;
use gateway_core::facts::Facts;
use gateway_core::network::Network;
use gateway_core::state_machines::dhcp::{
    Configured, Lease, Output, Probe, Reply, Request, Server, configured,
};
use gateway_model::{MacAddr, Revision};
use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, interval, sleep_until, timeout};

use super::handle::{DhcpServer, ServerFailure};
use super::links::{BATCH, Links, Served};
use super::stored_leases::StoredLeases;
use super::{alerts, search};
use crate::service::Context;
use crate::services::encrypted_storage::EncryptedStorage;
use crate::services::link_frames::{Arrival, LinkFrames};
use crate::world::reports::leased_names::LeasedNames;

/// Pause after a failure of the sockets or of the journal.
const RETRY: Duration = Duration::from_secs(5);
/// Interval of the search for other servers.
const SEARCH: Duration = Duration::from_secs(300);
/// Interval of alerts.
const ALERTS: Duration = Duration::from_secs(1);
/// Time between the first and the second probe of an address: one frame may be lost.
const SECOND_PROBE: Duration = Duration::from_millis(150);
/// Shortest time between two publications of the names. The first one after a pause is immediate.
const NAMES: Duration = Duration::from_millis(200);
/// The same as a multiple of the time that a publication takes: it grows with the number of leases.
const NAMES_SHARE: u32 = 10;

type Erasures = mpsc::Receiver<oneshot::Sender<io::Result<()>>>;

/// Runs until it is aborted.
pub(super) async fn run(context: Context) {
    let dhcp = &context.handles.get::<DhcpServer>();
    let mut erasures = dhcp.0.requested_erasures.lock().await;
    {
        // After a panic, the leases come from the journal again.
        let mut state = dhcp.lock();
        state.server = Server::default();
        state.server.set_withholding(true);
        state.configured = Configured::default();
    }
    let mut task = Task::new(&context, dhcp);
    // Their times follow from the configuration.
    task.follow();
    while let Err(error) = task.leases.follow(dhcp, task.now()).await {
        dhcp.fail(ServerFailure::Leases(error.to_string()));
        tokio::time::sleep(RETRY).await;
    }
    loop {
        let end = match task.serve(&mut erasures).await {
            // Other interfaces are to be served.
            Ok(()) => continue,
            Err(error) => error,
        };
        dhcp.fail(ServerFailure::Sockets(end.to_string()));
        if let Ok(Some(done)) = timeout(RETRY, erasures.recv()).await {
            // The caller may be gone.
            let _ = done.send(task.erase().await);
        }
    }
}

struct Task<'a> {
    context: &'a Context,
    dhcp: &'a DhcpServer,
    frames: LinkFrames,
    leases: StoredLeases,
    facts: Arc<Facts>,
    /// Inputs that were taken over last.
    followed: Option<(Revision, Arc<Facts>, Arc<Network>)>,
    /// MAC addresses of devices.
    devices: BTreeSet<MacAddr>,
    second_probes: VecDeque<(Instant, Probe)>,
    /// Generation of the published names, and the earliest time of the next publication.
    names: (u64, Instant),
}

impl<'a> Task<'a> {
    fn new(context: &'a Context, dhcp: &'a DhcpServer) -> Task<'a> {
        Task {
            context,
            dhcp,
            frames: context.handles.get::<LinkFrames>(),
            leases: StoredLeases::new(
                context.handles.get::<EncryptedStorage>(),
                &context.worlds.configuration().file().state_dir,
            ),
            facts: Arc::default(),
            followed: None,
            devices: BTreeSet::new(),
            second_probes: VecDeque::new(),
            names: (u64::MAX, Instant::now()),
        }
    }

    /// Serves the configured interfaces. Returns when they are others.
    async fn serve(&mut self, erasures: &mut Erasures) -> io::Result<()> {
        let (mut worlds, mut revisions) = (self.context.worlds.watch(), self.context.store.watch());
        worlds.mark_unchanged();
        revisions.mark_unchanged();
        let served = self.follow();
        self.publish_names();
        let links = Links::open(&served)?;
        self.dhcp.lock().failure = None;
        if !served.links.is_empty() {
            let names: Vec<&str> = links.keys().map(|key| key.interface.as_str()).collect();
            tracing::info!(interfaces = ?names, "serving DHCP");
        }
        let mut folders = self.leases.watch();
        let (mut searches, mut alerts) = (interval(SEARCH), interval(ALERTS));
        let mut is_more = false;
        loop {
            let wake = self.next_wake();
            tokio::select! {
                ready = links.readable(), if !is_more => ready?,
                () = std::future::ready(()), if is_more => {}
                () = sleep_until(wake) => {}
                () = self.frames.arrived(LinkProtocol::DhcpReply) => {}
                changed = worlds.changed() => if changed.is_err() { return std::future::pending().await },
                changed = revisions.changed() => if changed.is_err() { return std::future::pending().await },
                Ok(()) = folders.changed() => {}
                _ = searches.tick() => links.search(),
                _ = alerts.tick() => self.publish_alerts(),
                Some(done) = erasures.recv() => {
                    let erased = self.erase().await;
                    // The caller may be gone.
                    let _ = done.send(erased);
                }
            }
            if self.follow() != served {
                return Ok(());
            }
            if let Err(error) = self.leases.follow(self.dhcp, self.now()).await {
                self.dhcp.fail(ServerFailure::Leases(error.to_string()));
            }
            let (output, more) = self.batch(&links)?;
            is_more = more;
            self.apply(output, &links).await;
            self.publish_names();
        }
    }

    fn now(&self) -> Timestamp {
        self.context.store.clock().now()
    }

    /// Takes over settings, reservations, segments and addresses of interfaces. Returns the interfaces to serve.
    fn follow(&mut self) -> Served {
        let state = self.context.store.current();
        let world = self.context.worlds.last();
        let is_known = self.followed.as_ref().is_some_and(|(revision, facts, network)| {
            *revision == state.revision
                && Arc::ptr_eq(facts, &world.facts)
                && Arc::ptr_eq(network, &world.network)
        });
        if !is_known {
            let network = self.context.worlds.configuration().with(&state).network;
            let new = configured(&state, &network, &world.facts);
            let now = self.now();
            let mut shared = self.dhcp.lock();
            if shared.configured != new {
                for problem in &new.problems {
                    tracing::warn!(problem, "a network gets no addresses by DHCP");
                }
                shared.server.configure(new.config.clone(), now);
                shared.configured = new;
            }
            drop(shared);
            let devices = state.devices.iter().flat_map(|device| device.all_macs()).collect();
            if std::mem::replace(&mut self.devices, devices) != self.devices {
                self.names.0 = u64::MAX;
            }
            self.facts = world.facts.clone();
            self.followed = Some((state.revision, world.facts.clone(), world.network.clone()));
        }
        Served::of(&self.dhcp.lock().configured.config)
    }

    fn next_wake(&self) -> Instant {
        let now = Instant::now();
        // Without a deadline, a tick of the alerts comes first.
        let mut wake = now + ALERTS;
        let shared = self.dhcp.lock();
        if let Some(deadline) = shared.server.next_deadline() {
            let left = deadline.duration_since(self.now());
            wake = wake.min(now + Duration::try_from(left).unwrap_or_default());
        }
        if shared.server.names_generation() != self.names.0 {
            wake = wake.min(self.names.1);
        }
        match self.second_probes.front() {
            Some((due, _)) => wake.min(*due),
            None => wake,
        }
    }

    /// Reads what the sockets have, and lets time pass. Returns whether there may be more to read.
    fn batch(&mut self, links: &Links) -> io::Result<(Output, bool)> {
        let (now, facts) = (self.now(), self.facts.clone());
        let mut output = Output::default();
        let mut is_more = false;
        let mut buffer = Vec::new();
        let mut shared = self.dhcp.lock();
        let shared = &mut *shared;
        for link in &links.links {
            let mut left = BATCH;
            while left > 0 && link.socket.next_request(&mut buffer)? {
                left -= 1;
                match Request::parse(&buffer) {
                    Ok(request) => shared.server.handle(request, link.key.index, now, &mut output),
                    Err(rejection) => shared.server.counters_mut().note_rejection(rejection),
                }
            }
            is_more |= left == 0;
            for (_, address) in output.foreign_servers.extract_if(.., |(index, _)| *index == link.key.index) {
                if !search::is_own(&facts, address) {
                    shared.foreign.note(search::server(&link.key.interface, address, None, None, now));
                }
            }
        }
        for arrival in self.frames.take(LinkProtocol::DhcpReply) {
            let Some(key) = links.keys().find(|key| key.index == arrival.interface) else { continue };
            let Arrival { packet, mac, .. } = &arrival;
            if let Some(server) = search::foreign_server(packet, *mac, &facts, &key.interface, now) {
                shared.foreign.note(server);
            }
        }
        let server = &mut shared.server;
        is_more |= links.address_users(|address, mac| {
            server.handle_probe_answer(address, mac.map(MacAddr), now, &mut output);
        })?;
        server.poll(now, &mut output);
        Ok((output, is_more))
    }

    /// Sends replies and probes, and makes leases durable before their acknowledgements leave.
    async fn apply(&mut self, output: Output, links: &Links) {
        let Output { leases, replies, stored_replies, probes, .. } = output;
        replies.iter().for_each(|reply| links.send(reply));
        let now = Instant::now();
        for probe in probes {
            links.probe(&probe);
            self.second_probes.push_back((now + SECOND_PROBE, probe));
        }
        while let Some((_, probe)) = self.second_probes.pop_front_if(|(due, _)| *due <= now) {
            links.probe(&probe);
        }
        // A lease that stays as it is on disk needs no write.
        if leases.is_empty() && !self.leases.is_behind() {
            stored_replies.iter().for_each(|reply| links.send(reply));
        } else if !leases.is_empty() || !stored_replies.is_empty() {
            self.store(leases, &stored_replies, links).await;
        }
    }

    async fn store(&mut self, leases: Vec<Lease>, replies: &[Reply], links: &Links) {
        match self.leases.store(self.dhcp, leases).await {
            Ok(()) => {
                replies.iter().for_each(|reply| links.send(reply));
                self.dhcp.lock().failure = None;
            }
            // Without an acknowledgement the client asks again.
            Err(error) => self.dhcp.fail(ServerFailure::Leases(error.to_string())),
        }
    }

    async fn erase(&mut self) -> io::Result<()> {
        self.dhcp.lock().server.erase(self.now());
        self.leases.erase().await
    }

    fn publish_alerts(&self) {
        let now = self.now();
        self.dhcp.lock().foreign.expire(now);
        let (alerts, state) = (&self.context.active_alerts, self.context.store.current());
        alerts::publish(self.dhcp, alerts, &state, &self.context.worlds.last(), now);
    }

    fn publish_names(&mut self) {
        let now = Instant::now();
        let shared = self.dhcp.lock();
        let generation = shared.server.names_generation();
        if generation == self.names.0 || now < self.names.1 {
            return;
        }
        let names = LeasedNames::of(&shared.server, &self.devices, self.now());
        drop(shared);
        self.names = (generation, now + NAMES.max(now.elapsed() * NAMES_SHARE));
        let worlds = &self.context.worlds;
        if *worlds.last().reports.leased_names != names {
            worlds.report(|reports| reports.leased_names = Arc::new(names));
        }
    }
}
