//! Leg selection for a flow: round robin, sticky, or the leg that the flow already has.

use crate::wire::{Address, CHOICE_SLOTS, Choice, Sticky};

/// First leg number of tunnels; lower numbers are uplinks.
pub const FIRST_TUNNEL: u8 = 16;

/// Selects a leg. A flow keeps its leg `previous` while the choice offers or keeps that leg. `turn` is called only for a
/// new flow without a sticky leg. `kept` is the number of draining legs that apply. `hash` is the hash of the source, and
/// of the destination, of sticky policies.
#[inline(always)]
pub fn choose(
    choice: &Choice,
    kept: u8,
    sticky: Sticky,
    hash: impl FnOnce(bool) -> u32,
    previous: u8,
    turn: impl FnOnce() -> u64,
) -> Option<u8> {
    let count = if choice.count as usize > CHOICE_SLOTS { CHOICE_SLOTS as u32 } else { choice.count as u32 };
    if count == 0 {
        return None;
    }
    if offers(choice, kept, previous) {
        return Some(previous);
    }
    let place = match sticky {
        Sticky::Flow => (turn() % count as u64) as u32,
        Sticky::Source => hash(false) % count,
        Sticky::SourceDestination => hash(true) % count,
    };
    Some(leg_at(choice, place))
}

/// Reports whether a flow may stay on its leg.
#[inline(always)]
pub fn offers(choice: &Choice, kept: u8, leg: u8) -> bool {
    leg != 0 && choice.count != 0 && has(choice, choice.count as u32 + kept as u32, leg)
}

/// The leg at a place, by shifting: the verifier does not follow a modulo into an array index.
#[inline(always)]
fn leg_at(choice: &Choice, place: u32) -> u8 {
    let [low, high] = words(choice);
    let word = if place < 8 { low } else { high };
    (word >> ((place & 7) * 8)) as u8
}

/// Returns the legs as bytes of two words, the first leg in the lowest byte.
#[inline(always)]
fn words(choice: &Choice) -> [u64; 2] {
    let l = &choice.legs;
    [
        u64::from_le_bytes([l[0], l[1], l[2], l[3], l[4], l[5], l[6], l[7]]),
        u64::from_le_bytes([l[8], l[9], l[10], l[11], l[12], l[13], l[14], l[15]]),
    ]
}

// Eight places at a time: a loop would be followed once for each combination of its branches.
#[inline(always)]
#[expect(clippy::implicit_saturating_sub, reason = "the verifier follows the comparison")]
fn has(choice: &Choice, count: u32, leg: u8) -> bool {
    let repeated = leg as u64 * ONES;
    let [low, high] = words(choice);
    let same = zero_bytes(low ^ repeated) & first_bytes(count);
    let rest = if count < 8 { 0 } else { count - 8 };
    same | zero_bytes(high ^ repeated) & first_bytes(rest) != 0
}

/// The lowest bit of each byte.
const ONES: u64 = 0x0101_0101_0101_0101;

/// All bits of each byte but the highest.
const LOW_BITS: u64 = 0x7f7f_7f7f_7f7f_7f7f;

/// Returns the highest bit of each byte that is zero.
#[inline(always)]
const fn zero_bytes(word: u64) -> u64 {
    !(((word & LOW_BITS) + LOW_BITS) | word | LOW_BITS)
}

/// Returns a mask of the lowest bytes of a word.
#[inline(always)]
const fn first_bytes(count: u32) -> u64 {
    if count < 8 { (1 << (count * 8)) - 1 } else { u64::MAX }
}

/// A hash of an address or two (the finaliser of MurmurHash3 after each word).
#[inline(always)]
pub fn address_hash(source: &Address, destination: Option<&Address>) -> u32 {
    let mut hash = mix(0, source);
    if let Some(destination) = destination {
        hash = mix(hash, destination);
    }
    hash
}

#[inline(always)]
fn mix(mut hash: u32, address: &Address) -> u32 {
    let words = address.0;
    for word in words {
        hash ^= word;
        hash ^= hash >> 16;
        hash = hash.wrapping_mul(0x85eb_ca6b);
        hash ^= hash >> 13;
        hash = hash.wrapping_mul(0xc2b2_ae35);
        hash ^= hash >> 16;
    }
    hash
}

/// Spreads weighted legs over at most [`CHOICE_SLOTS`] places, evenly interleaved. Equal weights
/// give each leg one place, so that the round robin is exact.
pub fn spread(weighted: &[(u8, u32)]) -> Choice {
    spread_over(weighted, CHOICE_SLOTS)
}

/// Returns the legs by weight over at most `room` places, which leaves the others to draining legs.
pub fn spread_over(weighted: &[(u8, u32)], room: usize) -> Choice {
    let room = room.clamp(1, CHOICE_SLOTS);
    let mut legs = [0u8; CHOICE_SLOTS];
    let mut weights = [0u32; CHOICE_SLOTS];
    let mut n = 0;
    for (leg, weight) in weighted.iter().take(room) {
        if *weight > 0 {
            legs[n] = *leg;
            weights[n] = *weight;
            n += 1;
        }
    }
    if n == 0 {
        return Choice::DROP;
    }
    let mut divisor = weights[0];
    for w in &weights[1..n] {
        divisor = gcd(divisor, *w);
    }
    let mut total: u64 = 0;
    for w in &mut weights[..n] {
        *w /= divisor;
        total += u64::from(*w);
    }
    if total > room as u64 {
        scale(&mut weights[..n], total, room as u64);
        total = weights[..n].iter().map(|w| u64::from(*w)).sum();
    }
    // Smooth weighted round robin: each place goes to the leg that is most behind.
    let mut credit = [0i64; CHOICE_SLOTS];
    let mut places = [0u8; CHOICE_SLOTS];
    for place in places.iter_mut().take(total as usize) {
        let mut best = 0;
        for i in 0..n {
            credit[i] += i64::from(weights[i]);
            if credit[i] > credit[best] {
                best = i;
            }
        }
        credit[best] -= total as i64;
        *place = legs[best];
    }
    Choice::legs(&places[..total as usize])
}

/// Shrinks weights so that they add up to no more than there is room, each keeping at least one place.
fn scale(weights: &mut [u32], total: u64, room: u64) {
    for w in weights.iter_mut() {
        let scaled = u64::from(*w) * room / total;
        *w = u32::try_from(scaled.max(1)).unwrap_or(1);
    }
    loop {
        let sum: u64 = weights.iter().map(|w| u64::from(*w)).sum();
        if sum <= room {
            return;
        }
        if let Some(largest) = weights.iter_mut().max() {
            *largest -= 1;
        }
    }
}

const fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
