//! Stateless DHCPv6 server on the LANs: it answers with what the router advertisements say (RFC 8415, section 6.1).

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use gateway_core::dhcp6;
use gateway_core::dhcp6::stateless::{StatelessSettings, answer};
use gateway_core::state_machines::router_advertiser::LinkContent;
use tokio::task::{AbortHandle, JoinSet};

use super::announcements::RouterAnnouncements;
use super::content;
use crate::os::dhcp6_socket::{self, MAX_DATAGRAM};
use crate::service::Context;
use crate::world::World;

/// Pause after a failure of a socket.
const RETRY: Duration = Duration::from_secs(10);
/// Shortest interval after which hosts ask again (RFC 8415, section 7.6).
const MIN_REFRESH: Duration = Duration::from_secs(600);

/// LAN interface with a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ServedLink {
    name: String,
    index: u32,
    mac: [u8; 6],
}

/// Runs until it is aborted.
pub(super) async fn run(context: Context) {
    let announcements = context.handles.get::<RouterAnnouncements>();
    let mut worlds = context.worlds.watch();
    let mut tasks = JoinSet::new();
    let mut servers: BTreeMap<ServedLink, AbortHandle> = BTreeMap::new();
    loop {
        let wanted = links(&worlds.borrow_and_update());
        servers.retain(|link, task| {
            let is_kept = wanted.contains_key(link) && !task.is_finished();
            if !is_kept {
                task.abort();
            }
            is_kept
        });
        for link in wanted.into_keys() {
            let start = || tasks.spawn(serve(context.clone(), announcements.clone(), link.clone()));
            servers.entry(link.clone()).or_insert_with(start);
        }
        tokio::select! {
            changed = worlds.changed() => if changed.is_err() { return },
            Some(ended) = tasks.join_next(), if !tasks.is_empty() => {
                if ended.is_err_and(|error| error.is_panic()) {
                    tracing::error!("a DHCPv6 server has panicked");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }
}

async fn serve(context: Context, announcements: RouterAnnouncements, link: ServedLink) {
    loop {
        if let Err(error) = follow(&context, &announcements, &link).await {
            tracing::warn!(interface = link.name, %error, "failed to serve DHCPv6");
        }
        tokio::time::sleep(RETRY).await;
    }
}

async fn follow(context: &Context, announcements: &RouterAnnouncements, link: &ServedLink) -> io::Result<()> {
    let socket = dhcp6_socket::server(&link.name, link.index)?;
    let mut worlds = context.worlds.watch();
    let mut settings = links(&worlds.borrow_and_update()).remove(link).unwrap_or_default();
    let mut buffer = [0; MAX_DATAGRAM];
    loop {
        tokio::select! {
            changed = worlds.changed() => match changed {
                Ok(()) => {
                    settings = links(&worlds.borrow_and_update()).remove(link).unwrap_or_default();
                }
                Err(_) => return Ok(()),
            },
            received = socket.recv_from(&mut buffer) => {
                let (length, peer) = received?;
                if is_on_link(&peer)
                    && let Some(reply) = answer(&buffer[..length], &dhcp6::duid(link.mac), &settings)
                {
                    announcements.count(|counters| counters.information_replies += 1);
                    if let Err(error) = socket.try_send_to(&reply, peer) {
                        tracing::debug!(interface = link.name, %error, "failed to send a DHCPv6 reply");
                    }
                }
            }
        }
    }
}

fn is_on_link(peer: &SocketAddr) -> bool {
    matches!(peer.ip(), IpAddr::V6(address) if address.is_unicast_link_local())
}

fn links(world: &World) -> BTreeMap<ServedLink, StatelessSettings> {
    let contents = content::of(world, Duration::ZERO).into_iter();
    let links = contents.filter_map(|(name, (index, content))| {
        let LinkContent { mac, resolvers, domains, lifetime, .. } = content;
        let refresh = u32::try_from(lifetime.max(MIN_REFRESH).as_secs()).unwrap_or(u32::MAX);
        Some((ServedLink { name, index, mac: mac? }, StatelessSettings { resolvers, domains, refresh }))
    });
    links.collect()
}
