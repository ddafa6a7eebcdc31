//! Listening sockets of the resolver. They open and close while it runs. A socket that cannot be bound is reported and
//! retried; the others serve meanwhile.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::sync::Arc;

use gateway_common::wire::Mark;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::task::AbortHandle;

use super::settings::Listen;
use super::udp::worker::WorkerControl;
use super::{Shared, accept};

/// Size of a socket buffer in bytes: capacity for a burst of some thousand queries.
const BUFFER: usize = 4 << 20;

/// Ports that are tried where the kernel chooses one.
const PORTS: usize = 16;

/// Maximum number of connections that wait for accept(2).
const BACKLOG: i32 = 1024;

/// Status of one listening address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenStatus {
    pub listen: Listen,
    /// Bound address with its actual port, or the error.
    pub udp: Result<SocketAddr, String>,
    pub tcp: Result<SocketAddr, String>,
}

struct BoundSocket {
    udp: Result<(SocketAddr, Vec<Arc<UdpSocket>>), String>,
    tcp: Result<AcceptTask, String>,
}

/// Task that accepts connections. Dropping this value ends the task.
struct AcceptTask {
    address: SocketAddr,
    task: AbortHandle,
}

impl Drop for AcceptTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Default)]
pub(crate) struct Listeners {
    bound: BTreeMap<Listen, BoundSocket>,
    /// Listeners for DoT and DoH.
    secure: BTreeMap<SocketAddr, Result<AcceptTask, String>>,
}

impl Listeners {
    /// Binds the wanted addresses that are not bound yet, and closes those that are not wanted.
    pub(crate) fn set(&mut self, shared: &Arc<Shared>, wanted: &[Listen], workers: &[Arc<WorkerControl>]) {
        self.bound.retain(|listen, _| wanted.contains(listen));
        for listen in wanted {
            let bound = self.bound.remove(listen);
            self.bound.insert(listen.clone(), bind(shared, listen, workers.len(), bound));
        }
        for (index, control) in workers.iter().enumerate() {
            let all = self.bound.values().filter_map(|bound| bound.udp.as_ref().ok());
            control.set(all.filter_map(|(_, sockets)| sockets.get(index).cloned()).collect());
        }
        shared.kernel_filter.set_any_address(self.any_address());
    }

    /// Binds and closes addresses for DoT and DoH, like [`Listeners::set`].
    pub(crate) fn set_secure(&mut self, shared: &Arc<Shared>, wanted: &[SocketAddr]) {
        self.secure.retain(|address, _| wanted.contains(address));
        for address in wanted {
            if !matches!(self.secure.get(address), Some(Ok(_))) {
                let listen = Listen { address: *address, interface: None };
                let bound = match shared.tls.get() {
                    Some(_) => streams(shared, &listen, true).map_err(|error| error.to_string()),
                    None => Err("there is no certificate".to_owned()),
                };
                self.secure.insert(*address, bound);
            }
        }
    }

    /// Reports whether an address could not be bound.
    pub(crate) fn lacking(&self) -> bool {
        let plain = self.bound.values().any(|bound| bound.udp.is_err() || bound.tcp.is_err());
        plain || self.secure.values().any(Result::is_err)
    }

    /// Returns the addresses for DoT and DoH, each with the bound address or the error.
    pub(crate) fn secure(&self) -> Vec<(SocketAddr, Result<SocketAddr, String>)> {
        let status = |bound: &Result<AcceptTask, String>| {
            bound.as_ref().map(|bound| bound.address).map_err(Clone::clone)
        };
        self.secure.iter().map(|(address, bound)| (*address, status(bound))).collect()
    }

    pub(crate) fn status(&self) -> Vec<ListenStatus> {
        let status = |(listen, bound): (&Listen, &BoundSocket)| ListenStatus {
            listen: listen.clone(),
            udp: bound.udp.as_ref().map(|(address, _)| *address).map_err(Clone::clone),
            tcp: bound.tcp.as_ref().map(|bound| bound.address).map_err(Clone::clone),
        };
        self.bound.iter().map(status).collect()
    }

    /// Reports whether a UDP socket takes queries to any address, from any interface, for IPv4 and for IPv6.
    pub(crate) fn any_address(&self) -> [bool; 2] {
        [false, true].map(|ipv6| {
            self.bound.iter().any(|(listen, bound)| {
                let ip = listen.address.ip();
                ip.is_unspecified() && ip.is_ipv6() == ipv6 && listen.interface.is_none() && bound.udp.is_ok()
            })
        })
    }

    pub(crate) fn close(&mut self, workers: &[Arc<WorkerControl>]) {
        self.bound.clear();
        self.secure.clear();
        for control in workers {
            control.set(Vec::new());
        }
    }
}

