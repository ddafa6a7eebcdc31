//! Sockets whose packets carry an fwmark.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use futures_util::future::BoxFuture;
use gateway_common::classify::DNS_PORT;
use gateway_common::wire::Mark;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};

/// Factory of sockets with an fwmark. It never returns a socket without the requested mark.
pub trait Sockets: Send + Sync + 'static {
    /// Returns a socket connected to one address, with its own source port.
    fn datagrams(&self, to: SocketAddr, mark: Option<Mark>) -> io::Result<UdpSocket>;
    /// Connects over TCP.
    fn connect(&self, to: SocketAddr, mark: Option<Mark>) -> BoxFuture<'static, io::Result<TcpStream>>;
}

/// Detection of dead peers.
#[derive(Clone, Copy, Debug)]
pub struct Keepalive {
    pub idle: Duration,
    /// Interval and number of probes; none for the kernel's defaults.
    pub probes: Option<(Duration, u32)>,
    /// Maximum time that sent data may stay unacknowledged (`TCP_USER_TIMEOUT`).
    pub unacknowledged: Duration,
}

impl Keepalive {
    /// Keepalive of connections that are quickly replaced.
    pub const QUICK: Keepalive =
        Keepalive { idle: Duration::from_secs(20), probes: None, unacknowledged: Duration::from_secs(10) };
    /// Keepalive of connections that relay traffic of clients.
    pub const PATIENT: Keepalive = Keepalive {
        idle: Duration::from_secs(60),
        probes: Some((Duration::from_secs(15), 4)),
        unacknowledged: Duration::from_secs(60),
    };

    pub fn apply(&self, stream: &TcpStream) -> io::Result<()> {
        let mut keepalive = TcpKeepalive::new().with_time(self.idle);
        if let Some((interval, retries)) = self.probes {
            keepalive = keepalive.with_interval(interval).with_retries(retries);
        }
        let socket = SockRef::from(stream);
        socket.set_tcp_keepalive(&keepalive)?;
        socket.set_tcp_user_timeout(Some(self.unacknowledged))
    }
}

/// Kernel sockets. Marks need `CAP_NET_ADMIN`.
#[derive(Clone, Copy, Debug)]
pub struct KernelSockets {
    pub keepalive: Keepalive,
}

impl KernelSockets {
    pub const QUICK: KernelSockets = KernelSockets { keepalive: Keepalive::QUICK };
    pub const PATIENT: KernelSockets = KernelSockets { keepalive: Keepalive::PATIENT };
}

impl Sockets for KernelSockets {
    fn datagrams(&self, to: SocketAddr, mark: Option<Mark>) -> io::Result<UdpSocket> {
        #[expect(clippy::disallowed_methods, reason = "this package connects")]
        let socket = Socket::new(Domain::for_address(to), Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
        mark_socket(&SockRef::from(&socket), to, mark)?;
        // The kernel chooses a random port that is not reserved.
        socket.bind(&any_address(to.is_ipv6()).into())?;
        socket.connect(&to.into())?;
        UdpSocket::from_std(socket.into())
    }

    fn connect(&self, to: SocketAddr, mark: Option<Mark>) -> BoxFuture<'static, io::Result<TcpStream>> {
        let keepalive = self.keepalive;
        Box::pin(async move {
            let socket = if to.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            mark_socket(&SockRef::from(&socket), to, mark)?;
            socket.set_nodelay(true)?;
            let stream = socket.connect(to).await?;
            keepalive.apply(&stream)?;
            Ok(stream)
        })
    }
}

/// Sets the fwmark of a socket. Plain DNS queries without one get [`Mark::OWN_QUERY`], or they would be redirected to
/// the resolver of this host, which sends them. Without the right to set marks nothing is redirected either.
fn mark_socket(socket: &SockRef<'_>, to: SocketAddr, mark: Option<Mark>) -> io::Result<()> {
    match (mark, to.port()) {
        (None, DNS_PORT) => {
            let _ = socket.set_mark(Mark::OWN_QUERY.0);
            Ok(())
        }
        (None, _) => Ok(()),
        (Some(mark), _) => socket.set_mark(mark.0),
    }
}

/// Returns the unspecified address of a family, with port 0.
pub fn any_address(ipv6: bool) -> SocketAddr {
    let ip: IpAddr = if ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    SocketAddr::new(ip, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn socket_carries_its_mark_or_does_not_exist() {
        let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = server.local_addr().unwrap();
        let carried = |made: io::Result<u32>| match made {
            Ok(mark) => assert_eq!(mark, 0x1234),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        };
        let sockets = KernelSockets::QUICK;
        carried(sockets.datagrams(to, Some(Mark(0x1234))).and_then(|socket| SockRef::from(&socket).mark()));
        carried(
            sockets.connect(to, Some(Mark(0x1234))).await.and_then(|stream| SockRef::from(&stream).mark()),
        );
        assert_eq!(SockRef::from(&sockets.connect(to, None).await.unwrap()).mark().unwrap(), 0);
    }
}
