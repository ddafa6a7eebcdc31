//! Faulty paths to a server: one breaks after a number of bytes, one alters the response, one never answers.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Relay of bytes. It ends with the test.
pub(super) struct Relay {
    pub address: SocketAddr,
    left: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Relay {
    /// Starts a relay that breaks all connections after they sent this number of bytes to the server in total.
    pub(super) async fn start(to: SocketAddr, bytes: u64) -> Relay {
        Self::with(to, bytes, u64::MAX).await
    }

    /// Starts a relay that alters this byte of the server's response in every connection.
    pub(super) async fn altering(to: SocketAddr, byte: u64) -> Relay {
        Self::with(to, u64::MAX, byte).await
    }

    async fn with(to: SocketAddr, bytes: u64, altered: u64) -> Relay {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let left = Arc::new(AtomicU64::new(bytes));
        let budget = left.clone();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, to, budget.clone(), altered));
            }
        });
        Relay { address, left, task }
    }

    /// Reports whether the relay has broken the connections.
    pub(super) fn is_broken(&self) -> bool {
        self.left.load(Ordering::SeqCst) == 0
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(client: TcpStream, to: SocketAddr, left: Arc<AtomicU64>, altered: u64) {
    let Ok(server) = TcpStream::connect(to).await else { return };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let up = async move {
        let mut buffer = vec![0; 4096];
        while let Ok(count @ 1..) = from_client.read(&mut buffer).await {
            let before = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                Some(left.saturating_sub(count as u64))
            });
            let allowed = usize::try_from(before.unwrap_or(0)).unwrap_or(usize::MAX).min(count);
            if to_server.write_all(&buffer[..allowed]).await.is_err() || allowed < count {
                return;
            }
        }
    };
    let down = async move {
        let (mut buffer, mut passed) = (vec![0; 4096], 0);
        while let Ok(count @ 1..) = from_server.read(&mut buffer).await {
            let place = altered.checked_sub(passed).and_then(|place| usize::try_from(place).ok());
            if let Some(byte) = place.filter(|place| *place < count).and_then(|place| buffer.get_mut(place)) {
                *byte ^= 1;
            }
            passed += count as u64;
            if to_client.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
    };
    // The end of one direction closes the other.
    tokio::select! { () = up => {} () = down => {} }
}

/// Server that accepts connections and never answers.
pub(super) struct Silent {
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Silent {
    pub(super) async fn start() -> Silent {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let task = tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok((client, _)) = listener.accept().await {
                held.push(client);
            }
        });
        Silent { address, task }
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        self.task.abort();
    }
}
