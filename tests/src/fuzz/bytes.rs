//! Decisions decoded from bytes. Each takes one byte or a few; without remaining bytes every decision is the first
//! option.

/// Consumable input bytes.
#[derive(Debug)]
pub(super) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub(super) fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// Returns true for odd bytes.
    pub(super) fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Returns true for one byte in sixteen.
    pub(super) fn rarely(&mut self) -> bool {
        self.byte() >= 0xf0
    }

    /// Returns a number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end.max(1)
    }

    pub(super) fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// Returns up to `most` bytes unchanged; the first byte is the length.
    pub(super) fn slice(&mut self, most: usize) -> &'a [u8] {
        let wanted = self.below(most + 1);
        let (slice, rest) = self.0.split_at(wanted.min(self.0.len()));
        self.0 = rest;
        slice
    }
}
