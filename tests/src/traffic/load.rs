//! A continuous load of all kinds of traffic in both families: a long-lived UDP flow, new UDP flows and TCP
//! connections, DNS queries and echo requests.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::netns::Entrance;
use crate::services::{DNS, HTTP, IDENT};
use crate::tap::MARK;
use crate::topology::{Host, server};
use crate::traffic::{any, seen_in};
use crate::wait::wait_for;

/// Interval of the packet rounds of each family.
const BEAT: Duration = Duration::from_millis(4);
/// Maximum number of concurrent TCP attempts.
const ATTEMPTS: usize = 16;
/// First source port of attempts. All loads share the range in rotation, and the kernel assigns none of it. A
/// connection from the port of an unanswered attempt would count as that attempt and take its leg.
const FIRST_PORT: u16 = 20_000;
const PORTS: u16 = 12_000;
static NEXT_PORT: AtomicU16 = AtomicU16::new(0);

/// Counters of a load so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Packets and connection attempts that the host's kernel accepted.
    pub v4: u64,
    pub v6: u64,
    /// Answers on the long-lived UDP flows, by the address that the server saw.
    pub answers: BTreeMap<IpAddr, u64>,
}

/// The running load. Dropping it ends it.
#[derive(Debug)]
pub struct Load {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    ending: AtomicBool,
    v4: AtomicU64,
    v6: AtomicU64,
    answers: Mutex<BTreeMap<IpAddr, u64>>,
}

impl Load {
    pub fn start(host: &Host) -> Result<Self> {
        let mut load = Self { shared: Arc::default(), threads: Vec::new() };
        for ipv6 in [false, true] {
            let sender = Sender::open(host.namespace.entrance(), server(ipv6), load.shared.clone())?;
            load.threads.push(std::thread::spawn(move || sender.send_until_the_end()));
        }
        Ok(load)
    }

    pub fn sent(&self) -> Sent {
        let answers = self.shared.answers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Sent {
            v4: self.shared.v4.load(Ordering::Relaxed),
            v6: self.shared.v6.load(Ordering::Relaxed),
            answers,
        }
    }

    /// Returns when this many more packets have been sent in each family.
    pub fn run_for(&self, packets: u64) -> Result<()> {
        let before = self.sent();
        wait_for(Duration::from_secs(60), &format!("{packets} more packets of the load"), || {
            let now = self.sent();
            now.v4 >= before.v4 + packets && now.v6 >= before.v6 + packets
        })
    }

    /// Returns when an answer arrives for which the server saw this address after the call.
    pub fn wait_for_answer_to(&self, address: IpAddr, deadline: Duration) -> Result<()> {
        let answers = || self.sent().answers.get(&address).copied().unwrap_or(0);
        let before = answers();
        wait_for(deadline, &format!("the load to be seen as {address}"), || answers() > before)
    }

    pub fn stop(mut self) -> Sent {
        self.end();
        self.sent()
    }

    fn end(&mut self) {
        self.shared.ending.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // The panic was already printed.
            let _ = thread.join();
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.end();
    }
}

struct Sender {
    entrance: Entrance,
    server: IpAddr,
    shared: Arc<Shared>,
    lasting: UdpSocket,
    echo: Socket,
    attempts: VecDeque<Socket>,
}

impl Sender {
    fn open(entrance: Entrance, server: IpAddr, shared: Arc<Shared>) -> Result<Self> {
        let ipv6 = server.is_ipv6();
        let (domain, icmp) =
            if ipv6 { (Domain::IPV6, Protocol::ICMPV6) } else { (Domain::IPV4, Protocol::ICMPV4) };
        let lasting = entrance.within(|| UdpSocket::bind(any(ipv6))).context("UDP socket")?;
        lasting.set_nonblocking(true).context("UDP socket")?;
        let echo = entrance.within(|| Socket::new(domain, Type::RAW, Some(icmp))).context("ICMP socket")?;
        echo.set_nonblocking(true).context("ICMP socket")?;
        Ok(Self { entrance, server, shared, lasting, echo, attempts: VecDeque::new() })
    }

    fn send_until_the_end(mut self) {
        self.entrance.enter().expect("root may enter a namespace it made");
        let mut next = Instant::now();
        let mut round = 0_u64;
        while !self.shared.ending.load(Ordering::Relaxed) {
            self.lasting_flow();
            match round % 4 {
                0 => self.new_flow(IDENT),
                1 => self.new_flow(DNS),
                2 => self.echo_request(round),
                _ => self.connection_attempt(),
            }
            self.gather_answers();
            round += 1;
            next += BEAT;
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    }

    fn lasting_flow(&self) {
        self.note(self.lasting.send_to(MARK, (self.server, IDENT)).is_ok());
    }

    fn new_flow(&self, port: u16) {
        let sent = UdpSocket::bind(any(self.server.is_ipv6()))
            .and_then(|socket| socket.send_to(&query(), (self.server, port)));
        self.note(sent.is_ok());
    }

    fn echo_request(&self, number: u64) {
        let kind = if self.server.is_ipv6() { 128 } else { 8 };
        let mut packet = vec![kind, 0, 0, 0, 0x47, 0x57];
        packet.extend_from_slice(&number.to_be_bytes()[6..]);
        packet.extend_from_slice(MARK);
        // The kernel computes the checksum of ICMPv6.
        let sum = checksum(&packet);
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
        let to = SockAddr::from(SocketAddr::from((self.server, 0)));
        self.note(self.echo.send_to(&packet, &to).is_ok());
    }

    fn connection_attempt(&mut self) {
        let domain = if self.server.is_ipv6() { Domain::IPV6 } else { Domain::IPV4 };
        let Ok(socket) = Socket::new(domain, Type::STREAM.nonblocking(), Some(Protocol::TCP)) else { return };
        let port = FIRST_PORT + NEXT_PORT.fetch_add(1, Ordering::Relaxed) % PORTS;
        let source = SocketAddr::new(any(self.server.is_ipv6()).ip(), port);
        // The port of an earlier attempt may still be in use.
        if socket.bind(&source.into()).is_err() {
            return;
        }
        // "In progress" is the success of a non-blocking connect.
        let _ = socket.connect(&SocketAddr::from((self.server, HTTP)).into());
        self.note(true);
        self.attempts.push_back(socket);
        if self.attempts.len() > ATTEMPTS {
            self.attempts.pop_front();
        }
    }

    fn gather_answers(&self) {
        let mut buffer = [0; 512];
        while let Ok((length, _)) = self.lasting.recv_from(&mut buffer) {
            if let Ok(address) = seen_in(&buffer[..length]) {
                let mut answers = self.shared.answers.lock().unwrap_or_else(PoisonError::into_inner);
                *answers.entry(address).or_default() += 1;
            }
        }
    }

    fn note(&self, sent: bool) {
        let counter = if self.server.is_ipv6() { &self.shared.v6 } else { &self.shared.v4 };
        counter.fetch_add(u64::from(sent), Ordering::Relaxed);
    }
}

/// Returns the header of a DNS query, so that the sink can answer, and the mark.
fn query() -> Vec<u8> {
    [&[0x47, 0x57, 0x01, 0x00, 0, 0, 0, 0, 0, 0, 0, 0], MARK].concat()
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
    !u16::try_from(sum).expect("folded to 16 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_a_packet_with_its_checksum_is_zero() {
        let mut packet = vec![8, 0, 0, 0, 1, 2, 3, 4, 5];
        let sum = checksum(&packet);
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(checksum(&packet), 0);
    }
}
