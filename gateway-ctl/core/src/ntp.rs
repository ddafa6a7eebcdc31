//! Answers of a time server to NTP queries (RFC 5905, section 7.3), without I/O.

use jiff::Timestamp;

/// Length of a message without extensions and authentication.
pub const MESSAGE: usize = 48;

/// Clock whose time is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockQuality {
    /// A time source has synchronised the clock.
    pub is_synchronised: bool,
    /// Maximum error of the clock in microseconds.
    pub max_error: u32,
}

/// Leap indicator of a clock that is not synchronised.
const LEAP_UNKNOWN: u8 = 3;
const MODE_CLIENT: u8 = 3;
const MODE_SERVER: u8 = 4;
/// Versions of queries that are answered. Their messages have the same fields.
const VERSIONS: std::ops::RangeInclusive<u8> = 1..=4;
/// The clock of the host has a time source that is not asked for its own stratum: typically a server of stratum 1 or 2.
const STRATUM: u8 = 3;
/// Kiss code of a server that is not synchronised (RFC 5905, section 7.4).
const INIT: [u8; 4] = *b"INIT";
/// Reference of a clock whose source has no address here.
const LOCAL: [u8; 4] = [127, 0, 0, 1];
/// A microsecond, as a power of two of a second.
const PRECISION: i8 = -20;
/// Seconds from 1900 to 1970.
const EPOCH: i64 = 2_208_988_800;

/// Returns the answer to a query that arrived at a time, and that is sent at another. `None` if it is no query of a
/// client.
pub fn answer(
    query: &[u8],
    clock: ClockQuality,
    arrived: Timestamp,
    sent: Timestamp,
) -> Option<[u8; MESSAGE]> {
    let query: &[u8; MESSAGE] = query.first_chunk()?;
    let (version, mode) = (query[0] >> 3 & 7, query[0] & 7);
    if mode != MODE_CLIENT || !VERSIONS.contains(&version) {
        return None;
    }
    let (leap, stratum, reference) =
        if clock.is_synchronised { (0, STRATUM, LOCAL) } else { (LEAP_UNKNOWN, 0, INIT) };
    let mut answer = [0; MESSAGE];
    answer[0] = leap << 6 | version << 3 | MODE_SERVER;
    answer[1] = stratum;
    // The interval of queries is up to the client.
    answer[2] = query[2];
    answer[3] = PRECISION.to_be_bytes()[0];
    answer[8..12].copy_from_slice(&short(clock.max_error).to_be_bytes());
    answer[12..16].copy_from_slice(&reference);
    if clock.is_synchronised {
        answer[16..24].copy_from_slice(&timestamp(arrived).to_be_bytes());
    }
    // The time at which the client sent the query, by its own clock.
    answer[24..32].copy_from_slice(&query[40..48]);
    answer[32..40].copy_from_slice(&timestamp(arrived).to_be_bytes());
    answer[40..48].copy_from_slice(&timestamp(sent).to_be_bytes());
    Some(answer)
}

/// Seconds since 1900 modulo 2^32, and their fraction.
fn timestamp(time: Timestamp) -> u64 {
    let nanoseconds = time.as_nanosecond() + i128::from(EPOCH) * 1_000_000_000;
    let fixed = (nanoseconds << 32) / 1_000_000_000;
    u64::try_from(fixed & i128::from(u64::MAX)).unwrap_or_default()
}

/// Microseconds in the short format: seconds in 16 bits, and their fraction in 16.
fn short(microseconds: u32) -> u32 {
    u32::try_from((u64::from(microseconds) << 16) / 1_000_000).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CLOCK: ClockQuality = ClockQuality { is_synchronised: true, max_error: 500_000 };

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn query(version: u8) -> [u8; MESSAGE] {
        let mut query = [0; MESSAGE];
        (query[0], query[2]) = (version << 3 | MODE_CLIENT, 6);
        query[40..48].copy_from_slice(b"sendtime");
        query
    }

    #[test]
    fn client_gets_the_time_of_the_clock() {
        let arrived = at("1900-01-01T00:00:01.5Z");
        let answer = answer(&query(4), CLOCK, arrived, at("2036-02-07T06:28:17Z")).unwrap();
        assert_eq!(answer[..4], [0x24, 3, 6, 0xec]);
        assert_eq!(answer[8..12], [0, 0, 0x80, 0], "half a second");
        assert_eq!(&answer[24..32], b"sendtime");
        assert_eq!(answer[16..24], answer[32..40]);
        assert_eq!(answer[32..40], [0, 0, 0, 1, 0x80, 0, 0, 0]);
        assert_eq!(answer[40..48], [0, 0, 0, 1, 0, 0, 0, 0], "the second era (RFC 5905, section 6)");
    }

    #[test]
    fn clock_that_is_not_synchronised_says_so() {
        let clock = ClockQuality { is_synchronised: false, ..CLOCK };
        let now = at("2026-11-24T12:00:00Z");
        let answer = answer(&query(3), clock, now, now).unwrap();
        assert_eq!((answer[0], answer[1], &answer[12..16]), (0xdc, 0, &INIT[..]));
        assert_eq!(answer[16..24], [0; 8], "it never was");
    }

    proptest! {
        #[test]
        fn only_queries_of_clients_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let now = at("2026-11-24T12:00:00Z");
            let is_query = bytes.len() >= MESSAGE && bytes[0] & 7 == 3 && (1..=4).contains(&(bytes[0] >> 3 & 7));
            let answer = answer(&bytes, CLOCK, now, now);
            prop_assert_eq!(answer.is_some(), is_query);
            if let Some(answer) = answer {
                prop_assert_eq!(answer[0] & 7, MODE_SERVER, "two servers do not answer each other");
            }
        }
    }
}
