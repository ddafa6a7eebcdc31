//! Connections with collectors, and the names of the gateway in them.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use gateway_model::settings::keys;
use gateway_outbound::causes::with_causes;
use gateway_outbound::{Dialer, KernelSockets, Resolver};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::world::World;

/// Maximum time for a connection, and for the confirmation of a piece.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which the confirmation is looked for.
const POLL: Duration = Duration::from_millis(20);

/// Gateway as collectors know it.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub node_id: String,
    pub host_name: String,
}

impl Identity {
    pub(super) fn of(world: &World, host_name: String) -> Identity {
        let node_id = world.state.settings.get(keys::NODE_ID).and_then(|id| id.as_str().map(str::to_owned));
        Identity { node_id: node_id.unwrap_or_else(|| host_name.clone()), host_name }
    }
}

pub(super) async fn connect(host: &str, port: u16, names: &Resolver) -> Result<TcpStream, String> {
    let dialer = Dialer::by_default_route(&KernelSockets::QUICK, names, TIMEOUT);
    dialer.connect(host, port).await.map_err(|error| with_causes(&error))
}

/// Waits until the host of the collector has confirmed all bytes, and the collector has not closed the connection.
pub(super) async fn confirmed(stream: &TcpStream) -> Result<(), String> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        check_open(stream)?;
        let unconfirmed = unconfirmed_bytes(stream).map_err(|error| error.to_string())?;
        if unconfirmed == 0 {
            return check_open(stream);
        }
        if Instant::now() >= deadline {
            return Err(format!("{unconfirmed} bytes were not confirmed in time"));
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Fails if the collector has closed the connection.
pub(super) fn check_open(stream: &TcpStream) -> Result<(), String> {
    let mut byte = [0];
    match stream.try_read(&mut byte) {
        Ok(0) => Err("the collector closed the connection".to_owned()),
        // Collectors say nothing in these protocols; what one says does not matter.
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns the number of bytes that the peer's host has not confirmed (tcp(7), SIOCOUTQ).
fn unconfirmed_bytes(stream: &TcpStream) -> io::Result<u64> {
    crate::os::send_queue::unconfirmed_bytes(stream.as_fd())
}
