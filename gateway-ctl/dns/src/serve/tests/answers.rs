//! Tests of answers, and of the addresses that the dataplane gets before them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gateway_core::dns::{Action, Cause, Local};
use hickory_proto::op::ResponseCode;

use super::{code, extended, lines};
use crate::hooks::Client;
use crate::serve::settings::{Blocking, Mode};
use crate::serve::test_doubles::*;
use crate::serve::{Settings, State, Transport};
use crate::wire::rtype;

fn blocked() -> Rules {
    Rules::default()
        .rule("ads.example", Action::Block, Cause::Blocklist)
        .rule("refused.example", Action::Refuse, Cause::Rule)
        .rule("canary.example", Action::Nxdomain, Cause::Canary)
        .rule("static.example", Action::Addresses(vec!["192.0.2.7".parse().expect("v4")]), Cause::Rewrite)
}

#[tokio::test]
async fn a_blocked_name_is_blocked_for_every_type() {
    let world = Fixture::new(blocked());
    let reply = world.reply("x.ADS.example", rtype::A).await;
    assert_eq!(lines(&reply), ["x.ADS.example. 10 IN A 0.0.0.0"]);
    assert_eq!(extended(&reply), Some((15, "blocklist".into())));
    assert_eq!(lines(&world.reply("ads.example", rtype::AAAA).await), ["ads.example. 10 IN AAAA ::"]);
    for qtype in [rtype::HTTPS, rtype::SVCB, rtype::TXT, rtype::MX] {
        let reply = world.reply("ads.example", qtype).await;
        assert_eq!((code(&reply), reply.answers.len()), (ResponseCode::NoError, 0));
        assert_eq!(reply.authorities.len(), 1, "a SOA record lets it be remembered");
    }
    assert_eq!(world.upstream.times(), 0);
}

#[tokio::test]
async fn blocking_has_modes_and_can_be_paused() {
    let world = Fixture::new(blocked());
    let set = |blocking: Blocking| {
        let state = State::clone(&world.shared.state.load());
        let settings = Settings { blocking, ..Settings::clone(&state.settings) };
        world.shared.state.store(Arc::new(State { settings: Arc::new(settings), ..state }));
    };
    set(Blocking { mode: Mode::Nxdomain, ..Blocking::default() });
    assert_eq!(code(&world.reply("ads.example", rtype::A).await), ResponseCode::NXDomain);
    set(Blocking { mode: Mode::Refused, ..Blocking::default() });
    assert_eq!(code(&world.reply("ads.example", rtype::A).await), ResponseCode::Refused);
    let until = Some(jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1));
    world.upstream.knows("ads.example", rtype::A, vec![a("ads.example", 60, [192, 0, 2, 66])]);
    set(Blocking { paused_until: until, ..Blocking::default() });
    assert_eq!(lines(&world.reply("ads.example", rtype::A).await), ["ads.example. 60 IN A 192.0.2.66"]);
    assert_eq!(code(&world.reply("canary.example", rtype::A).await), ResponseCode::NXDomain);
    assert_eq!(lines(&world.reply("static.example", rtype::A).await), ["static.example. 60 IN A 192.0.2.7"]);
    set(Blocking { paused_until: Some(jiff::Timestamp::UNIX_EPOCH), ..Blocking::default() });
    assert_eq!(lines(&world.reply("ads.example", rtype::A).await), ["ads.example. 10 IN A 0.0.0.0"]);
}

#[tokio::test]
async fn unfiltered_clients_are_not_blocked() {
    let world = Fixture::new(blocked());
    world.upstream.knows("ads.example", rtype::A, vec![a("ads.example", 60, [192, 0, 2, 66])]);
    let free = Client { filtered: false, ..client(2, 0) };
    world.clients.known.lock().insert("192.0.2.9".parse().expect("v4"), Arc::new(free));
    assert_eq!(lines(&world.reply("ads.example", rtype::A).await), ["ads.example. 60 IN A 192.0.2.66"]);
    assert_eq!(lines(&world.reply("static.example", rtype::A).await), ["static.example. 60 IN A 192.0.2.7"]);
}

