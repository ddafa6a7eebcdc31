//! Target: what clients of the mesh send, before and after their handshake.

use gateway_mesh::derp::frame::{
    ClientFrame, FrameError, HEADER, LONGEST_PACKET, parse_client, parse_header,
};
use gateway_mesh::derp::introduction;
use gateway_mesh::noise::{INITIATION_BYTES, LONGEST_CONTENT, answer, record_bytes};
use gateway_mesh::stun::{Transaction, parse_request, response};
use gateway_mesh::wire::{MapRequest, RegisterRequest};
use gateway_mesh::{KeyPair, NodeKey};

/// Reads the bytes as each kind of message. Checks that none passes for authentic, and that lengths are within the
/// bytes and within the limits of the protocol.
pub fn mesh(data: &[u8]) {
    let identity = KeyPair::of_secret([1; 32]);
    handshake(&identity, data);
    relay(&identity, data);
    stun(data);
    requests(data);
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
