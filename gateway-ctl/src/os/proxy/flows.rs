//! Flows that the relay carries, for the flow log: conntrack does not track them (decision 0037).

use std::collections::{HashMap, VecDeque};
use std::io;
use std::mem::{offset_of, zeroed};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use gateway_core::flow_log::{Connection, TcpState, Traffic, Tuple};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::net::TcpStream;

const TCP: u8 = 6;
const UDP: u8 = 17;
/// Flows that have ended and were not read yet. Beyond it the oldest are lost.
const MAX_ENDED: usize = 65_536;
const IPV4_HEADER: u64 = 20;
const IPV6_HEADER: u64 = 40;
const TCP_HEADER: u64 = 20;
/// Timestamps with their padding (RFC 7323, appendix A).
const TCP_TIMESTAMPS: u64 = 12;
const UDP_HEADER: u64 = 8;

/// Flows that the relay carries, and those that have ended since they were read. Clones are the same flows.
#[derive(Clone, Debug, Default)]
pub struct RelayedFlows(Arc<Registry>);

#[derive(Debug, Default)]
struct Registry {
    next: AtomicU32,
    open: Mutex<HashMap<u32, Arc<Carried>>>,
    /// With the time at which each began.
    ended: Mutex<VecDeque<(Instant, Connection)>>,
    is_incomplete: AtomicBool,
}

/// Relayed flows at an observation.
#[derive(Debug, Default)]
pub struct RelayedFlowsSeen {
    pub open: Vec<Connection>,
    /// Since the last call, in the order of their ends.
    pub ended: Vec<Connection>,
    /// Some that ended are missing.
    pub is_incomplete: bool,
}

#[derive(Debug)]
struct Carried {
    origin: Tuple,
    begun: Instant,
    counts: Counts,
}

#[derive(Debug)]
enum Counts {
    /// The kernel counts the segments of a socket.
    Stream(Weak<TcpStream>),
    Datagrams {
        sent: Count,
        received: Count,
    },
}

#[derive(Debug, Default)]
struct Count {
    packets: AtomicU64,
    bytes: AtomicU64,
}

impl Count {
    fn add(&self, length: u64) {
        self.packets.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(length, Ordering::Relaxed);
    }

    fn traffic(&self) -> Traffic {
        Traffic { packets: self.packets.load(Ordering::Relaxed), bytes: self.bytes.load(Ordering::Relaxed) }
    }
}

/// A flow as long as the relay carries it. It ends with its drop.
#[derive(Debug)]
pub(super) struct OpenFlow {
    flows: RelayedFlows,
    id: u32,
    carried: Arc<Carried>,
    state: Option<TcpState>,
    /// Keeps the socket until its last counters are read.
    _stream: Option<Arc<TcpStream>>,
}

impl RelayedFlows {
    /// Adds a connection that was accepted from a client.
    pub(super) fn open_stream(&self, client: &Arc<TcpStream>) -> io::Result<OpenFlow> {
        let origin = tuple(client.peer_addr()?, client.local_addr()?, TCP);
        let counts = Counts::Stream(Arc::downgrade(client));
        // A flow that is dropped without a word was given up.
        Ok(self.open(origin, counts, Some(TcpState::Reset), Some(client.clone())))
    }

    /// Adds the datagrams of a client to a destination.
    pub(super) fn open_datagrams(&self, client: SocketAddr, to: SocketAddr) -> OpenFlow {
        let counts = Counts::Datagrams { sent: Count::default(), received: Count::default() };
        self.open(tuple(client, to, UDP), counts, None, None)
    }

    fn open(
        &self,
        origin: Tuple,
        counts: Counts,
        state: Option<TcpState>,
        stream: Option<Arc<TcpStream>>,
    ) -> OpenFlow {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let carried = Arc::new(Carried { origin, begun: Instant::now(), counts });
        self.0.open.lock().insert(id, carried.clone());
        OpenFlow { flows: self.clone(), id, carried, state, _stream: stream }
    }

