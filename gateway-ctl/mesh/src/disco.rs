//! Messages by which nodes look for direct paths (disco): sealed with the keys of both ends, on the socket of WireGuard or
//! by the relay. No I/O.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crypto_box::aead::Aead;
use crypto_box::{Nonce, PublicKey, SalsaBox, SecretKey};

use crate::keys::{DiscoKey, KeyPair, NodeKey};

const MAGIC: &[u8; 6] = "TS💬".as_bytes().first_chunk().expect("6 bytes");
const KEY: usize = 32;
const NONCE: usize = 24;
const HEADER: usize = MAGIC.len() + KEY + NONCE;
/// Longest message that is read: a packet of 1280 bytes has no more.
const LONGEST: usize = 1232;
const PING: u8 = 1;
const PONG: u8 = 2;
const CALL_ME_MAYBE: u8 = 3;
/// Version of messages that this module writes. Later versions may have more content at their ends.
const VERSION: u8 = 0;
const ENDPOINT: usize = 18;
/// Endpoints of one message.
const MOST_ENDPOINTS: usize = 32;

/// Number of a ping, which its pong repeats.
pub type Transaction = [u8; 12];

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiscoMessage {
    Ping {
        transaction: Transaction,
        /// Key of the node that sends it. Old clients send none.
        node: Option<NodeKey>,
    },
    Pong {
        transaction: Transaction,
        /// Address from which the ping came.
        source: SocketAddr,
    },
    /// The sender pings these endpoints of the receiver now, and asks for pings to its own ones, so that NATs on both sides let
    /// the packets in.
    CallMeMaybe { endpoints: Vec<SocketAddr> },
}

/// Returns the key of the sender, if a datagram has the form of a message. Only [`open`] proves it.
pub fn sender(datagram: &[u8]) -> Option<DiscoKey> {
    let key = datagram.strip_prefix(MAGIC)?.first_chunk::<KEY>()?;
    (HEADER..=LONGEST).contains(&datagram.len()).then_some(DiscoKey(*key))
}

/// Seals a message for the node with this key.
pub fn seal(own: &KeyPair, to: DiscoKey, message: &DiscoMessage) -> Option<Vec<u8>> {
    let mut nonce = [0; NONCE];
    getrandom::fill(&mut nonce).ok()?;
    let sealed = salsa_box(own, to).encrypt(Nonce::from_slice(&nonce), &*write(message)).ok()?;
    Some([&MAGIC[..], &own.public(), &nonce, &sealed].concat())
}

/// Opens a message of the node with this key.
pub fn open(own: &KeyPair, from: DiscoKey, datagram: &[u8]) -> Option<DiscoMessage> {
    if sender(datagram)? != from {
        return None;
    }
    let (nonce, sealed) = datagram.get(MAGIC.len() + KEY..)?.split_first_chunk::<NONCE>()?;
    parse(&salsa_box(own, from).decrypt(Nonce::from_slice(nonce), sealed).ok()?)
}

fn salsa_box(own: &KeyPair, other: DiscoKey) -> SalsaBox {
    SalsaBox::new(&PublicKey::from(other.0), &SecretKey::from(*own.expose()))
}

fn write(message: &DiscoMessage) -> Vec<u8> {
    match message {
        DiscoMessage::Ping { transaction, node } => {
            let mut text = [&[PING, VERSION][..], transaction].concat();
            text.extend(node.iter().flat_map(|node| node.0));
            text
        }
        DiscoMessage::Pong { transaction, source } => {
            [&[PONG, VERSION][..], transaction, &write_endpoint(*source)].concat()
        }
        DiscoMessage::CallMeMaybe { endpoints } => {
            let endpoints = endpoints.iter().take(MOST_ENDPOINTS);
            [CALL_ME_MAYBE, VERSION].into_iter().chain(endpoints.flat_map(|to| write_endpoint(*to))).collect()
        }
    }
}

