//! Identity of a device.

use std::sync::Arc;

use boringtun::noise::rate_limiter::RateLimiter;
use boringtun::x25519::{PublicKey, StaticSecret};

use super::super::Key;

/// Handshake messages per second before senders must prove their address with a cookie.
const HANDSHAKES_PER_SECOND: u64 = 100;

/// Who the device is, and its guard against floods of handshakes.
pub(super) struct Identity {
    pub(super) private: StaticSecret,
    pub(super) public: PublicKey,
    /// Asked once per handshake message, before any costly computation.
    pub(super) gate: RateLimiter,
    /// For the peers' own machines, which ask again: the gate must not count a message twice.
    pub(super) open_gate: Arc<RateLimiter>,
}

impl Identity {
    pub(super) fn new(private_key: &Key) -> Self {
        let private = StaticSecret::from(*private_key.expose());
        let public = PublicKey::from(&private);
        let gate = RateLimiter::new(&public, HANDSHAKES_PER_SECOND);
        let open_gate = Arc::new(RateLimiter::new(&public, u64::MAX));
        Self { private, public, gate, open_gate }
    }
}