    /// Returns the flows, and those that have ended since the last call.
    pub fn observe(&self, now: Timestamp) -> RelayedFlowsSeen {
        let open: Vec<(u32, Arc<Carried>)> =
            self.0.open.lock().iter().map(|(id, carried)| (*id, carried.clone())).collect();
        let open = open
            .iter()
            .map(|(id, carried)| {
                let state = (carried.origin.protocol == TCP).then_some(TcpState::Open);
                starting(carried.begun, now, carried.connection(*id, state))
            })
            .collect();
        // Read last: one that ends meanwhile is in both, and its end is taken the next time.
        let is_incomplete = self.0.is_incomplete.swap(false, Ordering::Relaxed);
        let ended = std::mem::take(&mut *self.0.ended.lock());
        let ended = ended.into_iter().map(|(begun, connection)| starting(begun, now, connection)).collect();
        RelayedFlowsSeen { open, ended, is_incomplete }
    }
}

/// Gives a connection the time at which it began.
fn starting(begun: Instant, now: Timestamp, connection: Connection) -> Connection {
    let age = SignedDuration::try_from(begun.elapsed()).unwrap_or_default();
    Connection { started_at: now.checked_sub(age).ok(), ..connection }
}

fn tuple(from: SocketAddr, to: SocketAddr, protocol: u8) -> Tuple {
    Tuple {
        source: from.ip(),
        destination: to.ip(),
        source_port: from.port(),
        destination_port: to.port(),
        protocol,
    }
}

impl Carried {
    fn connection(&self, id: u32, tcp: Option<TcpState>) -> Connection {
        let (sent, received) = match &self.counts {
            Counts::Stream(stream) => {
                let ip = if self.origin.source.is_ipv4() { IPV4_HEADER } else { IPV6_HEADER };
                stream.upgrade().and_then(|stream| traffic_of(&stream, ip)).unzip()
            }
            Counts::Datagrams { sent, received } => (Some(sent.traffic()), Some(received.traffic())),
        };
        let Tuple { source, destination, source_port, destination_port, protocol } = self.origin;
        let reply = Tuple {
            source: destination,
            destination: source,
            source_port: destination_port,
            destination_port: source_port,
            protocol,
        };
        let origin = self.origin;
        Connection { id, origin, reply, started_at: None, sent, received, tcp, is_early: false }
    }

    fn length(&self, content: u64) -> u64 {
        let ip = if self.origin.source.is_ipv4() { IPV4_HEADER } else { IPV6_HEADER };
        ip + UDP_HEADER + content
    }
}

impl OpenFlow {
    /// Notes how the connection ended.
    pub(super) fn end(mut self, state: TcpState) {
        self.state = Some(state);
    }

    /// Counts a datagram of the client by the length of its content.
    pub(super) fn count_sent(&self, content: u64) {
        if let Counts::Datagrams { sent, .. } = &self.carried.counts {
            sent.add(self.carried.length(content));
        }
    }

    /// Counts a datagram to the client by the length of its content.
    pub(super) fn count_received(&self, content: u64) {
        if let Counts::Datagrams { received, .. } = &self.carried.counts {
            received.add(self.carried.length(content));
        }
    }
}

impl Drop for OpenFlow {
    fn drop(&mut self) {
        let connection = self.carried.connection(self.id, self.state);
        let Registry { open, ended, is_incomplete, .. } = &*self.flows.0;
        open.lock().remove(&self.id);
        let mut ended = ended.lock();
        if ended.len() >= MAX_ENDED {
            ended.pop_front();
            is_incomplete.store(true, Ordering::Relaxed);
        }
        ended.push_back((self.carried.begun, connection));
    }
}

/// Beginning of `struct tcp_info` (linux/tcp.h). The kernel only appends to it.
#[repr(C)]
struct TcpInfo {
    states: [u8; 5],
    options: u8,
    scales: [u8; 2],
    times_and_windows: [u32; 24],
    pacing_rates: [u64; 2],
    bytes_acked: u64,
    bytes_received: u64,
    segments_out: u32,
    segments_in: u32,
    others: [u32; 4],
    rates: [u64; 4],
    delivered: [u32; 2],
    bytes_sent: u64,
}

/// TCPI_OPT_TIMESTAMPS
const HAS_TIMESTAMPS: u8 = 1;
const _: () = assert!(offset_of!(TcpInfo, bytes_received) == 128 && offset_of!(TcpInfo, bytes_sent) == 200);

