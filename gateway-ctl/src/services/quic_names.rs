//! Names of servers in Initial packets of QUIC, which the kernel program cannot decrypt.
//!
//! The program holds those of hosts that may not use DNS over HTTPS: it copies and drops them, and the datagrams that follow,
//! such as 0-RTT data. Once the name is known, they enter again in their order and pass, unless the server is a public
//! resolver. Of other hosts the program copies Initial packets only. Decision 0102 says why.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use gateway_common::wire::{FlowKey, QuicInitial, ServerNames, flow_flags};
use gateway_core::fair_share::largest;
use gateway_core::host_paths::HostPaths;
use gateway_core::quic_initial::{Handshake, Name, frame, header};
use gateway_dissect::{message_server_name, quic};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::os::bpf;
use crate::reconcile::KernelDataplane;
use crate::service::Context;
use crate::services::flow_log::FlowLog;
use crate::supervise::blocking;

/// Maximum number of connections whose ClientHello is not complete. Beyond it, the owner of the most gives up its oldest.
const MAX_OPEN: usize = 4096;
/// Maximum number of them of one owner.
const MAX_OF_OWNER: usize = 64;
/// Copies of one owner in a [`PERIOD`]; further ones are not decrypted. A client sends two or three for a connection.
const MAX_COPIES: u32 = 256;
const PERIOD: Duration = Duration::from_secs(1);
/// Time after which an incomplete ClientHello is forgotten. Handshakes are given up after ten seconds (RFC 9002).
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of held frames of a connection: a ClientHello of two or three, and 0-RTT data, of which a client sends about
/// ten before the server answers (RFC 9002, section 7.2).
const MAX_HELD: usize = 32;
/// Maximum length of the held frames of one owner, and of all.
const MAX_HELD_BYTES_OF_OWNER: usize = 256 << 10;
const MAX_HELD_BYTES: usize = 16 << 20;
/// Time for which copies that the program made before it knew the name are sent on.
const LATE: Duration = Duration::from_secs(1);
/// Copies that are read at a time.
const BATCH: usize = 256;
/// Pause after a failure to read copies.
const RETRY: Duration = Duration::from_secs(10);

/// Owner of connections: interface, group and device or MAC address ([`HostPaths::of_mac`]). Made-up MAC addresses of an
/// interface have one owner.
type Owner = [u128; 3];

/// Connection whose ClientHello is not complete.
struct Connection {
    begun: Instant,
    owner: Owner,
    /// Connection ID from which the client's Initial packets have their keys. Later packets may have another.
    connection_id: Vec<u8>,
    handshake: Handshake,
    /// Frames that the program has dropped, in the order of their arrival.
    held: Vec<Vec<u8>>,
}

/// Connection whose ClientHello has been read.
#[derive(Debug, PartialEq, Eq)]
struct Read {
    /// Names of the server; `None` if it has none.
    names: Option<ServerNames>,
    /// Its name as text, with the packet that completes the ClientHello.
    name: Option<String>,
    held: Vec<Vec<u8>>,
}

/// Connection whose ClientHello was read a short time ago.
struct Finished {
    at: Instant,
    connection_id: Vec<u8>,
    names: Option<ServerNames>,
}

#[derive(Default)]
struct Connections {
    open: BTreeMap<FlowKey, Connection>,
    owners: BTreeMap<Owner, OwnerState>,
    /// Length of all held frames.
    held_bytes: usize,
    finished: BTreeMap<FlowKey, Finished>,
    /// Finished connections, the oldest first.
    finished_order: VecDeque<(Instant, FlowKey)>,
}

#[derive(Default)]
struct OwnerState {
    /// Its open connections, the oldest first.
    flows: VecDeque<FlowKey>,
    /// Begin of the period in which its copies are counted.
    counted_from: Option<Instant>,
    copies: u32,
    /// Length of its held frames.
    held_bytes: usize,
}

impl OwnerState {
    /// Counts a copy. Returns false if it is beyond the budget.
    fn admit(&mut self, now: Instant) -> bool {
        if self.counted_from.is_none_or(|begun| now.duration_since(begun) >= PERIOD) {
            (self.counted_from, self.copies) = (Some(now), 0);
        }
        self.copies = self.copies.saturating_add(1);
        self.copies <= MAX_COPIES
    }

    fn is_idle(&self, now: Instant) -> bool {
        self.flows.is_empty() && self.counted_from.is_none_or(|begun| now.duration_since(begun) >= PERIOD)
    }
}

