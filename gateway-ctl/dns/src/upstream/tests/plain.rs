//! UDP and TCP: accepted replies, and behaviour without a reply.

use super::server::{Act, Came, Server};
use super::*;

async fn fine(last: u8) -> Server {
    Server::new(move |came: &Came| Act::Say(came.address(last))).await
}

#[tokio::test]
async fn a_query_has_a_random_port_id_and_case() {
    let server = fine(1).await;
    let bench = Bench::new(sequential(vec![udp(server.at)]));
    for _ in 0..20 {
        let reply = bench.send_query("www.a-rather-long-name.example").await.unwrap();
        assert_eq!(
            (address(&reply).as_str(), reply.upstream.as_ref()),
            ("192.0.2.1", server.at.to_string().as_str())
        );
        assert_eq!(&reply.message[12..16], b"\x03www");
        assert_eq!(reply.message[12..].iter().filter(|byte| byte.is_ascii_uppercase()).count(), 0);
    }
    let came = server.came.lock();
    let distinct =
        |of: &dyn Fn(&Came) -> Vec<u8>| came.iter().map(of).collect::<std::collections::BTreeSet<_>>().len();
    assert!(distinct(&|came| came.message[..2].to_vec()) >= 19, "ids");
    assert!(distinct(&|came| came.message[12..40].to_vec()) >= 15, "letters");
    drop(came);
    let status = &bench.upstreams.status()[0];
    assert_eq!((status.ok, status.queries, status.failures, status.protocol.as_str()), (true, 20, 0, "udp"));
    assert!(status.rtt_ms.is_some());
}

#[tokio::test]
async fn forged_replies_are_ignored() {
    let forged = |came: &Came| {
        let (mut other_id, mut other_name, mut other_type) =
            (came.address(66), came.address(66), came.address(66));
        other_id[1] ^= 1;
        other_name[13] ^= 2;
        let end = 12 + super::super::message::question_of(&came.message).unwrap().len();
        other_type[end - 3] = 28;
        let mut a_question = came.address(66);
        a_question[2] &= 0x7f;
        let garbage = vec![0xff; 40];
        let mut cut = came.address(66);
        cut.truncate(30);
        vec![other_id, other_name, other_type, a_question, garbage, cut, Vec::new(), came.address(1)]
    };
    let server = Server::new(move |came: &Came| Act::SayAll(forged(came))).await;
    let elsewhere = Server::new(|came: &Came| Act::FromElsewhere(came.address(66), came.address(2))).await;
    for (server, want) in [(server, "192.0.2.1"), (elsewhere, "192.0.2.2")] {
        let bench = Bench::new(sequential(vec![udp(server.at)]));
        for _ in 0..5 {
            assert_eq!(address(&bench.send_query("www.example.com").await.unwrap()), want);
        }
        assert_eq!(bench.upstreams.status()[0].failures, 0);
    }
}

#[tokio::test]
async fn a_truncated_reply_is_retried_over_tcp() {
    let script = |came: &Came| Act::Say(if came.over_tcp { came.address(3) } else { came.truncated() });
    let server = Server::new(script).await;
    let bench = Bench::new(sequential(vec![udp(server.at)]));
    assert_eq!(address(&bench.send_query("www.example.com").await.unwrap()), "192.0.2.3");
    assert_eq!((server.count(), server.over_tcp()), (2, 1));
}

#[tokio::test]
async fn a_lost_datagram_is_sent_again() {
    let script = |came: &Came| if came.number == 0 { Act::Nothing } else { Act::Say(came.address(4)) };
    let server = Server::new(script).await;
    let bench = Bench::urgent(sequential(vec![udp(server.at)]));
    assert_eq!(address(&bench.send_query("www.example.com").await.unwrap()), "192.0.2.4");
}

