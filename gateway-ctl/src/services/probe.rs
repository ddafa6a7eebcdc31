//! Health probe through an interface: sends a request and measures the time to the reply. Also sends datagrams that make
//! the remote end of a tunnel answer.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use gateway_model::kinds::tunnel_health::Probe;
use gateway_outbound::SocketBinding;
use gateway_outbound::dns_query::DnsQuery;
use socket2::{Protocol, Type};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

/// Sends a probe. Returns the time to the reply, or `None` if no reply arrives in time.
pub(super) async fn send(probe: &Probe, binding: &SocketBinding, timeout: Duration) -> Option<Duration> {
    let started = Instant::now();
    let asking = async {
        match probe {
            Probe::Ping(address) => ping(*address, binding).await,
            Probe::Dns(server) => dns(*server, binding).await,
            Probe::Http { server, host, path } => http_status(*server, host, path, binding).await.map(drop),
        }
    };
    match tokio::time::timeout(timeout, asking).await {
        Ok(Ok(())) => Some(started.elapsed()),
        Ok(Err(error)) => {
            tracing::debug!(interface = %binding.interface, %probe, %error, "probe failed");
            None
        }
        Err(_) => None,
    }
}

/// First port of traceroute; no host listens on it.
const DISCARDED_PORT: u16 = 33434;

/// Sends a datagram that ends at the remote end of the tunnel, because its hop limit is 1. The remote end answers
/// with an ICMP error, a WireGuard keepalive (after 10 s at most), or a handshake if it lost the session.
pub(super) fn provoke_answer(to: IpAddr, binding: &SocketBinding) -> io::Result<()> {
    let to = SocketAddr::new(to, DISCARDED_PORT);
    let socket = binding.socket(to, Type::DGRAM, Protocol::UDP)?;
    if to.is_ipv6() {
        socket.set_unicast_hops_v6(1)?;
    } else {
        socket.set_ttl_v4(1)?;
    }
    socket.send_to(&[0; PAYLOAD], &to.into()).map(drop)
}

/// Beginning of a status line, to the end of the status code (RFC 9112, section 4).
const STATUS_LINE: usize = "HTTP/1.1 204".len();

/// Sends an HTTP request. Returns the status code of the answer.
pub(super) async fn http_status(
    server: SocketAddr,
    host: &str,
    path: &str,
    binding: &SocketBinding,
) -> io::Result<u16> {
    let mut connection = binding.connect(server).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    let mut line = [0; STATUS_LINE];
    connection.read_exact(&mut line).await?;
    let code = line.strip_prefix(b"HTTP/1.").and_then(|rest| std::str::from_utf8(rest.get(2..)?).ok());
    let code = code.and_then(|code| code.parse().ok());
    code.ok_or_else(|| io::Error::other("the answer is not HTTP"))
}

/// Longest beginning of an answer that is read.
const MAX_HEAD: usize = 16 * 1024;

/// Sends a request over HTTP. Returns the beginning of the answer: all headers, and some of the content if there is any.
pub(super) async fn http_head(
    server: SocketAddr,
    request: &str,
    binding: &SocketBinding,
) -> io::Result<Vec<u8>> {
    let mut connection = binding.connect(server).await?;
    connection.write_all(request.as_bytes()).await?;
    let mut head = Vec::new();
    let mut buffer = [0; 2048];
    while head.len() < MAX_HEAD && !head.windows(4).any(|window| window == b"\r\n\r\n") {
        match connection.read(&mut buffer).await? {
            0 if head.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
            0 => break,
            length => head.extend_from_slice(&buffer[..length]),
        }
    }
    Ok(head)
}

async fn dns(server: SocketAddr, binding: &SocketBinding) -> io::Result<()> {
    let socket = binding.datagrams(server, Type::DGRAM, Protocol::UDP)?;
    // A query for the root name servers reveals nothing about any user.
    let query = DnsQuery::root_name_servers(random()? as u16);
    socket.send(&query.message().ok_or(io::ErrorKind::InvalidInput)?).await?;
    let mut answer = [0; 512];
    loop {
        let length = socket.recv(&mut answer).await?;
        if query.is_reply(&answer[..length]) {
            return Ok(());
        }
    }
}

const ECHO: [u8; 2] = [8, 128];
const ECHO_REPLY: [u8; 2] = [0, 129];
const PAYLOAD: usize = 32;

async fn ping(address: IpAddr, binding: &SocketBinding) -> io::Result<()> {
    let family = usize::from(address.is_ipv6());
    let protocol = [Protocol::ICMPV4, Protocol::ICMPV6][family];
    let socket = binding.datagrams(SocketAddr::new(address, 0), Type::RAW, protocol)?;
    let mut packet = [0; 8 + PAYLOAD];
    packet[0] = ECHO[family];
    packet[4..8].copy_from_slice(&random()?.to_be_bytes());
    if address.is_ipv4() {
        // The kernel fills in the ICMPv6 checksum.
        let sum = checksum(&packet);
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    socket.send(&packet).await?;
    let mut buffer = [0; 256];
    loop {
        let length = socket.recv(&mut buffer).await?;
        // A raw socket returns the IPv4 header but not the IPv6 header.
        let header = if address.is_ipv4() { usize::from(buffer[0] & 0x0f) * 4 } else { 0 };
        let answer = buffer[..length].get(header..).unwrap_or_default();
        if answer.first() == Some(&ECHO_REPLY[family]) && answer.get(4..8) == packet.get(4..8) {
            return Ok(());
        }
    }
}

/// Computes the Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn random() -> io::Result<u32> {
    getrandom::u32().map_err(io::Error::other)
}
