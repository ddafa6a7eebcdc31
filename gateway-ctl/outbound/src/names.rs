//! Resolution of host names, through the egress of the later connection.
//!
//! A name is resolved through the egress of its connection, never in clear text outside of it. The queries go to the
//! configured name servers, from a socket with the connection's fwmark. Without name servers the host's own resolver is
//! used, but only for connections through the default route. For any other connection there is no address.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use gateway_common::wire::Mark;
use hickory_proto::rr::RecordType;
use parking_lot::RwLock;

use crate::dns_query::DnsQuery;
use crate::sockets::{KernelSockets, Sockets};

/// Timeout of one name server, or of the host's resolver.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(3);
const DNS: u16 = 53;

/// Resolver of host names. Clones share their name servers.
#[derive(Clone, Debug, Default)]
pub struct Resolver {
    servers: Arc<RwLock<Arc<[SocketAddr]>>>,
}

impl Resolver {
    /// Creates a resolver with these name servers; without any, with the host's own resolver.
    pub fn new(servers: &[IpAddr]) -> Resolver {
        let resolver = Resolver::default();
        resolver.set_servers(servers);
        resolver
    }

    /// Replaces the name servers; without any, uses the host's own resolver.
    pub fn set_servers(&self, servers: &[IpAddr]) {
        let servers = servers.iter().map(|server| SocketAddr::new(*server, DNS)).collect();
        *self.servers.write() = servers;
    }

    fn servers(&self) -> Arc<[SocketAddr]> {
        self.servers.read().clone()
    }

    /// Creates a resolver with name servers at ports other than 53.
    pub fn at(servers: Vec<SocketAddr>) -> Resolver {
        Resolver { servers: Arc::new(RwLock::new(servers.into())) }
    }

    /// Returns the addresses of an endpoint (`name:port`). The queries carry the mark of the later connection.
    pub async fn resolve(&self, endpoint: &str, mark: Option<Mark>) -> io::Result<Vec<SocketAddr>> {
        let (name, port) = endpoint.rsplit_once(':').ok_or(io::ErrorKind::InvalidInput)?;
        let port: u16 = port.parse().map_err(|_| io::ErrorKind::InvalidInput)?;
        self.find(name, port, mark, LOOKUP_TIMEOUT).await
    }

    /// Returns the addresses of a host. `host_timeout` is the deadline of the host's own resolver.
    pub async fn find(
        &self,
        name: &str,
        port: u16,
        mark: Option<Mark>,
        host_timeout: Duration,
    ) -> io::Result<Vec<SocketAddr>> {
        let is_default_route = mark.is_none_or(|mark| mark == Mark::OWN);
        let servers = self.servers();
        match (servers.is_empty(), is_default_route) {
            (false, _) => by_servers(&servers, name, port, mark).await,
            (true, true) => {
                let lookup = tokio::net::lookup_host((name, port));
                Ok(tokio::time::timeout(host_timeout, lookup).await??.collect())
            }
            // The host's resolver takes its own route, and would reveal there the server of a nested hop.
            (true, false) => {
                Err(io::Error::other("dns.bootstrap_servers is needed for what another hop carries"))
            }
        }
    }
}

/// Queries the servers in order until one answers.
async fn by_servers(
    servers: &[SocketAddr],
    name: &str,
    port: u16,
    mark: Option<Mark>,
) -> io::Result<Vec<SocketAddr>> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for server in servers {
        let both = async {
            tokio::join!(
                query(*server, name, RecordType::A, mark),
                query(*server, name, RecordType::AAAA, mark)
            )
        };
        match tokio::time::timeout(LOOKUP_TIMEOUT, both).await {
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

async fn query(
    server: SocketAddr,
    name: &str,
    rtype: RecordType,
    mark: Option<Mark>,
) -> io::Result<Vec<IpAddr>> {
    let id = getrandom::u32().map_err(io::Error::other)? as u16;
    let invalid = || io::Error::new(io::ErrorKind::InvalidInput, format!("{name} is no domain name"));
    let query = DnsQuery::new(id, name, rtype).ok_or_else(invalid)?;
    let message = query.message().ok_or_else(invalid)?;
    let socket = KernelSockets::QUICK.datagrams(server, mark)?;
    socket.send(&message).await?;
    let mut reply = [0; 1500];
    loop {
        let length = socket.recv(&mut reply).await?;
        let reply = &reply[..length];
        if query.is_reply(reply) {
            let refused = || io::Error::other(format!("{server} has no address of {name}"));
            return query.addresses(reply).ok_or_else(refused);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn without_name_servers_only_names_of_the_default_route_are_resolved() {
        let names = Resolver::default();
        let found = names.resolve("localhost:1194", Some(Mark::OWN)).await.expect("the host's resolver");
        assert!(found.iter().all(|address| address.ip().is_loopback() && address.port() == 1194));
        for mark in [Mark::carried_by(1), Mark::carried_by(16), Mark(0x4701_8002)] {
            let refused = names.resolve("localhost:1194", Some(mark)).await.expect_err("no name server");
            assert!(refused.to_string().contains("dns.bootstrap_servers"), "{mark:?}: {refused}");
        }
    }
}
