//! Tests of upstreams that are slow or down, and of identical queries from many clients.

use std::sync::Arc;
use std::time::Duration;

use hickory_proto::op::ResponseCode;

use super::{code, extended, lines};
use crate::hooks::Failure;
use crate::query_log::Filter;
use crate::serve::test_doubles::*;
use crate::wire::rtype;

/// Returns a fixture whose upstream answered once, a day ago.
async fn aged() -> Fixture {
    let world = Fixture::new(Rules::default());
    world.upstream.knows("old.example", rtype::A, vec![a("old.example", 60, [192, 0, 2, 1])]);
    assert_eq!(lines(&world.reply("old.example", rtype::A).await), ["old.example. 60 IN A 192.0.2.1"]);
    world.shared.clock.skip(Duration::from_secs(86_400));
    world
}

#[tokio::test]
async fn identical_queries_are_merged() {
    let world = Arc::new(Fixture::new(Rules::default()));
    world.upstream.knows("one.example", rtype::A, vec![a("one.example", 60, [192, 0, 2, 1])]);
    world.upstream.gate.forget_permits(usize::MAX);
    let ask = || {
        let world = world.clone();
        tokio::spawn(async move { lines(&world.reply("one.example", rtype::A).await) })
    };
    let asked: Vec<_> = (0..10).map(|_| ask()).collect();
    while world.upstream.times() == 0 {
        tokio::task::yield_now().await;
    }
    world.upstream.gate.add_permits(1);
    for asked in asked {
        assert_eq!(asked.await.expect("it ends"), ["one.example. 60 IN A 192.0.2.1"]);
    }
    assert_eq!((world.upstream.times(), world.shared.pending_queries.len()), (1, 0));
}

#[tokio::test]
async fn ttls_count_down_and_names_keep_the_case_of_the_query() {
    let world = Fixture::new(Rules::default());
    world.upstream.knows("old.example", rtype::A, vec![a("old.example", 60, [192, 0, 2, 1])]);
    world.reply("old.example", rtype::A).await;
    world.shared.clock.skip(Duration::from_secs(15));
    assert_eq!(lines(&world.reply("oLD.ExamplE", rtype::A).await), ["oLD.ExamplE. 45 IN A 192.0.2.1"]);
    assert_eq!(world.upstream.times(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stale_answer_is_served_when_the_upstream_is_slow() {
    let world = aged().await;
    world.upstream.gate.forget_permits(usize::MAX);
    let before = tokio::time::Instant::now();
    let reply = world.reply("old.example", rtype::A).await;
    assert_eq!(before.elapsed().as_millis() / 100, 18);
    assert_eq!(lines(&reply), ["old.example. 30 IN A 192.0.2.1"]);
    assert_eq!(extended(&reply), Some((3, String::new())));
    // The cache keeps an answer that arrives late.
    world.upstream.gate.add_permits(1);
    while !world.shared.pending_queries.is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(lines(&world.reply("old.example", rtype::A).await), ["old.example. 60 IN A 192.0.2.1"]);
    assert_eq!(world.upstream.times(), 2);
}

#[tokio::test]
async fn a_stale_answer_is_served_at_once_after_a_failure() {
    let world = aged().await;
    world.upstream.fails("old.example", rtype::A, Failure::Failed("unreachable".into()));
    for _ in 0..3 {
        assert_eq!(lines(&world.reply("old.example", rtype::A).await), ["old.example. 30 IN A 192.0.2.1"]);
    }
    assert_eq!(world.upstream.times(), 2);
    world.shared.clock.skip(Duration::from_secs(31));
    world.reply("old.example", rtype::A).await;
    assert_eq!(world.upstream.times(), 3);
    world.upstream.fails("old.example", rtype::A, Failure::Bogus(7, "signature expired".into()));
    world.shared.clock.skip(Duration::from_secs(31));
    let reply = world.reply("old.example", rtype::A).await;
    assert_eq!(code(&reply), ResponseCode::ServFail, "what is forged is not papered over");
    assert_eq!(extended(&reply).expect("a reason").0, 7);
}

#[tokio::test]
async fn failures_are_remembered_for_a_while_and_say_why() {
    let world = Fixture::new(Rules::default());
    world.upstream.fails("dead.example", rtype::A, Failure::Timeout);
    for _ in 0..3 {
        let reply = world.reply("dead.example", rtype::A).await;
        assert_eq!(code(&reply), ResponseCode::ServFail);
        assert_eq!(extended(&reply), Some((22, "no upstream answered in time".into())));
    }
    assert_eq!(world.upstream.times(), 1);
    world.shared.clock.skip(Duration::from_secs(6));
    world.reply("dead.example", rtype::A).await;
    assert_eq!(world.upstream.times(), 2);
    world.upstream.fails("shut.example", rtype::A, Failure::Blocked("the way is down".into()));
    for _ in 0..2 {
        let reply = world.reply("shut.example", rtype::A).await;
        assert_eq!(extended(&reply), Some((0, "the way is down".into())));
    }
    let records = world.shared.log.read(&Filter::default(), None, 10).rows;
    let blocked: Vec<bool> = records.iter().map(|record| record.blocked).collect();
    assert_eq!(blocked, [true, true, false, false, false, false], "newest first");
    assert_eq!(world.upstream.times(), 4, "a way may open at once");
}

#[tokio::test]
async fn negative_answers_are_cached_for_the_ttl_of_their_zone() {
    let world = Fixture::new(Rules::default());
    let reply = world.reply("none.example", rtype::A).await;
    assert_eq!(code(&reply), ResponseCode::NXDomain);
    assert_eq!(
        reply.authorities[0].to_string().split(' ').nth(1),
        Some("300"),
        "the lesser of TTL and minimum"
    );
    world.shared.clock.skip(Duration::from_secs(299));
    world.reply("none.example", rtype::A).await;
    assert_eq!(world.upstream.times(), 1);
    world.shared.clock.skip(Duration::from_secs(2));
    world.reply("none.example", rtype::A).await;
    assert_eq!(world.upstream.times(), 2);
}

#[tokio::test]
async fn popular_entries_are_prefetched_before_they_expire() {
    let world = Fixture::new(Rules::default());
    world.upstream.knows("hot.example", rtype::A, vec![a("hot.example", 100, [192, 0, 2, 1])]);
    world.reply("hot.example", rtype::A).await;
    world.reply("hot.example", rtype::A).await;
    world.shared.clock.skip(Duration::from_secs(95));
    assert_eq!(lines(&world.reply("hot.example", rtype::A).await), ["hot.example. 5 IN A 192.0.2.1"]);
    while !world.shared.pending_queries.is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.upstream.times(), 2);
    assert_eq!(lines(&world.reply("hot.example", rtype::A).await), ["hot.example. 100 IN A 192.0.2.1"]);
}
