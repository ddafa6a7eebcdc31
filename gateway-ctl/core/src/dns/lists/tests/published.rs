//! Lines of published lists: each means what the syntax of its list says, or is counted with a reason.

use std::path::Path;

use gateway_model::kinds::ThreatFeed;
use gateway_model::{Id, State};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::*;
use crate::dns::decision::{Action, ClientIdentity, Question};
use crate::dns::filter::{Canaries, Filter, Lists, Options};
use crate::dns::rtype;

/// Filter with one list.
struct ListFilter {
    filter: Filter,
    report: Report,
    now: Timestamp,
}

impl ListFilter {
    fn new(format: Format, text: &str) -> ListFilter {
        let now = Timestamp::UNIX_EPOCH;
        let mut state = State::new(now).begin(now);
        let (name, url) = ("list".to_owned(), "https://lists.example/".to_owned());
        let feed = ThreatFeed { name, url, ..Default::default() };
        let id: Id = state.create(feed).expect("a feed").0.meta.id;
        let (list, mut lists) = (read(format, text), Lists::new(KEY));
        let report = list.report.clone();
        lists.put(id, list).expect("there is room");
        let options = Options { zone: TimeZone::UTC, canaries: Canaries::default() };
        ListFilter { filter: Filter::new(&state, &lists, options), report, now }
    }

    fn action(&self, asked: &str) -> Action {
        let asked = Name::from(&DomainName::parse(asked).unwrap_or_else(|error| panic!("{asked}: {error}")));
        let question = Question { name: asked.as_ref(), qtype: rtype::A };
        self.filter.decide(&ClientIdentity::default(), question, self.now).action
    }

    fn blocks(&self, asked: &str) -> bool {
        self.action(asked) == Action::Block
    }
}

/// Rules in adblock syntax, with names that they block and names that they do not.
const RULES: &[(&str, &[&str], &[&str])] = &[
    ("||ads.example^", &["ads.example", "a.ads.example"], &["xads.example", "ads.example.org"]),
    ("||ads.example^|", &["ads.example", "a.ads.example"], &["xads.example"]),
    ("||ads.example/", &["ads.example", "a.ads.example"], &["xads.example", "ads.example.org"]),
    ("||ads.example^*", &["ads.example", "a.ads.example"], &["xads.example", "ads.example.org"]),
    (
        "||ads.example",
        &["ads.example", "a.ads.example", "ads.example.org", "ads.examples"],
        &["xads.example"],
    ),
    ("||ads.", &["ads.example", "a.ads.example.org"], &["ads-1.example", "xads.example"]),
    (
        "||ads*.example^",
        &["ads.example", "ads7.example", "a.ads7.x.example"],
        &["xads.example", "ads.example.org"],
    ),
    ("||a.*.example^", &["a.b.example", "x.a.b.c.example"], &["a.example", "xa.b.example"]),
    ("|ads.example^", &["ads.example"], &["a.ads.example"]),
    ("|ads.", &["ads.example", "ads.b.org"], &["a.ads.example"]),
    ("://ads.example^", &["ads.example"], &["a.ads.example", "xads.example"]),
    ("://*.ads.example^", &["a.ads.example", "b.a.ads.example"], &["ads.example", "xads.example"]),
    ("://*.ads.example", &["a.ads.example", "a.ads.example.org"], &["ads.example"]),
    ("://r.reklam*.com^", &["r.reklama.com", "r.reklam.x.com"], &["a.r.reklama.com", "reklama.com"]),
    ("//ads.example^", &["ads.example"], &["a.ads.example"]),
    ("http://ads.example^", &["ads.example"], &["a.ads.example"]),
    ("|http://ads.example^", &["ads.example"], &["a.ads.example"]),
    ("|https://ads.example/", &["ads.example"], &["a.ads.example"]),
    (
        ".ads.example^",
        &["a.ads.example", "b.a.ads.example"],
        &["ads.example", "xads.example", "a.ads.example.org"],
    ),
    (".ads.example", &["a.ads.example", "a.ads.example.org"], &["ads.example"]),
    ("*.ads.example^", &["a.ads.example"], &["ads.example"]),
    ("-ads.example^", &["x-ads.example", "a.x-ads.example"], &["ads.example", "x-ads.example.org"]),
    ("ads.example^", &["ads.example", "a.ads.example", "xads.example"], &["ads.example.org"]),
    ("ads.example|", &["ads.example", "xads.example"], &["ads.example.org"]),
    ("ads.example", &["ads.example", "a.ads.example"], &["xads.example"]),
    ("/^ads[0-9]+\\./", &["ads7.example"], &["ads.example", "x.ads7.example"]),
    ("||банрек.рус^", &["банрек.рус", "a.банрек.рус"], &["рус"]),
    ("0.0.0.0 ads.example", &["ads.example"], &["a.ads.example"]),
    ("0.0.0.0 ads.example#comment", &["ads.example"], &["a.ads.example"]),
    ("0.0.0.0 ads.example #comment other.example", &["ads.example"], &["other.example"]),
    ("ads.example#comment", &["ads.example"], &["comment"]),
    ("||ads.example^$important", &["ads.example"], &["xads.example"]),
    ("||ads.example^$dnstype=A", &["ads.example"], &["xads.example"]),
];

