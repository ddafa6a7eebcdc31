//! An upstream resolver of the tests' internet that resolves every name, and a DNS client.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::name_server::ADDRESS;
use crate::netns::Namespace;
use crate::services::DNS;
use crate::topology::{Host, server};

pub const A: u16 = 1;
pub const AAAA: u16 = 28;

const TTL: u32 = 60;
const ATTENTION: Duration = Duration::from_millis(100);
const TIMEOUT: Duration = Duration::from_secs(5);

/// Answers `n7.<anything>` with 198.19.0.7, and every other name with the addresses of the default server.
#[derive(Debug)]
pub struct Upstream {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Source of each query for a name of the domain `example`.
    asked: Mutex<BTreeMap<String, Vec<IpAddr>>>,
    /// TTL of the answers in seconds.
    ttl: u32,
    ending: AtomicBool,
}

impl Upstream {
    /// Starts the upstream at [`ADDRESS`].
    pub fn start(internet: &Namespace) -> Result<Self> {
        Self::start_with_ttl(internet, TTL)
    }

    /// Starts the upstream with this TTL of the answers in seconds.
    pub fn start_with_ttl(internet: &Namespace, ttl: u32) -> Result<Self> {
        internet.ip(&format!("address add {ADDRESS}/32 dev lo"))?;
        Self::serving(internet, ADDRESS.into(), ttl)
    }

    /// Starts the upstream at an address of the namespace.
    pub fn start_at(namespace: &Namespace, address: IpAddr) -> Result<Self> {
        Self::serving(namespace, address, TTL)
    }

    fn serving(namespace: &Namespace, address: IpAddr, ttl: u32) -> Result<Self> {
        let socket = namespace.within(|| UdpSocket::bind((address, DNS))).context("upstream")?;
        socket.set_read_timeout(Some(ATTENTION)).context("upstream")?;
        let shared = Arc::new(Shared { ttl, ..Shared::default() });
        let server = shared.clone();
        let thread = std::thread::spawn(move || server.serve(&socket));
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Returns the sources of the queries for a name of the domain `example`.
    pub fn askers(&self, name: &str) -> Vec<IpAddr> {
        let asked = self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.get(name).cloned().unwrap_or_default()
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.shared.ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The panic was already printed.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn serve(&self, socket: &UdpSocket) {
        let mut buffer = [0; 1500];
        while !self.ending.load(Ordering::Relaxed) {
            let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
            let Some((name, kind, end)) = buffer.get(..length).and_then(question) else { continue };
            // The load queries the other names by the million.
            if name.ends_with(".example") {
                let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
                asked.entry(name.clone()).or_default().push(from.ip());
            }
            // The client that waits for the answer reports a lost one.
            let _ = socket.send_to(&reply(&buffer[..end], address(&name, kind), self.ttl), from);
        }
    }
}

/// Returns the name in lower case, the type, and the end of the question section.
fn question(message: &[u8]) -> Option<(String, u16, usize)> {
    let mut at = 12;
    let mut labels = Vec::new();
    loop {
        let length = usize::from(*message.get(at)?);
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(message.get(at + 1..at + 1 + length)?).to_ascii_lowercase());
        at += 1 + length;
    }
    let kind = u16::from_be_bytes(message.get(at + 1..at + 3)?.try_into().ok()?);
    Some((labels.join("."), kind, at + 5))
}

fn address(name: &str, kind: u16) -> Option<IpAddr> {
    let number = name.strip_prefix('n').and_then(|rest| rest.split('.').next()?.parse::<u16>().ok());
    match (kind, number) {
        (A, Some(number)) => {
            let [high, low] = number.to_be_bytes();
            Some(Ipv4Addr::new(198, 19, high, low).into())
        }
        (A, None) => Some(server(false)),
        (AAAA, None) => Some(server(true)),
        _ => None,
    }
}

fn reply(question: &[u8], address: Option<IpAddr>, ttl: u32) -> Vec<u8> {
    let mut reply = question.to_vec();
    reply[2..4].copy_from_slice(&[0x81, 0x80]);
    reply[6..12].fill(0);
    if let Some(address) = address {
        reply[7] = 1;
        let (kind, octets) = match address {
            IpAddr::V4(address) => (A, address.octets().to_vec()),
            IpAddr::V6(address) => (AAAA, address.octets().to_vec()),
        };
        reply.extend([0xc0, 12]);
        reply.extend(kind.to_be_bytes());
        reply.extend([0, 1]);
        reply.extend(ttl.to_be_bytes());
        reply.extend([0, octets.len() as u8]);
        reply.extend(octets);
    }
    reply
}

/// Answer to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub rcode: u8,
    pub addresses: Vec<IpAddr>,
}

