//! Client at one uplink: its socket, its clock, and the link below it.

use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use gateway_core::dhcp6;
use gateway_core::state_machines::prefix_delegation::PrefixDelegation;
use ipnet::IpNet;
use jiff::Timestamp;
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep, sleep_until};

use super::delegations::{RETRY, Shared};
use super::stored::StoredLease;
use crate::os::dhcp6_socket::{self, MAX_DATAGRAM};
use crate::random;
use crate::world::World;

/// Attempts to bind the socket, and the pause between two.
const BIND_ATTEMPTS: u8 = 10;
const BIND_INTERVAL: Duration = Duration::from_millis(300);

/// Link of an uplink that a client can use.
#[derive(Clone, Debug, PartialEq, Eq)]
struct UsableLink {
    index: u32,
    mac: [u8; 6],
    /// Link-local address.
    address: Ipv6Addr,
}

/// Runs until it is aborted.
pub(super) async fn run(shared: Shared, uplink: String) {
    let start = Instant::now();
    let mut worlds = shared.context.worlds.watch();
    loop {
        let link = usable_link(&worlds.borrow_and_update(), &uplink);
        let Some(link) = link else {
            shared.delegations.set_failure(&uplink, None);
            if worlds.changed().await.is_err() {
                return;
            }
            continue;
        };
        let failed = follow(&shared, &uplink, &link, start).await.err();
        if let Some(error) = &failed {
            tracing::warn!(uplink, %error, "failed to request an IPv6 prefix");
        }
        let failure = failed.map(|error| format!("cannot request a prefix: {error}"));
        let has_failed = failure.is_some();
        shared.delegations.set_failure(&uplink, failure);
        if has_failed {
            sleep(RETRY).await;
        }
    }
}

/// Requests and renews the prefix until the link changes.
async fn follow(shared: &Shared, uplink: &str, link: &UsableLink, start: Instant) -> io::Result<()> {
    let clock = shared.context.store.clock().clone();
    let now = || (start.elapsed(), clock.now());
    let mut worlds = shared.context.worlds.watch();
    let socket = bound(uplink, link).await?;
    shared.delegations.set_failure(uplink, None);
    let stored = shared.delegations.lease(uplink).map(|lease| lease.lease(now()));
    let mut client = PrefixDelegation::new(dhcp6::duid(link.mac), stored, start.elapsed());
    let mut buffer = [0; MAX_DATAGRAM];
    loop {
        let has_lease = client.lease().is_some();
        if let Some(message) = client.poll_transmit(random::fraction, start.elapsed())
            && let Err(error) = socket.send_to(&message, dhcp6_socket::all_servers(link.index)).await
        {
            tracing::debug!(uplink, %error, "failed to send a DHCPv6 message");
        }
        if has_lease != client.lease().is_some() {
            keep(shared, uplink, &client, now()).await;
        }
        tokio::select! {
            () = sleep_until(start + client.poll_timeout()) => {}
            received = socket.recv_from(&mut buffer) => match received {
                Ok((length, _)) => if client.handle_datagram(&buffer[..length], start.elapsed()) {
                    keep(shared, uplink, &client, now()).await;
                },
                // An error about a datagram that was sent (RFC 4443).
                Err(error) => tracing::debug!(uplink, %error, "failed to receive a DHCPv6 message"),
            },
            changed = worlds.changed() => {
                if changed.is_err() || usable_link(&worlds.borrow_and_update(), uplink).as_ref() != Some(link) {
                    return Ok(());
                }
            }
        }
    }
}

async fn keep(shared: &Shared, uplink: &str, client: &PrefixDelegation, now: (Duration, Timestamp)) {
    shared.set_lease(uplink, client.lease().map(|lease| StoredLease::new(lease, now))).await;
}

/// Returns the socket. Waits while the link-local address is not verified yet, and for the end of an earlier client.
async fn bound(uplink: &str, link: &UsableLink) -> io::Result<UdpSocket> {
    let passes = |error: &io::Error| {
        matches!(error.kind(), io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse)
    };
    for _ in 0..BIND_ATTEMPTS {
        match dhcp6_socket::client(uplink, link.index, link.address) {
            Err(error) if passes(&error) => sleep(BIND_INTERVAL).await,
            result => return result,
        }
    }
    dhcp6_socket::client(uplink, link.index, link.address)
}

/// Gives the prefix of an uplink back that is no longer wanted.
pub(super) async fn release(shared: &Shared, world: &World, uplink: &str) {
    if let Some(lease) = shared.delegations.lease(uplink) {
        if let Some(link) = usable_link(world, uplink)
            && let Err(error) = send_release(shared, uplink, &link, &lease).await
        {
            tracing::warn!(uplink, %error, "failed to release the delegated IPv6 prefix");
        }
        shared.set_lease(uplink, None).await;
    }
    shared.delegations.set_failure(uplink, None);
}

async fn send_release(
    shared: &Shared,
    uplink: &str,
    link: &UsableLink,
    lease: &StoredLease,
) -> io::Result<()> {
    let now = (Duration::ZERO, shared.context.store.clock().now());
    let mut client = PrefixDelegation::new(dhcp6::duid(link.mac), Some(lease.lease(now)), now.0);
    let Some(message) = client.release(random::fraction(), now.0) else { return Ok(()) };
    let socket = bound(uplink, link).await?;
    socket.send_to(&message, dhcp6_socket::all_servers(link.index)).await.map(drop)
}

fn usable_link(world: &World, uplink: &str) -> Option<UsableLink> {
    let link = world.facts.links.get(uplink).filter(|link| link.up)?;
    let addresses = world.facts.addresses.get(uplink)?.iter().map(IpNet::addr);
    let mut link_local = addresses.filter_map(|address| match address {
        IpAddr::V6(address) => Some(address).filter(Ipv6Addr::is_unicast_link_local),
        IpAddr::V4(_) => None,
    });
    Some(UsableLink { index: link.index, mac: link.mac?, address: link_local.next()? })
}