/// Rules that a resolver cannot follow, with a part of the reason.
const REFUSED: &[(&str, &str)] = &[
    ("/cdn-cgi/pe/bag2?r[]=*eth-pocket.example", "Paths"),
    ("||ads.example/banner", "Paths"),
    ("||ads.example/?", "Paths"),
    ("||ads.example^*_tag.js", "Paths"),
    ("||ads.example^empty", "Paths"),
    ("||ads.example^*.gif?", "Paths"),
    ("||ads.example:8040", "Ports"),
    ("||ads*.example:*/", "Ports"),
    ("||216.21.", "addresses"),
    ("||ad.doubleclick.*;sz=", "wildcard"),
    ("||shop.example*&partner=", "wildcard"),
    ("ads.example##.banner", "elements"),
    ("ads.example#@#.banner", "elements"),
    ("ads.example#?#.banner", "elements"),
    ("ads.example#%#Object.defineProperty(window, 'Blob', { get: function() { return; } });", "elements"),
    ("ads.example#@%#window.x", "elements"),
    ("ads.example#$#body { a: b }", "elements"),
    ("||ads.example^$third-party", "not known"),
    ("||ads.example^$client=192.0.2.1", "certain clients"),
    ("||", "empty"),
    ("||^", "empty"),
];

#[test]
fn each_form_of_a_rule_blocks_what_its_syntax_says() {
    for (rule, blocked, passed) in RULES {
        let list = ListFilter::new(Format::Adblock, rule);
        assert_eq!((list.report.taken, list.report.ignored), (1, 0), "{rule}: {:?}", list.report.notes);
        for name in *blocked {
            assert!(list.blocks(name), "{rule} blocks {name}");
        }
        for name in *passed {
            assert!(!list.blocks(name), "{rule} does not block {name}");
        }
        let exception = ListFilter::new(Format::Adblock, &format!("/./\n@@{rule}"));
        let is_rule =
            !rule.starts_with("0.0.0.0") && !rule.contains("#comment") && !rule.contains("important");
        for name in blocked.iter().filter(|_| is_rule) {
            assert!(!exception.blocks(name), "@@{rule} lets {name} pass");
        }
    }
}

#[test]
fn rule_that_a_resolver_cannot_follow_is_counted_with_its_reason() {
    for (rule, reason) in REFUSED {
        let list = ListFilter::new(Format::Adblock, rule);
        assert_eq!((list.report.taken, list.report.ignored), (0, 1), "{rule}");
        let note = &list.report.notes[0];
        assert!(note.line == 1 && note.reason.contains(reason), "{rule}: {}", note.reason);
    }
}

#[test]
fn rule_for_an_address_blocks_answers_with_it() {
    for rule in ["||203.0.113.6/", "||203.0.113.6^", "|203.0.113.6|", "://203.0.113.6^"] {
        let list = read(Format::Adblock, &format!("{rule}\n@@||203.0.113.7^\n"));
        let net = |text: &str| list.nets.find(text.parse().expect("an address")).map(|(_, effect)| effect);
        assert_eq!(net("203.0.113.6"), Some(Effect::Block), "{rule}");
        assert_eq!(net("203.0.113.7"), Some(Effect::Allow), "{rule}");
        assert_eq!((net("203.0.113.5"), counts(&list)), (None, (2, 2, 0)), "{rule}");
    }
}

#[test]
fn badfilter_disables_the_rule_wherever_it_is() {
    let list = ListFilter::new(
        Format::Adblock,
        "||one.example^$badfilter\n||one.example^\n||two.example^\n||two.example$badfilter\n||star*.example^\n\
         ||star*.example^$badfilter\n||hard.example^$important\n||hard.example^$badfilter\n||soft.example^$important\n\
         ||soft.example^$important,badfilter\n||deny.example^$denyallow=x.deny.example\n\
         ||deny.example^$badfilter,denyallow=x.deny.example\n@@||good.two.example^\n@@||good.two.example^$badfilter\n\
         ||bad.example^$badfilter,third-party\n",
    );
    for disabled in ["one.example", "star7.example", "soft.example", "deny.example"] {
        assert!(!list.blocks(disabled), "{disabled}");
    }
    for kept in ["two.example", "hard.example", "good.two.example"] {
        assert!(list.blocks(kept), "{kept}: another rule was disabled");
    }
    assert_eq!((list.report.taken, list.report.ignored), (14, 1));
}

