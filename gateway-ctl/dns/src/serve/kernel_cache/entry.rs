//! Entry of the kernel cache: query bytes as key, answer as value.

use std::net::IpAddr;

use gateway_common::checksum;
use gateway_common::wire::{ANSWER, DnsCacheKey, DnsCacheValue, MESSAGE_ID, QUESTION, TTLS};

use crate::wire::{Records, rtype};

/// Lifetime of an answer in the kernel cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachePolicy {
    /// Not cached.
    Never,
    /// Valid until the cache is invalidated.
    UntilInvalidated,
    /// The same, but TTLs count down from `since`, and the entry ends at `until`. Milliseconds of
    /// the resolver's clock.
    Ttl { since: u64, until: u64 },
}

/// Key of a query; none when the query is too long.
pub fn key(client: IpAddr, server: IpAddr, interface: u32, message: &[u8]) -> Option<DnsCacheKey> {
    let asked = message.get(MESSAGE_ID..)?;
    let mut question = [0; QUESTION];
    question.get_mut(..asked.len())?.copy_from_slice(asked);
    let length = u32::try_from(asked.len()).ok()?;
    Some(DnsCacheKey { client: client.into(), server: server.into(), interface, length, question })
}

/// Nanoseconds of the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// TTLs count down from here on; none do without it.
    pub since: Option<u64>,
    pub now: u64,
    pub until: u64,
}

/// None when the answer is too long, or has too many TTLs. `id` and `epoch` are the caller's to fill.
pub fn value(key: &DnsCacheKey, message: &[u8], span: Span) -> Option<DnsCacheValue> {
    let told = message.get(MESSAGE_ID..)?;
    let mut answer = [0; ANSWER];
    answer.get_mut(..told.len())?.copy_from_slice(told);
    let (mut ttl, mut at, mut ttls) = ([0; TTLS], [0; TTLS], 0);
    if let Some(since) = span.since {
        let passed = u32::try_from(span.now.saturating_sub(since) / 1_000_000_000).ok()?;
        for record in Records::of(message)? {
            let record = record.ok()?;
            if record.rtype == rtype::OPT {
                continue;
            }
            let place = record.ttl_at - MESSAGE_ID;
            let whole = record.ttl.checked_add(passed)?;
            *ttl.get_mut(ttls)? = whole;
            at[ttls] = u16::try_from(place).ok()?;
            answer[place..place + 4].copy_from_slice(&whole.to_be_bytes());
            ttls += 1;
        }
    }
    let asked = &key.question[..key.length as usize];
    let change = checksum::add(checksum::sum(&answer[..told.len()]), !checksum::sum(asked));
    Some(DnsCacheValue {
        id: 0,
        epoch: 0,
        until: span.until,
        since: span.since.unwrap_or(0),
        change,
        last: u16::try_from(told.len().checked_sub(1)?).ok()?,
        ttls: u16::try_from(ttls).ok()?,
        ttl,
        at,
        answer,
        tail: 0,
    })
}
