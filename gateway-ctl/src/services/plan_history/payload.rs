//! Payload of a record: parts, compressed.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use gateway_core::plan_history::{MAX_PAYLOAD, Part, PlanInputs, decode_parts, encode_part};

/// Compresses the parts that differ from those of earlier inputs, or all; without any, there are no bytes. `None` if they are
/// too large. Holds one part at a time.
pub(super) fn pack(inputs: &PlanInputs, before: Option<&PlanInputs>) -> Option<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    let mut room = Some(MAX_PAYLOAD as usize);
    inputs.each_part_since(before, &mut |part| {
        room = room.and_then(|room| {
            let bytes = encode_part(&part)?;
            let left = room.checked_sub(bytes.len())?;
            encoder.write_all(&bytes).ok()?;
            Some(left)
        });
    });
    match room? == MAX_PAYLOAD as usize {
        true => Some(Vec::new()),
        false => encoder.finish().ok(),
    }
}

/// Reads parts. `None` if they are damaged.
pub(super) fn unpack(packed: &[u8]) -> Option<Vec<Part>> {
    let mut bytes = Vec::new();
    if !packed.is_empty() {
        DeflateDecoder::new(packed).take(MAX_PAYLOAD.into()).read_to_end(&mut bytes).ok()?;
    }
    decode_parts(&bytes)
}
