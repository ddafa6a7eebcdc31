//! Tests of the kernel cache with a map in place of the dataplane. A cached answer must equal the resolver's answer at
//! the same time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use gateway_common::wire::{
    DnsCacheKey, DnsCacheValue, DnsHit, FilterAnswer, FilterBucket, FilterClient, FilterClientKey, FilterHit,
};
use gateway_core::dns::{Action, Cause};
use parking_lot::Mutex;

use super::entry::{CachePolicy, EntryLifetime, key, value};
use super::{AdmissionFilter, CacheCandidate, Dataplane, KernelCache, MAX_LIFETIME, monotonic, span};
use crate::WallClock;
use crate::hooks::Host;
use crate::query_log::{Filter, QueryLog};
use crate::serve::Transport;
use crate::serve::query::QueryContext;
use crate::serve::settings::Blocking;
use crate::serve::test_doubles::*;
use crate::serve::{Clock, Now, Shared};
use crate::wire::{Request, rtype};

const INTERFACE: u32 = 7;

#[derive(Default)]
struct SimulationResult {
    epoch: u64,
    answers: HashMap<DnsCacheKey, DnsCacheValue>,
    given: Vec<DnsHit>,
}

#[derive(Clone, Default)]
struct Simulation(Arc<Mutex<SimulationResult>>);

impl Dataplane for Simulation {
    fn set_epoch(&self, epoch: u64) {
        self.0.lock().epoch = epoch;
    }

    fn put(&self, key: &DnsCacheKey, value: &DnsCacheValue) {
        self.0.lock().answers.insert(*key, *value);
    }

    fn remove(&self, keys: &[DnsCacheKey]) {
        self.0.lock().answers.retain(|key, _| !keys.contains(key));
    }

    fn take_hits(&self, tell: &mut dyn FnMut(DnsHit)) {
        self.0.lock().given.drain(..).for_each(tell);
    }

    fn put_table(&self, _: &[FilterBucket], _: &[(u32, FilterAnswer)]) -> std::io::Result<()> {
        unreachable!("the fixture has no filter for the kernel")
    }

    fn put_client(&self, _: &FilterClientKey, _: &FilterClient) {
        unreachable!("the fixture has no filter for the kernel")
    }

    fn take_filter_hits(&self, _: &mut dyn FnMut(FilterHit)) {}
}

impl Simulation {
    /// Answers a query from the map, like the BPF program.
    fn answer(&self, message: &[u8], now: u64) -> Option<Vec<u8>> {
        let mut played = self.0.lock();
        let value = *played.answers.get(&key(&client_address().into(), server(), INTERFACE, message)?)?;
        if value.epoch != played.epoch || now >= value.until {
            return None;
        }
        played.given.push(DnsHit { id: value.id, time: now });
        let mut answer = message[..2].to_vec();
        answer.extend_from_slice(&value.answer[..=usize::from(value.last)]);
        let passed = (now.saturating_sub(value.since) / 1_000_000_000) as u32;
        for index in 0..usize::from(value.ttls) {
            let at = usize::from(value.at[index]) + 2;
            answer[at..at + 4].copy_from_slice(&(value.ttl[index].saturating_sub(passed)).to_be_bytes());
        }
        Some(answer)
    }

    fn len(&self) -> usize {
        self.0.lock().answers.len()
    }
}

fn client_address() -> std::net::IpAddr {
    "192.0.2.9".parse().expect("v4")
}

fn server() -> std::net::IpAddr {
    "192.0.2.1".parse().expect("v4")
}

struct CacheFixture {
    world: Fixture,
    play: Simulation,
    kernel_cache: KernelCache,
    log: Arc<QueryLog>,
}

impl CacheFixture {
    fn new(rules: Rules, lessons: FakeFqdnPolicy) -> CacheFixture {
        let (world, play) = (Fixture::with(rules, lessons, Default::default()), Simulation::default());
        let log = QueryLog::new(crate::query_log::Settings::default(), 1, wall());
        let kernel_cache = KernelCache::new(Some(Box::new(play.clone())), log.clone(), 0);
        CacheFixture { world, play, kernel_cache, log }
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.world.shared
    }

    /// Answers a query with the resolver and offers the answer to the cache.
    fn resolve(&self, message: &[u8]) -> Option<Vec<u8>> {
        let epoch = self.kernel_cache.epoch();
        let state = self.shared().state.load_full();
        let (client, now) = (state.clients.client(&client_address().into()), self.shared().clock.now());
        let request = Request::read(message).expect("a query");
        let asking = QueryContext::new(&state, &request, &client, Transport::Udp, now);
        let mut answer = Vec::new();
        let (trace, policy) = self.shared().answer_fast(&asking, &mut answer)?;
        let (host, server, interface) = (&Host::from(client_address()), server(), INTERFACE);
        let (question, client, trace) = (message, &client, &trace);
        let offer = CacheCandidate {
            host,
            server,
            interface,
            question,
            answer: &answer,
            client,
            trace,
            policy,
            epoch,
        };
        // Far from the end of a minute, which limits lifetimes.
        let wall = "2026-01-01T10:00:30Z".parse().expect("a time");
        self.kernel_cache.offer(&offer, &state.settings.blocking, Now { wall, ..now });
        Some(answer)
    }
}

