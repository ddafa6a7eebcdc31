//! Tests of the cache: contents, lifetimes and eviction.

use gateway_core::dns::{Name, Record};

use super::*;
use crate::wire::stored::AnswerAge;
use crate::wire::{Answer, rtype};

fn name(text: &str) -> Name {
    Name::from(&gateway_model::domain::DomainName::parse(text).expect("a name"))
}

fn key(name: &Name, partition: u16) -> Key<'_> {
    let qtype = rtype::A;
    Key { partition, dnssec_ok: false, checking_disabled: false, qtype, name: name.as_ref() }
}

fn entry(owner: &Name, partition: u16, ttl: u32, now: u64) -> Arc<Entry> {
    let record = Record { name: owner.clone(), rtype: rtype::A, ttl, rdata: [192, 0, 2, 1].into() };
    let answer = Answer { answers: vec![record], ttl: Some(ttl), ..Answer::default() };
    let entry = Entry::answer(&key(owner, partition), &answer, "test".into(), None, &Limits::default(), now);
    Arc::new(entry.expect("an entry"))
}

#[test]
fn cache_partitions_do_not_share_answers() {
    let (cache, name) = (Cache::new(1 << 20), name("example.com"));
    cache.insert(entry(&name, 1, 60, 0));
    assert!(cache.get(&key(&name, 1), 0).is_some());
    assert!(cache.get(&key(&name, 2), 0).is_none());
    let signed = Key { dnssec_ok: true, ..key(&name, 1) };
    assert!(cache.get(&signed, 0).is_none());
    let CacheStats { entries, hits, misses, .. } = cache.figures();
    assert_eq!((entries, hits, misses), (1, 1, 2));
}

#[test]
fn an_entry_is_fresh_then_old_then_gone() {
    let (cache, name) = (Cache::new(1 << 20), name("example.com"));
    cache.insert(entry(&name, 0, 60, 1000));
    let at = |now| cache.get(&key(&name, 0), now).map(|entry| entry.freshness(now));
    assert_eq!(at(1000), Some(Freshness::Fresh(AnswerAge::Fresh(0))));
    assert_eq!(at(60_999), Some(Freshness::Fresh(AnswerAge::Fresh(59))));
    assert_eq!(at(61_000), Some(Freshness::Stale(AnswerAge::Stale(30))));
    cache.peek(&key(&name, 0)).expect("kept").keep_stale(61_000);
    assert_eq!(at(62_000), Some(Freshness::StaleRecheckPending(AnswerAge::Stale(30))));
    assert_eq!(at(61_000 + entry::RECHECK_MS), Some(Freshness::Stale(AnswerAge::Stale(30))));
    assert_eq!(at(61_000 + 259_200_000), None);
    assert_eq!(cache.figures().entries, 0);
}

#[test]
fn ttls_are_bounded() {
    let name = name("example.com");
    let entry = entry(&name, 0, 1_000_000, 0);
    assert_eq!((entry.ttl_left(0), entry.stored.ttl()), (86_400, Some(86_400)));
}

#[test]
fn hot_entries_are_renewed_once_before_they_run_out() {
    let entry = entry(&name("example.com"), 0, 100, 0);
    assert!(!entry.used(95_000), "asked for once only");
    assert!(!entry.used(80_000), "a fifth of the time is left");
    assert!(entry.used(95_000));
    assert!(!entry.used(95_000), "it is being renewed");
}

#[test]
fn the_cache_is_bounded_and_used_entries_stay() {
    let cache = Cache::new(SHARDS * 8 * 1024);
    let popular = name("popular.example");
    cache.insert(entry(&popular, 0, 60, 0));
    for number in 0..20_000 {
        cache.get(&key(&popular, 0), 0).expect("what is asked for all the time stays");
        cache.insert(entry(&name(&format!("n{number}.example")), 0, 60, 0));
    }
    let figures = cache.figures();
    assert!(figures.bytes <= SHARDS * 8 * 1024, "{figures:?}");
    assert!(figures.entries > 500 && figures.evicted as usize == 20_001 - figures.entries, "{figures:?}");
    let sum: usize = cache.list(&Glob::ALL, usize::MAX).iter().map(|entry| entry.weight()).sum();
    assert_eq!(sum, figures.bytes);
}

#[test]
fn names_are_flushed_by_pattern() {
    let cache = Cache::new(1 << 20);
    for text in ["a.example", "b.example", "a.test"] {
        cache.insert(entry(&name(text), 7, 60, 0));
    }
    let listed = cache.list(&Glob::new("*.example"), 10);
    assert_eq!(
        listed.iter().map(|entry| entry.name.to_string()).collect::<Vec<_>>(),
        ["a.example", "b.example"]
    );
    assert_eq!(cache.flush(&Glob::new("a.*")), 2);
    assert_eq!(cache.flush_partition(7), 1);
    assert_eq!(cache.figures(), CacheStats { bytes: 0, entries: 0, ..cache.figures() });
    cache.insert(entry(&name("c.example"), 7, 60, 0));
    assert_eq!(cache.figures().entries, 1);
}
