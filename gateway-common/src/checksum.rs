//! Internet checksum (RFC 1071) and its incremental update (RFC 1624).

/// Returns the sum of 16-bit words in memory order; an odd last byte is the first byte of its word.
pub fn sum(bytes: &[u8]) -> u32 {
    let pairs = bytes.chunks(2);
    let words = pairs.map(|pair| u32::from(u16::from_ne_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])));
    words.fold(0, |sum: u32, word| u32::from(fold(sum + word)))
}

/// Folds the carries into 16 bits.
#[inline(always)]
pub const fn fold(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// One's complement addition.
#[inline(always)]
pub const fn add(sum: u32, other: u32) -> u32 {
    let (sum, carry) = sum.overflowing_add(other);
    sum + carry as u32
}

/// Returns the change of a sum if a word, in memory order, is replaced. At an odd offset, the word spans three
/// words of the sum.
#[inline(always)]
pub const fn change(before: u32, after: u32, odd: bool) -> u32 {
    let change = add(half(!before), half(after));
    if odd { (fold(change).swap_bytes()) as u32 } else { change }
}

/// Both halves of a word.
#[inline(always)]
const fn half(word: u32) -> u32 {
    (word & 0xffff) + (word >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_leads_to_the_sum_of_what_it_becomes() {
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        let mut random = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        for _ in 0..20_000 {
            let length = 4 + (random() % 60) as usize;
            let mut bytes: [u8; 64] = core::array::from_fn(|_| random() as u8);
            let at = (random() as usize) % (length - 3);
            let before = u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
            let after = random() as u32;
            let first = sum(&bytes[..length]);
            bytes[at..at + 4].copy_from_slice(&after.to_ne_bytes());
            let second = fold(add(first, change(before, after, at % 2 == 1)));
            // Zero has two forms.
            let wanted = fold(sum(&bytes[..length]));
            assert!(second == wanted || (second, wanted) == (0xffff, 0) || (second, wanted) == (0, 0xffff));
        }
    }

    #[test]
    fn the_example_of_rfc_1071_sums_up() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(fold(sum(&bytes)).to_ne_bytes(), [0xdd, 0xf2]);
    }
}
