//! Sockets whose packets carry a mark.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use futures_util::future::BoxFuture;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};

/// Factory of sockets with a mark. It never returns a socket without the mark that was asked for.
pub trait Sockets: Send + Sync + 'static {
    /// Returns a socket that is connected to one address, at a port of its own.
    fn datagrams(&self, to: SocketAddr, mark: u32) -> io::Result<UdpSocket>;
    /// Connects over TCP.
    fn connect(&self, to: SocketAddr, mark: u32) -> BoxFuture<'static, io::Result<TcpStream>>;
}

/// Detection of a peer that is gone.
#[derive(Clone, Copy, Debug)]
pub struct Keepalive {
    pub idle: Duration,
    /// Interval and number of probes; none for those of the kernel.
    pub probes: Option<(Duration, u32)>,
    /// Longest time that sent data may stay unacknowledged.
    pub unacknowledged: Duration,
}

impl Keepalive {
    /// For connections that are soon replaced.
    pub const QUICK: Keepalive =
        Keepalive { idle: Duration::from_secs(20), probes: None, unacknowledged: Duration::from_secs(10) };
    /// For connections that carry the traffic of others.
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

/// Sockets of the kernel. Marks need CAP_NET_ADMIN.
#[derive(Clone, Copy, Debug)]
pub struct KernelSockets {
    pub keepalive: Keepalive,
}

impl KernelSockets {
    pub const QUICK: KernelSockets = KernelSockets { keepalive: Keepalive::QUICK };
    pub const PATIENT: KernelSockets = KernelSockets { keepalive: Keepalive::PATIENT };
}

impl Sockets for KernelSockets {
    fn datagrams(&self, to: SocketAddr, mark: u32) -> io::Result<UdpSocket> {
        let socket = Socket::new(Domain::for_address(to), Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
        if mark != 0 {
            socket.set_mark(mark)?;
        }
        // The kernel draws the port at random from those that are not reserved.
        socket.bind(&any_address(to.is_ipv6()).into())?;
        socket.connect(&to.into())?;
        UdpSocket::from_std(socket.into())
    }

    fn connect(&self, to: SocketAddr, mark: u32) -> BoxFuture<'static, io::Result<TcpStream>> {
        let keepalive = self.keepalive;
        Box::pin(async move {
            let socket = if to.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            if mark != 0 {
                SockRef::from(&socket).set_mark(mark)?;
            }
            socket.set_nodelay(true)?;
            let stream = socket.connect(to).await?;
            keepalive.apply(&stream)?;
            Ok(stream)
        })
    }
}

/// Any address and port of a family.
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
        carried(sockets.datagrams(to, 0x1234).and_then(|socket| SockRef::from(&socket).mark()));
        carried(sockets.connect(to, 0x1234).await.and_then(|stream| SockRef::from(&stream).mark()));
        assert_eq!(SockRef::from(&sockets.connect(to, 0).await.unwrap()).mark().unwrap(), 0);
    }
}