/// Reads the content of a message. Unknown kinds are none.
pub fn parse(text: &[u8]) -> Option<DiscoMessage> {
    let (&[kind, _version], content) = text.split_first_chunk::<2>()?;
    match kind {
        PING => {
            let (transaction, rest) = content.split_first_chunk()?;
            let node = rest.first_chunk().copied().map(NodeKey).filter(|key| !key.is_zero());
            Some(DiscoMessage::Ping { transaction: *transaction, node })
        }
        PONG => {
            let (transaction, rest) = content.split_first_chunk()?;
            let source = read_endpoint(rest.first_chunk()?);
            Some(DiscoMessage::Pong { transaction: *transaction, source })
        }
        CALL_ME_MAYBE => {
            let endpoints = content.chunks_exact(ENDPOINT).take(MOST_ENDPOINTS);
            let endpoints = endpoints.filter_map(|bytes| Some(read_endpoint(bytes.first_chunk()?))).collect();
            Some(DiscoMessage::CallMeMaybe { endpoints })
        }
        _ => None,
    }
}

/// Writes an endpoint. IPv4 addresses are mapped into IPv6.
fn write_endpoint(endpoint: SocketAddr) -> [u8; ENDPOINT] {
    let address = match endpoint.ip() {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    let mut bytes = [0; ENDPOINT];
    bytes[..16].copy_from_slice(&address.octets());
    bytes[16..].copy_from_slice(&endpoint.port().to_be_bytes());
    bytes
}

fn read_endpoint(bytes: &[u8; ENDPOINT]) -> SocketAddr {
    let address = bytes.first_chunk::<16>().map_or(Ipv6Addr::UNSPECIFIED, |address| Ipv6Addr::from(*address));
    SocketAddr::new(IpAddr::V6(address).to_canonical(), u16::from_be_bytes([bytes[16], bytes[17]]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs() -> (KeyPair, KeyPair) {
        (KeyPair::of_secret([1; 32]), KeyPair::of_secret([2; 32]))
    }

    fn keys() -> (DiscoKey, DiscoKey) {
        let (one, other) = pairs();
        (DiscoKey(one.public()), DiscoKey(other.public()))
    }

    fn any_endpoint() -> impl Strategy<Value = SocketAddr> {
        let v4 = any::<([u8; 4], u16)>().prop_map(SocketAddr::from);
        let v6 = any::<([u8; 16], u16)>().prop_map(SocketAddr::from);
        prop_oneof![v4, v6]
            .prop_map(|endpoint| SocketAddr::new(endpoint.ip().to_canonical(), endpoint.port()))
    }

    fn any_message() -> impl Strategy<Value = DiscoMessage> {
        let node = prop::option::of(any::<[u8; 32]>().prop_map(|mut key| {
            key[0] |= 1;
            NodeKey(key)
        }));
        prop_oneof![
            (any::<Transaction>(), node)
                .prop_map(|(transaction, node)| DiscoMessage::Ping { transaction, node }),
            (any::<Transaction>(), any_endpoint())
                .prop_map(|(transaction, source)| DiscoMessage::Pong { transaction, source }),
            prop::collection::vec(any_endpoint(), 0..=MOST_ENDPOINTS)
                .prop_map(|endpoints| DiscoMessage::CallMeMaybe { endpoints }),
        ]
    }

    proptest! {
        #[test]
        fn message_comes_out_as_it_went_in(message in any_message()) {
            let ((own, other), (from, to)) = (pairs(), keys());
            let datagram = seal(&own, to, &message).unwrap();
            prop_assert_eq!(sender(&datagram), Some(from));
            prop_assert_eq!(open(&other, from, &datagram), Some(message));
        }

        #[test]
        fn changed_messages_do_not_open(message in any_message(), at: prop::sample::Index, bit in 0..8_u8) {
            let ((own, other), (from, to)) = (pairs(), keys());
            let mut datagram = seal(&own, to, &message).unwrap();
            let at = at.index(datagram.len());
            datagram[at] ^= 1 << bit;
            prop_assert_eq!(open(&other, from, &datagram), None);
        }

        #[test]
        fn no_bytes_pass_for_a_message(bytes: Vec<u8>) {
            let from = keys().0;
            let with_header = [&MAGIC[..], &from.0, &bytes].concat();
            prop_assert_eq!(open(&pairs().1, from, &bytes), None);
            prop_assert_eq!(open(&pairs().1, from, &with_header), None);
            parse(&bytes);
        }
    }
}
