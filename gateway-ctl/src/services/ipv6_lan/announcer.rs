//! Announcers of all LAN interfaces, and the packets that they send.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use gateway_core::state_machines::router_advertiser::RouterAdvertiser;
use tokio::time::Instant;

use super::announcements::RouterAnnouncements;
use super::content;
use super::stored::{self, StoredPrefixes};
use super::withdrawal::{self, ALL_HOSTS, Withdrawal};
use crate::os::router_socket::RouterSocket;
use crate::random;
use crate::service::Context;
use crate::supervise::blocking;
use crate::world::World;

pub(super) struct Announcer {
    announcements: RouterAnnouncements,
    /// Zero of the announcers' clock.
    start: Instant,
    links: BTreeMap<String, Link>,
    path: PathBuf,
    stored: StoredPrefixes,
}

struct Link {
    index: u32,
    advertiser: RouterAdvertiser,
}

impl Announcer {
    /// Creates the announcers. They take back the prefixes that an earlier run has announced.
    pub(super) async fn new(context: &Context, announcements: RouterAnnouncements) -> Announcer {
        let path = stored::path(&context.worlds.in_force().config.state_dir);
        let reading = path.clone();
        let stored = blocking(move || stored::read(&reading)).await;
        Announcer { announcements, start: Instant::now(), links: BTreeMap::new(), path, stored }
    }

    /// Returns the time of the next announcement.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let next = self.links.values().filter_map(|link| link.advertiser.poll_timeout()).min();
        next.map(|next| self.start + next)
    }

    pub(super) fn handle_solicitation(&mut self, interface: u32) {
        let now = self.now();
        for link in self.links.values_mut().filter(|link| link.index == interface) {
            self.announcements.count(|counters| counters.solicitations += 1);
            link.advertiser.handle_solicitation(random::fraction(), now);
        }
    }

    /// Follows the plan.
    pub(super) fn update(&mut self, world: &World) {
        let now = self.now();
        let mut contents = content::of(world, now);
        for (name, link) in &mut self.links {
            let (index, content) = contents.remove(name).unzip();
            link.index = index.unwrap_or(link.index);
            link.advertiser.handle_content(content, now);
        }
        for (name, (index, content)) in contents {
            let earlier = self.stored.of(&name);
            let mut advertiser = RouterAdvertiser::new(earlier.map(|net| (net, stored::MAX_AGE)), now);
            advertiser.handle_content(Some(content), now);
            self.links.insert(name, Link { index, advertiser });
        }
        self.links.retain(|_, link| link.advertiser.poll_timeout().is_some());
    }

    /// Sends the announcements that are due, and stores their prefixes. Returns whether there were some.
    pub(super) async fn announce(&mut self, socket: &RouterSocket) -> bool {
        let now = self.now();
        let mut any = false;
        for (name, link) in &mut self.links {
            let Some(announcement) = link.advertiser.poll_transmit(random::fraction(), now) else { continue };
            any = true;
            match socket.send(&announcement.packet(), link.index, ALL_HOSTS) {
                Ok(()) => self.announcements.count(|counters| counters.advertisements += 1),
                Err(error) => {
                    self.announcements.count(|counters| counters.failed += 1);
                    tracing::debug!(interface = name, %error, "failed to send a router advertisement");
                }
            }
        }
        if any {
            let farewell = |link: &Link| Some((link.index, link.advertiser.withdraw(now)?.packet()));
            self.announcements.set_farewells(self.links.values().filter_map(farewell).collect());
            self.store(now).await;
        }
        any
    }

    /// Takes IPv6 back from hosts that must not use it.
    pub(super) fn withdraw(&self, socket: &RouterSocket, world: &World) {
        let hosts = withdrawal::hosts(&world.state);
        if hosts.is_empty() {
            return;
        }
        let mut sent: io::Result<()> = Ok(());
        for Withdrawal { interface, packet } in withdrawal::withdrawals(&world.network.lan, &world.facts) {
            for host in &hosts {
                self.announcements.count(|counters| counters.withdrawals += 1);
                sent = sent.and(socket.send(&packet, interface, *host));
            }
        }
        if let Err(error) = sent {
            tracing::warn!(%error, "failed to withdraw IPv6 from hosts");
        }
    }

    /// Stores the announced prefixes, if they have changed.
    async fn store(&mut self, now: Duration) {
        let mut stored = self.stored.clone();
        for (name, link) in &self.links {
            stored.set(name, link.advertiser.announced(now).map(|(net, _)| net).collect());
        }
        if stored == self.stored {
            return;
        }
        self.stored = stored.clone();
        let path = self.path.clone();
        if let Err(error) = blocking(move || stored.write(&path)).await {
            tracing::warn!(%error, "failed to store the announced IPv6 prefixes");
        }
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }
}
