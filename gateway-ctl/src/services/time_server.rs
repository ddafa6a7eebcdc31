//! Time server: answers the NTP queries of hosts that the dataplane redirects to the gateway.

use std::io;
use std::time::Duration;

use gateway_core::ntp::{self, ClockQuality};
use gateway_core::plan::names::NTP_PORT;

use crate::clock::{Clock as _, SystemClock};
use crate::os::ntp_socket::NtpSocket;
use crate::os::time_sync;
use crate::service::{Context, Health, HealthState};
use crate::world::Worlds;

const SUBSYSTEM: &str = "time_server";
/// Pause after a failure of the sockets.
const RETRY: Duration = Duration::from_secs(10);
/// Longest query that is read: a message with extensions or authentication, which are ignored.
const MAX_QUERY: usize = 512;

/// Runs until it is aborted.
pub async fn run(_: Context) {
    loop {
        if let Err(error) = serve().await {
            tracing::warn!(%error, port = NTP_PORT, "failed to answer NTP queries");
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Returns the health while NTP queries are redirected.
pub fn health(worlds: &Worlds) -> Option<Health> {
    let redirects = worlds.now().live().plan.nft.ntp_port != 0;
    let is_synchronised = time_sync::quality().is_synchronised;
    let (state, message) = if is_synchronised {
        (HealthState::Ok, "answers NTP queries")
    } else {
        (
            HealthState::Degraded,
            "the clock of the gateway is not synchronised, so hosts do not accept its answers to their NTP queries",
        )
    };
    let message = message.to_owned();
    redirects.then_some(Health { subsystem: SUBSYSTEM, state, message, since: None, checks: 0 })
}

async fn serve() -> io::Result<()> {
    let (four, six) = (NtpSocket::bind(false, NTP_PORT)?, NtpSocket::bind(true, NTP_PORT)?);
    tokio::try_join!(answer(&four), answer(&six)).map(drop)
}

async fn answer(socket: &NtpSocket) -> io::Result<()> {
    let mut query = [0; MAX_QUERY];
    loop {
        let (length, peer) = socket.receive(&mut query).await?;
        let arrived = SystemClock.now();
        let quality: ClockQuality = time_sync::quality();
        if let Some(answer) = ntp::answer(&query[..length], quality, arrived, SystemClock.now())
            && let Err(error) = socket.send(&answer, &peer)
        {
            tracing::debug!(%error, "failed to send an answer to an NTP query");
        }
    }
}
