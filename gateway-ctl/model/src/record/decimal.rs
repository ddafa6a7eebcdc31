//! Decimal numbers of zone files, which have digits only.

/// Digits only: no sign.
pub(super) fn number<N: std::str::FromStr>(text: &str) -> Option<N> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}
