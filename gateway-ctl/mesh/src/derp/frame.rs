//! Frames of the relay protocol: a type, a length of 4 bytes, and content. No I/O.

use thiserror::Error;

use crate::keys::NodeKey;

/// Bytes of type and length.
pub const HEADER: usize = 5;
/// Longest packet that is relayed.
pub const LONGEST_PACKET: usize = 64 << 10;
const LONGEST_CONTENT: usize = LONGEST_PACKET + KEY;
const KEY: usize = 32;
/// The start of the first frame of a server.
const MAGIC: &[u8; 8] = "DERP🔑".as_bytes().first_chunk().expect("8 bytes");

const SERVER_KEY: u8 = 0x01;
const CLIENT_INFO: u8 = 0x02;
const SERVER_INFO: u8 = 0x03;
const SEND_PACKET: u8 = 0x04;
const RECEIVE_PACKET: u8 = 0x05;
const KEEP_ALIVE: u8 = 0x06;
const PREFERRED: u8 = 0x07;
const PEER_GONE: u8 = 0x08;
const PING: u8 = 0x12;
const PONG: u8 = 0x13;

/// A frame that breaks the protocol. It ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    #[error("the frame is longer than the protocol allows")]
    TooLong,
    #[error("the frame has no valid content")]
    Content,
}

/// Type and length of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    kind: u8,
    /// Bytes of content that follow.
    pub length: usize,
}

/// Reads the header of a frame.
pub fn parse_header(header: [u8; HEADER]) -> Result<FrameHeader, FrameError> {
    let [kind, length @ ..] = header;
    let length = usize::try_from(u32::from_be_bytes(length)).map_err(|_| FrameError::TooLong)?;
    if length > LONGEST_CONTENT {
        return Err(FrameError::TooLong);
    }
    Ok(FrameHeader { kind, length })
}

/// A frame of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientFrame<'a> {
    /// Key of the client, and its sealed introduction.
    Info {
        key: NodeKey,
        sealed: &'a [u8],
    },
    /// A packet for another client.
    Send {
        to: NodeKey,
        packet: &'a [u8],
    },
    /// True if this relay is the home of the client.
    Preferred(bool),
    Ping([u8; 8]),
    Pong([u8; 8]),
    /// A frame that this relay has no use for.
    Other,
}

/// Reads the content of a client's frame.
pub fn parse_client(header: FrameHeader, content: &[u8]) -> Result<ClientFrame<'_>, FrameError> {
    if content.len() != header.length {
        return Err(FrameError::Content);
    }
    let key = || content.split_first_chunk::<KEY>().ok_or(FrameError::Content);
    let number = || content.first_chunk::<8>().copied().ok_or(FrameError::Content);
    Ok(match header.kind {
        CLIENT_INFO => key().map(|(key, sealed)| ClientFrame::Info { key: NodeKey(*key), sealed })?,
        SEND_PACKET => {
            let (key, packet) = key()?;
            if packet.len() > LONGEST_PACKET {
                return Err(FrameError::TooLong);
            }
            ClientFrame::Send { to: NodeKey(*key), packet }
        }
        PREFERRED => ClientFrame::Preferred(*content.first().ok_or(FrameError::Content)? != 0),
        PING => ClientFrame::Ping(number()?),
        PONG => ClientFrame::Pong(number()?),
        _ => ClientFrame::Other,
    })
}

impl ClientFrame<'_> {
    /// Appends the frame.
    pub fn write(&self, to: &mut Vec<u8>) {
        match self {
            Self::Info { key, sealed } => frame(CLIENT_INFO, &[&key.0, sealed], to),
            Self::Send { to: peer, packet } => frame(SEND_PACKET, &[&peer.0, packet], to),
            Self::Preferred(is_home) => frame(PREFERRED, &[&[u8::from(*is_home)]], to),
            Self::Ping(number) => frame(PING, &[number], to),
            Self::Pong(number) => frame(PONG, &[number], to),
            // A frame without a meaning has no form.
            Self::Other => {}
        }
    }
}

/// Reason for which a packet cannot reach a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoneReason {
    Disconnected = 0,
    NotHere = 1,
}

/// A frame of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerFrame {
    Key([u8; 32]),
    /// Sealed description of the server.
    Info(Vec<u8>),
    Received {
        from: NodeKey,
        packet: Vec<u8>,
    },
    KeepAlive,
    PeerGone {
        peer: NodeKey,
        reason: GoneReason,
    },
    Ping([u8; 8]),
    Pong([u8; 8]),
}

/// Reads the content of a server's frame; none of those that a client has no use for.
pub fn parse_server(header: FrameHeader, content: &[u8]) -> Result<Option<ServerFrame>, FrameError> {
    if content.len() != header.length {
        return Err(FrameError::Content);
    }
    let key = |content: &[u8]| content.first_chunk::<KEY>().copied().ok_or(FrameError::Content);
    let number = || content.first_chunk::<8>().copied().ok_or(FrameError::Content);
    Ok(Some(match header.kind {
        SERVER_KEY => ServerFrame::Key(key(content.strip_prefix(MAGIC).ok_or(FrameError::Content)?)?),
        SERVER_INFO => ServerFrame::Info(content.to_vec()),
        RECEIVE_PACKET => {
            let packet = content.get(KEY..).ok_or(FrameError::Content)?.to_vec();
            ServerFrame::Received { from: NodeKey(key(content)?), packet }
        }
        KEEP_ALIVE => ServerFrame::KeepAlive,
        PEER_GONE => {
            let reason = match content.get(KEY) {
                Some(1) => GoneReason::NotHere,
                _ => GoneReason::Disconnected,
            };
            ServerFrame::PeerGone { peer: NodeKey(key(content)?), reason }
        }
        PING => ServerFrame::Ping(number()?),
        PONG => ServerFrame::Pong(number()?),
        _ => return Ok(None),
    }))
}

