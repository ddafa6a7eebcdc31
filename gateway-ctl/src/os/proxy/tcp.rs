//! Connections of LAN hosts through a proxy.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gateway_common::wire::Mark;
use gateway_core::flow_log::TcpState;
use gateway_core::indexes::{LegId, ProxyIndex};
use gateway_outbound::KernelSockets;
use gateway_outbound::socks5::{self, Destination};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};

use super::connect_error::ConnectError;
use super::shared::Shared;
use super::sockets::{reset, watch_over_client};
use super::splice::pump;
use super::target::Admission;

/// Time limit from the first packet to the proxy until it has connected to the destination.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Pause after a failed accept, which means a lack of resources.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Accepts until the task is aborted.
pub(super) async fn accept(listener: Arc<TcpListener>, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((client, _)) => admit(client, &shared),
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection for a proxy");
                tokio::time::sleep(ACCEPT_RETRY_INTERVAL).await;
            }
        }
    }
}

fn admit(client: TcpStream, shared: &Arc<Shared>) {
    let client = Arc::new(client);
    let Some(admission) = admission_of(&client, shared) else {
        // A refused connection is a flow, too.
        let _logged = shared.flows.open_stream(&client);
        return reset(&client);
    };
    let shared = shared.clone();
    tokio::spawn(async move { forward(admission, client, &shared).await });
}

/// Returns the permission of a connection, by its fwmark.
fn admission_of(client: &TcpStream, shared: &Shared) -> Option<Admission> {
    let mark = Mark(SockRef::from(client).mark().ok()?);
    // A client that connects to the listener directly has no such mark.
    let (number, leg) = mark.as_proxy().filter(|_| mark.0 & Mark::PROXY_TAKEN != 0)?;
    shared.target(ProxyIndex::new(number)?)?.admit(LegId::new(leg), &shared.budget)
}

// The connection is closed before it counts as gone: parameters are dropped in reverse order.
async fn forward(admission: Admission, client: Arc<TcpStream>, shared: &Shared) {
    let (Ok(to), Ok(flow)) = (client.local_addr(), shared.flows.open_stream(&client)) else { return };
    if watch_over_client(&client).is_err() {
        return;
    }
    let outcome = tokio::select! {
        outcome = open(&admission, to) => outcome,
        () = admission.gate.closed() => return reset(&client),
    };
    let server = match outcome {
        Ok(server) => server,
        Err(error) => {
            admission.counters.failed.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(proxy = %admission.to.name, %to, %error, "failed to connect through the proxy");
            if error.is_the_proxys() {
                shared.report_failure(&admission);
            }
            return reset(&client);
        }
    };
    let outcome = tokio::select! {
        outcome = pump(&client, &server, &shared.pool, &admission.counters.traffic) => outcome,
        () = admission.gate.closed() => Err(io::ErrorKind::ConnectionAborted.into()),
    };
    if outcome.is_err() {
        reset(&client);
        reset(&server);
    } else {
        flow.end(TcpState::Closed);
    }
}

/// Opens a connection to a destination through the proxy.
async fn open(admission: &Admission, to: SocketAddr) -> Result<TcpStream, ConnectError> {
    let address = admission.to.address.ok_or(ConnectError::NoAddress)?;
    let through = async {
        let mark = Some(LegId::host_mark(admission.leg));
        let mut server =
            gateway_outbound::open(&KernelSockets::PATIENT, address, mark, admission.login()).await?;
        socks5::connect(&mut server, &Destination::Address(to)).await.map_err(ConnectError::Socks)?;
        Ok(server)
    };
    tokio::time::timeout(TIMEOUT, through).await.unwrap_or(Err(ConnectError::Silent))
}
