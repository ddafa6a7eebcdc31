//! Changes of the kernel's state that decide the path of packets: links, addresses, routes, rules, MAC addresses of
//! neighbours and rule sets of nftables. The fast path must not outlive any of them.
//!
//! Unlike the subscription of the facts, it reports each message at once.

use std::collections::{BTreeSet, HashMap};
use std::io;

use rtnetlink::sys::protocols::{NETLINK_NETFILTER, NETLINK_ROUTE};
use rtnetlink::sys::{AsyncSocket, AsyncSocketExt, SocketAddr, TokioSocket};

use super::bpf::EpochChange;
use super::observe::{NFTABLES_GROUP, ROUTING_GROUPS};

const HEADER: usize = 16;
const RTM_NEWLINK: u16 = 16;
const RTM_SETLINK: u16 = 19;
const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const RTM_NEWNEIGH: u16 = 28;
const RTM_DELNEIGH: u16 = 29;
const RTM_GETNEIGH: u16 = 30;
const RTM_NEWRULE: u16 = 32;
const RTM_GETRULE: u16 = 34;

/// `struct ndmsg`: its length, and the offsets of the interface and of the state.
const NEIGHBOUR: usize = 12;
const NEIGHBOUR_INTERFACE: usize = 4;
const NEIGHBOUR_STATE: usize = 8;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
/// NUD_INCOMPLETE and NUD_FAILED: the neighbour has no valid MAC address.
const UNRESOLVED: u16 = 0x01 | 0x20;
/// Maximum number of remembered neighbours. Beyond it, all are forgotten, and the next message of each is a change.
const MAX_NEIGHBOURS: usize = 16_384;
/// A queue for bursts; an overflow is a change as well.
const RECEIVE_BUFFER: usize = 1 << 20;

/// Subscription to the changes.
pub(crate) struct PathChanges {
    routing: TokioSocket,
    nftables: TokioSocket,
    neighbours: Neighbours,
}

impl PathChanges {
    pub(crate) fn open() -> io::Result<PathChanges> {
        let open = |family, groups| {
            let mut socket = TokioSocket::new(family)?;
            let inner = socket.socket_mut();
            inner.set_rx_buf_sz(RECEIVE_BUFFER)?;
            inner.bind(&SocketAddr::new(0, groups))?;
            Ok::<_, io::Error>(socket)
        };
        Ok(PathChanges {
            routing: open(NETLINK_ROUTE, ROUTING_GROUPS)?,
            nftables: open(NETLINK_NETFILTER, NFTABLES_GROUP)?,
            neighbours: Neighbours::default(),
        })
    }

    /// Waits for messages. Returns the changes that they report; there may be none. Lost messages are a change.
    pub(crate) async fn next(&mut self) -> io::Result<BTreeSet<EpochChange>> {
        let (datagram, is_routing) = tokio::select! {
            datagram = self.routing.recv_from_full() => (datagram, true),
            datagram = self.nftables.recv_from_full() => (datagram, false),
        };
        match datagram {
            Ok((datagram, _)) if is_routing => Ok(self.neighbours.classify(&datagram)),
            Ok(_) => Ok([EpochChange::Nftables].into()),
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => Ok([EpochChange::Unknown].into()),
            Err(error) => Err(error),
        }
    }
}

/// MAC addresses of neighbours, by interface and address. Neighbours change their state all the time; only another MAC
/// address is a change of the path.
#[derive(Debug, Default)]
struct Neighbours(HashMap<(u32, Vec<u8>), Vec<u8>>);

impl Neighbours {
    fn classify(&mut self, datagram: &[u8]) -> BTreeSet<EpochChange> {
        messages(datagram).filter_map(|(kind, body)| self.change(kind, body)).collect()
    }

    fn change(&mut self, kind: u16, body: &[u8]) -> Option<EpochChange> {
        match kind {
            RTM_NEWLINK..=RTM_SETLINK => Some(EpochChange::Link),
            RTM_NEWADDR..=RTM_GETADDR => Some(EpochChange::Address),
            RTM_NEWROUTE..=RTM_GETROUTE => Some(EpochChange::Route),
            RTM_NEWRULE..=RTM_GETRULE => Some(EpochChange::Rule),
            // A removed entry is resolved again, and shows its MAC address then.
            RTM_DELNEIGH | RTM_GETNEIGH => None,
            RTM_NEWNEIGH => self.is_moved(body).then_some(EpochChange::Neighbour),
            _ => Some(EpochChange::Unknown),
        }
    }

