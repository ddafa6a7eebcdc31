//! Target: messages of DHCPv6.

use std::time::Duration;

use gateway_core::dhcp6::stateless::{StatelessSettings, answer};
use gateway_core::dhcp6::{Kind, Message, duid};
use gateway_core::state_machines::prefix_delegation::PrefixDelegation;

const CLIENT: [u8; 6] = [2, 0, 0, 0, 0, 1];
const SERVER: [u8; 6] = [2, 0, 0, 0, 0, 9];
/// Messages of an input that are used.
const MAX_MESSAGES: usize = 32;

/// Reads the bytes as a request to the stateless server, and as messages of servers to a client of prefix delegation:
/// behind the length of each (two bytes) are the seconds that pass before it (two bytes). A message of a known type gets
/// the transaction that the client waits for.
pub fn dhcp6(data: &[u8]) {
    let settings = StatelessSettings {
        resolvers: vec!["fd00::1".parse().expect("an address")],
        domains: vec!["lan".to_owned()],
        refresh: 1800,
    };
    if let Some(reply) = answer(data, &duid(SERVER), &settings) {
        let (request, reply) = (Message::parse(data).expect("read"), Message::parse(&reply).expect("valid"));
        assert_eq!((request.kind, reply.kind), (Kind::InformationRequest, Kind::Reply));
        assert_eq!(request.transaction, reply.transaction);
    }
    if let Some(message) = Message::parse(data) {
        assert_eq!(message.bytes(), data);
    }
    converse(data);
}

fn converse(mut data: &[u8]) {
    let mut now = Duration::ZERO;
    let mut client = PrefixDelegation::new(duid(CLIENT), None, now);
    for _ in 0..MAX_MESSAGES {
        let transaction = transmit(&mut client, now);
        let Some(([high, low, pause @ ..], rest)) = data.split_first_chunk::<4>() else { return };
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
        let (datagram, rest) = rest.split_at(length);
        data = rest;
        now += Duration::from_secs(u16::from_be_bytes(*pause).into());
        let transaction = transmit(&mut client, now).or(transaction);
        let mut datagram = datagram.to_vec();
        if let (Some(transaction), Some(bytes)) = (transaction, datagram.get_mut(1..4)) {
            bytes.copy_from_slice(&transaction.to_be_bytes()[1..]);
        }
        client.handle_datagram(&datagram, now);
        if let Some(lease) = client.lease() {
            assert!(lease.valid_until > now && lease.net.prefix_len() <= 64, "{lease:?} at {now:?}");
        }
    }
}

/// Sends what is due. Returns the transaction of the last message.
fn transmit(client: &mut PrefixDelegation, now: Duration) -> Option<u32> {
    let mut transaction = None;
    for turn in 0.. {
        if client.poll_timeout() > now {
            break;
        }
        assert!(turn < 4, "no pause: {client:?} at {now:?}");
        if let Some(sent) = client.poll_transmit(|| 0.5, now) {
            transaction = Some(Message::parse(&sent).expect("valid").transaction);
        }
    }
    transaction
}