/// Returns the traffic from the client and to it, with headers of this length. `None` if the kernel does not count it.
fn traffic_of(stream: &TcpStream, ip_header: u64) -> Option<(Traffic, Traffic)> {
    // SAFETY: zeroes are a valid value.
    let mut info: TcpInfo = unsafe { zeroed() };
    let mut length = u32::try_from(size_of::<TcpInfo>()).ok()?;
    // SAFETY: the pointers are to a structure of that length and to its length.
    let done = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast::<libc::c_void>(),
            &raw mut length,
        )
    };
    if done != 0 || (length as usize) < size_of::<TcpInfo>() {
        return None;
    }
    let header = ip_header + TCP_HEADER + if info.options & HAS_TIMESTAMPS != 0 { TCP_TIMESTAMPS } else { 0 };
    let traffic = |segments: u32, bytes: u64| Traffic {
        packets: segments.into(),
        bytes: bytes + u64::from(segments) * header,
    };
    Some((traffic(info.segments_in, info.bytes_received), traffic(info.segments_out, info.bytes_sent)))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    fn now() -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    #[tokio::test]
    async fn a_connection_has_the_traffic_of_its_socket_and_ends_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (client, accepted) =
            tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
        let (mut client, accepted) = (client.unwrap(), Arc::new(accepted.unwrap().0));
        let flows = RelayedFlows::default();
        let flow = flows.open_stream(&accepted).unwrap();
        client.write_all(&[1; 1000]).await.unwrap();
        accepted.readable().await.unwrap();
        let mut buffer = [0; 2000];
        let mut got = 0;
        while got < 1000 {
            accepted.readable().await.unwrap();
            got += accepted.try_read(&mut buffer).unwrap_or(0);
        }
        assert_eq!(accepted.try_write(&[2; 500]).unwrap(), 500);
        client.read_exact(&mut buffer[..500]).await.unwrap();

        let seen = flows.observe(now());
        let connection = &seen.open[0];
        assert_eq!((seen.open.len(), seen.ended.len(), connection.tcp), (1, 0, Some(TcpState::Open)));
        assert_eq!(connection.origin.source_port, client.local_addr().unwrap().port());
        let (sent, received) = (connection.sent.unwrap(), connection.received.unwrap());
        assert!(sent.packets >= 2 && sent.bytes >= 1000 + 40 * sent.packets, "{sent:?}");
        assert!(received.packets >= 1 && received.bytes >= 500 + 40 * received.packets, "{received:?}");

        flow.end(TcpState::Closed);
        drop(accepted);
        assert_eq!(client.read(&mut buffer).await.unwrap(), 0, "the socket is closed");
        let seen = flows.observe(now());
        assert_eq!((seen.open.len(), seen.ended.len()), (0, 1));
        let ended = &seen.ended[0];
        assert_eq!(
            (ended.id, ended.tcp, ended.origin),
            (connection.id, Some(TcpState::Closed), connection.origin)
        );
        assert!(ended.sent.unwrap().bytes >= sent.bytes);
        assert!(flows.observe(now()).ended.is_empty());
    }

    #[test]
    fn datagrams_count_with_their_headers() {
        let flows = RelayedFlows::default();
        for (client, to, header) in
            [("192.0.2.1:5", "198.51.100.1:53", 28), ("[2001:db8::1]:5", "[2001:db8::2]:53", 48)]
        {
            let flow = flows.open_datagrams(client.parse().unwrap(), to.parse().unwrap());
            flow.count_sent(10);
            flow.count_sent(0);
            flow.count_received(100);
            let seen = flows.observe(now());
            assert_eq!(seen.open[0].sent, Some(Traffic { packets: 2, bytes: 2 * header + 10 }));
            assert_eq!(seen.open[0].received, Some(Traffic { packets: 1, bytes: header + 100 }));
            assert_eq!(seen.open[0].tcp, None);
        }
        assert_eq!(flows.observe(now()).ended.len(), 1, "the other one was read before");
    }

    #[test]
    fn ended_flows_beyond_the_limit_are_reported_as_lost() {
        let flows = RelayedFlows::default();
        let client = "192.0.2.1:5".parse().unwrap();
        for _ in 0..=MAX_ENDED {
            drop(flows.open_datagrams(client, client));
        }
        let seen = flows.observe(now());
        assert_eq!((seen.ended.len(), seen.is_incomplete), (MAX_ENDED, true));
        assert!(!flows.observe(now()).is_incomplete);
    }
}