#[tokio::test]
async fn a_server_without_edns_is_queried_without_it() {
    let script = |came: &Came| Act::Say(if came.has_edns() { came.rcode(1) } else { came.address(5) });
    let server = Server::new(script).await;
    let bench = Bench::new(sequential(vec![udp(server.at)]));
    for _ in 0..3 {
        assert_eq!(address(&bench.send_query("www.example.com").await.unwrap()), "192.0.2.5");
    }
    assert_eq!(server.count(), 4, "it is remembered");
}

#[tokio::test]
async fn a_server_that_changes_the_case_is_queried_over_tcp_until_that_is_known() {
    let script = |came: &Came| {
        let mut answer = came.address(6);
        answer[12..30].make_ascii_lowercase();
        Act::Say(if came.over_tcp { came.address(6) } else { answer })
    };
    let server = Server::new(script).await;
    let bench = Bench::new(sequential(vec![udp(server.at)]));
    for _ in 0..10 {
        assert_eq!(address(&bench.send_query("www.a-long-name.example").await.unwrap()), "192.0.2.6");
    }
    assert_eq!((server.count(), server.over_tcp()), (13, 3));
}

#[tokio::test]
async fn many_queries_share_one_connection() {
    let server = fine(7).await;
    let bench = Bench::new(sequential(vec![upstream(DnsProtocol::Tcp, server.at)]));
    let names: Vec<String> = (0..50).map(|number| format!("n{number}.example")).collect();
    let answers = futures_util::future::join_all(names.iter().map(|name| bench.send_query(name))).await;
    assert!(answers.iter().all(|reply| address(reply.as_ref().unwrap()) == "192.0.2.7"));
    assert_eq!(bench.seen.peers(), [server.at]);
}

#[tokio::test]
async fn queries_on_a_closed_connection_are_retried_on_another_one() {
    let script = |came: &Came| match came.number % 7 {
        3 => Act::Close,
        5 => Act::Half(came.address(66)),
        _ => Act::Say(came.address(8)),
    };
    let server = Server::new(script).await;
    let bench = Bench::new(sequential(vec![upstream(DnsProtocol::Tcp, server.at)]));
    for number in 0..30 {
        let reply = bench.send_query(&format!("n{number}.example")).await.unwrap();
        assert_eq!(address(&reply), "192.0.2.8");
    }
}

#[tokio::test]
async fn a_server_that_closes_after_each_answer_answers_all() {
    let server = Server::new(|came: &Came| Act::SayAndClose(came.address(22))).await;
    let bench = Bench::new(sequential(vec![upstream(DnsProtocol::Tcp, server.at)]));
    let names: Vec<String> = (0..12).map(|number| format!("n{number}.example")).collect();
    let answers = futures_util::future::join_all(names.iter().map(|name| bench.send_query(name))).await;
    assert!(answers.iter().all(|reply| address(reply.as_ref().unwrap()) == "192.0.2.22"));
    assert_eq!(bench.upstreams.status()[0].failures, 0);
}

#[tokio::test]
async fn the_next_upstream_is_queried_when_one_is_silent_slow_or_gone() {
    let silent = Server::new(|_: &Came| Act::Nothing).await;
    let slow = Server::new(|came: &Came| Act::After(Duration::from_secs(30), came.address(66))).await;
    // Closed port.
    let gone = ([127, 0, 0, 1], 1).into();
    let good = fine(9).await;
    for first in [silent.at, slow.at, gone] {
        let bench = Bench::urgent(sequential(vec![udp(first), udp(good.at)]));
        let reply = bench.send_query("www.example.com").await.unwrap();
        assert_eq!(reply.upstream.as_ref(), good.at.to_string());
    }
}

