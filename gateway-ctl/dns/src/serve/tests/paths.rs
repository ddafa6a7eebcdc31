//! Tests that the fast path and the slow path give identical answers, byte by byte.

use std::collections::HashMap;

use gateway_core::dns::{Action, Cause, Local};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::serve::test_doubles::*;
use crate::serve::{QueryContext, Settings, Transport};
use crate::wire::{Request, rtype};

const NAMES: [&str; 10] = [
    "ads.example",
    "x.ads.example",
    "refused.example",
    "nodata.example",
    "static.example",
    "nas.lan",
    "www.example",
    "shop.example",
    "many.example",
    "learned.example",
];

const TYPES: [u16; 8] =
    [rtype::A, rtype::AAAA, rtype::HTTPS, rtype::TXT, rtype::ANY, rtype::AXFR, rtype::SOA, rtype::MX];

fn world() -> Fixture {
    let host =
        Local { authoritative: true, answers: vec![a("nas.lan", 300, [10, 0, 0, 2])], ..Local::default() };
    let addresses = vec!["192.0.2.7".parse().expect("v4"), "2001:db8::7".parse().expect("v6")];
    let rules = Rules::default()
        .rule("ads.example", Action::Block, Cause::Blocklist)
        .rule("refused.example", Action::Refuse, Cause::Rule)
        .rule("nodata.example", Action::NoData, Cause::Canary)
        .rule("static.example", Action::Addresses(addresses), Cause::Rewrite)
        .stored("nas.lan", rtype::A, host);
    let lessons = FakeFqdnPolicy {
        wanted: HashMap::from([(name("learned.example"), route(3))]),
        ..FakeFqdnPolicy::default()
    };
    let world = Fixture::with(rules, lessons, Settings::default());
    let upstream = &world.upstream;
    upstream.knows("www.example", rtype::A, vec![a("www.example", 3600, [192, 0, 2, 1])]);
    upstream.knows("learned.example", rtype::A, vec![a("learned.example", 3600, [192, 0, 2, 3])]);
    let chain = vec![cname("shop.example", "y.ads.example"), a("y.ads.example", 3600, [192, 0, 2, 66])];
    upstream.knows("shop.example", rtype::A, chain);
    let many = (0..40).map(|n| a("many.example", 3600, [192, 0, 2, n])).collect();
    upstream.knows("many.example", rtype::A, many);
    world
}

prop_compose! {
    fn asked()(
        text in prop::sample::select(NAMES.to_vec()),
        upper in any::<u32>(),
        qtype in prop::sample::select(TYPES.to_vec()),
        id in any::<[u8; 2]>(),
        flags in prop::sample::select(vec![[1, 0], [0, 0], [1, 0x20], [1, 0x10], [1, 0x30]]),
        edns in prop::option::of((400u16..4096, any::<bool>(), 0u8..2, prop::bool::weighted(0.2))),
        class in prop::sample::select(vec![1u8, 1, 1, 3]),
    ) -> Vec<u8> {
        let cased = text.bytes().enumerate().map(|(at, byte)| match upper >> at & 1 {
            1 => byte.to_ascii_uppercase(),
            _ => byte,
        });
        let text = String::from_utf8(cased.collect()).expect("a name");
        let mut message = question(&text, qtype);
        (message[0], message[1], message[2], message[3]) = (id[0], id[1], flags[0], flags[1]);
        let opt = message.len() - 11;
        message[opt - 1] = class;
        match edns {
            None => {
                message.truncate(opt);
                message[11] = 0;
            }
            Some((payload, dnssec_ok, version, subnet)) => {
                message[opt + 3..opt + 5].copy_from_slice(&payload.to_be_bytes());
                message[opt + 6] = version;
                message[opt + 7] = if dnssec_ok { 0x80 } else { 0 };
                if subnet {
                    message[opt + 10] = 11;
                    message.extend_from_slice(&[0, 8, 0, 7, 0, 1, 24, 0, 192, 0, 2]);
                }
            }
        }
        message
    }
}

#[test]
fn fast_path_answers_equal_slow_path_answers() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let world = runtime.block_on(async { world() });
    let from: std::net::IpAddr = "192.0.2.9".parse().expect("v4");
    let at_once = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(Config { cases: 2000, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&asked(), |message| {
        // A first query fills the cache.
        runtime.block_on(world.send_query(&message));
        let request = Request::read(&message).expect("a query");
        let state = world.shared.state.load_full();
        let (client, now) = (state.clients.client(&from.into()), world.shared.clock.now());
        let asking = QueryContext::new(&state, &request, &client, Transport::Udp, now);
        let (mut out, mut general) = (Vec::new(), Vec::new());
        runtime.block_on(world.shared.answer(&message, from.into(), Transport::Udp, now, &mut general));
        if world.shared.answer_fast(&asking, &mut out).is_some() {
            at_once.set(at_once.get() + 1);
            prop_assert_eq!(&out, &general);
        }
        hickory_proto::op::Message::from_vec(&general).expect("hickory reads it");
        Ok(())
    });
    outcome.expect("the same answers");
    assert!(at_once.get() > 1900, "{} of 2000", at_once.get());
}
