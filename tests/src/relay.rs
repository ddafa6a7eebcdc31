//! A relay to the daemon in its namespace: connections to a port of the host reach the API inside.

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};

use crate::daemon::API;
use crate::netns::Entrance;
use anyhow::{Context, Result};

/// Ports to try, the usual one first.
const PORTS: std::ops::Range<u16> = 8080..8100;

/// Opens the relay on the first free port of those for people. It closes with the process.
pub fn open(entrance: Entrance) -> Result<SocketAddr> {
    let listener = PORTS
        .map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)))
        .find_map(io::Result::ok)
        .with_context(|| format!("ports {} to {} of the host are all busy", PORTS.start, PORTS.end - 1))?;
    serve(listener, entrance)
}

/// Opens the relay on any port. It closes with the process.
pub fn open_anywhere(entrance: Entrance) -> Result<SocketAddr> {
    serve(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("a port for the relay")?, entrance)
}

fn serve(listener: TcpListener, entrance: Entrance) -> Result<SocketAddr> {
    let address = listener.local_addr().context("address of the relay")?;
    std::thread::spawn(move || {
        for outside in listener.incoming().flatten() {
            let entrance = entrance.clone();
            std::thread::spawn(move || {
                // While the daemon is down the connection closes, as it would without a relay.
                if let Ok(inside) = entrance.within(|| TcpStream::connect(API)) {
                    join(&outside, &inside);
                }
            });
        }
    });
    Ok(address)
}

fn join(one: &TcpStream, other: &TcpStream) {
    std::thread::scope(|scope| {
        scope.spawn(|| pour(one, other));
        pour(other, one);
    });
}

/// Copies until the end of one direction, and passes the end on to the other side.
fn pour(mut from: &TcpStream, mut to: &TcpStream) {
    // Either side may close at any time. The shutdown informs the other one.
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}
