//! Cover traffic: packets for nobody among those for somebody, so that their times and number tell less.
//!
//! When one goes out is up to maybenot's machines (`machines`), how many to a budget (`budget`). Only this end sends any,
//! and the far end is a WireGuard peer that knows nothing of it, so a packet of cover must be one that every peer drops by
//! itself: it is a data message like all others, of a length that was just sent for somebody, and inside it begins as
//! an IPv4 packet of that length and is zeros otherwise. Its source, 0.0.0.0, is none that a peer is allowed to have, so
//! it ends at the far end's check of sources and never reaches the device; where a peer is allowed every source,
//! the header length of 0 ends it at the first look of any IP stack. As it is well formed up to the source, the far end's
//! protocol machine takes it for data and keeps its timers as it does for data: after ten seconds in which it had nothing
//! to send it answers with a keepalive. An empty message would stir nothing but is as long as no packet; a packet to
//! someone would be answered, or forwarded.
//!
//! Without a session nothing is sent, nor is a handshake begun. A sender who heard nothing for fifteen seconds asks for
//! a new session when it sends data; cover, which nobody answers at once, must not do that to a silent tunnel. So it goes
//! out only within four seconds of the last sign of the peer: then the far end's keepalive comes in time. It also means
//! that cover ends with a peer that is gone.

mod budget;
mod driver;
mod machines;
mod meter;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gateway_model::settings::groups::CoverSettings;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use self::driver::{Driver, Outcome, Passed, Refused};
use self::meter::{Counts, Length, OVERHEAD};
use super::super::CoverStatus;
use super::peer::Peer;
use super::sockets::Sockets;
use super::{MAX_DATAGRAM, Shared, transmit};

pub(super) use self::meter::Meter;

/// What passes within this is told at once.
const GATHER: Duration = Duration::from_millis(2);

/// The switch of one device, and how those that carry packets tell that some passed.
pub(super) struct Cover {
    on: AtomicBool,
    settings: watch::Sender<CoverSettings>,
    news: AtomicBool,
    wake: Notify,
}

impl Cover {
    pub(super) fn new(settings: CoverSettings) -> Self {
        let on = AtomicBool::new(settings.enabled);
        let (settings, _) = watch::channel(settings);
        Self { on, settings, news: AtomicBool::new(false), wake: Notify::new() }
    }

    pub(super) fn set(&self, wanted: &CoverSettings) {
        self.on.store(wanted.enabled, Ordering::Relaxed);
        self.settings.send_if_modified(|settings| {
            let differs = settings != wanted;
            if differs {
                settings.clone_from(wanted);
            }
            differs
        });
    }

    /// A packet went out for somebody, of this plaintext length.
    pub(super) fn sent(&self, peer: &Peer, plaintext: usize) {
        if self.on.load(Ordering::Relaxed) {
            peer.meter.sent(plaintext);
            self.tell();
        }
    }

    /// Something authentic came in, and maybe a packet for somebody.
    pub(super) fn received(&self, peer: &Peer, packet: bool) {
        if self.on.load(Ordering::Relaxed) {
            peer.meter.received(packet);
            self.tell();
        }
    }

    pub(super) fn status<'a>(&self, peers: impl Iterator<Item = &'a Arc<Peer>>) -> CoverStatus {
        let mut status = CoverStatus::default();
        for peer in peers {
            let counts = peer.meter.counts();
            status.session |= peer.has_session();
            status.normal_packets += counts.normal_packets;
            status.normal_bytes += counts.normal_bytes;
            status.padding_packets += counts.padding_packets;
            status.padding_bytes += counts.padding_bytes;
            status.throttled += counts.throttled;
        }
        status
    }

    fn tell(&self) {
        if !self.news.swap(true, Ordering::AcqRel) {
            self.wake.notify_one();
        }
    }

    /// What passes from here on is told of again.
    fn listen(&self) {
        self.news.store(false, Ordering::Release);
    }
}

/// Sends cover as long as the settings say so; follows them when they change.
pub(super) async fn packets(shared: Arc<Shared>, sockets: Arc<Sockets>) {
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

/// The machines of one peer, and what they were told of.
struct Covered {
    driver: Driver<StdRng>,
    told: Counts,
}

impl Covered {
    fn new(settings: &CoverSettings, now: Instant, told: Counts) -> Result<Self, Refused> {
        let machines = settings.machines.iter().map(|name| machines::machine(*name));
        let machines = machines.collect::<Result<_, maybenot::Error>>()?;
        let rngs = [StdRng::from_os_rng(), StdRng::from_os_rng()];
        Ok(Self { driver: Driver::new(machines, settings.budget_pct, now.into_std(), rngs)?, told })
    }

    /// What passed since the last time.
    fn passed(&mut self, total: Counts) -> Passed {
        let told = std::mem::replace(&mut self.told, total);
        Passed {
            sent: total.normal_packets.saturating_sub(told.normal_packets),
            sent_bytes: total.normal_bytes.saturating_sub(told.normal_bytes),
            received: total.received.saturating_sub(told.received),
            heard: total.heard != told.heard,
        }
    }
}

/// Until something that cannot be helped; the settings have to change then.
async fn flow(shared: &Shared, sockets: &Sockets, settings: &CoverSettings) {
    let mut covered: BTreeMap<u32, Covered> = BTreeMap::new();
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
                    match Covered::new(settings, now, total) {
                        Ok(machines) => free.insert(machines),
                        Err(error) => {
                            tracing::error!(%error, "there is no cover traffic");
                            return;
                        }
                    }
                }
            };
            let passed = machines.passed(total);
            machines.driver.turn(now.into_std(), passed, |left, rng| match peer.meter.draw(left, rng) {
                Length::Unknown => Outcome::NoWay,
                Length::TooLong(shortest) => Outcome::TooDear(shortest),
                Length::Fits(len) => {
                    for_nobody(&mut plaintext[..len]);
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
            () = shared.cover.wake.notified() => tokio::time::sleep(GATHER).await,
            () = tokio::time::sleep_until(due.map_or(now, Instant::from_std)), if due.is_some() => {}
        }
    }
}

/// Makes it a packet that every peer drops: see above.
fn for_nobody(packet: &mut [u8]) {
    packet.fill(0);
    let len = u16::try_from(packet.len()).unwrap_or(u16::MAX);
    // Version 4, header length 0, and the total length where an IPv4 packet has it.
    if let [first, _, total @ ..] = packet
        && let Some(total) = total.first_chunk_mut::<2>()
    {
        (*first, *total) = (0x40, len.to_be_bytes());
    }
}

#[cfg(test)]
mod tests;
