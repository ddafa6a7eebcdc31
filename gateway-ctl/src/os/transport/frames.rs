//! Datagrams in a stream: each behind its length as a big-endian 16-bit number.

/// Largest datagram in a frame, in bytes.
pub(super) const MOST_DATAGRAM: usize = 65_535;

/// Bytes before a datagram.
pub(super) const HEADER: usize = 2;

/// Splits a stream that arrives in pieces of any size into datagrams.
#[derive(Debug)]
pub(super) struct Frames {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Frames {
    pub(super) fn new() -> Frames {
        Frames { buffer: vec![0; 4 * (HEADER + MOST_DATAGRAM)].into(), start: 0, end: 0 }
    }

    /// Returns the buffer for the next piece. It is never empty once all whole datagrams have been taken.
    pub(super) fn room(&mut self) -> &mut [u8] {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        &mut self.buffer[self.end..]
    }

    /// Marks this many bytes of the buffer as filled.
    pub(super) fn filled(&mut self, bytes: usize) {
        self.end += bytes;
    }

    /// Returns the next whole datagram.
    pub(super) fn next(&mut self) -> Option<&[u8]> {
        let waiting = &self.buffer[self.start..self.end];
        let length = usize::from(u16::from_be_bytes(waiting.get(..HEADER)?.try_into().ok()?));
        let content = self.start + HEADER..self.start + HEADER + length;
        if content.end > self.end {
            return None;
        }
        self.start = content.end;
        Some(&self.buffer[content])
    }
}

/// Returns the header of a datagram of this length.
pub(super) fn header(length: usize) -> [u8; HEADER] {
    // A datagram has no more than 65 535 bytes.
    u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_come_out_of_pieces_of_any_size() {
        let sent: Vec<Vec<u8>> = [1, 0, 148, 1420, MOST_DATAGRAM, 3, MOST_DATAGRAM, 32]
            .into_iter()
            .map(|length| (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect())
            .collect();
        let stream: Vec<u8> =
            sent.iter().flat_map(|one| [header(one.len()).to_vec(), one.clone()].concat()).collect();
        for piece in [1, 2, 3, 1448, 65_536, 200_000, stream.len()] {
            let (mut frames, mut got, mut rest) = (Frames::new(), Vec::new(), stream.as_slice());
            while !rest.is_empty() {
                let room = frames.room();
                let length = piece.min(rest.len()).min(room.len());
                assert!(length > 0, "pieces of {piece}: no room");
                room[..length].copy_from_slice(&rest[..length]);
                frames.filled(length);
                rest = &rest[length..];
                while let Some(datagram) = frames.next() {
                    got.push(datagram.to_vec());
                }
            }
            assert_eq!(got, sent, "pieces of {piece}");
        }
    }

    #[test]
    fn the_length_has_its_higher_bits_first() {
        assert_eq!(header(0x0102), [1, 2]);
    }
}
