//! Names of servers in Initial packets of QUIC, which the kernel program cannot decrypt: it copies the packets, and
//! learns which flows show the name of a public resolver.

mod decrypt;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use gateway_common::wire::{FlowKey, QuicInitial, flow_flags};
use gateway_core::quic_initial::{Handshake, Name, header};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::reconcile::KernelDataplane;
use crate::service::Context;
use crate::supervise::blocking;

/// Maximum number of connections whose ClientHello is not complete.
const MAX_OPEN: usize = 4096;
/// Maximum number of them of one host, so that none takes the room of the others.
const MAX_OF_HOST: usize = 64;
/// Time after which an incomplete ClientHello is forgotten. Handshakes are given up after ten seconds (RFC 9002).
const TIMEOUT: Duration = Duration::from_secs(10);
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
}

#[derive(Default)]
struct Connections(BTreeMap<FlowKey, Connection>);

impl Connections {
    /// Adds a datagram. Returns the name of the server when it is known.
    fn add(
        &mut self,
        flow: FlowKey,
        datagram: &[u8],
        now: Instant,
    ) -> Option<gateway_common::wire::ServerNames> {
        let header = header(datagram)?;
        let known = self.0.get(&flow).filter(|known| now.duration_since(known.begun) < TIMEOUT);
        let ids = [Some(header.connection_id), known.map(|known| &known.connection_id[..])];
        let (id, frames) = ids
            .into_iter()
            .flatten()
            .find_map(|id| decrypt::frames(datagram, &header, id).map(|frames| (id.to_vec(), frames)))?;
        self.make_room(&flow, now);
        let fresh = || Connection { begun: now, connection_id: id.clone(), handshake: Handshake::default() };
        let connection = self.0.entry(flow).or_insert_with(fresh);
        // Another connection with the ports of an earlier one, or the same one after a Retry packet.
        if connection.connection_id != id {
            *connection = fresh();
        }
        connection.handshake.add(&frames);
        let name = match connection.handshake.name() {
            Name::Open => return None,
            Name::Known(names) => Some(names),
            Name::Absent => None,
        };
        self.0.remove(&flow);
        name
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
                    let length = usize::try_from(copy.length).unwrap_or(0);
                    let Some(datagram) = copy.bytes.get(..length) else { continue };
                    let Some(names) = connections.add(copy.flow, datagram, now) else { continue };
                    let is_resolver = names
                        .0
                        .iter()
                        .any(|hash| compiled.borrow().plan.dataplane.doh_names.contains_key(hash));
                    if is_resolver {
                        note(&dataplane, copy.flow).await;
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

/// Makes the kernel program evaluate the flow again, as one with the name of a public resolver.
async fn note(dataplane: &KernelDataplane, flow: FlowKey) {
    let dataplane = dataplane.clone();
    let noted =
        blocking(move || dataplane.with(|programs| programs.note_in_flow(&flow, flow_flags::DOH_NAME)));
    if let Err(error) = noted.await {
        tracing::warn!(%error, "failed to note the name of a server in a flow");
    }
}

#[cfg(test)]
mod tests;