/// A host that sends queries over one socket.
#[derive(Debug)]
pub struct Client {
    socket: UdpSocket,
    id: u16,
}

impl Client {
    /// Creates a client that queries this resolver.
    pub fn of(host: &Host, resolver: IpAddr) -> Result<Client> {
        Self::within(&host.namespace, resolver)
    }

    /// Creates a client in a network without named hosts.
    pub fn within(namespace: &Namespace, resolver: IpAddr) -> Result<Client> {
        let any: SocketAddr =
            if resolver.is_ipv6() { ([0u16; 8], 0).into() } else { ([0, 0, 0, 0], 0).into() };
        let socket = namespace.within(|| UdpSocket::bind(any)).context("a socket")?;
        socket.connect((resolver, DNS)).context("the resolver")?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        Ok(Client { socket, id: 0 })
    }

    /// Sets the timeout of an answer.
    pub fn with_timeout(self, timeout: Duration) -> Result<Client> {
        self.socket.set_read_timeout(Some(timeout))?;
        Ok(self)
    }

    pub fn ask(&mut self, name: &str, kind: u16) -> Result<Reply> {
        self.id = self.id.wrapping_add(1);
        let mut message = self.id.to_be_bytes().to_vec();
        message.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        for label in name.split('.') {
            message.push(label.len() as u8);
            message.extend(label.as_bytes());
        }
        message.push(0);
        message.extend(kind.to_be_bytes());
        message.extend([0, 1]);
        self.socket.send(&message)?;
        let mut buffer = [0; 1500];
        loop {
            let length = self.socket.recv(&mut buffer).with_context(|| format!("an answer for {name}"))?;
            let answer = &buffer[..length];
            if answer.starts_with(&self.id.to_be_bytes()) {
                return read_reply(answer);
            }
        }
    }
}

fn read_reply(answer: &[u8]) -> Result<Reply> {
    ensure!(answer.len() >= 12 && answer[2] & 0x80 != 0, "no answer: {answer:02x?}");
    let count = u16::from_be_bytes([answer[6], answer[7]]);
    let mut at = question(answer).context("no question")?.2;
    let mut addresses = Vec::new();
    for _ in 0..count {
        at = behind_name(answer, at)?;
        let record = answer.get(at..at + 10).context("cut short")?;
        let (kind, length) =
            (u16::from_be_bytes([record[0], record[1]]), u16::from_be_bytes([record[8], record[9]]));
        let data = answer.get(at + 10..at + 10 + usize::from(length)).context("cut short")?;
        match kind {
            A => addresses.push(IpAddr::from(<[u8; 4]>::try_from(data)?)),
            AAAA => addresses.push(IpAddr::from(<[u8; 16]>::try_from(data)?)),
            _ => {}
        }
        at += 10 + data.len();
    }
    Ok(Reply { rcode: answer[3] & 0x0f, addresses })
}

fn behind_name(message: &[u8], mut at: usize) -> Result<usize> {
    loop {
        match message.get(at) {
            Some(0) => return Ok(at + 1),
            Some(pointer) if pointer & 0xc0 == 0xc0 => return Ok(at + 2),
            Some(length) => at += 1 + usize::from(*length),
            None => bail!("cut short"),
        }
    }
}