impl Drop for CacheFixture {
    fn drop(&mut self) {
        self.log.end();
    }
}

fn lessons(text: &str) -> FakeFqdnPolicy {
    FakeFqdnPolicy { wanted: HashMap::from([(name(text), client(1, 0).route)]), ..FakeFqdnPolicy::default() }
}

fn rules() -> Rules {
    Rules::default().rule("ads.example", Action::Block, Cause::Blocklist)
}

#[tokio::test]
async fn cached_answers_equal_the_resolvers_answers_at_that_time() {
    let stage = CacheFixture::new(rules(), FakeFqdnPolicy::default());
    stage.world.upstream.knows(
        "www.example",
        rtype::A,
        vec![cname("www.example", "web.example"), a("web.example", 60, [192, 0, 2, 1])],
    );
    for (text, qtype) in [("www.example", rtype::A), ("WwW.example", rtype::A), ("ads.example", rtype::AAAA)]
    {
        let message = question(text, qtype);
        stage.world.send_query(&message).await;
        let reply = stage.resolve(&message).expect("at once");
        assert_eq!(stage.play.answer(&message, monotonic()), Some(reply), "{text}");
        for seconds in [1, 3, 9] {
            // In the middle of a second, so that no second ends during the comparison.
            let passed = Duration::from_millis(seconds * 1000 + 500);
            let now = monotonic();
            stage.shared().clock.skip(passed);
            let later = stage.play.answer(&message, now + passed.as_nanos() as u64);
            let (mut renewed, at, from) = (Vec::new(), stage.shared().clock.now(), client_address());
            stage.shared().answer(&message, from.into(), Transport::Udp, at, &mut renewed).await;
            assert_eq!(later, Some(renewed), "{text} after {seconds} s");
            stage.shared().cache.flush(&crate::cache::Glob::ALL);
            stage.world.send_query(&message).await;
            stage.resolve(&message).expect("at once");
        }
    }
}

#[tokio::test]
async fn nothing_is_repeated_beyond_a_change() {
    let stage = CacheFixture::new(rules(), FakeFqdnPolicy::default());
    let message = question("ads.example", rtype::A);
    stage.resolve(&message).expect("at once");
    assert!(stage.play.answer(&message, monotonic()).is_some());
    let epoch = stage.kernel_cache.epoch();
    stage.kernel_cache.invalidate();
    assert_eq!(stage.play.answer(&message, monotonic()), None);
    assert_eq!(stage.kernel_cache.epoch(), epoch + 1);
    stage.resolve(&message).expect("at once");
    assert!(stage.play.answer(&message, monotonic()).is_some());
}

#[tokio::test]
async fn names_of_fqdn_policies_are_never_cached() {
    let stage = CacheFixture::new(rules(), lessons("films.example"));
    for text in ["films.example", "www.example"] {
        stage.world.upstream.knows(text, rtype::A, vec![a(text, 60, [192, 0, 2, 1])]);
        let message = question(text, rtype::A);
        stage.world.send_query(&message).await;
        stage.resolve(&message).expect("from the cache");
        let repeated = stage.play.answer(&message, monotonic()).is_some();
        assert_eq!(repeated, text == "www.example", "{text}");
    }
}

#[tokio::test]
async fn kernel_hits_are_logged() {
    let stage = CacheFixture::new(rules(), FakeFqdnPolicy::default());
    let message = question("ads.example", rtype::A);
    stage.resolve(&message).expect("at once");
    for _ in 0..5 {
        stage.play.answer(&message, monotonic()).expect("repeated");
    }
    stage.kernel_cache.collect();
    assert_eq!((stage.kernel_cache.hits(), stage.log.today().blocked, stage.log.lost()), (5, 5, 0));
    let rows = stage.log.read(&Filter::default(), None, 10).rows;
    assert_eq!(rows.len(), 5);
    assert!(rows.iter().all(|row| row.client.as_ref().is_some_and(|who| who.address == client_address())));
    // A hit of an unknown entry counts as a lost record.
    stage.play.0.lock().given.push(DnsHit { id: 99 << 16, time: 0 });
    stage.kernel_cache.collect();
    stage.log.today();
    assert_eq!(stage.log.lost(), 1);
}

