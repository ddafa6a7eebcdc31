//! TCP connections to hosts by name or address, through an egress.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ipnet::IpNet;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::egress::{Egress, EgressError};
use crate::names::Resolver;
use crate::reserved::is_reserved;
use crate::sockets::Sockets;
use crate::socks5::Destination;

/// Addresses that a dialer may connect to.
#[derive(Clone, Copy, Debug)]
pub enum Targets<'a> {
    Any,
    /// Internet addresses outside these networks of this host. A name that a proxy resolves is not checked.
    Public {
        own: &'a [IpNet],
    },
}

/// Dialer of TCP connections to hosts.
#[derive(Clone, Copy)]
pub struct Dialer<'a> {
    pub sockets: &'a dyn Sockets,
    pub names: &'a Resolver,
    pub egress: &'a Egress,
    pub targets: Targets<'a>,
    /// Deadline for the look-up and all connections together.
    pub timeout: Duration,
}

impl<'a> Dialer<'a> {
    /// Returns a dialer by the default route, to any host.
    pub fn by_default_route(sockets: &'a dyn Sockets, names: &'a Resolver, timeout: Duration) -> Dialer<'a> {
        Dialer { sockets, names, egress: &Egress::DEFAULT, targets: Targets::Any, timeout }
    }
}

/// Reason why a connection to a host failed.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    #[error("{0}")]
    Lookup(io::Error),
    #[error("{0} has no address")]
    NoAddress(String),
    #[error("{0} is this host or a private address")]
    PrivateTarget(IpAddr),
    #[error(transparent)]
    Egress(#[from] EgressError),
    #[error("no connection within {} s", .0.as_secs())]
    Timeout(Duration),
}

impl Dialer<'_> {
    /// Connects to a host: a name, or an address (IPv6 with or without brackets). Tries the addresses of a name in
    /// order. Checks each address after the look-up, so that no name leads to a private address.
    pub async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, DialError> {
        let dialed = timeout(self.timeout, self.dial(host, port));
        dialed.await.unwrap_or(Err(DialError::Timeout(self.timeout)))
    }

    async fn dial(&self, host: &str, port: u16) -> Result<TcpStream, DialError> {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = host.parse::<IpAddr>() {
            return self.connect_to(SocketAddr::new(address, port)).await;
        }
        if self.egress.proxy.is_some() {
            let to = Destination::Name(host.to_owned(), port);
            return Ok(self.egress.connect(self.sockets, to).await?);
        }
        let found = self.names.find(host, port, self.egress.mark, self.timeout).await;
        let mut last = DialError::NoAddress(host.to_owned());
        for address in found.map_err(DialError::Lookup)? {
            match self.connect_to(address).await {
                Err(DialError::Egress(error)) => last = error.into(),
                done => return done,
            }
        }
        Err(last)
    }

    async fn connect_to(&self, address: SocketAddr) -> Result<TcpStream, DialError> {
        if let Targets::Public { own } = self.targets {
            let ip = address.ip().to_canonical();
            if is_reserved(ip) || own.iter().any(|network| network.contains(&ip)) {
                return Err(DialError::PrivateTarget(ip));
            }
        }
        Ok(self.egress.connect(self.sockets, address).await?)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::egress::Proxy;
    use crate::sockets::KernelSockets;

    fn dialer<'a>(names: &'a Resolver, egress: &'a Egress, targets: Targets<'a>) -> Dialer<'a> {
        Dialer { sockets: &KernelSockets::QUICK, names, egress, targets, timeout: Duration::from_secs(10) }
    }

    #[tokio::test]
    async fn private_targets_are_refused_by_address_and_by_name() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = server.local_addr().unwrap().port();
        let names = Resolver::default();
        let public = dialer(&names, &Egress::DEFAULT, Targets::Public { own: &[] });
        for host in ["127.0.0.1", "[::ffff:127.0.0.1]", "localhost"] {
            let refused = public.connect(host, port).await.unwrap_err();
            assert!(matches!(refused, DialError::PrivateTarget(_)), "{host}: {refused}");
        }
        let own = ["192.0.2.0/24".parse().unwrap()];
        let elsewhere = dialer(&names, &Egress::DEFAULT, Targets::Public { own: &own });
        let refused = elsewhere.connect("192.0.2.7", 80);
        assert!(matches!(refused.await, Err(DialError::PrivateTarget(_))));
        dialer(&names, &Egress::DEFAULT, Targets::Any).connect("localhost", port).await.unwrap();
    }

    #[tokio::test]
    async fn proxy_resolves_the_name() {
        let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let egress =
            Egress { mark: None, proxy: Some(Proxy { server: proxy.local_addr().unwrap(), login: None }) };
        let serve = async {
            let (mut stream, _) = proxy.accept().await.unwrap();
            let mut greeting = [0; 3];
            stream.read_exact(&mut greeting).await.unwrap();
            stream.write_all(&[5, 0]).await.unwrap();
            let mut request = [0; 19];
            stream.read_exact(&mut request).await.unwrap();
            stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
            request
        };
        let names = Resolver::default();
        let dialer = dialer(&names, &egress, Targets::Any);
        let (request, connected) = tokio::join!(serve, dialer.connect("nowhere.test", 80));
        assert_eq!(&request, b"\x05\x01\x00\x03\x0cnowhere.test\x00\x50");
        connected.unwrap();
    }
}
