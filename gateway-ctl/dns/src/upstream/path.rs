//! The path of a question: the mark its packets bear, and the proxy it goes through. And the sockets that keep to it.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use gateway_core::reserved::relay_address;
use gateway_model::kinds::DnsForwarder;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};

use super::error::Error;
use super::socks;
use crate::seam::{Login, Route};

/// One way for packets; a [`Route`] has several where its questions take turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// 0: none, as the gateway's own traffic.
    pub mark: u32,
    pub proxy: Option<Proxy>,
}

/// What the ways are called whose packets bear a mark: tunnels and uplinks.
pub type Called = BTreeMap<u32, Arc<str>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    pub server: SocketAddr,
    pub login: Option<Arc<Login>>,
}

impl Hash for Path {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.mark.hash(state);
        self.proxy.as_ref().map(|proxy| proxy.server).hash(state);
    }
}

impl Path {
    pub const DEFAULT: Path = Path { mark: 0, proxy: None };

    /// As it is shown.
    pub fn shown(&self, called: &Called) -> Arc<str> {
        match (&self.proxy, self.mark) {
            (Some(proxy), _) => format!("proxy {}", proxy.server).into(),
            (None, 0) => DnsForwarder::AUTO.into(),
            (None, mark) => called.get(&mark).cloned().unwrap_or_else(|| format!("mark {mark:#x}").into()),
        }
    }

    /// The path of the `turn`th question by this route; why there is none, if it is blocked.
    pub fn of(route: &Route, turn: usize) -> Result<Path, Arc<str>> {
        match route {
            Route::Default => Ok(Path::DEFAULT),
            Route::Marked(marks) => match marks.get(turn % marks.len().max(1)) {
                Some(mark) => Ok(Path { mark: *mark, proxy: None }),
                None => Err("no way is left".into()),
            },
            Route::Proxy { server, mark, user } => {
                Ok(Path { mark: *mark, proxy: Some(Proxy { server: *server, login: user.clone() }) })
            }
            Route::Blocked(why) => Err(why.clone()),
        }
    }

    /// A connection to a server by this path.
    pub async fn connect(&self, sockets: &dyn Sockets, to: SocketAddr) -> Result<TcpStream, Error> {
        let Some(proxy) = &self.proxy else {
            return Ok(sockets.connect(to, self.mark).await?);
        };
        let mut stream = sockets.connect(proxy.server, self.mark).await.map_err(told)?;
        socks::connect(&mut stream, proxy.login.as_deref(), to).await.map_err(told)?;
        Ok(stream)
    }

    /// A socket for datagrams to a server and from it by this path.
    pub async fn datagrams(&self, sockets: &dyn Sockets, to: SocketAddr) -> Result<Passage, Error> {
        let Some(proxy) = &self.proxy else {
            return Ok(Passage { socket: sockets.datagrams(to, self.mark)?, wrapped: None });
        };
        let mut control = sockets.connect(proxy.server, self.mark).await.map_err(told)?;
        let from = any(proxy.server);
        let named = socks::associate(&mut control, proxy.login.as_deref(), from).await.map_err(told)?;
        let at = relay_address(proxy.server, named).ok_or_else(|| {
            told(format!("the proxy named {named} as its UDP relay, which is not an address of its own"))
        })?;
        let socket = sockets.datagrams(at, self.mark).map_err(told)?;
        Ok(Passage { socket, wrapped: Some(Wrapped { header: socks::header(to), control }) })
    }
}

/// The way of datagrams to one server.
#[derive(Debug)]
pub struct Passage {
    pub socket: UdpSocket,
    pub wrapped: Option<Wrapped>,
}

/// Through a proxy.
#[derive(Debug)]
pub struct Wrapped {
    /// Stands before each datagram.
    pub header: Vec<u8>,
    /// The passage ends with this connection.
    pub control: TcpStream,
}

fn told(error: impl ToString) -> Error {
    Error::Proxy(error.to_string().into())
}

/// What stands for any address and port of the same family.
pub fn any(like: SocketAddr) -> SocketAddr {
    let any: IpAddr =
        if like.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    SocketAddr::new(any, 0)
}

/// Makes sockets that bear a mark. None is ever made that does not.
pub trait Sockets: Send + Sync + 'static {
    /// Hears this one server only, at a port of its own.
    fn datagrams(&self, to: SocketAddr, mark: u32) -> io::Result<UdpSocket>;
    fn connect(&self, to: SocketAddr, mark: u32) -> BoxFuture<'static, io::Result<TcpStream>>;
}

/// Those of the system. Marks take CAP_NET_ADMIN.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

/// So long may sent data go without an acknowledgement.
const UNACKNOWLEDGED: Duration = Duration::from_secs(10);
const KEEPALIVE_IDLE: Duration = Duration::from_secs(20);

impl Sockets for System {
    fn datagrams(&self, to: SocketAddr, mark: u32) -> io::Result<UdpSocket> {
        let socket = Socket::new(Domain::for_address(to), Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
        if mark != 0 {
            socket.set_mark(mark)?;
        }
        // The kernel draws the port at random from those that are not reserved.
        socket.bind(&any(to).into())?;
        socket.connect(&to.into())?;
        UdpSocket::from_std(socket.into())
    }

    fn connect(&self, to: SocketAddr, mark: u32) -> BoxFuture<'static, io::Result<TcpStream>> {
        Box::pin(async move {
            let socket = if to.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            if mark != 0 {
                SockRef::from(&socket).set_mark(mark)?;
            }
            socket.set_nodelay(true)?;
            let stream = socket.connect(to).await?;
            let socket = SockRef::from(&stream);
            socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE_IDLE))?;
            socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED))?;
            Ok(stream)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_bears_its_mark_or_there_is_none() {
        let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = server.local_addr().unwrap();
        let borne = |made: io::Result<u32>| match made {
            Ok(mark) => assert_eq!(mark, 0x1234),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        };
        borne(System.datagrams(to, 0x1234).and_then(|socket| SockRef::from(&socket).mark()));
        borne(System.connect(to, 0x1234).await.and_then(|stream| SockRef::from(&stream).mark()));
        assert_eq!(SockRef::from(&System.connect(to, 0).await.unwrap()).mark().unwrap(), 0);
    }

    #[test]
    fn marks_take_turns_and_what_is_blocked_has_no_path() {
        let route = Route::Marked(vec![5, 6]);
        let marks: Vec<u32> = (0..3).map(|turn| Path::of(&route, turn).unwrap().mark).collect();
        assert_eq!(marks, [5, 6, 5]);
        assert_eq!(Path::of(&Route::Default, 9).unwrap(), Path::DEFAULT);
        assert!(Path::of(&Route::Blocked("down".into()), 0).is_err());
        assert!(Path::of(&Route::Marked(Vec::new()), 0).is_err());
    }
}