#[test]
fn undoable_actions_of_a_response_policy_zone_answer_with_no_records_and_are_counted() {
    for record in [
        "bad.example TXT \"walled\"",
        "bad.example MX 10 mail.example.",
        "bad.example TYPE65280 \\# 0",
        "bad.example CNAME *.garden.example.",
        "bad.example A garden",
    ] {
        let list = ListFilter::new(Format::Rpz, &format!("{record}\n"));
        assert_eq!(list.action("bad.example"), Action::NoData, "{record}");
        assert_eq!((list.report.ignored, list.report.notes.len()), (1, 1), "{record}");
    }
    let walled = ListFilter::new(Format::Rpz, "wall.example TXT \"x\"\nwall.example A 192.0.2.9\n");
    assert!(matches!(walled.action("wall.example"), Action::Addresses(_)), "what can be done is done");
    let list =
        read(Format::Rpz, "24.0.113.0.203.rpz-ip A 192.0.2.9\n32.1.113.0.203.rpz-ip CNAME garden.example.\n");
    for address in ["203.0.113.9", "203.0.113.1"] {
        let found = list.nets.find(address.parse().expect("an address")).map(|(_, effect)| effect);
        assert_eq!(found, Some(Effect::NoData), "{address}");
    }
    assert_eq!(list.report.ignored, 2);
    // Signatures and denial records belong to the zone; text that is no record names nothing.
    let list = ListFilter::new(
        Format::Rpz,
        "good.example CNAME rpz-passthru.\ngood.example RRSIG CNAME 8 2 60 x\ngood.example NSEC a. CNAME\nportal.example sign in\n",
    );
    assert_eq!(list.action("good.example"), Action::Pass);
    assert_eq!((list.action("portal.example"), list.report.ignored), (Action::Pass, 1));
}

#[test]
fn tie_between_formats_is_no_list_of_addresses() {
    for (text, format) in [
        ("192.0.2.1\nads.example\n", Format::Domains),
        ("192.0.2.1\n||ads.example^\n", Format::Adblock),
        ("192.0.2.1\n0.0.0.0 ads.example\n", Format::Hosts),
        ("192.0.2.1\n192.0.2.2\nads.example\n", Format::Ip),
    ] {
        let list = read(None, text);
        assert_eq!(list.format, format, "{text}");
        assert!(format == Format::Ip || blocks(&list, "ads.example"), "{text}");
    }
}

/// Reads lines of a published list that may be beside the repository: it has another licence.
fn published(file: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/lists");
    let text = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
    text.lines().map(str::to_owned).filter(|line| !line.is_empty()).collect()
}

/// Returns names that a rule must block, from its text alone.
fn examples(rule: &str) -> Vec<String> {
    let text = rule.trim_start_matches("@@").trim_start_matches("|").trim_start_matches("http://");
    let text = text.trim_start_matches("https://").trim_start_matches(':').trim_start_matches("//");
    let open = !text.ends_with(['^', '/', '|']);
    let name = text.trim_end_matches(['|', '^', '/', '*']).replace('*', "x7");
    let before = if name.starts_with(['.', '-']) { "a" } else { "" };
    let behind = if open && name.ends_with('.') { "com" } else { "" };
    let mut names = vec![format!("{before}{name}{behind}")];
    if rule.starts_with("||") {
        names.push(format!("sub.{}", names[0]));
    }
    names
}

#[test]
fn each_line_of_published_lists_is_taken_or_counted() {
    let own = RULES.iter().map(|(rule, ..)| (*rule).to_owned());
    let own = own.chain(REFUSED.iter().map(|(rule, _)| (*rule).to_owned()));
    let mut taken = 0;
    let patterns = published("adblock-patterns.txt");
    let lines: Vec<String> =
        patterns.iter().cloned().chain(published("adblock-simple.txt")).chain(own).collect();
    for line in &lines {
        let list = ListFilter::new(Format::Adblock, line);
        assert_eq!(list.report.taken + list.report.ignored, 1, "{line}: neither taken nor counted");
        taken += list.report.taken;
        let is_name = !line.contains(['$', '#', ' ']) && !line.starts_with('/');
        let is_address = line.bytes().all(|byte| byte.is_ascii_digit() || b"|./^".contains(&byte));
        if list.report.taken == 0 || line.starts_with("@@") || !is_name || is_address {
            continue;
        }
        for name in examples(line) {
            assert!(list.blocks(&name), "{line} does not block {name}");
        }
    }
    let refused = lines.len() as u64 - taken;
    assert!(refused <= 40 + REFUSED.len() as u64, "{refused} of {} lines are not taken", lines.len());
    for line in published("hosts.txt").iter().filter(|line| line.starts_with("0.0.0.0 ")) {
        let list = ListFilter::new(Format::Hosts, line);
        let name = line.split_whitespace().nth(1).expect("a name");
        assert!(name == "0.0.0.0" || list.blocks(name), "{line}: {:?}", list.report.notes);
    }
}
