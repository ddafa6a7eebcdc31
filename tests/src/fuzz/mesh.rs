//! Target: what clients of the mesh send, before and after their handshake, and what members of one receive.

use std::time::Duration;

use gateway_mesh::derp::frame::{
    ClientFrame, FrameError, HEADER, LONGEST_PACKET, ServerFrame, parse_client, parse_header, parse_server,
};
use gateway_mesh::derp::introduction;
use gateway_mesh::network_map::NetworkMap;
use gateway_mesh::noise::{
    INITIATION_BYTES, LONGEST_CONTENT, RESPONSE_BYTES, answer, initiate, record_bytes,
};
use gateway_mesh::packet_filter::{PacketFilter, UdpFlows};
use gateway_mesh::stun::{Transaction, parse_request, parse_response, response};
use gateway_mesh::wire::{ControlKeys, FilterRule, MapRequest, RegisterRequest, RegisterResponse};
use gateway_mesh::{DiscoKey, KeyPair, MachineKey, MapReader, NodeKey, disco};

/// Reads the bytes as each kind of message. Checks that none passes for authentic, and that lengths are within the
/// bytes and within the limits of the protocol.
pub fn mesh(data: &[u8]) {
    let identity = KeyPair::of_secret([1; 32]);
    handshake(&identity, data);
    relay(&identity, data);
    stun(data);
    requests(data);
    coordinator(&identity, data);
    peers(&identity, data);
}

/// Reads the bytes as messages of a coordinator and a relay to a member.
fn coordinator(identity: &KeyPair, data: &[u8]) {
    let mut response = [&[2, 0, 48][..], data].concat();
    response.resize(RESPONSE_BYTES, 0);
    let (_, initiator) = initiate(identity, MachineKey(identity.public()), 113).expect("a first message");
    assert!(initiator.finish(&response).is_err(), "a response without knowledge of a key");
    let length = u32::try_from(data.len()).expect("few").to_le_bytes();
    for bytes in [data, &[&length[..], data].concat()] {
        let (mut reader, mut map) = (MapReader::default(), NetworkMap::default());
        reader.receive(bytes);
        while let Ok(Some(message)) = reader.next_message() {
            map.apply(message);
        }
        let filter = PacketFilter::new(map.filter_rules(), Vec::new());
        assert!(
            !filter.admits(data, &UdpFlows::default(), Duration::ZERO),
            "a packet for a host without addresses"
        );
    }
    for parsed in [
        serde_json::from_slice::<ControlKeys>(data).is_ok(),
        serde_json::from_slice::<RegisterResponse>(data).is_ok(),
    ] {
        assert!(!parsed || data.contains(&b'{'), "a message that is no object");
    }
    let Some((header, content)) = data.split_first_chunk::<HEADER>() else { return };
    let Ok(header) = parse_header(*header) else { return };
    let Some(content) = content.get(..header.length) else { return };
    if let Ok(Some(frame)) = parse_server(header, content) {
        if let ServerFrame::Info(sealed) = &frame {
            assert!(
                introduction::open_relay(identity, identity.public(), sealed).is_err(),
                "a relay without a key"
            );
        }
        let mut written = Vec::new();
        frame.write(&mut written);
        assert!(written.len() <= HEADER + content.len().max(33), "a frame grows");
    }
}

/// Reads the bytes as messages of peers and STUN servers to a member.
fn peers(identity: &KeyPair, data: &[u8]) {
    if let Some(from) = disco::sender(data) {
        assert_eq!(disco::open(identity, from, data), None, "a message without knowledge of a key");
    }
    assert_eq!(disco::open(identity, DiscoKey([7; 32]), data), None);
    // Not sealed, as the owner of a key could send it.
    disco::parse(data);
    parse_response(data);
    let length = u16::try_from(data.len() % 60_000).expect("few").to_be_bytes();
    let answer = [&[1, 1][..], &length, &[0x21, 0x12, 0xa4, 0x42], &[7; 12], data].concat();
    if let Some((transaction, _)) = parse_response(&answer) {
        assert_eq!(transaction, Transaction([7; 12]));
    }
    let nothing = PacketFilter::new([].iter().map(|rule: &FilterRule| rule), Vec::new());
    let mut flows = UdpFlows::default();
    flows.sent(data, Duration::ZERO);
    assert!(!nothing.admits(data, &flows, Duration::ZERO), "a packet for another host");
}

fn handshake(identity: &KeyPair, data: &[u8]) {
    let mut initiation = [&[0, 130, 1, 0, 96][..], data].concat();
    initiation.resize(INITIATION_BYTES, 0);
    for message in [data, &initiation] {
        assert!(answer(identity, message).is_err(), "a handshake without knowledge of a key");
    }
    if let Ok(Some(length)) = record_bytes(data) {
        assert!((3 + 16..=3 + 16 + LONGEST_CONTENT).contains(&length), "{length}");
    }
}

fn relay(identity: &KeyPair, data: &[u8]) {
    let Some((header, content)) = data.split_first_chunk::<HEADER>() else { return };
    let Ok(header) = parse_header(*header) else { return };
    let Some(content) = content.get(..header.length) else {
        assert_eq!(parse_client(header, content), Err(FrameError::Content), "a cut frame");
        return;
    };
    match parse_client(header, content) {
        Ok(ClientFrame::Send { packet, .. }) => {
            assert!(packet.len() <= LONGEST_PACKET && packet.len() + 32 == content.len());
        }
        Ok(ClientFrame::Info { key, sealed }) => {
            assert!(introduction::open(identity, key, sealed).is_err(), "an introduction without a key");
        }
        _ => {}
    }
}

fn stun(data: &[u8]) {
    let attributes = &data[..data.len().min(200)];
    let length = u16::try_from(attributes.len()).expect("few").to_be_bytes();
    let whole = [&[0, 1][..], &length, &[0x21, 0x12, 0xa4, 0x42], &[7; 12], attributes].concat();
    if let Some(transaction) = parse_request(&whole) {
        assert_eq!(transaction, Transaction([7; 12]));
        assert_eq!(parse_request(&whole[..whole.len() - 1]), None, "a cut request");
    }
    if let Some(transaction) = parse_request(data) {
        let answer = response(transaction, ([192, 0, 2, 1], 3478).into());
        assert!(answer.len() <= data.len() + 12, "the answer amplifies");
        assert_eq!(parse_request(&answer), None, "an answer is no request");
    }
}

fn requests(data: &[u8]) {
    if let Ok(request) = serde_json::from_slice::<RegisterRequest>(data) {
        let key = request.node_key.to_string();
        assert_eq!(NodeKey::try_from(key), Ok(request.node_key));
    }
    if let Ok(request) = serde_json::from_slice::<MapRequest>(data) {
        let routes = request.hostinfo.routable_ips;
        assert!(routes.iter().all(|route| route.prefix_len() <= route.max_prefix_len()));
    }
}