impl Connections {
    /// Adds a copy. Returns the connection when its ClientHello has been read as a whole, and for held copies that come after it.
    fn add(&mut self, copy: &QuicInitial, owner: Owner, now: Instant) -> Option<Read> {
        let flow = copy.flow;
        if self.owners.len() > MAX_OPEN {
            self.owners.retain(|_, state| !state.is_idle(now));
        }
        self.forget_finished(now);
        let datagram = part(&copy.bytes, copy.length)?;
        let Some(header) = header(datagram) else { return self.follow(copy, datagram, now) };
        if !self.owners.entry(owner).or_default().admit(now) {
            return None;
        }
        let known = self.open.get(&flow).filter(|known| now.duration_since(known.begun) < TIMEOUT);
        let finished = self.finished.get(&flow);
        let ids = [
            Some(header.connection_id),
            known.map(|known| &known.connection_id[..]),
            finished.map(|finished| &finished.connection_id[..]),
        ];
        let (id, frames) = ids
            .into_iter()
            .flatten()
            .find_map(|id| quic::frames(datagram, &header, id).map(|frames| (id.to_vec(), frames)))?;
        if finished.is_some_and(|finished| finished.connection_id == id) {
            return self.follow(copy, datagram, now);
        }
        // Another connection with the ports of an earlier one, or the same one after a Retry packet.
        if self.open.get(&flow).is_none_or(|known| known.connection_id != id) {
            self.remove(&flow);
            self.make_room(owner, now);
            let (handshake, held) = (Handshake::default(), Vec::new());
            self.open.insert(flow, Connection { begun: now, owner, connection_id: id, handshake, held });
            self.owners.entry(owner).or_default().flows.push_back(flow);
        }
        self.hold(copy, datagram);
        let connection = self.open.get_mut(&flow)?;
        connection.handshake.add(&frames);
        let names = match connection.handshake.name() {
            Name::Open => return None,
            Name::Known(names) => Some(names),
            Name::Absent => None,
        };
        let Connection { connection_id, held, handshake, .. } = self.remove(&flow)?;
        let name = message_server_name(handshake.bytes());
        self.finished.insert(flow, Finished { at: now, connection_id, names });
        self.finished_order.push_back((now, flow));
        Some(Read { names, name, held })
    }

    /// Holds a datagram of a connection whose name is awaited. Returns it if the name was read after the program held it.
    fn follow(&mut self, copy: &QuicInitial, datagram: &[u8], now: Instant) -> Option<Read> {
        if copy.held == 0 {
            return None;
        }
        if let Some(finished) = self.finished.get(&copy.flow) {
            let held = held_frame(copy, datagram).into_iter().collect();
            return Some(Read { names: finished.names, name: None, held });
        }
        let is_open = |known: &Connection| now.duration_since(known.begun) < TIMEOUT;
        if self.open.get(&copy.flow).is_some_and(is_open) {
            self.hold(copy, datagram);
        }
        None
    }

    /// Keeps the frame of a held copy with its open connection. Beyond the limits it is dropped, and the client sends it again.
    fn hold(&mut self, copy: &QuicInitial, datagram: &[u8]) {
        let Some(connection) = self.open.get_mut(&copy.flow) else { return };
        let owner = self.owners.entry(connection.owner).or_default();
        if copy.held == 0 || connection.held.len() >= MAX_HELD {
            return;
        }
        let Some(frame) = held_frame(copy, datagram) else { return };
        let length = frame.len();
        if owner.held_bytes + length <= MAX_HELD_BYTES_OF_OWNER && self.held_bytes + length <= MAX_HELD_BYTES
        {
            owner.held_bytes += length;
            self.held_bytes += length;
            connection.held.push(frame);
        }
    }

    fn forget_finished(&mut self, now: Instant) {
        while let Some((at, flow)) = self.finished_order.front().copied()
            && (now.duration_since(at) >= LATE || self.finished_order.len() > MAX_OPEN)
        {
            self.finished_order.pop_front();
            // Another connection with the same ports may have ended later.
            if self.finished.get(&flow).is_some_and(|finished| finished.at == at) {
                self.finished.remove(&flow);
            }
        }
    }

    /// Makes room for a connection of an owner: its own oldest goes first, then the oldest of the owner of the most.
    fn make_room(&mut self, owner: Owner, now: Instant) {
        self.expire(owner, now);
        let of_owner = self.owners.get(&owner).map_or(0, |state| state.flows.len());
        let giving = if of_owner >= MAX_OF_OWNER {
            Some(owner)
        } else if self.open.len() >= MAX_OPEN {
            let held = self.owners.iter().map(|(owner, state)| (*owner, state.flows.len())).collect();
            largest(&held)
        } else {
            None
        };
        let oldest = giving.and_then(|owner| self.owners.get(&owner)?.flows.front().copied());
        if let Some(oldest) = oldest {
            self.remove(&oldest);
        }
    }

