//! Traffic of LAN hosts: single requests, long-lived flows, and continuous load.

mod load;

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::socket::{setsockopt, sockopt};

use crate::http::exchange;
use crate::netns::Namespace;
use crate::services::{BULK, HTTP, IDENT};
use crate::tap::MARK;
use crate::topology::Host;

pub use load::{Load, Sent};

/// Timeout of a request that should be answered.
pub const TIMEOUT: Duration = Duration::from_secs(5);

/// Result of a request to a server in the internet.
#[derive(Debug)]
pub enum Answer {
    /// Source address that the server saw.
    Seen(IpAddr),
    /// The network or the server rejected the request.
    Rejected { error: io::Error, after: Duration },
    /// No answer before the timeout.
    Silence,
}

impl Answer {
    pub fn seen(&self) -> Option<IpAddr> {
        match self {
            Self::Seen(address) => Some(*address),
            Self::Rejected { .. } | Self::Silence => None,
        }
    }

    fn of(outcome: io::Result<IpAddr>, started: Instant) -> Self {
        match outcome {
            Ok(address) => Self::Seen(address),
            Err(error) if matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock) => {
                Self::Silence
            }
            Err(error) => Self::Rejected { error, after: started.elapsed() },
        }
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Seen(address) => write!(f, "{address}"),
            Self::Rejected { error, after } => write!(f, "rejected after {} ms ({error})", after.as_millis()),
            Self::Silence => write!(f, "timeout"),
        }
    }
}

/// Requests the visible source address from a server over a new TCP connection (`GET /ip`).
pub fn ask(host: &Host, to: SocketAddr, timeout: Duration) -> Answer {
    ask_within(&host.namespace, to, timeout)
}

/// The same from a namespace that is no LAN host.
pub fn ask_within(namespace: &Namespace, to: SocketAddr, timeout: Duration) -> Answer {
    let started = Instant::now();
    Answer::of(fetch(namespace, to, timeout), started)
}

/// Calls [`ask`] on the default port, with the timeout for a request that should be answered.
pub fn ask_server(host: &Host, server: IpAddr) -> Answer {
    ask(host, (server, HTTP).into(), TIMEOUT)
}

/// Opens sequential connections to a server. Returns the source addresses that the server saw.
pub fn connections(host: &Host, server: IpAddr, number: usize) -> Result<Vec<IpAddr>> {
    (0..number)
        .map(|n| match ask_server(host, server) {
            Answer::Seen(address) => Ok(address),
            answer => bail!("connection {} of {number} from {} to {server}: {answer}", n + 1, host.name),
        })
        .collect()
}

/// Requests the visible source address from a server with one UDP datagram from a new port.
pub fn ask_udp(host: &Host, to: SocketAddr, timeout: Duration) -> Answer {
    let started = Instant::now();
    Answer::of(UdpFlow::open(host, to).and_then(|flow| flow.ask(timeout)), started)
}

fn fetch(namespace: &Namespace, to: SocketAddr, timeout: Duration) -> io::Result<IpAddr> {
    let connection = namespace.within(|| TcpStream::connect_timeout(&to, timeout))?;
    connection.set_read_timeout(Some(timeout))?;
    connection.set_write_timeout(Some(timeout))?;
    let response = exchange(&connection, "GET", &to.to_string(), "/ip", &[], None).map_err(|error| {
        let kind = error.downcast_ref::<io::Error>().map_or(ErrorKind::Other, io::Error::kind);
        io::Error::new(kind, format!("{error:#}"))
    })?;
    address(&String::from_utf8_lossy(&response.body))
}

fn address(text: &str) -> io::Result<IpAddr> {
    text.trim().parse().map_err(|_| io::Error::other(format!("not an address: {text:?}")))
}

/// A TCP connection that stays open for repeated requests.
#[derive(Debug)]
pub struct TcpFlow(BufReader<TcpStream>);

impl TcpFlow {
    pub fn open(host: &Host, server: IpAddr) -> Result<Self> {
        let to = SocketAddr::from((server, IDENT));
        let connect = || TcpStream::connect_timeout(&to, TIMEOUT);
        let connection = host.namespace.within(connect).with_context(|| format!("connect to {to}"))?;
        connection.set_nodelay(true)?;
        Ok(Self(BufReader::new(connection)))
    }

    pub fn ask(&mut self, timeout: Duration) -> Answer {
        let started = Instant::now();
        let mut line = String::new();
        let mut talk = || {
            self.0.get_ref().set_read_timeout(Some(timeout))?;
            self.0.get_mut().write_all(&[MARK, b"\n"].concat())?;
            match self.0.read_line(&mut line)? {
                0 => Err(io::Error::from(ErrorKind::UnexpectedEof)),
                _ => address(&line),
            }
        };
        Answer::of(talk(), started)
    }
}