#[tokio::test]
async fn keys_of_encrypted_client_hello_are_kept_from_clients() {
    let world = Fixture::new(blocked());
    let alpn = b"\0\x01\0\0\x01\0\x03\x02h3".to_vec();
    let with_keys = [&alpn[..], b"\0\x05\0\x02ab"].concat();
    let https = gateway_core::dns::Record {
        name: name("keys.example"),
        rtype: rtype::HTTPS,
        ttl: 60,
        rdata: with_keys.into(),
    };
    world.upstream.knows("keys.example", rtype::HTTPS, vec![https]);
    let keys = |reply: &hickory_proto::op::Message| lines(reply).join("\n").contains("ech=");
    let stripping = Client { strips_ech: true, ..client(2, 0) };
    // Another client fills the cache that both share.
    let reply = world.reply("keys.example", rtype::HTTPS).await;
    assert!(keys(&reply), "{reply}");
    world.clients.known.lock().insert("192.0.2.9".parse().expect("v4"), Arc::new(stripping));
    let reply = world.reply("keys.example", rtype::HTTPS).await;
    assert!(!keys(&reply) && lines(&reply).join("\n").contains("alpn="), "{reply}");
}

#[tokio::test]
async fn an_alias_or_an_address_that_is_blocked_blocks_the_answer_from_the_cache_too() {
    let rules = blocked();
    let mut rules = rules.rule("moved.example", Action::Name(name("new.example")), Cause::Rewrite);
    rules.addresses.insert("192.0.2.13".parse().expect("v4"), (Action::Block, Cause::Feed));
    let world = Fixture::new(rules);
    let chain = vec![cname("shop.example", "x.ads.example"), a("x.ads.example", 60, [192, 0, 2, 66])];
    world.upstream.knows("shop.example", rtype::A, chain);
    world.upstream.knows("evil.example", rtype::A, vec![a("evil.example", 60, [192, 0, 2, 13])]);
    let mut hint = b"\0\x01\0\0\x04\0\x04".to_vec();
    hint.extend_from_slice(&[192, 0, 2, 13]);
    let https = gateway_core::dns::Record {
        name: name("hint.example"),
        rtype: rtype::HTTPS,
        ttl: 60,
        rdata: hint.into(),
    };
    world.upstream.knows("hint.example", rtype::HTTPS, vec![https]);
    for _ in 0..2 {
        let reply = world.reply("shop.example", rtype::A).await;
        assert_eq!(lines(&reply), ["shop.example. 10 IN A 0.0.0.0"]);
        assert_eq!(extended(&reply), Some((15, "blocklist".into())));
        let reply = world.reply("evil.example", rtype::A).await;
        assert_eq!(lines(&reply), ["evil.example. 10 IN A 0.0.0.0"]);
        assert_eq!(extended(&reply), Some((15, "threat feed".into())));
        assert!(world.reply("hint.example", rtype::HTTPS).await.answers.is_empty());
    }
    assert_eq!(world.upstream.times(), 3, "cached answers are looked into again");
}

#[tokio::test]
async fn a_rewrite_to_a_name_is_shown_as_an_alias_and_resolved() {
    let rules = blocked()
        .rule("moved.example", Action::Name(name("new.example")), Cause::Rewrite)
        .rule("loop.example", Action::Name(name("pool.example")), Cause::Rewrite)
        .rule("pool.example", Action::Name(name("loop.example")), Cause::Rewrite)
        .rule("bad.example", Action::Name(name("ads.example")), Cause::Rewrite);
    let world = Fixture::new(rules);
    world.upstream.knows("new.example", rtype::A, vec![a("new.example", 30, [192, 0, 2, 1])]);
    for _ in 0..2 {
        let reply = world.reply("Moved.example", rtype::A).await;
        assert_eq!(
            lines(&reply),
            ["Moved.example. 60 IN CNAME new.example.", "new.example. 30 IN A 192.0.2.1"]
        );
    }
    assert_eq!(code(&world.reply("loop.example", rtype::A).await), ResponseCode::ServFail);
    assert_eq!(lines(&world.reply("bad.example", rtype::A).await), ["bad.example. 10 IN A 0.0.0.0"]);
}

