//! Limits against clients that try keys: refused registrations of one address. No I/O.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use jiff::{SignedDuration, Timestamp};

/// Refusals of an IPv4 address or IPv6 /64 in a window.
pub(crate) const MOST_REFUSALS: u32 = 10;
const WINDOW: SignedDuration = SignedDuration::from_mins(1);
/// Addresses that are counted at a time. Beyond it, all others share one count.
const MOST_ADDRESSES: usize = 1024;

/// Counts refused registrations by address.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    counts: HashMap<IpAddr, Count>,
}

#[derive(Debug)]
struct Count {
    start: Timestamp,
    refusals: u32,
}

impl Attempts {
    /// Tells whether this address may try a registration.
    pub(crate) fn may_try(&mut self, from: IpAddr, now: Timestamp) -> bool {
        let Some(count) = self.counts.get(&self.counted(from)) else { return true };
        now.duration_since(count.start) >= WINDOW || count.refusals < MOST_REFUSALS
    }

    /// Counts a refused registration.
    pub(crate) fn refused(&mut self, from: IpAddr, now: Timestamp) {
        self.counts.retain(|_, count| now.duration_since(count.start) < WINDOW);
        let address = self.counted(from);
        self.counts.entry(address).or_insert(Count { start: now, refusals: 0 }).refusals += 1;
    }

    fn counted(&self, from: IpAddr) -> IpAddr {
        let holder = holder(from);
        let full = self.counts.len() >= MOST_ADDRESSES && !self.counts.contains_key(&holder);
        if full { Ipv6Addr::UNSPECIFIED.into() } else { holder }
    }
}

/// The address that limits count: an IPv4 address, or the /64 of an IPv6 address.
pub(crate) fn holder(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn address_that_tries_keys_has_to_wait() {
        let mut attempts = Attempts::default();
        let [guesser, other]: [IpAddr; 2] =
            ["2001:db8::1".parse().unwrap(), "2001:db8:0:1::1".parse().unwrap()];
        for number in 0..MOST_REFUSALS {
            assert!(attempts.may_try(guesser, at(0)));
            let neighbour = Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(number)).into();
            attempts.refused(neighbour, at(0));
        }
        assert!(!attempts.may_try(guesser, at(59)) && attempts.may_try(other, at(59)));
        assert!(attempts.may_try(guesser, at(60)));
    }

    #[test]
    fn memory_is_bounded() {
        let mut attempts = Attempts::default();
        for number in 0..3000_u32 {
            attempts.refused(IpAddr::from(number.to_be_bytes()), at(0));
        }
        assert!(attempts.counts.len() <= MOST_ADDRESSES + 1);
        assert!(!attempts.may_try(IpAddr::from([9, 9, 9, 9]), at(1)));
        assert!(attempts.may_try(IpAddr::from([9, 9, 9, 9]), at(61)));
    }
}
