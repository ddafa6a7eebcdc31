//! Randomness for times that must not be regular.

/// Returns a random number from 0 to 1. Without randomness it is the middle: times are regular, and the rest stays the same.
pub(crate) fn fraction() -> f64 {
    getrandom::u32().map_or(0.5, |word| f64::from(word) / f64::from(u32::MAX))
}