#[tokio::test]
async fn local_records_are_authoritative_and_external_aliases_are_resolved() {
    let host =
        Local { authoritative: true, answers: vec![a("nas.lan", 300, [10, 0, 0, 2])], ..Local::default() };
    let mut out =
        Local { authoritative: true, answers: vec![cname("www.lan", "web.example")], ..Local::default() };
    out.goes_on = Some(name("web.example"));
    let missing =
        Local { rcode: 3, authoritative: true, authorities: vec![soa("lan", 300, 300)], ..Local::default() };
    let rules = Rules::default().stored("nas.lan", rtype::A, host).stored("www.lan", rtype::A, out).stored(
        "none.lan",
        rtype::A,
        missing,
    );
    let world = Fixture::new(rules);
    world.upstream.knows("web.example", rtype::A, vec![a("web.example", 30, [192, 0, 2, 1])]);
    let reply = world.reply("nas.lan", rtype::A).await;
    assert_eq!(lines(&reply), ["nas.lan. 300 IN A 10.0.0.2"]);
    assert!(reply.metadata.authoritative);
    let reply = world.reply("www.lan", rtype::A).await;
    assert_eq!(lines(&reply), ["www.lan. 300 IN CNAME web.example.", "web.example. 30 IN A 192.0.2.1"]);
    let reply = world.reply("none.lan", rtype::A).await;
    assert_eq!((code(&reply), reply.authorities.len()), (ResponseCode::NXDomain, 1));
}

#[tokio::test]
async fn fqdn_entries_are_installed_before_each_answer() {
    let lessons = FakeFqdnPolicy {
        wanted: HashMap::from([(name("shop.example"), route(9))]),
        ..FakeFqdnPolicy::default()
    };
    let world = Fixture::with(Rules::default(), lessons, Settings::default());
    let chain = vec![cname("shop.example", "cdn.example"), a("cdn.example", 60, [192, 0, 2, 66])];
    world.upstream.knows("shop.example", rtype::A, chain);
    world.upstream.knows("other.example", rtype::A, vec![a("other.example", 60, [192, 0, 2, 67])]);
    let expected =
        |ttl| (1, name("shop.example"), vec![("192.0.2.66".parse().expect("v4"), Duration::from_secs(ttl))]);
    world.reply("shop.example", rtype::A).await;
    world.shared.clock.skip(Duration::from_secs(20));
    world.reply("SHOP.example", rtype::A).await;
    world.reply("other.example", rtype::A).await;
    assert_eq!(*world.lessons.learned.lock(), [expected(60), expected(40)]);
    assert_eq!(*world.upstream.partitions.lock(), [9, 0], "the question left by the policy's way");
    world.lessons.broken.store(true, Ordering::Relaxed);
    let reply = world.reply("shop.example", rtype::A).await;
    assert_eq!((code(&reply), reply.answers.len()), (ResponseCode::ServFail, 0));
    assert_eq!(extended(&reply), Some((14, "the map is full".into())));
}

#[tokio::test]
async fn unsupported_queries_get_an_error() {
    let world = Fixture::new(Rules::default());
    assert_eq!(code(&world.reply("example.com", rtype::AXFR).await), ResponseCode::NotImp);
    assert_eq!(lines(&world.reply("example.com", rtype::ANY).await).len(), 1);
    let mut version = question("example.com", rtype::A);
    let at = version.len() - 5;
    version[at] = 1;
    let reply = hickory_proto::op::Message::from_vec(&world.send_query(&version).await).expect("a message");
    assert_eq!(u16::from(code(&reply)), crate::wire::rcode::BADVERS);
    let mut chaos = question("version.bind", rtype::TXT);
    let at = chaos.len() - 12;
    chaos[at] = 3;
    let reply = hickory_proto::op::Message::from_vec(&world.send_query(&chaos).await).expect("a message");
    assert_eq!(code(&reply), ResponseCode::Refused);
    assert!(
        world.send_query(b"\x12\x34\x80\0\0\x01\0\0\0\0\0\0").await.is_empty(),
        "answers are not answered"
    );
    assert_eq!(
        world.send_query(b"\x12\x34\0\0\0\x02\0\0\0\0\0\0").await,
        b"\x12\x34\x80\x01\0\0\0\0\0\0\0\0"
    );
    assert_eq!(world.upstream.times(), 0);
}

