//! Accept loop for client connections.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::TcpListener;

use super::settings::Streams;
use super::{Shared, Transport, encrypted, tcp};
use crate::hooks::{Arrival, ArrivalKind};

/// Counted connection. Dropping this value ends the count.
struct CountedConnection {
    shared: Arc<Shared>,
    from: IpAddr,
}

impl CountedConnection {
    fn enter(shared: &Arc<Shared>, from: IpAddr, limits: &Streams) -> Option<CountedConnection> {
        if !shared.connection_limiter.enter(from, limits) {
            shared.counts.crowded.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(CountedConnection { shared: shared.clone(), from })
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.shared.connection_limiter.release(self.from);
    }
}

/// Accepts connections forever: plain TCP, or TLS for DoT and DoH if `secure`.
pub(crate) async fn accept(shared: Arc<Shared>, listener: &TcpListener, secure: bool) {
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(_) => {
                // No file descriptor is free, or the peer has gone. Neither ends the listener.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let state = shared.state.load_full();
        let limits = state.settings.streams;
        let Some(guest) = CountedConnection::enter(&shared, from.ip().to_canonical(), &limits) else {
            continue;
        };
        // The identity of the connection is that of its first packet.
        let arrival = Arrival { source: from, kind: ArrivalKind::Connection };
        let Some(host) = state.clients.host(&arrival) else {
            shared.counts.unidentified.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        // Answers are written whole. Nagle's algorithm would only delay them.
        let _ = stream.set_nodelay(true);
        let shared = shared.clone();
        tokio::spawn(async move {
            // An error concerns this connection only.
            let _ = match secure {
                true => encrypted::serve(shared, stream, host, limits).await,
                false => tcp::serve(shared, stream, host, Transport::Tcp, limits).await,
            };
            drop(guest);
        });
    }
}
