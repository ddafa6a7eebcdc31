//! Entry of the kernel cache: query bytes as key, answer as value.

use std::net::IpAddr;

use gateway_common::checksum;
use gateway_common::wire::{ANSWER, DnsCacheKey, DnsCacheValue, MESSAGE_ID, Mac, QUESTION, TTLS};

use crate::hooks::Host;
use crate::wire::{Records, rtype};

/// Lifetime of an answer in the kernel cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CachePolicy {
    /// Not cached.
    Never,
    /// Valid until the cache is invalidated.
    UntilInvalidated,
    /// Valid until the cache is invalidated, but no longer than `until`. TTLs count down from `since`. Both are
    /// milliseconds of the resolver's clock.
    Ttl { since: u64, until: u64 },
}

/// Returns the key of a query. None: the query is too long.
pub fn key(client: &Host, server: IpAddr, interface: u32, message: &[u8]) -> Option<DnsCacheKey> {
    let asked = message.get(MESSAGE_ID..)?;
    let mut question = [0; QUESTION];
    question.get_mut(..asked.len())?.copy_from_slice(asked);
    let (length, host) = (u16::try_from(asked.len()).ok()?, Mac::new(client.mac().unwrap_or_default()));
    Some(DnsCacheKey {
        client: client.address.into(),
        server: server.into(),
        interface,
        host,
        length,
        question,
    })
}

/// Lifetime of an entry, in nanoseconds of the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryLifetime {
    /// Start of the TTL countdown. None: TTLs stay as they are.
    pub since: Option<u64>,
    pub now: u64,
    pub until: u64,
}

/// Builds the map value of an answer. None: the answer is too long or has too many TTLs. The caller sets `id`, `tail`
/// and `epoch`.
pub fn value(key: &DnsCacheKey, message: &[u8], span: EntryLifetime) -> Option<DnsCacheValue> {
    let reply = message.get(MESSAGE_ID..)?;
    let mut answer = [0; ANSWER];
    answer.get_mut(..reply.len())?.copy_from_slice(reply);
    let (mut ttl, mut at, mut ttls) = ([0; TTLS], [0; TTLS], 0);
    if let Some(since) = span.since {
        let passed = u32::try_from(span.now.saturating_sub(since) / 1_000_000_000).ok()?;
        for record in Records::of(message)? {
            let record = record.ok()?;
            if record.rtype == rtype::OPT {
                continue;
            }
            let offset = record.ttl_at - MESSAGE_ID;
            let whole = record.ttl.checked_add(passed)?;
            *ttl.get_mut(ttls)? = whole;
            at[ttls] = u16::try_from(offset).ok()?;
            answer[offset..offset + 4].copy_from_slice(&whole.to_be_bytes());
            ttls += 1;
        }
    }
    let asked = &key.question[..usize::from(key.length)];
    let change = checksum::add(checksum::sum(&answer[..reply.len()]), !checksum::sum(asked));
    Some(DnsCacheValue {
        id: 0,
        epoch: 0,
        until: span.until,
        since: span.since.unwrap_or(0),
        change,
        last: u16::try_from(reply.len().checked_sub(1)?).ok()?,
        ttls: u16::try_from(ttls).ok()?,
        ttl,
        at,
        answer,
        tail: 0,
    })
}
