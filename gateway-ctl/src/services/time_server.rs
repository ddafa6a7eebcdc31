//! Time server: answers the NTP queries of hosts that the dataplane redirects to the gateway.
//!
//! The queries of hosts show which devices are on, and often which system they run. To drop them would leave hosts with
//! a wrong clock, and then without TLS; to send them by the policy of the host would tell the egress what the uplink
//! need not know. If no NTP client has synchronised the kernel's clock (adjtimex(2)), answers have leap indicator 3, by
//! which hosts ignore them. NTS (RFC 8915) fails for hosts that insist on it, since its key exchange names another
//! server; they need `force_ntp` off.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use gateway_core::health::{Check, CheckState, Finding, Protocol};
use gateway_core::ntp::{self, ClockQuality};
use gateway_core::plan::names::NTP_PORT;

use crate::clock::{Clock as _, SystemClock};
use crate::handles::in_memory;
use crate::os::ntp_socket::NtpSocket;
use crate::os::{port_use, time_sync};
use crate::service::{Context, Health, Service};
use crate::supervise::blocking;
use crate::world::Worlds;

const SUBSYSTEM: &str = "time_server";
/// Pause after a failure of the sockets.
const RETRY: Duration = Duration::from_secs(10);
/// Longest query that is read: a message with extensions or authentication, which are ignored.
const MAX_QUERY: usize = 512;

/// Status of the time server. Clones are the same server.
#[derive(Clone, Debug, Default)]
pub(crate) struct TimeServer(Arc<ArcSwapOption<String>>);

in_memory!(TimeServer);

/// Returns the service that answers the queries.
pub(crate) fn service(context: &Context) -> Service {
    let (server, worlds) = (context.handles.get::<TimeServer>(), context.worlds.clone());
    Service::new("time_server", &server.clone(), run).reports(move || {
        let (server, worlds) = (server.clone(), worlds.clone());
        blocking(move || server.health(&worlds))
    })
}

/// Runs until it is aborted.
async fn run(server: TimeServer) {
    loop {
        server.0.store(None);
        if let Err(error) = serve().await {
            tracing::warn!(%error, port = NTP_PORT, "failed to answer NTP queries");
            server.0.store(Some(Arc::new(error.to_string())));
        }
        tokio::time::sleep(RETRY).await;
    }
}

impl TimeServer {
    /// Returns the health while NTP queries are redirected. Blocks while another program has the port, to find that
    /// program.
    pub(crate) fn health(&self, worlds: &Worlds) -> Option<Health> {
        if worlds.now().live().plan.nft.ntp_port == 0 {
            return None;
        }
        let mut findings = Vec::new();
        if let Some(error) = &*self.0.load() {
            let taken = port_use::conflict(Protocol::Udp, (Ipv4Addr::UNSPECIFIED, NTP_PORT).into());
            let lost = "hosts get no answer to NTP queries";
            findings.push(match taken {
                Some(taken) => Finding::port_taken(lost, &taken, CheckState::Failed),
                None => Finding::not_running("the time server", error),
            });
        }
        if !time_sync::quality().is_synchronised {
            findings.push(Finding::clock_not_synchronised());
        }
        Some(Check::of(SUBSYSTEM, findings, "answers NTP queries").into())
    }
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
