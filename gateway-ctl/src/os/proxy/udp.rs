//! Datagrams of LAN hosts through a proxy.
//!
//! Each source port of a host has an association with the proxy (RFC 1928, section 7). Each of its destinations has a
//! socket with the destination's address. Further datagrams of the host arrive at that socket directly, and replies
//! leave through it. Replies from other senders than those destinations are dropped.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gateway_common::wire::Mark;
use gateway_core::indexes::{LegId, ProxyIndex};
use gateway_outbound::socks5::{Destination, datagram_header, read_datagram};
use gateway_outbound::{KernelSockets, associate as associate_with_proxy};
use parking_lot::Mutex;
use socket2::{Protocol, SockRef, Type};
use tokio::io::Interest;
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::associations::{Datagram, Key};
use super::connect_error::ConnectError;
use super::flows::{OpenFlow, RelayedFlows};
use super::shared::Shared;
use super::sockets::{DatagramMeta, receive, transparent};
use super::target::Admission;

/// Idle timeout. RFC 4787, requirement 5: at least two minutes.
const IDLE: Duration = Duration::from_secs(150);
/// Idle timeout for DNS. A query to a name server is answered soon or not at all.
const IDLE_DNS: Duration = Duration::from_secs(20);
const DNS: u16 = 53;
const TIMEOUT: Duration = Duration::from_secs(10);
/// Time after a failure in which datagrams from the same port are dropped.
const RETRY_INTERVAL: Duration = Duration::from_secs(3);
/// Largest number of destinations for one source port.
const DESTINATIONS: usize = 512;
const MOST_DATAGRAM: usize = 65_536;

thread_local! {
    /// Transfer buffer for datagrams. No task waits while it is in use.
    static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; MOST_DATAGRAM].into());
}

/// Receives datagrams until the task is aborted.
pub(super) async fn listen(listener: Arc<UdpSocket>, shared: Arc<Shared>) {
    while listener.readable().await.is_ok() {
        let received = listener.try_io(Interest::READABLE, || {
            BUFFER.with_borrow_mut(|buffer| {
                let arrival = receive(&listener, buffer)?;
                Ok((arrival, Box::<[u8]>::from(&buffer[..arrival.length])))
            })
        });
        match received {
            Ok((arrival, content)) => admit(arrival, content, &shared),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // An error about an earlier datagram does not concern this socket.
            Err(error) => tracing::debug!(%error, "failed to read a datagram for a proxy"),
        }
    }
}

fn admit(arrival: DatagramMeta, content: Box<[u8]>, shared: &Arc<Shared>) {
    let DatagramMeta { from, to, mark, .. } = arrival;
    let proxied = mark.as_proxy().filter(|_| mark.0 & Mark::PROXY_TAKEN != 0);
    let Some((number, leg)) = proxied else { return };
    let key = (from, number, leg);
    let Err(datagram) = shared.associations.enqueue(&key, (to, content)) else { return };
    let Some(admission) = ProxyIndex::new(number)
        .and_then(|proxy| shared.target(proxy))
        .and_then(|target| target.admit_flow(LegId::new(leg), &shared.budget))
    else {
        return;
    };
    let waiting = shared.associations.open(key);
    // The queue has capacity for the first one.
    let _ = shared.associations.enqueue(&key, datagram);
    tokio::spawn(associate(key, mark, admission, waiting, shared.clone()));
}

