//! Lockout after wrong passwords. Five failures from one address for one user name lock that pair for 15 minutes.
//!
//! An attempt counts when it begins and is removed when it succeeds, so that parallel attempts do not bypass the limit.
//! The correct password does not end a lockout.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::rate_limit::QuotaOwner;

pub(crate) const MAX_ATTEMPTS: u32 = 5;
pub(crate) const LOCK_DURATION: Duration = Duration::from_secs(15 * 60);
/// Maximum number of (address, user name) pairs. When full, the oldest are dropped. One address at its rate limit needs
/// an hour to fill the table.
const CAPACITY: usize = 16_384;

/// Digest of address and user name. An attacker chooses the name and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoginKey([u8; 32]);

impl LoginKey {
    pub fn new(address: Option<QuotaOwner>, username: &str) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(format!("{address:?}\n"));
        hasher.update(username.trim().to_lowercase());
        Self(hasher.finalize().into())
    }
}

#[derive(Debug, Default)]
pub struct LoginThrottle {
    pairs: Mutex<BTreeMap<LoginKey, Attempts>>,
}

#[derive(Clone, Copy, Debug)]
struct Attempts {
    count: u32,
    last: Duration,
}

impl Attempts {
    fn is_over(&self, now: Duration) -> bool {
        now.saturating_sub(self.last) >= LOCK_DURATION
    }
}

impl LoginThrottle {
    /// Begins an attempt. Returns the remaining seconds of the lockout as an error.
    pub fn begin(&self, pair: LoginKey, now: Duration) -> Result<(), u32> {
        let mut pairs = self.pairs.lock();
        if !pairs.contains_key(&pair) && pairs.len() >= CAPACITY {
            pairs.retain(|_, attempts| !attempts.is_over(now));
            while pairs.len() >= CAPACITY {
                let oldest = pairs.iter().min_by_key(|(_, attempts)| attempts.last).map(|(pair, _)| *pair);
                let Some(oldest) = oldest else { break };
                pairs.remove(&oldest);
            }
        }
        let attempts = pairs.entry(pair).or_insert(Attempts { count: 0, last: now });
        if attempts.is_over(now) {
            attempts.count = 0;
        }
        if attempts.count >= MAX_ATTEMPTS {
            let left = LOCK_DURATION.saturating_sub(now.saturating_sub(attempts.last));
            return Err(u32::try_from(left.as_secs()).unwrap_or(u32::MAX).saturating_add(1));
        }
        *attempts = Attempts { count: attempts.count + 1, last: now };
        Ok(())
    }

    /// Reports whether the pair is locked.
    pub fn is_locked(&self, pair: LoginKey, now: Duration) -> bool {
        let pairs = self.pairs.lock();
        pairs.get(&pair).is_some_and(|attempts| attempts.count >= MAX_ATTEMPTS && !attempts.is_over(now))
    }

    /// Clears the failures of the pair after a correct password.
    pub fn succeed(&self, pair: LoginKey) {
        self.pairs.lock().remove(&pair);
    }

    /// Removes an attempt whose password was not checked.
    pub fn take_back(&self, pair: LoginKey) {
        let mut pairs = self.pairs.lock();
        if let Some(attempts) = pairs.get_mut(&pair) {
            attempts.count = attempts.count.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: Duration = Duration::from_secs(1000);

    fn pair(address: &str, name: &str) -> LoginKey {
        LoginKey::new(Some(QuotaOwner::address(address.parse().expect("an address"))), name)
    }

    #[test]
    fn five_failures_close_the_pair_for_fifteen_minutes_and_no_other() {
        let lock = LoginThrottle::default();
        let anna = pair("192.0.2.1", "anna");
        for _ in 0..5 {
            assert!(!lock.is_locked(anna, T0));
            assert_eq!(lock.begin(anna, T0), Ok(()));
        }
        assert!(lock.is_locked(anna, T0) && !lock.is_locked(anna, T0 + LOCK_DURATION));
        let seconds = lock.begin(anna, T0 + Duration::from_secs(1)).expect_err("closed");
        assert_eq!(seconds, 15 * 60);
        assert_eq!(
            lock.begin(pair("192.0.2.1", "  ANNA "), T0),
            Err(15 * 60 + 1),
            "names are one in any case"
        );
        assert!(lock.begin(pair("192.0.2.1", "bert"), T0).is_ok());
        assert!(lock.begin(pair("192.0.2.2", "anna"), T0).is_ok());
        assert!(lock.begin(anna, T0 + LOCK_DURATION).is_ok());
    }

    #[test]
    fn success_forgets_and_an_attempt_that_was_not_evaluated_does_not_count() {
        let lock = LoginThrottle::default();
        let anna = pair("192.0.2.1", "anna");
        for _ in 0..4 {
            lock.begin(anna, T0).expect("open");
        }
        lock.succeed(anna);
        for _ in 0..20 {
            lock.begin(anna, T0).expect("open");
            lock.take_back(anna);
        }
        for _ in 0..5 {
            lock.begin(anna, T0).expect("open");
        }
        assert!(lock.begin(anna, T0).is_err());
    }

    #[test]
    fn a_flood_of_names_takes_no_more_memory() {
        let lock = LoginThrottle::default();
        for n in 0..(CAPACITY + 500) {
            let _ = lock.begin(pair("192.0.2.1", &format!("u{n}")), T0 + Duration::from_millis(n as u64));
        }
        assert!(lock.pairs.lock().len() <= CAPACITY);
    }
}
