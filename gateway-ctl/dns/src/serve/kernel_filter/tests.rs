//! The filter of the kernel compared with the resolver: whatever the kernel answers, the resolver answers alike.

use std::sync::Arc;
use std::time::Duration;

use gateway_common::wire::Address;
use gateway_model::kinds::DnsRewrite;
use gateway_model::kinds::dns::Scope;
use gateway_model::kinds::dns_filter_rule::FilterAction;
use gateway_model::pattern::Match;
use jiff::Timestamp;
use proptest::prelude::*;

use self::fixture::{FilterFixture, Inputs, client_address};
use crate::hooks::LocalAnswers;
use crate::query_log::Filter as LogFilter;
use crate::serve::settings::{Mode, Rate, Settings};
use crate::serve::test_doubles::question;
use crate::wire::rtype;

mod fixture;

/// Returns a query with these flags and EDNS flags, and with a cookie.
fn query(text: &str, qtype: u16, flags: u16, edns: Option<u16>, cookie: bool) -> Vec<u8> {
    let mut message = question(text, qtype);
    message.truncate(12 + text.len() + if text.is_empty() { 1 } else { 2 } + 4);
    message[2..4].copy_from_slice(&flags.to_be_bytes());
    message[10..12].fill(0);
    if let Some(edns) = edns {
        message[11] = 1;
        message.extend_from_slice(&[0, 0, 41, 4, 208, 0, 0]);
        message.extend_from_slice(&edns.to_be_bytes());
        message.extend_from_slice(if cookie {
            &[0, 12, 0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8]
        } else {
            &[0, 0]
        });
    }
    message
}

#[tokio::test]
async fn answers_of_all_kinds_equal_the_resolvers() {
    let mut inputs = Inputs::new();
    inputs.block("own.example");
    inputs.list(false, "||list.example^\n|exact.example^\n");
    inputs.list(true, "0.0.0.0 feed.example\n");
    for (name, action) in
        [("rule", FilterAction::Block), ("none", FilterAction::Nxdomain), ("not", FilterAction::Refuse)]
    {
        inputs.rule(Match::Suffix, &format!("{name}.example"), action, Scope::default());
    }
    for mode in [Mode::NullIp, Mode::Nxdomain, Mode::Refused] {
        let mut settings = Settings::default();
        (settings.blocking.mode, settings.blocking.ttl) = (mode, 77);
        let fixture = FilterFixture::new(&inputs, settings);
        for name in ["own", "list", "exact", "feed", "rule", "none", "not"] {
            for qtype in [rtype::A, rtype::AAAA, rtype::HTTPS, 257] {
                for (flags, edns, cookie) in [
                    (0x0100, None, false),
                    (0x0120, Some(0), true),
                    (0x0110, Some(0x8000), false),
                    (0, Some(0x8000), true),
                ] {
                    let name = format!("{name}.example");
                    fixture.check(&query(&name, qtype, flags, edns, cookie));
                    fixture.check(&query(&name.to_uppercase(), qtype, flags, edns, cookie));
                }
            }
        }
        fixture.check(&query("www.list.example", rtype::A, 0x0100, None, false));
        fixture.check(&query("use-application-dns.net", rtype::A, 0x0100, None, false));
        for name in ["www.exact.example", "www.feed.example", "example", "lists.example"] {
            assert_eq!(fixture.kernel(&query(name, rtype::A, 0x0100, None, false)), None, "{name}");
        }
    }
}