    /// Forgets the connections of an owner that timed out.
    fn expire(&mut self, owner: Owner, now: Instant) {
        let oldest = |open: &Self| open.owners.get(&owner)?.flows.front().copied();
        while let Some(flow) = oldest(self)
            && self.open.get(&flow).is_none_or(|known| now.duration_since(known.begun) >= TIMEOUT)
        {
            self.remove(&flow);
            // Also if it was not open, which never is.
            self.owners.entry(owner).or_default().flows.retain(|other| *other != flow);
        }
    }

    fn remove(&mut self, flow: &FlowKey) -> Option<Connection> {
        let connection = self.open.remove(flow)?;
        let length: usize = connection.held.iter().map(Vec::len).sum();
        self.held_bytes -= length;
        if let Some(state) = self.owners.get_mut(&connection.owner) {
            state.flows.retain(|other| other != flow);
            state.held_bytes -= length;
        }
        Some(connection)
    }
}

/// Runs until it is aborted.
pub(crate) async fn run(Context { wake, dataplane, worlds, handles, .. }: Context) {
    let compiled = wake.compiled();
    let logged = handles.get::<FlowLog>().server_names().clone();
    let mut connections = Connections::default();
    let (mut hosts, mut known_at) = (HostPaths::default(), None::<Instant>);
    loop {
        let ring = dataplane.with(|programs| programs.initials_descriptor()).and_then(watched);
        let Ok(ring) =
            ring.inspect_err(|error| tracing::warn!(%error, "failed to read copies of QUIC packets"))
        else {
            tokio::time::sleep(RETRY).await;
            continue;
        };
        loop {
            let Ok(mut ready) = ring.readable().await else { break };
            ready.clear_ready();
            while let copies = drain(&dataplane).await
                && !copies.is_empty()
            {
                let now = Instant::now();
                if known_at.is_none_or(|known| now.duration_since(known) >= PERIOD) {
                    let world = worlds.last();
                    hosts = HostPaths::new(&world.input(), &world.live().plan.dataplane, BTreeMap::new());
                    known_at = Some(now);
                }
                for copy in copies {
                    let owner = hosts.of_mac(copy.flow.interface, copy.flow.mac.octets());
                    let Some(read) = connections.add(&copy, owner, now) else { continue };
                    let log = worlds.last().config.flow_log;
                    if let Some(name) = read.name
                        && log.enabled
                        && log.server_names
                    {
                        logged.note(&copy.flow, name);
                    }
                    let hashes = read.names.map(|names| names.0).unwrap_or_default();
                    let plan = compiled.borrow().clone();
                    let is_resolver =
                        hashes.iter().any(|hash| plan.plan.dataplane.doh_names.contains_key(hash));
                    if let Err(error) = conclude(&dataplane, copy.flow, is_resolver, read.held).await {
                        tracing::warn!(%error, "failed to note the name of a server in a flow of QUIC");
                    }
                }
            }
        }
    }
}

fn watched(ring: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is open, and of the same file, until its owner ends with the registration.
    let watched = unsafe { AsyncFd::register_with_interest(ring, Interest::READABLE) };
    watched.map_err(io::Error::from)
}

async fn drain(dataplane: &KernelDataplane) -> Vec<Box<QuicInitial>> {
    let dataplane = dataplane.clone();
    blocking(move || dataplane.with(|programs| programs.drain_initials(BATCH))).await
}

/// Makes the kernel program evaluate the flow again, as one whose name is known, and sends on what was held.
async fn conclude(
    dataplane: &KernelDataplane,
    flow: FlowKey,
    is_resolver: bool,
    held: Vec<Vec<u8>>,
) -> Result<(), bpf::Error> {
    if !is_resolver && held.is_empty() {
        return Ok(());
    }
    let shown = if is_resolver { flow_flags::HELLO | flow_flags::DOH_NAME } else { flow_flags::HELLO };
    let dataplane = dataplane.clone();
    blocking(move || {
        dataplane.with(|programs| {
            programs.note_in_flow(&flow, shown)?;
            // Those of a resolver are rejected now, so that the client gives up at once.
            held.iter().try_for_each(|frame| programs.inject(flow.interface, frame))
        })
    })
    .await
}

/// Returns the frame of a copy.
fn held_frame(copy: &QuicInitial, datagram: &[u8]) -> Option<Vec<u8>> {
    frame(part(&copy.headers, copy.headers_length)?, copy.flow.vlan, datagram)
}

/// Returns the beginning of a field that has this length.
fn part(bytes: &[u8], length: u32) -> Option<&[u8]> {
    bytes.get(..usize::try_from(length).ok()?)
}

#[cfg(test)]
mod tests;
