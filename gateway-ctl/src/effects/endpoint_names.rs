//! Names of endpoints to addresses: of tunnels, of their bridges, of OpenVPN servers and of proxies.
//!
//! A name is asked for through the egress that carries the connection to it, never in clear beside it: by the name servers
//! of the configuration, from a socket with the connection's mark. Without name servers the host's own resolver is asked,
//! and only for what leaves by the default route; for anything else there is no address.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use gateway_common::wire::Mark;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;

pub mod question;

/// Longest time for one name server, or for the host's resolver.
const PATIENCE: Duration = Duration::from_secs(3);
const DNS: u16 = 53;

/// The resolver of endpoint names. Clones share their name servers.
#[derive(Clone, Debug, Default)]
pub struct EndpointNames {
    servers: Arc<[SocketAddr]>,
}

impl EndpointNames {
    /// With these name servers; without any the host's own resolver is asked.
    pub fn new(servers: &[IpAddr]) -> EndpointNames {
        EndpointNames { servers: servers.iter().map(|server| SocketAddr::new(*server, DNS)).collect() }
    }

    #[cfg(test)]
    pub(crate) fn at(servers: Vec<SocketAddr>) -> EndpointNames {
        EndpointNames { servers: servers.into() }
    }

    /// Returns the addresses of an endpoint (`name:port`), asked for with the mark of the connection that will go there.
    pub async fn resolve(&self, endpoint: &str, mark: u32) -> io::Result<Vec<SocketAddr>> {
        let is_default_route = mark == Mark::OWN.0 || mark == 0;
        match (self.servers.is_empty(), is_default_route) {
            (false, _) => self.by_servers(endpoint, mark).await,
            (true, true) => {
                let found = tokio::time::timeout(PATIENCE, tokio::net::lookup_host(endpoint)).await??;
                Ok(found.collect())
            }
            // The host's resolver takes its own route, and would show there to whom a hop inside another one leads.
            (true, false) => {
                Err(io::Error::other("dns.bootstrap_servers is needed for what another hop carries"))
            }
        }
    }

    /// By the first server that answers.
    async fn by_servers(&self, endpoint: &str, mark: u32) -> io::Result<Vec<SocketAddr>> {
        let (name, port) = endpoint.rsplit_once(':').ok_or(io::ErrorKind::InvalidInput)?;
        let port: u16 = port.parse().map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for server in self.servers.iter() {
            let both = async {
                tokio::join!(ask(*server, name, question::A, mark), ask(*server, name, question::AAAA, mark))
            };
            match tokio::time::timeout(PATIENCE, both).await {
                Ok((Ok(four), six)) => {
                    let found = four.into_iter().chain(six.unwrap_or_default());
                    return Ok(found.map(|address| SocketAddr::new(address, port)).collect());
                }
                Ok((Err(error), _)) => last = error,
                Err(late) => last = late.into(),
            }
        }
        Err(last)
    }
}

async fn ask(server: SocketAddr, name: &str, kind: u16, mark: u32) -> io::Result<Vec<IpAddr>> {
    let socket = Socket::new(Domain::for_address(server), Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
    if mark != 0 {
        socket.set_mark(mark)?;
    }
    socket.connect(&server.into())?;
    let socket = UdpSocket::from_std(socket.into())?;
    let id = getrandom::u32().map_err(io::Error::other)?.to_be_bytes();
    let question = question::encode([id[0], id[1]], name, kind);
    socket.send(&question).await?;
    let mut answer = [0; 1500];
    loop {
        let length = socket.recv(&mut answer).await?;
        let answer = &answer[..length];
        if question::answers([id[0], id[1]], answer) {
            let refused = || io::Error::other(format!("{server} has no address of {name}"));
            return question::addresses(&question, kind, answer).ok_or_else(refused);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn without_name_servers_only_names_of_the_default_route_are_asked_for() {
        let names = EndpointNames::default();
        let found = names.resolve("localhost:1194", Mark::OWN.0).await.expect("the host's resolver");
        assert!(found.iter().all(|address| address.ip().is_loopback() && address.port() == 1194));
        for mark in [Mark::carried_by(1), Mark::carried_by(16), Mark(0x4701_8002)] {
            let refused = names.resolve("localhost:1194", mark.0).await.expect_err("no name server");
            assert!(refused.to_string().contains("dns.bootstrap_servers"), "{mark:?}: {refused}");
        }
    }
}