#[tokio::test]
async fn queries_that_are_not_plain_are_the_resolvers() {
    let mut inputs = Inputs::new();
    inputs.block("own.example");
    let fixture = FilterFixture::new(&inputs, Settings::default());
    let plain = query("own.example", rtype::A, 0x0100, Some(0), false);
    fixture.check(&plain);
    let end = plain.len();
    let changed = |at: usize, value: u8| {
        let mut message = plain.clone();
        message[at] = value;
        message
    };
    let mut others = vec![
        ("a response", changed(2, 0x81)),
        ("a notification", changed(2, 0x21)),
        ("truncated", changed(2, 0x03)),
        ("two questions", changed(5, 2)),
        ("an answer", changed(7, 1)),
        ("two additional records", changed(11, 2)),
        ("class CH", changed(end - 12, 3)),
        ("another class of names", changed(12, 0x83)),
        ("EDNS version 1", changed(end - 5, 1)),
        ("an unknown EDNS flag", changed(end - 3, 1)),
        ("data that is missing", changed(end - 1, 4)),
        ("more behind it", [&plain[..], &[0]].concat()),
    ];
    for qtype in [0, 41, 249, 250, 251, 252, 255] {
        others.push(("a special type", query("own.example", qtype, 0x0100, None, false)));
    }
    for (what, message) in others {
        assert_eq!(fixture.kernel(&message), None, "{what}");
    }
    let deep = format!("{}own.example", "a.".repeat(16));
    assert_eq!(fixture.kernel(&query(&deep, rtype::A, 0x0100, None, false)), None, "too many labels");
}

#[tokio::test]
async fn changes_take_effect_at_once_and_the_table_follows() {
    let mut inputs = Inputs::new();
    inputs.block("own.example");
    let fixture = FilterFixture::new(&inputs, Settings::default());
    let message = query("own.example", rtype::A, 0x0100, None, false);
    fixture.check(&message);
    fixture.change(|_| {});
    assert_eq!(fixture.kernel(&message), None, "the resolver has to serve the client again");
    fixture.serve();
    fixture.check(&message);
    assert_eq!(fixture.kernel.0.lock().tables, 1, "the same names are not loaded twice");
    inputs.allow("own.example");
    let filter: Arc<dyn LocalAnswers> = Arc::new(inputs.filter());
    fixture.change(|state| state.local_answers = filter.clone());
    assert_eq!(fixture.kernel(&message), None, "it is allowed");
    fixture.serve();
    assert_eq!(fixture.kernel(&message), None, "it is still allowed");
    assert_eq!(fixture.kernel.0.lock().tables, 2);
}

#[tokio::test]
async fn no_client_is_added_while_nothing_is_blocked() {
    let mut inputs = Inputs::new();
    inputs.block("own.example");
    let fixture = FilterFixture::new(&inputs, Settings::default());
    let message = query("own.example", rtype::A, 0x0100, None, false);
    let with = |change: &dyn Fn(&mut Settings)| {
        fixture.change(|state| change(Arc::make_mut(&mut state.settings)));
        fixture.serve();
        fixture.kernel(&message).is_some()
    };
    assert!(!with(&|settings| settings.blocking.enabled = false));
    assert!(with(&|settings| settings.blocking.enabled = true));
    let later = Timestamp::now() + Duration::from_secs(60);
    assert!(!with(&|settings| settings.blocking.paused_until = Some(later)));
    assert!(with(&|settings| settings.blocking.paused_until = Some(Timestamp::UNIX_EPOCH)));
    fixture.kernel.0.lock().broken = true;
    assert!(!with(&|settings| settings.blocking.ttl = 99), "the table is not loaded");
}

#[tokio::test]
async fn redirected_queries_are_answered_where_the_resolver_takes_any_address() {
    let mut inputs = Inputs::new();
    inputs.block("own.example");
    let fixture = FilterFixture::new(&inputs, Settings::default());
    let message = query("own.example", rtype::A, 0x0100, None, false);
    let redirected = |fixture: &FilterFixture| fixture.kernel.answer(&message, Address([0; 4])).is_some();
    assert!(!redirected(&fixture));
    fixture.shared().kernel_filter.set_any_address([true, false]);
    fixture.serve();
    assert!(redirected(&fixture));
}

