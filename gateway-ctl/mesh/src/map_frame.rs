//! A message of the stream of maps: its length in 4 bytes, and JSON, which zstd compresses if the client wants so. No I/O.

use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::wire::MapResponse;

/// Writes a message of the stream.
pub(crate) fn map_frame(response: &MapResponse, zstd: bool) -> serde_json::Result<Vec<u8>> {
    let mut content = serde_json::to_vec(response)?;
    if zstd {
        content = compress_to_vec(&*content, CompressionLevel::Fastest);
    }
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    Ok([&length.to_le_bytes()[..], &content].concat())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

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
}