    fn is_moved(&mut self, body: &[u8]) -> bool {
        let Some(header) = body.get(..NEIGHBOUR) else { return true };
        // Bridges learn addresses of their ports; they forward by them, whichever way a packet came to the bridge.
        if i32::from(header[0]) == libc::AF_BRIDGE {
            return false;
        }
        let word = |at: usize| header.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        let interface = word(NEIGHBOUR_INTERFACE).map_or(0, u32::from_ne_bytes);
        let state = u16::from_ne_bytes([header[NEIGHBOUR_STATE], header[NEIGHBOUR_STATE + 1]]);
        let (mut address, mut mac) = (None, None);
        for (kind, value) in attributes(body.get(NEIGHBOUR..).unwrap_or_default()) {
            match kind {
                NDA_DST => address = Some(value.to_vec()),
                NDA_LLADDR => mac = Some(value.to_vec()),
                _ => {}
            }
        }
        let Some(address) = address else { return true };
        let key = (interface, address);
        let mac = mac.filter(|_| state & UNRESOLVED == 0);
        match mac {
            None => self.0.remove(&key).is_some(),
            Some(mac) => {
                if self.0.len() >= MAX_NEIGHBOURS {
                    self.0.clear();
                }
                // The first message may be about a change, too.
                self.0.insert(key, mac.clone()) != Some(mac)
            }
        }
    }
}

/// Returns the types and bodies of the messages in a datagram.
pub(super) fn messages(mut datagram: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let [l0, l1, l2, l3, t0, t1, ..] = *datagram.first_chunk::<HEADER>()?;
        let length = (u32::from_ne_bytes([l0, l1, l2, l3]) as usize).max(HEADER);
        let body = datagram.get(HEADER..length.min(datagram.len())).unwrap_or_default();
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([t0, t1]), body))
    })
}

/// Returns the types and values of attributes.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    const HEADER: usize = 4;
    std::iter::from_fn(move || {
        let [l0, l1, t0, t1] = *bytes.first_chunk::<HEADER>()?;
        let length = usize::from(u16::from_ne_bytes([l0, l1])).max(HEADER);
        let value = bytes.get(HEADER..length.min(bytes.len())).unwrap_or_default();
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([t0, t1]), value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const REACHABLE: u16 = 2;
    const STALE: u16 = 4;
    const FAILED: u16 = 0x20;

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = u32::try_from(HEADER + body.len()).unwrap().to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.resize(HEADER, 0);
        bytes.extend(body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn neighbour(family: i32, state: u16, last: u8, mac: Option<u8>) -> Vec<u8> {
        let mut body = vec![u8::try_from(family).unwrap(), 0, 0, 0];
        body.extend(3_u32.to_ne_bytes());
        body.extend(state.to_ne_bytes());
        body.extend([0, 1]);
        body.extend([8, 0, 1, 0, 10, 0, 0, last]);
        if let Some(mac) = mac {
            body.extend([10, 0, 2, 0, 2, 0, 0, 0, 0, mac, 0, 0]);
        }
        message(RTM_NEWNEIGH, &body)
    }

    #[test]
    fn only_another_mac_address_of_a_neighbour_is_a_change() {
        let mut neighbours = Neighbours::default();
        let mut moved =
            |state, last, mac| !neighbours.classify(&neighbour(libc::AF_INET, state, last, mac)).is_empty();
        assert!(moved(REACHABLE, 1, Some(1)), "the first message");
        assert!(!moved(STALE, 1, Some(1)) && !moved(REACHABLE, 1, Some(1)), "only its state");
        assert!(moved(REACHABLE, 1, Some(2)), "another card");
        assert!(moved(REACHABLE, 2, Some(2)), "another neighbour");
        assert!(moved(FAILED, 1, None), "it is gone");
        assert!(!moved(FAILED, 1, None), "it was gone");
        assert!(moved(REACHABLE, 1, Some(2)), "it is back");
        assert!(moved(FAILED, 1, Some(2)), "it failed with its former address");
        let bridge = neighbour(libc::AF_BRIDGE, REACHABLE, 9, Some(9));
        assert!(neighbours.classify(&bridge).is_empty());
    }

    #[test]
    fn each_message_has_its_cause() {
        let mut neighbours = Neighbours::default();
        let kinds = [16, 17, 20, 21, 24, 25, 29, 32, 33, 99];
        let datagram: Vec<u8> = kinds.iter().flat_map(|kind| message(*kind, &[0; 12])).collect();
        let expected = [
            EpochChange::Link,
            EpochChange::Address,
            EpochChange::Route,
            EpochChange::Rule,
            EpochChange::Unknown,
        ];
        assert_eq!(neighbours.classify(&datagram), expected.into());
    }

    #[test]
    fn broken_messages_are_changes_and_end() {
        let mut neighbours = Neighbours::default();
        assert_eq!(neighbours.classify(&message(RTM_NEWNEIGH, &[0; 3])), [EpochChange::Neighbour].into());
        let mut lying = neighbour(libc::AF_INET, REACHABLE, 1, Some(1));
        let attribute = HEADER + NEIGHBOUR;
        lying[attribute..attribute + 2].copy_from_slice(&[0xff, 0xff]);
        assert!(neighbours.classify(&lying).is_empty(), "no MAC address that could be another one");
        lying[..4].copy_from_slice(&[0xff; 4]);
        assert!(neighbours.classify(&lying).is_empty());
        assert!(neighbours.classify(&[]).is_empty());
    }
}
