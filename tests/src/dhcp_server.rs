//! A DHCP server of the tests (RFC 2131) that offers whatever a test wants, as a hostile network does.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use ipnet::Ipv4Net;
use socket2::{Domain, Socket, Type};

use crate::netns::Namespace;

const SERVER_PORT: u16 = 67;
const CLIENT_PORT: u16 = 68;
const ATTENTION: Duration = Duration::from_millis(100);
/// Length of the fields before the options, and the cookie behind them.
const FIXED: usize = 236;
const COOKIE: [u8; 4] = [99, 130, 83, 99];
const DISCOVER: u8 = 1;
const OFFER: u8 = 2;
const REQUEST: u8 = 3;
const ACK: u8 = 5;
const NAK: u8 = 6;
const RELEASE: u8 = 7;

/// Content of the answers.
#[derive(Clone, Debug)]
pub struct Offer {
    pub address: Ipv4Net,
    pub router: Option<Ipv4Addr>,
    pub dns: Vec<Ipv4Addr>,
    /// Classless static routes (RFC 3442), sent whether the client asks for them or not.
    pub routes: Vec<(Ipv4Net, Ipv4Addr)>,
    pub lease_sec: u32,
    pub mtu: Option<u16>,
}

impl Offer {
    /// Returns an offer of this address with a lease of an hour.
    pub fn of(address: Ipv4Net) -> Offer {
        Offer { address, router: None, dns: Vec::new(), routes: Vec::new(), lease_sec: 3600, mtu: None }
    }
}

/// A running server. Dropping it ends it.
#[derive(Debug)]
pub struct DhcpServer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    own: Ipv4Addr,
    offer: Mutex<Option<Offer>>,
    /// Codes of the options that clients asked for.
    requested: Mutex<BTreeSet<u8>>,
    acknowledged: AtomicU64,
    released: AtomicU64,
    ending: AtomicBool,
}

impl DhcpServer {
    /// Starts the server at an interface of the namespace. `own` is its address there.
    pub fn start(namespace: &Namespace, interface: &str, own: Ipv4Addr, offer: Offer) -> Result<Self> {
        let socket = namespace.within(|| -> Result<UdpSocket> {
            let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
            socket.set_reuse_address(true)?;
            socket.bind_device(Some(interface.as_bytes()))?;
            socket.set_broadcast(true)?;
            socket.bind(&SocketAddr::from(([0, 0, 0, 0], SERVER_PORT)).into())?;
            Ok(socket.into())
        });
        let socket = socket.context("DHCP server")?;
        socket.set_read_timeout(Some(ATTENTION)).context("DHCP server")?;
        let shared = Arc::new(Shared {
            own,
            offer: Mutex::new(Some(offer)),
            requested: Mutex::default(),
            acknowledged: AtomicU64::new(0),
            released: AtomicU64::new(0),
            ending: AtomicBool::new(false),
        });
        let server = shared.clone();
        let thread = std::thread::spawn(move || server.serve(&socket));
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Sets the content of the answers. `None` silences the server.
    pub fn offer(&self, offer: Option<Offer>) {
        *lock(&self.shared.offer) = offer;
    }

    /// Returns the number of leases that were acknowledged, renewals included.
    pub fn acknowledged(&self) -> u64 {
        self.shared.acknowledged.load(Ordering::Relaxed)
    }

    pub fn released(&self) -> u64 {
        self.shared.released.load(Ordering::Relaxed)
    }

    /// Returns the codes of the options that clients asked for.
    pub fn requested(&self) -> BTreeSet<u8> {
        lock(&self.shared.requested).clone()
    }
}

impl Drop for DhcpServer {
    fn drop(&mut self) {
        self.shared.ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the server shows as missing answers.
            let _ = thread.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn serve(&self, socket: &UdpSocket) {
        let mut buffer = [0; 1500];
        while !self.ending.load(Ordering::Relaxed) {
            let Ok((length, _)) = socket.recv_from(&mut buffer) else { continue };
            let Some(answer) = self.answer(&buffer[..length]) else { continue };
            // A client without an address hears broadcasts only; one that lost the answer asks again.
            let _ = socket.send_to(&answer, (Ipv4Addr::BROADCAST, CLIENT_PORT));
        }
    }

    fn answer(&self, query: &[u8]) -> Option<Vec<u8>> {
        let options = query.get(FIXED + COOKIE.len()..)?;
        let kind = *option(options, 53)?.first()?;
        lock(&self.requested).extend(option(options, 55).unwrap_or_default());
        if kind == RELEASE {
            self.released.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let offer = lock(&self.offer).clone()?;
        let wanted = option(options, 50).map(|bytes| bytes.to_vec());
        let renewed = query.get(12..16).filter(|address| *address != [0; 4]).map(<[u8]>::to_vec);
        let fits = wanted.or(renewed).is_none_or(|address| address == offer.address.addr().octets());
        let answer = match kind {
            DISCOVER => OFFER,
            REQUEST if fits => ACK,
            REQUEST => NAK,
            _ => return None,
        };
        if answer == ACK {
            self.acknowledged.fetch_add(1, Ordering::Relaxed);
        }
        Some(self.message(query, answer, &offer))
    }

    fn message(&self, query: &[u8], kind: u8, offer: &Offer) -> Vec<u8> {
        let mut message = query[..FIXED].to_vec();
        message[0] = 2;
        let address = if kind == NAK { [0; 4] } else { offer.address.addr().octets() };
        message[16..20].copy_from_slice(&address);
        message[20..24].copy_from_slice(&self.own.octets());
        // Names of server and file are not used.
        message[44..FIXED].fill(0);
        message.extend(COOKIE);
        let mut put = |code: u8, value: &[u8]| {
            message.extend([code, u8::try_from(value.len()).expect("a short option")]);
            message.extend(value);
        };
        put(53, &[kind]);
        put(54, &self.own.octets());
        if kind != NAK {
            put(51, &offer.lease_sec.to_be_bytes());
            put(1, &offer.address.netmask().octets());
            if let Some(router) = offer.router {
                put(3, &router.octets());
            }
            if !offer.dns.is_empty() {
                put(6, &offer.dns.iter().flat_map(Ipv4Addr::octets).collect::<Vec<u8>>());
            }
            if let Some(mtu) = offer.mtu {
                put(26, &mtu.to_be_bytes());
            }
            if !offer.routes.is_empty() {
                put(121, &offer.routes.iter().flat_map(classless).collect::<Vec<u8>>());
            }
        }
        message.push(255);
        message
    }
}

/// Encodes a route (RFC 3442): prefix length, the significant bytes of the destination, and the router.
fn classless((destination, router): &(Ipv4Net, Ipv4Addr)) -> Vec<u8> {
    let length = destination.prefix_len();
    let significant = usize::from(length.div_ceil(8));
    let mut route = vec![length];
    route.extend(&destination.network().octets()[..significant]);
    route.extend(router.octets());
    route
}

/// Returns the value of an option.
fn option(options: &[u8], wanted: u8) -> Option<&[u8]> {
    let mut rest = options;
    loop {
        match *rest.first()? {
            0 => rest = &rest[1..],
            255 => return None,
            code => {
                let length = usize::from(*rest.get(1)?);
                let value = rest.get(2..2 + length)?;
                if code == wanted {
                    return Some(value);
                }
                rest = &rest[2 + length..];
            }
        }
    }
}
