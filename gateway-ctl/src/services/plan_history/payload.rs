//! Payload of a record: parts, compressed.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use gateway_core::plan_history::{MAX_PAYLOAD, Part, decode_parts, encode_parts};

/// Compresses parts. `None` if they are too large.
pub(super) fn pack(parts: &[Part]) -> Option<Vec<u8>> {
    if parts.is_empty() {
        return Some(Vec::new());
    }
    let bytes = encode_parts(parts).filter(|bytes| bytes.len() <= MAX_PAYLOAD as usize)?;
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&bytes).ok()?;
    encoder.finish().ok()
}

/// Reads parts. `None` if they are damaged.
pub(super) fn unpack(packed: &[u8]) -> Option<Vec<Part>> {
    let mut bytes = Vec::new();
    if !packed.is_empty() {
        DeflateDecoder::new(packed).take(MAX_PAYLOAD.into()).read_to_end(&mut bytes).ok()?;
    }
    decode_parts(&bytes)
}
