//! The task of a device that sends cover traffic.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use gateway_model::settings::groups::CoverSettings;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::time::Instant;

use super::super::shared::Shared;
use super::super::sockets::{MAX_DATAGRAM, Sockets};
use super::super::transmit;
use super::driver::{CoverRejection, Driver, Outcome, TrafficDelta};
use super::machines;
use super::meter::{Counts, Length, OVERHEAD};

/// Interval over which traffic is gathered into one report.
const GATHER_TIME: Duration = Duration::from_millis(2);

/// Sends cover while the settings enable it, and follows changes of the settings.
pub(in super::super) async fn packets(shared: Arc<Shared>, sockets: Arc<Sockets>) {
    let mut settings = shared.cover.settings.subscribe();
    loop {
        let wanted = settings.borrow_and_update().clone();
        let flowing = async {
            if wanted.enabled {
                flow(&shared, &sockets, &wanted).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = flowing => {}
            changed = settings.changed() => if changed.is_err() { return },
        }
    }
}

/// The machines of one peer, and the last reported counters.
struct PeerCover {
    driver: Driver<StdRng>,
    reported: Counts,
}

impl PeerCover {
    fn new(settings: &CoverSettings, now: Instant, reported: Counts) -> Result<Self, CoverRejection> {
        let machines = settings.machines.iter().map(|name| machines::machine(*name));
        let machines = machines.collect::<Result<_, maybenot::Error>>()?;
        let rngs = [StdRng::from_os_rng(), StdRng::from_os_rng()];
        Ok(Self { driver: Driver::new(machines, settings.budget_pct, now.into_std(), rngs)?, reported })
    }

    /// Returns the traffic since the last call.
    fn passed(&mut self, total: Counts) -> TrafficDelta {
        let reported = std::mem::replace(&mut self.reported, total);
        TrafficDelta {
            sent: total.normal_packets.saturating_sub(reported.normal_packets),
            sent_bytes: total.normal_bytes.saturating_sub(reported.normal_bytes),
            received: total.received.saturating_sub(reported.received),
            heard: total.heard != reported.heard,
        }
    }
}

/// Sends cover until an unrecoverable error. The settings have to change then.
async fn flow(shared: &Shared, sockets: &Sockets, settings: &CoverSettings) {
    let mut covered: BTreeMap<u32, PeerCover> = BTreeMap::new();
    let (mut plaintext, mut room) = (vec![0; MAX_DATAGRAM], vec![0; MAX_DATAGRAM + OVERHEAD]);
    let mut datagrams: Vec<(Vec<u8>, SocketAddr)> = Vec::new();
    loop {
        shared.cover.listen();
        let (now, table) = (Instant::now(), shared.table.load_full());
        covered.retain(|index, _| table.peers().any(|peer| peer.index() == *index));
        for peer in table.peers() {
            let total = peer.meter.counts();
            let machines = match covered.entry(peer.index()) {
                std::collections::btree_map::Entry::Occupied(there) => there.into_mut(),
                std::collections::btree_map::Entry::Vacant(free) => {
                    match PeerCover::new(settings, now, total) {
                        Ok(machines) => free.insert(machines),
                        Err(error) => {
                            tracing::error!(%error, "cover traffic is not available");
                            return;
                        }
                    }
                }
            };
            let passed = machines.passed(total);
            machines.driver.step(now.into_std(), passed, |left, rng| match peer.meter.draw(left, rng) {
                Length::Unknown => Outcome::NoWay,
                Length::TooLong(shortest) => Outcome::TooDear(shortest),
                Length::Fits(len) => {
                    fill_cover_packet(&mut plaintext[..len]);
                    match peer.cover(now, &plaintext[..len], &mut room) {
                        None => Outcome::NoWay,
                        Some((len, to)) => {
                            peer.meter.padded(len);
                            datagrams.push((room[..len].to_vec(), to));
                            Outcome::Sent(len)
                        }
                    }
                }
            });
            peer.meter.throttled(machines.driver.take_throttled());
        }
        for (datagram, to) in datagrams.drain(..) {
            transmit::send(shared, sockets, &datagram, to).await;
        }
        let due = covered.values().filter_map(|machines| machines.driver.due()).min();
        tokio::select! {
            () = shared.cover.wake.notified() => tokio::time::sleep(GATHER_TIME).await,
            () = tokio::time::sleep_until(due.map_or(now, Instant::from_std)), if due.is_some() => {}
        }
    }
}

/// Turns the buffer into a packet that every peer drops; see the module `cover`.
fn fill_cover_packet(packet: &mut [u8]) {
    packet.fill(0);
    let len = u16::try_from(packet.len()).unwrap_or(u16::MAX);
    // Version 4, header length 0, and the total length at the offset of the IPv4 header.
    if let [first, _, total @ ..] = packet
        && let Some(total) = total.first_chunk_mut::<2>()
    {
        (*first, *total) = (0x40, len.to_be_bytes());
    }
}

#[cfg(test)]
mod tests;