impl TcpFlow {
    /// Waits for the end of the connection without sending. Returns the kind of the end.
    pub fn wait_for_the_end(&mut self, timeout: Duration) -> ErrorKind {
        let mut read = || {
            self.0.get_ref().set_read_timeout(Some(timeout))?;
            self.0.read(&mut [0; 1])
        };
        match read() {
            Ok(_) => ErrorKind::UnexpectedEof,
            Err(error) => error.kind(),
        }
    }
}

/// Sends `bytes` bytes to a server over TCP and receives as many. Returns the duration.
pub fn transfer(host: &Host, server: IpAddr, bytes: u64) -> io::Result<Duration> {
    let started = Instant::now();
    let to = SocketAddr::from((server, BULK));
    let connection = host.namespace.within(|| TcpStream::connect_timeout(&to, TIMEOUT))?;
    connection.set_read_timeout(Some(TIMEOUT))?;
    connection.set_write_timeout(Some(TIMEOUT))?;
    (&connection).write_all(&bytes.to_be_bytes())?;
    io::copy(&mut io::repeat(0x57).take(bytes), &mut &connection)?;
    let came = io::copy(&mut (&connection).take(bytes), &mut io::sink())?;
    if came == bytes { Ok(started.elapsed()) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

/// A UDP flow: one local port, one server.
#[derive(Debug)]
pub struct UdpFlow {
    socket: UdpSocket,
    to: SocketAddr,
}

impl UdpFlow {
    pub fn open(host: &Host, to: SocketAddr) -> io::Result<Self> {
        let socket = host.namespace.within(|| UdpSocket::bind(any(to.is_ipv6())))?;
        Ok(Self { socket, to })
    }

    /// Returns the local port.
    pub fn port(&self) -> io::Result<u16> {
        self.socket.local_addr().map(|address| address.port())
    }

    /// Reports whether anything arrives before the timeout.
    pub fn hears(&self, timeout: Duration) -> bool {
        self.socket.set_read_timeout(Some(timeout)).is_ok() && self.socket.recv_from(&mut [0; 512]).is_ok()
    }

    pub fn ask(&self, timeout: Duration) -> io::Result<IpAddr> {
        self.socket.set_read_timeout(Some(timeout))?;
        self.socket.send_to(MARK, self.to)?;
        let mut buffer = [0; 512];
        loop {
            let (length, from) = self.socket.recv_from(&mut buffer)?;
            if from == self.to {
                return seen_in(&buffer[..length]);
            }
        }
    }
}

/// Sends one datagram from each of these ports of a host. Each pair of ports is a flow.
pub fn scatter(host: &Host, flows: impl Iterator<Item = (u16, SocketAddr)> + Send) -> io::Result<()> {
    host.namespace.within(|| {
        for (port, to) in flows {
            let from = SocketAddr::new(any(to.is_ipv6()).ip(), port);
            UdpSocket::bind(from)?.send_to(MARK, to)?;
        }
        Ok(())
    })
}

/// Sends one datagram and waits for an ICMP error. Returns the delay of the error.
pub fn rejection(host: &Host, to: SocketAddr, timeout: Duration) -> io::Result<Duration> {
    let started = Instant::now();
    let flow = UdpFlow::open(host, to)?;
    // Without this option a host does not report most ICMP errors to the socket.
    if to.is_ipv6() {
        setsockopt(&flow.socket, sockopt::Ipv6RecvErr, &true)?;
    } else {
        setsockopt(&flow.socket, sockopt::Ipv4RecvErr, &true)?;
    }
    match flow.ask(timeout) {
        Ok(address) => Err(io::Error::other(format!("the server answered, and saw {address}"))),
        Err(error) if matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock) => Err(error),
        Err(_) => Ok(started.elapsed()),
    }
}

/// Returns the address at the beginning of an answer of the UDP ident service.
fn seen_in(answer: &[u8]) -> io::Result<IpAddr> {
    address(String::from_utf8_lossy(answer).split(' ').next().unwrap_or_default())
}

fn any(ipv6: bool) -> SocketAddr {
    let address: IpAddr = if ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    (address, 0).into()
}

/// Reports whether an address answers echo requests.
pub fn ping(host: &Host, to: IpAddr) -> bool {
    host.namespace.run("ping", &["-n", "-c", "1", "-W", "1", &to.to_string()]).is_ok()
}