/// Binds what is not bound yet. With port 0, TCP uses the port that the kernel gave to UDP, and where another program has
/// that one, both use another.
fn bind(shared: &Arc<Shared>, listen: &Listen, workers: usize, bound: Option<BoundSocket>) -> BoundSocket {
    let mut bound = bound.unwrap_or(BoundSocket { udp: Err(String::new()), tcp: Err(String::new()) });
    for _ in 0..PORTS {
        if bound.udp.is_err() {
            bound.udp = datagrams(listen, workers).map_err(|error| error.to_string());
        }
        if bound.tcp.is_err() {
            let port = bound.udp.as_ref().map_or(listen.address.port(), |(address, _)| address.port());
            let listen = Listen { address: SocketAddr::new(listen.address.ip(), port), ..listen.clone() };
            bound.tcp = streams(shared, &listen, false).map_err(|error| error.to_string());
        }
        if listen.address.port() != 0 || bound.udp.is_err() || bound.tcp.is_ok() {
            break;
        }
        bound.udp = Err("the port is in use for TCP".to_owned());
    }
    bound
}

fn socket(listen: &Listen, kind: Type, protocol: Protocol) -> io::Result<Socket> {
    #[expect(
        clippy::disallowed_methods,
        reason = "listens where the daemon says, and answers on the same socket"
    )]
    let socket = Socket::new(Domain::for_address(listen.address), kind, Some(protocol))?;
    socket.set_nonblocking(true)?;
    // The fwmark confines answers to local networks, whatever source address a query claims: they never leave by an
    // uplink. A resolver without the right to set marks runs without a gateway, so an error does not matter.
    let _ = socket.set_mark(Mark::LOCAL.0);
    if listen.address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    if let Some(interface) = &listen.interface {
        socket.bind_device(Some(interface.as_bytes()))?;
    }
    Ok(socket)
}

fn datagrams(listen: &Listen, workers: usize) -> io::Result<(SocketAddr, Vec<Arc<UdpSocket>>)> {
    let mut address = listen.address;
    let mut sockets = Vec::with_capacity(workers);
    for _ in 0..workers {
        let socket = socket(listen, Type::DGRAM, Protocol::UDP)?;
        socket.set_reuse_port(true)?;
        // The relay for proxies sends answers from the addresses of remote resolvers, with this same port.
        socket.set_reuse_address(true)?;
        // The kernel may allow less. Then the socket holds shorter bursts.
        let _ = socket.set_recv_buffer_size(BUFFER);
        let _ = socket.set_send_buffer_size(BUFFER);
        set(&socket, address.is_ipv6(), (libc::IP_PKTINFO, libc::IPV6_RECVPKTINFO), 1)?;
        // Answers are never fragmented: they are short enough, and fragments can be forged. The socket ignores path MTU
        // reports of routers (`IP_PMTUDISC_PROBE`, ip(7)).
        let probe = (libc::IP_MTU_DISCOVER, libc::IPV6_MTU_DISCOVER);
        set(&socket, address.is_ipv6(), probe, libc::IP_PMTUDISC_PROBE)?;
        socket.bind(&address.into())?;
        let socket = UdpSocket::from(socket);
        address.set_port(socket.local_addr()?.port());
        sockets.push(Arc::new(socket));
    }
    Ok((address, sockets))
}

/// Sets a socket option whose name depends on the address family. With `PKTINFO` the kernel reports the local address
/// that each datagram was sent to. The answer leaves from that address.
fn set(socket: &Socket, v6: bool, options: (libc::c_int, libc::c_int), value: libc::c_int) -> io::Result<()> {
    let (level, option) = match v6 {
        true => (libc::IPPROTO_IPV6, options.1),
        false => (libc::IPPROTO_IP, options.0),
    };
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the value is an int that lives until the call returns, and its length is that of an int.
    let done =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), length) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn streams(shared: &Arc<Shared>, listen: &Listen, secure: bool) -> io::Result<AcceptTask> {
    let socket = socket(listen, Type::STREAM, Protocol::TCP)?;
    socket.set_reuse_address(true)?;
    socket.bind(&listen.address.into())?;
    socket.listen(BACKLOG)?;
    let _runtime = shared.runtime.enter();
    let listener = tokio::net::TcpListener::from_std(socket.into())?;
    let address = listener.local_addr()?;
    let (serving, listener) = (Arc::downgrade(shared), Arc::new(listener));
    let start = move || -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (serving, listener) = (serving.upgrade(), listener.clone());
        Box::pin(async move {
            if let Some(shared) = serving {
                accept::accept(shared, &listener, secure).await;
            }
        })
    };
    let name = format!("dns_listener tcp {address}");
    let task = shared.supervisor.restart_until_done(name, Box::new(start)).abort_handle();
    Ok(AcceptTask { address, task })
}
