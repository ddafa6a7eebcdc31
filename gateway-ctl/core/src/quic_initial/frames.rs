//! ClientHello in the frames of Initial packets. Browsers send its pieces in any order, in one packet or several.

use std::collections::BTreeMap;

use gateway_common::client_hello;
use gateway_common::wire::ServerNames;

use super::header::variable;

/// Maximum length of a ClientHello that is put together.
const MAX_LENGTH: usize = 16_384;
/// Maximum number of pieces that wait for what is before them.
const MAX_PIECES: usize = 64;
/// Header of a handshake message (RFC 8446, section 4).
const HEADER: usize = 4;

const PADDING: u64 = 0;
const PING: u64 = 1;
const ACK: u64 = 2;
const ACK_ECN: u64 = 3;
const CRYPTO: u64 = 6;

/// Name of the server, as far as a ClientHello shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// More frames can show it.
    Open,
    Known(ServerNames),
    /// There is none.
    Absent,
}

/// Stream of handshake bytes.
#[derive(Clone, Debug, Default)]
pub struct Handshake {
    /// Its beginning without gaps.
    bytes: Vec<u8>,
    /// Pieces behind a gap, by offset.
    pieces: BTreeMap<usize, Vec<u8>>,
}

impl Handshake {
    /// Adds the frames of a decrypted packet. What follows a malformed frame is ignored.
    pub fn add(&mut self, frames: &[u8]) {
        let mut at = 0;
        while let Some(piece) = next_piece(frames, &mut at) {
            let Some((offset, bytes)) = piece else { continue };
            let is_longer = self.pieces.get(&offset).is_none_or(|known| known.len() < bytes.len());
            if is_longer && offset + bytes.len() <= MAX_LENGTH && self.pieces.len() < MAX_PIECES {
                self.pieces.insert(offset, bytes.to_vec());
            }
        }
        while let Some(piece) = self.pieces.first_entry().filter(|piece| *piece.key() <= self.bytes.len()) {
            let (offset, bytes) = piece.remove_entry();
            let known = self.bytes.len() - offset;
            self.bytes.extend(bytes.get(known..).unwrap_or_default());
        }
    }

    /// Returns the beginning of the stream, up to the first gap.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn name(&self) -> Name {
        let Some(header) = self.bytes.first_chunk::<HEADER>() else { return Name::Open };
        if header[0] != 1 {
            return Name::Absent;
        }
        let length = usize::from(u16::from_be_bytes([header[2], header[3]])) + (usize::from(header[1]) << 16);
        if HEADER + length > MAX_LENGTH {
            return Name::Absent;
        }
        let message = self.bytes.get(..HEADER + length);
        match client_hello::names(message.unwrap_or(&self.bytes)) {
            names if names != ServerNames::default() => Name::Known(names),
            _ if message.is_some() => Name::Absent,
            _ => Name::Open,
        }
    }
}

/// Returns the next frame: the offset and the bytes of a piece, or `None` for another frame. Outer `None` at the end.
#[expect(clippy::option_option, reason = "the end, another frame, a piece")]
fn next_piece<'a>(frames: &'a [u8], at: &mut usize) -> Option<Option<(usize, &'a [u8])>> {
    match variable(frames, at)? {
        PADDING | PING => Some(None),
        kind @ (ACK | ACK_ECN) => {
            // Largest, delay, number of ranges, first range; two integers for each range, three counts with ECN.
            let (_, _, ranges, _) =
                (variable(frames, at)?, variable(frames, at)?, variable(frames, at)?, variable(frames, at)?);
            let counts = if kind == ACK_ECN { 3 } else { 0 };
            for _ in 0..ranges.checked_mul(2)?.checked_add(counts)? {
                variable(frames, at)?;
            }
            Some(None)
        }
        CRYPTO => {
            let offset = usize::try_from(variable(frames, at)?).ok()?;
            let length = usize::try_from(variable(frames, at)?).ok()?;
            let bytes = frames.get(*at..at.checked_add(length)?)?;
            *at += length;
            (offset <= MAX_LENGTH).then_some(Some((offset, bytes)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hello(name: &str) -> Vec<u8> {
        let length = u16::try_from(name.len()).unwrap();
        let mut extensions = vec![0, 51, 0, 200];
        extensions.extend([7; 200]);
        extensions.extend([0, 0]);
        extensions.extend((length + 5).to_be_bytes());
        extensions.extend((length + 3).to_be_bytes());
        extensions.push(0);
        extensions.extend(length.to_be_bytes());
        extensions.extend(name.as_bytes());
        let mut body = vec![3, 3];
        body.extend([5; 32]);
        body.extend([0, 0, 2, 0x13, 1, 1, 0]);
        body.extend(u16::try_from(extensions.len()).unwrap().to_be_bytes());
        body.extend(extensions);
        [&[1, 0][..], &u16::try_from(body.len()).unwrap().to_be_bytes(), &body].concat()
    }

    fn crypto(offset: usize, bytes: &[u8]) -> Vec<u8> {
        let long = |number: usize| (0x8000_0000 | u32::try_from(number).unwrap()).to_be_bytes();
        [&[6][..], &long(offset), &long(bytes.len()), bytes].concat()
    }

    proptest! {
        #[test]
        fn pieces_in_any_order_show_the_name(
            mut cuts in prop::collection::vec(1..250usize, 0..6),
            seed in any::<prop::sample::Index>(),
        ) {
            let hello = hello("dns.example.com");
            cuts.extend([0, hello.len()]);
            cuts.sort_unstable();
            cuts.dedup();
            let mut pieces: Vec<Vec<u8>> =
                cuts.windows(2).map(|pair| crypto(pair[0], &hello[pair[0]..pair[1]])).collect();
            let turns = seed.index(pieces.len());
            pieces.rotate_left(turns);
            let mut handshake = Handshake::default();
            for piece in &pieces {
                prop_assert_eq!(handshake.name(), Name::Open);
                let acked = [0, 1, 2, 0, 0, 0, 0];
                handshake.add(&[&acked[..], piece, &[0; 9]].concat());
                handshake.add(piece);
            }
            prop_assert_eq!(handshake.name(), Name::Known(ServerNames::of("dns.example.com")));
        }

        #[test]
        fn any_frames_are_read_without_a_panic(packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..6)) {
            let mut handshake = Handshake::default();
            for packet in packets {
                handshake.add(&packet);
                let _ = handshake.name();
            }
        }
    }
}