#[tokio::test]
async fn an_upstream_that_cannot_resolve_is_not_the_last_word() {
    let failing = Server::new(|came: &Came| Act::Say(came.rcode(2))).await;
    let refusing = Server::new(|came: &Came| Act::Say(came.rcode(5))).await;
    let good = fine(10).await;
    let bench = Bench::new(sequential(vec![udp(failing.at), udp(refusing.at), udp(good.at)]));
    assert_eq!(address(&bench.send_query("www.example.com").await.unwrap()), "192.0.2.10");
    let bench = Bench::new(sequential(vec![udp(refusing.at), udp(failing.at)]));
    let reply = bench.send_query("www.example.com").await.unwrap();
    assert_eq!(reply.message[3] & 0xf, 2, "what it says all the same");
    assert!(bench.upstreams.status().iter().all(|status| status.failures == 0), "they did answer");
    let missing = Server::new(|came: &Came| Act::Say(came.rcode(3))).await;
    let bench = Bench::new(sequential(vec![udp(missing.at), udp(good.at)]));
    assert_eq!(bench.send_query("www.example.com").await.unwrap().message[3] & 0xf, 3);
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_is_none() {
    let circular = |came: &Came| {
        // An alias for itself.
        let mut message = came.rcode(0);
        message[7] = 1;
        message.extend_from_slice(b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x02\xc0\x0c");
        Act::Say(message)
    };
    let forward = |came: &Came| {
        let mut message = came.address(66);
        let at = message.len() - 15;
        message[at] = at as u8;
        Act::Say(message)
    };
    let good = fine(20).await;
    for bad in [Server::new(circular).await, Server::new(forward).await] {
        let bench = Bench::new(sequential(vec![udp(bad.at), udp(good.at)]));
        assert_eq!(address(&bench.send_query("www.example.com").await.unwrap()), "192.0.2.20");
        let failure =
            Bench::new(sequential(vec![udp(bad.at)])).send_query("www.example.com").await.unwrap_err();
        assert_eq!(failure.to_string(), "malformed reply");
    }
}

#[tokio::test]
async fn a_dead_upstream_leaves_and_returns() {
    let first = fine(11).await;
    let second = fine(12).await;
    let at = first.at;
    let bench = Bench::new(sequential(vec![udp(at), udp(second.at)]));
    assert_eq!(address(&bench.send_query("www.example.com").await.unwrap()), "192.0.2.11");
    drop(first);
    let ok = || bench.upstreams.status()[0].ok;
    for _ in 0..20 {
        assert_eq!(address(&bench.send_query("www.example.com").await.unwrap()), "192.0.2.12");
    }
    until("it is known to be down", || !ok()).await;
    let shown: Arc<str> = at.to_string().into();
    let down = |event: &Event| matches!(event, Event::Down { upstream, .. } if *upstream == shown);
    assert!(bench.events.lock().iter().any(down));
    let _again = Server::again(at, |came: &Came| Act::Say(came.address(13))).await;
    until("it is back", ok).await;
    assert_eq!(address(&bench.send_query("www.example.com").await.unwrap()), "192.0.2.13");
    let up = Event::Up { upstream: shown.clone(), egress: "auto".into() };
    assert!(bench.events.lock().contains(&up));
}

#[tokio::test]
async fn a_name_that_takes_long_is_waited_for() {
    let script = |came: &Came| Act::After(Duration::from_millis(3200), came.address(21));
    let server = Server::new(script).await;
    let bench = Bench::urgent(sequential(vec![udp(server.at)]));
    assert_eq!(address(&bench.send_query("www.example.com").await.unwrap()), "192.0.2.21");
}

#[tokio::test]
async fn devices_stay_with_their_upstream_where_they_are_to() {
    let servers = [fine(1).await, fine(2).await, fine(3).await];
    let mut plan = plan(RotationMode::LoadBalance, servers.iter().map(|server| udp(server.at)).collect());
    plan.rotation.sticky_per_device = true;
    let bench = Bench::new(plan);
    let mut used = std::collections::BTreeSet::new();
    for client in 0..40 {
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..3 {
            let query = Query { client, ..query(QueryEgress::Default, "www.example.com") };
            seen.insert(bench.upstreams.send_query(query).await.unwrap().upstream);
        }
        assert_eq!(seen.len(), 1);
        used.extend(seen);
    }
    assert_eq!(used.len(), 3);
}

#[tokio::test]
async fn when_all_upstreams_are_dead_all_are_queried() {
    let script = |came: &Came| if came.number < 4 { Act::Nothing } else { Act::Say(came.address(14)) };
    let server = Server::new(script).await;
    let bench = Bench::urgent(sequential(vec![udp(server.at)]));
    let mut last = Err(Failure::NoUpstream);
    for _ in 0..4 {
        last = bench.send_query("www.example.com").await;
        if last.is_ok() {
            break;
        }
        assert!(matches!(last, Err(Failure::Timeout)), "{last:?}");
    }
    assert_eq!(address(&last.unwrap()), "192.0.2.14");
}

#[tokio::test]
async fn all_at_once_is_as_fast_as_the_fastest() {
    let slow = Server::new(|came: &Came| Act::After(Duration::from_secs(30), came.address(66))).await;
    let good = fine(15).await;
    let bench = Bench::new(plan(RotationMode::Parallel, vec![udp(slow.at), udp(good.at)]));
    assert_eq!(address(&bench.send_query("www.example.com").await.unwrap()), "192.0.2.15");
    until("both were asked", || slow.count() == 1 && good.count() == 1).await;
}

#[tokio::test]
async fn a_change_keeps_pending_queries_and_the_health_of_unchanged_upstreams() {
    let server = Server::new(|came: &Came| Act::After(Duration::from_millis(300), came.address(16))).await;
    let other = fine(17).await;
    let bench = Bench::new(sequential(vec![udp(server.at)]));
    let asking = tokio::spawn({
        let upstreams = bench.upstreams.clone();
        async move { upstreams.send_query(query(QueryEgress::Default, "www.example.com")).await }
    });
    until("it was asked", || server.count() > 0).await;
    bench.upstreams.replace(sequential(vec![udp(other.at)]));
    assert_eq!(address(&bench.send_query("www.example.com").await.unwrap()), "192.0.2.17");
    assert_eq!(address(&asking.await.unwrap().unwrap()), "192.0.2.16");
    bench.upstreams.replace(sequential(vec![udp(server.at), udp(other.at)]));
    let queries: Vec<u64> = bench.upstreams.status().iter().map(|status| status.queries).collect();
    assert_eq!(queries, [0, 1]);
}

#[tokio::test]
async fn names_go_to_the_upstreams_of_their_longest_domain() {
    let (inside, outside) = (fine(18).await, fine(19).await);
    let mut plan = sequential(vec![udp(outside.at)]);
    let mut group = plan.groups[0].clone();
    group.domain = Name::from(&DomainName::parse("corp.example").unwrap());
    group.servers = vec![udp(inside.at)];
    plan.groups.push(group.clone());
    group.domain = Name::from(&DomainName::parse("void.corp.example").unwrap());
    group.servers = Vec::new();
    plan.groups.push(group);
    let bench = Bench::new(plan);
    for (name, want) in
        [("corp.example", "192.0.2.18"), ("a.corp.example", "192.0.2.18"), ("xcorp.example", "192.0.2.19")]
    {
        assert_eq!(address(&bench.send_query(name).await.unwrap()), want, "{name}");
    }
    assert!(matches!(bench.send_query("a.void.corp.example").await, Err(Failure::NoUpstream)));
    assert!(matches!(Bench::new(Plan::default()).send_query("a.example").await, Err(Failure::NoUpstream)));
}

#[tokio::test]
async fn a_silent_upstream_is_found_without_queries_of_clients() {
    let server = fine(20).await;
    let closed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let bench = Bench::urgent(sequential(vec![udp(server.at), udp(closed)]));
    let states = || -> Vec<(bool, bool)> {
        let all = bench.upstreams.for_all_names();
        all.iter().map(|(_, stats)| (stats.last_answer.is_some(), stats.dead)).collect()
    };
    assert_eq!(states(), [(false, false); 2]);
    for _ in 0..3 {
        bench.upstreams.probe_silent(LONG).await;
    }
    assert_eq!(states(), [(true, false), (false, true)]);
    assert_eq!(server.count(), 1, "one that has just answered is not asked");
    assert!(Bench::new(Plan::default()).upstreams.for_all_names().is_empty());
}
