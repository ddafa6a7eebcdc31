//! Names of servers in Initial packets of QUIC, which the kernel program cannot decrypt.
//!
//! The program holds those of hosts that may not use DNS over HTTPS: it copies and drops them. Once the name is known, they
//! enter again and pass, unless the server is a public resolver. Of other hosts the program copies them only.

mod decrypt;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use gateway_common::wire::{FlowKey, QuicInitial, ServerNames, flow_flags};
use gateway_core::quic_initial::{Handshake, Name, frame, header};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::os::bpf;
use crate::reconcile::KernelDataplane;
use crate::service::Context;
use crate::supervise::blocking;

/// Maximum number of connections whose ClientHello is not complete.
const MAX_OPEN: usize = 4096;
/// Maximum number of them of one host, so that none takes the room of the others.
const MAX_OF_HOST: usize = 64;
/// Time after which an incomplete ClientHello is forgotten. Handshakes are given up after ten seconds (RFC 9002).
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of held frames of a connection. A client sends a ClientHello in two or three.
const MAX_HELD: usize = 8;
/// Copies that are read at a time.
const BATCH: usize = 256;
/// Pause after a failure to read copies.
const RETRY: Duration = Duration::from_secs(10);

/// Connection whose ClientHello is not complete.
struct Connection {
    begun: Instant,
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
    held: Vec<Vec<u8>>,
}

#[derive(Default)]
struct Connections(BTreeMap<FlowKey, Connection>);

impl Connections {
    /// Adds a copy. Returns the connection when its ClientHello has been read as a whole.
    fn add(&mut self, copy: &QuicInitial, now: Instant) -> Option<Read> {
        let flow = copy.flow;
        let datagram = part(&copy.bytes, copy.length)?;
        let header = header(datagram)?;
        let known = self.0.get(&flow).filter(|known| now.duration_since(known.begun) < TIMEOUT);
        let ids = [Some(header.connection_id), known.map(|known| &known.connection_id[..])];
        let (id, frames) = ids
            .into_iter()
            .flatten()
            .find_map(|id| decrypt::frames(datagram, &header, id).map(|frames| (id.to_vec(), frames)))?;
        self.make_room(&flow, now);
        let fresh = || Connection {
            begun: now,
            connection_id: id.clone(),
            handshake: Handshake::default(),
            held: Vec::new(),
        };
        let connection = self.0.entry(flow).or_insert_with(fresh);
        // Another connection with the ports of an earlier one, or the same one after a Retry packet.
        if connection.connection_id != id {
            *connection = fresh();
        }
        connection.handshake.add(&frames);
        if copy.held != 0 && connection.held.len() < MAX_HELD {
            let headers = part(&copy.headers, copy.headers_length)?;
            connection.held.extend(frame(headers, flow.vlan, datagram));
        }
        let names = match connection.handshake.name() {
            Name::Open => return None,
            Name::Known(names) => Some(names),
            Name::Absent => None,
        };
        let held = self.0.remove(&flow).map(|connection| connection.held).unwrap_or_default();
        Some(Read { names, held })
    }

    /// Removes the oldest connections, first of the same host.
    fn make_room(&mut self, flow: &FlowKey, now: Instant) {
        if self.0.contains_key(flow) {
            return;
        }
        self.0.retain(|_, connection| now.duration_since(connection.begun) < TIMEOUT);
        let is_full = self.0.len() >= MAX_OPEN;
        let of_host = || self.0.iter().filter(|(key, _)| key.mac == flow.mac);
        let oldest = if of_host().count() >= MAX_OF_HOST {
            of_host().min_by_key(|(_, connection)| connection.begun)
        } else {
            self.0.iter().filter(|_| is_full).min_by_key(|(_, connection)| connection.begun)
        };
        if let Some(oldest) = oldest.map(|(key, _)| *key) {
            self.0.remove(&oldest);
        }
    }
}

/// Runs until it is aborted.
pub async fn run(Context { wake, dataplane, .. }: Context) {
    let compiled = wake.compiled();
    let mut connections = Connections::default();
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
                for copy in copies {
                    let Some(read) = connections.add(&copy, now) else { continue };
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

/// Returns the beginning of a field that has this length.
fn part(bytes: &[u8], length: u32) -> Option<&[u8]> {
    bytes.get(..usize::try_from(length).ok()?)
}

#[cfg(test)]
mod tests;
