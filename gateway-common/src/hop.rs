//! Which leg a flow takes: round robin, sticky, and loyal to the leg it already has.

use crate::wire::{CHOICE_SLOTS, Choice, Sticky};

/// Chooses a leg. `turn` is taken only when a new flow draws one; `hash` stands for the source (and
/// destination) of sticky policies; `previous` is the leg of a flow that is judged anew.
#[inline(always)]
pub fn choose(
    choice: &Choice,
    sticky: Sticky,
    hash: impl FnOnce(bool) -> u32,
    previous: u8,
    turn: impl FnOnce() -> u64,
) -> Option<u8> {
    let count = if choice.count as usize > CHOICE_SLOTS { CHOICE_SLOTS as u32 } else { choice.count as u32 };
    if count == 0 {
        return None;
    }
    if previous != 0 && has(choice, count, previous) {
        return Some(previous);
    }
    let place = match sticky {
        Sticky::Flow => (turn() % count as u64) as u32,
        Sticky::Source => hash(false) % count,
        Sticky::SourceDestination => hash(true) % count,
    };
    // The mask says to the verifier what the modulo already guarantees.
    Some(choice.legs[(place as usize) & (CHOICE_SLOTS - 1)])
}

#[inline(always)]
fn has(choice: &Choice, count: u32, leg: u8) -> bool {
    let mut i = 0;
    while i < CHOICE_SLOTS {
        if (i as u32) < count && choice.legs[i] == leg {
            return true;
        }
        i += 1;
    }
    false
}

/// FNV-1a over an address or two.
#[inline(always)]
pub fn address_hash(source: &[u8; 16], destination: Option<&[u8; 16]>) -> u32 {
    let mut hash = 0x811c_9dc5u32;
    let mut i = 0;
    while i < 16 {
        hash = (hash ^ source[i] as u32).wrapping_mul(0x0100_0193);
        i += 1;
    }
    if let Some(destination) = destination {
        let mut i = 0;
        while i < 16 {
            hash = (hash ^ destination[i] as u32).wrapping_mul(0x0100_0193);
            i += 1;
        }
    }
    // The low bits of FNV depend on the low bits of the input only.
    hash ^ (hash >> 15)
}

/// Spreads weighted legs over at most [`CHOICE_SLOTS`] places, evenly interleaved. Equal weights
/// give each leg one place, so that the round robin is exact.
pub fn spread(weighted: &[(u8, u32)]) -> Choice {
    let mut legs = [0u8; CHOICE_SLOTS];
    let mut weights = [0u32; CHOICE_SLOTS];
    let mut n = 0;
    for (leg, weight) in weighted.iter().take(CHOICE_SLOTS) {
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
    if total > CHOICE_SLOTS as u64 {
        scale(&mut weights[..n], total);
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

/// Shrinks weights so that they add up to at most [`CHOICE_SLOTS`], each keeping at least one place.
fn scale(weights: &mut [u32], total: u64) {
    for w in weights.iter_mut() {
        let scaled = u64::from(*w) * CHOICE_SLOTS as u64 / total;
        *w = u32::try_from(scaled.max(1)).unwrap_or(1);
    }
    loop {
        let sum: u64 = weights.iter().map(|w| u64::from(*w)).sum();
        if sum <= CHOICE_SLOTS as u64 {
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
