//! The remote end of a bridge of type udp2tcp, compatible with the program `tcp2udp`. It accepts TCP connections at an
//! exit and sends their datagrams to the exit's WireGuard server, with a separate socket for each connection.
//!
//! A length of 16 bits in network byte order precedes each datagram. The implementation is independent of the daemon
//! and uses threads, so that both sides do not share an error.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::netns::Entrance;
use crate::wireguard::{self, Exit};

pub const PORT: u16 = 5001;
const GLANCE: Duration = Duration::from_millis(20);

/// A remote end that can be killed and restarted. Dropping it kills it.
#[derive(Debug)]
pub struct FarEnd {
    entrance: Entrance,
    address: SocketAddr,
    behind: SocketAddr,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    ending: AtomicBool,
    connections: Mutex<Vec<TcpStream>>,
}

impl FarEnd {
    pub fn start(exit: &Exit) -> Result<FarEnd> {
        let (address, behind) = ((exit.place.v4, PORT).into(), (exit.place.v4, wireguard::PORT).into());
        let mut far = FarEnd { entrance: exit.namespace.entrance(), address, behind, running: None };
        far.start_again()?;
        Ok(far)
    }

    pub fn start_again(&mut self) -> Result<()> {
        let listener = self.entrance.within(|| TcpListener::bind(self.address)).context("listen")?;
        listener.set_nonblocking(true)?;
        let shared = Arc::new(Shared::default());
        let (entrance, behind, ours) = (self.entrance.clone(), self.behind, shared.clone());
        let accepting = std::thread::spawn(move || {
            while !ours.ending.load(Ordering::Relaxed) {
                match listener.accept() {
                    // A connection that cannot be served is closed.
                    Ok((stream, _)) => drop(serve(stream, &entrance, behind, &ours)),
                    Err(_) => std::thread::sleep(GLANCE),
                }
            }
        });
        self.running = Some(Running { shared, accepting });
        Ok(())
    }

    /// Ends all connections and refuses new ones.
    pub fn kill(&mut self) {
        let Some(running) = self.running.take() else { return };
        running.shared.ending.store(true, Ordering::Relaxed);
        // The panic was already printed.
        let _ = running.accepting.join();
        let connections = running.shared.connections.lock().unwrap_or_else(PoisonError::into_inner);
        for connection in &*connections {
            // The connection may be closed already.
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    /// Returns the object for `POST /bridges`.
    pub fn bridge(&self, name: &str) -> Value {
        let transport = json!({"type": "udp2tcp", "address": self.address.ip(), "port": PORT});
        json!({"name": name, "kind": "transport", "transport": transport})
    }
}

impl Drop for FarEnd {
    fn drop(&mut self) {
        self.kill();
    }
}

fn serve(stream: TcpStream, entrance: &Entrance, behind: SocketAddr, shared: &Shared) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    let socket = entrance.within(|| UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0)))?;
    socket.connect(behind)?;
    socket.set_read_timeout(Some(GLANCE * 10))?;
    let (mut read, mut write, out) = (stream.try_clone()?, stream.try_clone()?, socket.try_clone()?);
    shared.connections.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
    let open = Arc::new(AtomicBool::new(true));
    let still = open.clone();
    std::thread::spawn(move || {
        let mut datagram = vec![0; 1 << 16];
        let mut one = || {
            let mut length = [0; 2];
            read.read_exact(&mut length)?;
            let datagram = &mut datagram[..usize::from(u16::from_be_bytes(length))];
            read.read_exact(datagram)?;
            // The server behind it may be down; then the datagram is lost.
            let _ = out.send(datagram);
            Ok::<_, io::Error>(())
        };
        while one().is_ok() {}
        still.store(false, Ordering::Relaxed);
    });
    std::thread::spawn(move || {
        let mut datagram = vec![0; 1 << 16];
        while open.load(Ordering::Relaxed) {
            let Ok(length) = socket.recv(&mut datagram[2..]) else { continue };
            let header = u16::try_from(length).expect("a datagram is no longer").to_be_bytes();
            datagram[..2].copy_from_slice(&header);
            if write.write_all(&datagram[..2 + length]).is_err() {
                return;
            }
        }
    });
    Ok(())
}