#[tokio::test]
async fn oversized_answers_are_truncated_to_the_question() {
    let world = Fixture::new(Rules::default());
    let many: Vec<_> = (0..100).map(|n| a("many.example", 60, [192, 0, 2, n])).collect();
    world.upstream.knows("many.example", rtype::A, many);
    for _ in 0..2 {
        let reply = world.reply("many.example", rtype::A).await;
        assert!(reply.metadata.truncation && reply.answers.is_empty() && reply.edns.is_some());
    }
    let (mut out, now) = (Vec::new(), world.shared.clock.now());
    let from: IpAddr = "192.0.2.9".parse().expect("v4");
    let asked = question("many.example", rtype::A);
    world.shared.answer(&asked, from.into(), crate::serve::Transport::Tcp, now, &mut out).await;
    let reply = hickory_proto::op::Message::from_vec(&out).expect("a message");
    assert_eq!((reply.metadata.truncation, reply.answers.len()), (false, 100));
}

#[tokio::test]
async fn rfc_1996_servers_of_a_zone_say_that_it_has_changed() {
    let server = "192.0.2.53".parse().expect("v4");
    let rules = Rules { copied: Some((name("corp.example"), server)), ..Rules::default() };
    let world = Fixture::new(rules);
    let reply = async |zone: &str, qtype: u16, from: IpAddr| {
        let mut message = question(zone, qtype);
        message[2] = 0x24;
        let mut out = Vec::new();
        world.shared.answer(&message, from.into(), Transport::Udp, world.shared.clock.now(), &mut out).await;
        assert_eq!(out[..2], message[..2]);
        (out[2], out[3], out.len())
    };
    let length = question("corp.example", rtype::SOA).len() - 11;
    assert_eq!(reply("corp.example", rtype::SOA, server).await, (0xa4, 0, length));
    assert_eq!(reply("CORP.example", rtype::SOA, server).await, (0xa4, 0, length));
    let stranger = "192.0.2.54".parse().expect("v4");
    assert_eq!(reply("corp.example", rtype::SOA, stranger).await, (0xa0, 9, 12));
    assert_eq!(reply("other.example", rtype::SOA, server).await, (0xa0, 9, 12));
    assert_eq!(reply("corp.example", rtype::A, server).await, (0xa0, 1, 12));
}

#[tokio::test]
async fn rfc_2181_section_9_additional_records_are_left_out_first() {
    let addresses: Vec<_> = (0..80).map(|n| a("mail.lan", 300, [10, 0, 0, n])).collect();
    let answer = vec![cname("www.lan", "mail.lan")];
    let asked =
        Local { authoritative: true, answers: answer, additionals: addresses.clone(), ..Local::default() };
    let referral =
        Local { authorities: vec![soa("lan", 300, 300)], additionals: addresses, ..Local::default() };
    let rules = Rules::default().stored("www.lan", rtype::CNAME, asked).stored("sub.lan", rtype::A, referral);
    let world = Fixture::new(rules);
    let reply = world.reply("www.lan", rtype::CNAME).await;
    assert!(!reply.metadata.truncation && reply.answers.len() == 1 && reply.additionals.is_empty());
    let reply = world.reply("sub.lan", rtype::A).await;
    assert!(reply.metadata.truncation, "RFC 9471: a referral without its glue is none");
}
