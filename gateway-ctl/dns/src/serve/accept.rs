//! Accepts the connections of clients.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::net::TcpListener;

use super::settings::Streams;
use super::{Shared, Transport, encrypted, tcp};

/// One connection among those that are counted.
struct Guest {
    shared: Arc<Shared>,
    from: IpAddr,
}

impl Guest {
    fn enter(shared: &Arc<Shared>, from: IpAddr, limits: &Streams) -> Option<Guest> {
        if !shared.connection_limiter.enter(from, limits) {
            shared.counts.crowded.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(Guest { shared: shared.clone(), from })
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.shared.connection_limiter.leave(self.from);
    }
}

/// Accepts connections for ever: plain ones, or those for TLS and what is spoken above it.
pub async fn accept(shared: Arc<Shared>, listener: &TcpListener, secure: bool) {
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(_) => {
                // No descriptor is free, or the peer has left: neither ends the listener.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let from = from.ip().to_canonical();
        let limits = shared.state.load().settings.streams;
        let Some(guest) = Guest::enter(&shared, from, &limits) else { continue };
        // Answers are written whole: waiting for more only delays them.
        let _ = stream.set_nodelay(true);
        let shared = shared.clone();
        tokio::spawn(async move {
            // How a connection ends concerns nobody else.
            let _ = match secure {
                true => encrypted::serve(shared, stream, from, limits).await,
                false => tcp::serve(shared, stream, from, Transport::Tcp, limits).await,
            };
            drop(guest);
        });
    }
}