#[tokio::test]
async fn there_is_room_again_for_what_has_ended() {
    let stage = CacheFixture::new(rules(), FakeFqdnPolicy::default());
    let message = question("ads.example", rtype::A);
    stage.resolve(&message).expect("at once");
    stage.resolve(&message).expect("at once");
    assert_eq!((stage.kernel_cache.lock().len(), stage.play.len()), (1, 1), "it is the same");
    stage.world.upstream.knows("www.example", rtype::A, vec![a("www.example", 60, [192, 0, 2, 1])]);
    let other = question("www.example", rtype::A);
    stage.world.send_query(&other).await;
    stage.resolve(&other).expect("from the cache");
    stage.shared().clock.skip(Duration::from_secs(2));
    stage.resolve(&other).expect("from the cache, with another TTL");
    assert_eq!((stage.kernel_cache.lock().len(), stage.play.len()), (3, 2));
    stage.kernel_cache.sweep();
    assert_eq!((stage.kernel_cache.lock().len(), stage.play.len()), (3, 2), "they hold still");
    let later = monotonic() + 60 * 1_000_000_000;
    let gone = stage.kernel_cache.lock().sweep(later);
    assert_eq!((stage.kernel_cache.lock().len(), gone.len()), (0, 2));
}

fn wall() -> WallClock {
    WallClock::new(jiff::Timestamp::now)
}

fn at(text: &str) -> Now {
    Now { wall: text.parse().expect("a time"), ..Clock::new(wall()).now() }
}

#[test]
fn answers_end_with_the_minute_the_pause_and_their_time() {
    let blocking = Blocking::default();
    let left = |policy, now: Now| span(policy, &blocking, now, 0).map(|span| span.until / 1_000_000);
    let now = at("2026-01-01T10:00:30Z");
    assert_eq!(left(CachePolicy::Never, now), None);
    assert_eq!(left(CachePolicy::UntilInvalidated, now), Some(MAX_LIFETIME.as_millis() as u64));
    assert_eq!(left(CachePolicy::Ttl { since: now.ms, until: now.ms + 3000 }, now), Some(3000));
    assert_eq!(left(CachePolicy::UntilInvalidated, at("2026-01-01T10:00:58.5Z")), Some(1500));
    assert_eq!(left(CachePolicy::UntilInvalidated, at("2026-01-01T10:00:59.9Z")), None, "not worth it");
    let paused = Blocking { paused_until: "2026-01-01T10:00:34Z".parse().ok(), ..Blocking::default() };
    assert_eq!(
        span(CachePolicy::UntilInvalidated, &paused, now, 0).map(|span| span.until),
        Some(4_000_000_000)
    );
    let over = Blocking { paused_until: "2026-01-01T10:00:04Z".parse().ok(), ..Blocking::default() };
    assert_eq!(
        span(CachePolicy::UntilInvalidated, &over, now, 0).map(|span| span.until),
        Some(10_000_000_000)
    );
}

#[test]
fn oversized_answers_are_not_cached() {
    let (client, server) = (Host::from(client_address()), server());
    let short = question("www.example", rtype::A);
    let kept = key(&client, server, 1, &short).expect("short enough");
    assert!(key(&client, server, 1, &[0; 91]).is_none());
    let span = EntryLifetime { since: None, now: 0, until: 1 };
    assert!(value(&kept, &[0; 514], span).is_some());
    assert!(value(&kept, &[0; 515], span).is_none());
    // Nine TTLs.
    let mut many = short[..short.len() - 11].to_vec();
    (many[2], many[7], many[11]) = (0x81, 9, 0);
    for _ in 0..9 {
        many.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1]);
    }
    assert!(value(&kept, &many, EntryLifetime { since: Some(0), ..span }).is_none());
    assert!(value(&kept, &many, span).is_some(), "none counts down");
}

#[test]
fn a_query_that_is_sent_once_is_not_cached() {
    let (mut seen, now) = (AdmissionFilter::default(), Clock::new(wall()).now());
    let (first, second) = (question("www.example", rtype::A), question("ftp.example", rtype::A));
    let mut before = |message: &[u8], now| seen.is_repeated(&client_address().into(), message, now);
    assert_eq!([before(&first, now), before(&second, now)], [false; 2]);
    let mut other_id = first.clone();
    other_id[0] ^= 0xff;
    assert!(before(&other_id, now));
    let later = Now { ms: now.ms + 20_000, ..now };
    assert!(!before(&first, later));
}

#[test]
fn many_alternating_queries_are_all_admitted() {
    let (mut seen, now) = (AdmissionFilter::default(), Clock::new(wall()).now());
    let names: Vec<_> = (0..10_000).map(|n| question(&format!("n{n}.example"), rtype::A)).collect();
    let mut again =
        || names.iter().filter(|name| seen.is_repeated(&client_address().into(), name, now)).count();
    assert!(again() < 10);
    let again = again();
    assert!(again > 9_900, "{again} of 10 000");
}