#[tokio::test]
async fn hits_are_logged_with_the_explanation_and_take_tokens_of_the_rate_limit() {
    let mut inputs = Inputs::new();
    inputs.list(false, "||list.example^\n");
    let client_rate = Rate { per_second: 2, burst: 1 };
    let fixture = FilterFixture::new(&inputs, Settings { client_rate, ..Settings::default() });
    let message = query("www.list.example", rtype::A, 0x0100, None, false);
    for _ in 0..8 {
        fixture.kernel(&message).expect("within the budget of four seconds");
    }
    assert_eq!(fixture.kernel(&message), None, "the budget is spent");
    fixture.shared().collect_filter_hits();
    let filter = &fixture.shared().kernel_filter;
    assert_eq!((filter.hits(), filter.unexplained()), (8, 0));
    let limit = &fixture.shared().limit;
    let next = limit.take_client(client_rate, client_address(), fixture.shared().clock.ms());
    assert_ne!(next, crate::serve::rate_limit::Allowance::Answer);
    let rows = fixture.shared().log.read(&LogFilter::default(), None, 100).rows;
    assert_eq!(rows.len(), 8);
    for row in rows {
        assert_eq!(row.rule.as_deref(), Some("||list.example^"));
    }
}

/// A rule of any kind.
fn any_rule() -> impl Strategy<Value = (u8, u8, String)> {
    (0u8..14, 0u8..4, "[ab](\\.[ab]){0,3}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// The kernel answers only what the resolver answers, with the same bytes.
    #[test]
    fn whatever_the_kernel_answers_the_resolver_answers_alike(
        rules in prop::collection::vec(any_rule(), 0..6),
        blocked in prop::collection::vec("[ab](\\.[ab]){0,2}", 1..4),
        asked in prop::collection::vec(("[abC](\\.[ab]){0,4}", 0usize..4), 1..40),
        seed in any::<u16>(),
    ) {
        let mut inputs = Inputs::new();
        blocked.iter().for_each(|name| inputs.list(seed % 5 == 0, &format!("||{name}^\n")));
        for (kind, action, name) in &rules {
            let action = [FilterAction::Block, FilterAction::Nxdomain, FilterAction::Allow, FilterAction::Log]
                [usize::from(*action)];
            let [own, other] = inputs.devices.map(|device| Scope { devices: vec![device], ..Scope::default() });
            match kind {
                0 => inputs.block(name),
                1 => inputs.allow(name),
                2 => inputs.list(true, &format!("0.0.0.0 {name}\n")),
                3 => inputs.list(false, &format!("@@||{name}^\n")),
                4 => inputs.rule(Match::Exact, name, action, Scope::default()),
                5 => inputs.rule(Match::Suffix, name, action, Scope::default()),
                6 => inputs.rule(Match::Suffix, name, action, own),
                12 => inputs.rule(Match::Suffix, name, action, other),
                7 => inputs.rule(Match::Wildcard, &format!("*.{name}"), action, Scope::default()),
                8 => inputs.rule(Match::Regex, &format!("^{name}$"), action, Scope::default()),
                13 => inputs.rule(Match::Regex, &format!("^{name}$"), action, other),
                9 => {
                    let allows = if action == FilterAction::Allow { "@@" } else { "" };
                    let pattern = format!("{allows}||{name}^$dnstype=AAAA");
                    inputs.rule(Match::Adblock, &pattern, action, Scope::default());
                }
                10 => inputs.rule(Match::Suffix, name, FilterAction::Rewrite, Scope::default()),
                _ => {
                    let (domain, answer) = (name.clone(), "192.0.2.8".to_owned());
                    let rewrite = DnsRewrite { domain, answer, enabled: true, ..Default::default() };
                    // The same domain may have it already.
                    let _ = inputs.state.create(rewrite);
                }
            }
        }
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let _entered = runtime.enter();
        let fixture = FilterFixture::new(&inputs, Settings::default());
        for (name, qtype) in &asked {
            let qtype = [rtype::A, rtype::AAAA, rtype::HTTPS, 16][*qtype];
            let message = query(name, qtype, 0x0100, (seed % 2 == 0).then_some(0), false);
            if let Some(answer) = fixture.kernel(&message) {
                prop_assert_eq!(Some(answer), fixture.resolver(&message), "{} {}", name, qtype);
            }
        }
        fixture.shared().collect_filter_hits();
        prop_assert_eq!(fixture.shared().kernel_filter.unexplained(), 0);
    }
}
