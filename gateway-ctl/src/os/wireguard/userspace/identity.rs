//! Identity of a device.

use std::sync::Arc;

use boringtun::noise::rate_limiter::RateLimiter;
use boringtun::x25519::{PublicKey, StaticSecret};

use super::super::Key;

/// Handshake messages per second before senders must prove their address with a cookie.
const HANDSHAKES_PER_SECOND: u64 = 100;

/// Keys of the device, and its guard against handshake floods.
pub(super) struct Identity {
    pub(super) private: StaticSecret,
    pub(super) public: PublicKey,
    /// Checked once per handshake message, before any costly computation.
    pub(super) gate: RateLimiter,
    /// Limiter for the peers' own machines, which check again: the gate must not count a message twice.
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
