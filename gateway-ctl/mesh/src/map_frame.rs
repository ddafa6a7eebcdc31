//! A message of the stream of maps: its length in 4 bytes, and JSON, which zstd compresses if the client wants so. No I/O.

use bytes::{Buf, BytesMut};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use thiserror::Error;

use crate::wire::MapResponse;

const HEADER: usize = 4;
/// Longest message that a client reads: the map of some 10 000 nodes.
const LONGEST_MESSAGE: usize = 16 << 20;

/// A stream of maps that cannot be read any further.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MapFrameError {
    #[error("a map is longer than {LONGEST_MESSAGE} bytes")]
    TooLong,
    /// Place of the error. The text of the map is not repeated: it is long.
    #[error("a map is invalid at line {line}, column {column}")]
    Json { line: usize, column: usize },
}

/// Writes a message of the stream.
pub(crate) fn map_frame(response: &MapResponse, zstd: bool) -> serde_json::Result<Vec<u8>> {
    let mut content = serde_json::to_vec(response)?;
    if zstd {
        content = compress_to_vec(&*content, CompressionLevel::Fastest);
    }
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    Ok([&length.to_le_bytes()[..], &content].concat())
}

/// Reads the messages of a stream without compression.
#[derive(Debug, Default)]
pub struct MapReader {
    received: BytesMut,
}

impl MapReader {
    /// Takes bytes of the stream.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
    }

    /// Returns the next message, once it is whole.
    pub fn next_message(&mut self) -> Result<Option<MapResponse>, MapFrameError> {
        let Some(header) = self.received.first_chunk::<HEADER>() else { return Ok(None) };
        let length = usize::try_from(u32::from_le_bytes(*header)).map_err(|_| MapFrameError::TooLong)?;
        if length > LONGEST_MESSAGE {
            return Err(MapFrameError::TooLong);
        }
        let Some(content) = self.received.get(HEADER..HEADER + length) else { return Ok(None) };
        let message = serde_json::from_slice(content)
            .map_err(|error| MapFrameError::Json { line: error.line(), column: error.column() })?;
        self.received.advance(HEADER + length);
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use proptest::prelude::*;
    use ruzstd::decoding::StreamingDecoder;

    use super::*;

    #[test]
    fn message_has_its_length_and_comes_back() {
        let response = MapResponse { domain: "mesh ".repeat(2000), ..MapResponse::default() };
        let plain = map_frame(&response, false).unwrap();
        assert_eq!(plain[..4], u32::try_from(plain.len() - 4).unwrap().to_le_bytes());
        let short = map_frame(&response, true).unwrap();
        assert_eq!(short[..4], u32::try_from(short.len() - 4).unwrap().to_le_bytes());
        assert!(short.len() < plain.len() / 2);
        let mut content = Vec::new();
        StreamingDecoder::new(&short[4..]).unwrap().read_to_end(&mut content).unwrap();
        assert_eq!(content, plain[4..]);
    }

    #[test]
    fn keep_alive_says_no_more() {
        let message = map_frame(&MapResponse { keep_alive: true, ..MapResponse::default() }, false).unwrap();
        assert_eq!(message[4..], *br#"{"KeepAlive":true}"#);
    }

    #[test]
    fn announced_length_is_limited() {
        let mut reader = MapReader::default();
        reader.receive(&u32::MAX.to_le_bytes());
        assert_eq!(reader.next_message(), Err(MapFrameError::TooLong));
    }

    proptest! {
        #[test]
        fn messages_come_out_whole_however_they_arrive(domains in prop::collection::vec("[a-z]{0,40}", 1..5), piece in 1..50_usize) {
            let sent: Vec<MapResponse> =
                domains.into_iter().map(|domain| MapResponse { domain, ..MapResponse::default() }).collect();
            let bytes: Vec<u8> = sent.iter().flat_map(|message| map_frame(message, false).unwrap()).collect();
            let (mut reader, mut received) = (MapReader::default(), Vec::new());
            for piece in bytes.chunks(piece) {
                reader.receive(piece);
                while let Some(message) = reader.next_message().unwrap() {
                    received.push(message);
                }
            }
            prop_assert_eq!(received, sent);
        }

        #[test]
        fn no_bytes_make_it_fail_otherwise(bytes: Vec<u8>) {
            let mut reader = MapReader::default();
            reader.receive(&bytes);
            for _ in 0..bytes.len() {
                if !matches!(reader.next_message(), Ok(Some(_))) {
                    break;
                }
            }
        }
    }
}