async fn associate(
    key: Key,
    mark: Mark,
    admission: Admission,
    mut waiting: mpsc::Receiver<Datagram>,
    shared: Arc<Shared>,
) {
    let opened = tokio::select! {
        opened = open(&admission) => opened,
        () = admission.gate.closed() => return shared.associations.close(&key, waiting),
    };
    match opened {
        Ok((control, upstream)) => {
            let flow = Association { client: key.0, mark, control, upstream: Arc::new(upstream) };
            let ended = flow.forward(&admission, &mut waiting, &shared.flows).await;
            tracing::trace!(client = %key.0, ended, "an association ended");
        }
        Err(error) => {
            admission.counters.failed.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(proxy = %admission.to.name, %error, "failed to open a UDP association");
            shared.report_failure(&admission);
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }
    shared.associations.close(&key, waiting);
}

async fn open(admission: &Admission) -> Result<(TcpStream, UdpSocket), ConnectError> {
    let address = admission.to.address.ok_or(ConnectError::NoAddress)?;
    let through = associate_with_proxy(
        &KernelSockets::PATIENT,
        address,
        Some(LegId::host_mark(admission.leg)),
        admission.login(),
    );
    Ok(tokio::time::timeout(TIMEOUT, through).await.map_err(|_| ConnectError::Silent)??)
}

fn header_to(to: SocketAddr) -> Vec<u8> {
    // An address always fits.
    datagram_header(&Destination::Address(to)).unwrap_or_default()
}

/// Socket with the address of a destination, for one host.
struct DatagramFlow {
    socket: UdpSocket,
    logged: OpenFlow,
}

struct Association {
    client: SocketAddr,
    /// Fwmark of the first datagram. Replies carry it, too.
    mark: Mark,
    control: TcpStream,
    upstream: Arc<UdpSocket>,
}

impl Association {
    /// Forwards datagrams in both directions. Returns the reason for the end.
    async fn forward(
        &self,
        admission: &Admission,
        waiting: &mut mpsc::Receiver<Datagram>,
        log: &RelayedFlows,
    ) -> &'static str {
        let mut flows: HashMap<SocketAddr, Arc<DatagramFlow>> = HashMap::new();
        // Each reader handles datagrams from the host to one destination, and ends with the association.
        let mut readers: JoinSet<SocketAddr> = JoinSet::new();
        let counters = admission.counters.clone();
        let active = Arc::new(Mutex::new(Instant::now()));
        let touch = |active: &Mutex<Instant>| *active.lock() = Instant::now();
        let mut only_dns = true;
        loop {
            let idle = if only_dns { IDLE_DNS } else { IDLE };
            let end = *active.lock() + idle;
            tokio::select! {
                datagram = waiting.recv() => {
                    let Some((to, content)) = datagram else { return "nobody sends" };
                    touch(&active);
                    only_dns &= to.port() == DNS;
                    if !flows.contains_key(&to) && flows.len() < DESTINATIONS {
                        // Without a permit the datagram is still sent, but its reply cannot be delivered.
                        match admission.budget.take(1).map(|place| (place, self.flow(to, log))) {
                            None => drop(counters.over_limit.fetch_add(1, Ordering::Relaxed)),
                            Some((place, Ok(flow))) => {
                                let flow = Arc::new(flow);
                                flows.insert(to, flow.clone());
                                let (upstream, active, counters) = (self.upstream.clone(), active.clone(), counters.clone());
                                readers.spawn(async move {
                                    let _place = place;
                                    let header = header_to(to);
                                    while let Ok(bytes) = up(&flow, &upstream, &header).await {
                                        counters.traffic.up.fetch_add(bytes, Ordering::Relaxed);
                                        touch(&active);
                                    }
                                    to
                                });
                            }
                            Some((_, Err(error))) => tracing::debug!(%to, %error, "failed to open a socket for a flow"),
                        }
                    }
                    counters.traffic.up.fetch_add(content.len() as u64, Ordering::Relaxed);
                    match flows.get(&to) {
                        Some(flow) => flow.logged.count_sent(content.len() as u64),
                        // Without a socket it is a flow of its own, which ends here.
                        None => log.open_datagrams(self.client, to).count_sent(content.len() as u64),
                    }
                    // A full socket loses datagrams, as any queue does.
                    let _ = send(&self.upstream, &header_to(to), &content);
                }
                got = down(&self.upstream, &flows) => match got {
                    Ok(bytes) => {
                        counters.traffic.down.fetch_add(bytes, Ordering::Relaxed);
                        touch(&active);
                    }
                    Err(_) => return "the proxy's socket is gone",
                },
                Some(ended) = readers.join_next() => if let Ok(to) = ended { drop(flows.remove(&to)) },
                // The end of this connection ends the association (RFC 1928, section 6).
                () = over(&self.control) => return "the proxy ended it",
                () = admission.gate.closed() => return "its way is gone",
                () = tokio::time::sleep_until(end) => {
                    if active.lock().elapsed() >= idle {
                        return "idle";
                    }
                }
            }
        }
    }

    /// Creates a socket with a destination's address, for one host.
    fn flow(&self, to: SocketAddr, log: &RelayedFlows) -> io::Result<DatagramFlow> {
        let socket = transparent(to, Type::DGRAM, Protocol::UDP)?;
        socket.set_mark(self.mark.0)?;
        socket.bind(&to.into())?;
        socket.connect(&self.client.into())?;
        let socket = UdpSocket::from_std(socket.into())?;
        Ok(DatagramFlow { socket, logged: log.open_datagrams(self.client, to) })
    }
}

/// Forwards one datagram from a host to the proxy. Returns its length.
async fn up(flow: &DatagramFlow, upstream: &UdpSocket, header: &[u8]) -> io::Result<u64> {
    loop {
        flow.socket.readable().await?;
        let moved = BUFFER.with_borrow_mut(|buffer| {
            let length = flow.socket.try_recv(buffer)?;
            flow.logged.count_sent(length as u64);
            let _ = send(upstream, header, &buffer[..length]);
            Ok::<_, io::Error>(length as u64)
        });
        match moved {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            outcome => return outcome,
        }
    }
}

/// Forwards one datagram from the proxy to the host. Returns its length, or 0 if it had no recipient.
async fn down(upstream: &UdpSocket, flows: &HashMap<SocketAddr, Arc<DatagramFlow>>) -> io::Result<u64> {
    loop {
        upstream.readable().await?;
        let moved = BUFFER.with_borrow_mut(|buffer| {
            let length = upstream.try_recv(buffer)?;
            let content = read_datagram(&buffer[..length]);
            let Some((flow, start)) = content.and_then(|(from, start)| Some((flows.get(&from?)?, start)))
            else {
                return Ok(0);
            };
            let _ = send(&flow.socket, &[], &buffer[start..length]);
            flow.logged.count_received((length - start) as u64);
            Ok::<_, io::Error>((length - start) as u64)
        });
        match moved {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            outcome => return outcome,
        }
    }
}

/// Sends without the runtime, which takes a new socket for full until its first readiness event.
pub(crate) fn send(socket: &UdpSocket, header: &[u8], content: &[u8]) -> io::Result<usize> {
    SockRef::from(socket).send_vectored(&[IoSlice::new(header), IoSlice::new(content)])
}

/// Returns when a connection has ended. Data that arrives on it is ignored.
pub(crate) async fn over(control: &TcpStream) {
    let mut ignored = [0; 64];
    while control.readable().await.is_ok() {
        match control.try_read(&mut ignored) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}