impl ServerFrame {
    /// Appends the frame.
    pub fn write(&self, to: &mut Vec<u8>) {
        match self {
            Self::Key(key) => frame(SERVER_KEY, &[MAGIC, key], to),
            Self::Info(sealed) => frame(SERVER_INFO, &[sealed], to),
            Self::Received { from, packet } => frame(RECEIVE_PACKET, &[&from.0, packet], to),
            Self::KeepAlive => frame(KEEP_ALIVE, &[], to),
            Self::PeerGone { peer, reason } => frame(PEER_GONE, &[&peer.0, &[*reason as u8]], to),
            Self::Ping(number) => frame(PING, &[number], to),
            Self::Pong(number) => frame(PONG, &[number], to),
        }
    }
}

fn frame(kind: u8, parts: &[&[u8]], to: &mut Vec<u8>) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    to.push(kind);
    to.extend(u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    parts.iter().for_each(|part| to.extend_from_slice(part));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(bytes: &[u8]) -> Result<ClientFrame<'_>, FrameError> {
        let (header, content) = bytes.split_first_chunk::<HEADER>().unwrap();
        parse_client(parse_header(*header)?, content)
    }

    #[test]
    fn packet_has_its_destination() {
        let mut bytes = Vec::new();
        frame(SEND_PACKET, &[&[7; 32], b"packet"], &mut bytes);
        assert_eq!(parse(&bytes), Ok(ClientFrame::Send { to: NodeKey([7; 32]), packet: b"packet" }));
    }

    #[test]
    fn server_key_begins_with_the_magic_bytes() {
        let mut bytes = Vec::new();
        ServerFrame::Key([5; 32]).write(&mut bytes);
        assert_eq!(bytes[..13], [1, 0, 0, 0, 40, 0x44, 0x45, 0x52, 0x50, 0xf0, 0x9f, 0x94, 0x91]);
    }

    #[test]
    fn longer_frames_are_refused_by_their_header() {
        assert!(parse_header([SEND_PACKET, 0, 1, 0, 32]).is_ok());
        assert_eq!(parse_header([SEND_PACKET, 0, 1, 0, 33]), Err(FrameError::TooLong));
        assert_eq!(parse_header([0xff; HEADER]), Err(FrameError::TooLong));
    }

    fn any_server_frame() -> impl Strategy<Value = ServerFrame> {
        let key = any::<[u8; 32]>();
        let reason = prop_oneof![Just(GoneReason::Disconnected), Just(GoneReason::NotHere)];
        prop_oneof![
            key.prop_map(ServerFrame::Key),
            any::<Vec<u8>>().prop_map(ServerFrame::Info),
            (key, any::<Vec<u8>>())
                .prop_map(|(from, packet)| ServerFrame::Received { from: NodeKey(from), packet }),
            Just(ServerFrame::KeepAlive),
            (key, reason).prop_map(|(peer, reason)| ServerFrame::PeerGone { peer: NodeKey(peer), reason }),
            any::<[u8; 8]>().prop_map(ServerFrame::Ping),
            any::<[u8; 8]>().prop_map(ServerFrame::Pong),
        ]
    }

    proptest! {
        #[test]
        fn client_reads_what_the_server_writes(sent in any_server_frame()) {
            let mut bytes = Vec::new();
            sent.write(&mut bytes);
            let (header, content) = bytes.split_first_chunk::<HEADER>().unwrap();
            let header = parse_header(*header).unwrap();
            prop_assert_eq!(parse_server(header, content), Ok(Some(sent)));
        }

        #[test]
        fn server_reads_what_the_client_writes(key: [u8; 32], packet: Vec<u8>, number: [u8; 8], is_home: bool) {
            for sent in [
                ClientFrame::Info { key: NodeKey(key), sealed: &packet },
                ClientFrame::Send { to: NodeKey(key), packet: &packet },
                ClientFrame::Preferred(is_home),
                ClientFrame::Pong(number),
            ] {
                let mut bytes = Vec::new();
                sent.write(&mut bytes);
                prop_assert_eq!(parse(&bytes), Ok(sent));
            }
        }

        #[test]
        fn no_bytes_make_the_client_fail(kind: u8, content: Vec<u8>) {
            // A frame is read or refused.
            let _ = parse_server(FrameHeader { kind, length: content.len() }, &content);
        }

        #[test]
        fn no_frame_is_longer_than_its_packet(kind: u8, content in prop::collection::vec(any::<u8>(), 0..200)) {
            let header = FrameHeader { kind, length: content.len() };
            if let Ok(ClientFrame::Send { packet, .. }) = parse_client(header, &content) {
                prop_assert_eq!(packet.len() + 32, content.len());
            }
            let shorter = FrameHeader { kind, length: content.len() + 1 };
            prop_assert_eq!(parse_client(shorter, &content), Err(FrameError::Content));
        }
    }
}
