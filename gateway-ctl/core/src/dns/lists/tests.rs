//! Tests of lists in every format, and of bytes in none.

use gateway_model::domain::DomainName;
use proptest::prelude::*;

use super::entries::NOTES;
use super::*;
use crate::dns::domain_set::{Effect, Table, Tag};
use crate::dns::name::Name;

mod published;

const KEY: Key = Key::new(7);

fn read(format: impl std::convert::Into<Option<Format>>, text: &str) -> List {
    Reader::read(format.into(), KEY, text.as_bytes())
}

/// Returns the matches of a name in the list: the name of each entry and its effect.
fn says(list: &List, asked: &str) -> Vec<(String, Effect)> {
    let mut table = Table::new(KEY);
    table.put(Tag::new(1).expect("a tag"), &list.names);
    let (asked, mut said) = (Name::from(&DomainName::parse(asked).expect("a name")), Vec::new());
    table.find(asked.as_ref(), |hit| said.push((hit.name.to_string(), hit.effect)));
    said
}

fn blocks(list: &List, asked: &str) -> bool {
    says(list, asked).iter().any(|(_, effect)| !effect.allows())
}

fn counts(list: &List) -> (u64, u64, u64) {
    (list.report.lines, list.report.taken, list.report.ignored)
}

#[test]
fn a_hosts_file_lists_these_names_only() {
    let list = read(
        Format::Hosts,
        "# comment\r\n127.0.0.1 localhost\r\n\r\n0.0.0.0 Ads.Example.com tracker.example # two\r\n:: six.example\r\n\
         192.0.2.1 nas.example\n0.0.0.0\n0.0.0.0 bücher.example\n0.0.0.0 com\n0.0.0.0 bad!.example\nfe80::1%lo0 localhost",
    );
    assert_eq!(list.format, Format::Hosts);
    assert_eq!(says(&list, "ads.example.com"), [("ads.example.com".to_owned(), Effect::Block)]);
    assert!(!blocks(&list, "www.ads.example.com"), "a hosts file names hosts");
    assert!(
        blocks(&list, "tracker.example") && blocks(&list, "six.example") && blocks(&list, "bücher.example")
    );
    assert!(!blocks(&list, "nas.example") && !blocks(&list, "localhost"));
    assert_eq!(counts(&list), (11, 4, 4));
    let notes: Vec<u64> = list.report.notes.iter().map(|note| note.line).collect();
    assert_eq!(notes, [6, 7, 9, 10]);
}

#[test]
fn a_list_of_names_lists_what_is_below_them_too() {
    let list = read(
        Format::Domains,
        "\u{feff}ads.example\n*.wild.example\n.dot.example\n# c\n; c\n// c\n! c\ntracker.example # why\nUPPER.Example.\n\
         192.0.2.1\ncom\nhttp://x.example/\n1.2.3.4.5\n||rule.example^\n",
    );
    for name in
        ["ads.example", "a.b.ads.example", "wild.example", "x.wild.example", "dot.example", "upper.example"]
    {
        assert!(blocks(&list, name), "{name}");
    }
    assert!(blocks(&list, "tracker.example") && blocks(&list, "rule.example") && !blocks(&list, "a.com"));
    assert!(blocks(&list, "x.example") && !blocks(&list, "a.x.example"), "the host of a URL");
    assert_eq!(counts(&list), (14, 7, 3));
}

#[test]
fn adblock_rules_are_taken_as_far_as_a_resolver_can_obey_them() {
    let list = read(
        Format::Adblock,
        "[Adblock Plus]\n! comment\n# comment\n#\n||ads.example^\n@@||good.ads.example^\n||hard.example^$important\n\
         @@||soft.example^$important\n|exact.example^\n||a.example^$dnstype=AAAA\n||star*.example^\n/^ad[0-9]+\\./\n\
         ||deny.example^$denyallow=x.deny.example\nplain.example\n0.0.0.0 hosts.example\n||page.example/banner\n\
         example.com##.ad\n##.ad\n||third.example^$third-party\n||client.example^$client=192.0.2.1\n||zip^\n||bücher.example^\n",
    );
    assert_eq!(
        says(&list, "good.ads.example"),
        [("good.ads.example".to_owned(), Effect::Allow), ("ads.example".to_owned(), Effect::Block)]
    );
    assert_eq!(says(&list, "x.hard.example"), [("hard.example".to_owned(), Effect::BlockAlways)]);
    assert_eq!(says(&list, "soft.example"), [("soft.example".to_owned(), Effect::AllowAlways)]);
    assert!(blocks(&list, "exact.example") && !blocks(&list, "www.exact.example"));
    assert!(
        blocks(&list, "www.plain.example") && blocks(&list, "any.zip") && blocks(&list, "x.bücher.example")
    );
    assert!(blocks(&list, "hosts.example") && !blocks(&list, "x.hosts.example"));
    let rules: Vec<&str> = list.rules.iter().map(|rule| &*rule.text).collect();
    assert_eq!(
        rules,
        [
            "||a.example^$dnstype=AAAA",
            "||star*.example^",
            "/^ad[0-9]+\\./",
            "||deny.example^$denyallow=x.deny.example"
        ]
    );
    assert_eq!(counts(&list), (22, 13, 5));
}

#[test]
fn a_response_policy_zone_says_what_is_done() {
    let zone = "$TTL 300\n$ORIGIN rpz.example.\n@ IN SOA ns.rpz.example. host.rpz.example. (\n 1 3600\n 600 86400 300 )\n  IN NS ns.rpz.example.\n\
        bad.example CNAME . ; why\n*.bad.example 300 IN CNAME .\nempty.example CNAME *.\ngood.bad.example CNAME rpz-passthru.\n\
        drop.example.rpz.example. CNAME rpz-drop.\nwalled.example A 192.0.2.9\n  AAAA 2001:db8::9\nnull.example A 0.0.0.0\n\
        alias.example CNAME garden.example.\n24.0.2.0.192.rpz-ip CNAME .\n48.zz.1.db8.2001.rpz-ip CNAME rpz-passthru.\n\
        32.1.2.0.192.rpz-client-ip CNAME .\nns.example.rpz-nsdname CNAME .\ntxt.example TXT \"hi\"\ntcp.example CNAME rpz-tcp-only.\n\
        other.example. CNAME .\n";
    let list = read(Format::Rpz, zone);
    assert_eq!(says(&list, "bad.example"), [("bad.example".to_owned(), Effect::Nxdomain)]);
    assert_eq!(says(&list, "x.bad.example"), [("bad.example".to_owned(), Effect::Nxdomain)]);
    assert_eq!(says(&list, "good.bad.example")[0], ("good.bad.example".to_owned(), Effect::Allow));
    assert_eq!(says(&list, "empty.example"), [("empty.example".to_owned(), Effect::NoData)]);
    assert!(says(&list, "x.empty.example").is_empty());
    assert_eq!(says(&list, "drop.example"), [("drop.example".to_owned(), Effect::Refuse)]);
    assert_eq!(says(&list, "null.example"), [("null.example".to_owned(), Effect::Block)]);
    let rules: Vec<&str> = list.rules.iter().map(|rule| &*rule.text).collect();
    assert_eq!(
        rules,
        [
            "walled.example A 192.0.2.9",
            "walled.example AAAA 2001:db8::9",
            "alias.example CNAME garden.example."
        ]
    );
    let net = |text: &str| list.nets.find(text.parse().expect("an address")).map(|(_, effect)| effect);
    assert_eq!(net("192.0.2.77"), Some(Effect::Nxdomain));
    assert_eq!(net("2001:db8:1::5"), Some(Effect::Allow));
    // The TXT record is taken as no records, and counted as well.
    assert_eq!(counts(&list), (22, 12, 5));
}

#[test]
fn a_zone_without_an_origin_has_names_as_they_are() {
    let list = read(
        Format::Rpz,
        "@ 60 IN SOA localhost. root.localhost. 1 2 3 4 5\n@ NS localhost.\nbad.example CNAME .\n",
    );
    assert!(blocks(&list, "bad.example"));
    let list = read(
        Format::Rpz,
        "rpz.local. SOA a. b. 1 2 3 4 5\nrpz.local. NS a.\nbad.example.rpz.local. CNAME .\nb.example CNAME .\n",
    );
    assert!(blocks(&list, "bad.example") && blocks(&list, "b.example"));
    assert_eq!(list.report.ignored, 0);
}

#[test]
fn a_list_of_addresses_has_addresses_and_networks() {
    let list = read(
        Format::Ip,
        "# c\n192.0.2.1\n198.51.100.0/24 ; SBL1\n2001:db8::/32,x\n0.0.0.0/0\nname.example\n",
    );
    assert_eq!(counts(&list), (6, 3, 2));
    assert!(list.nets.find("198.51.100.9".parse().expect("an address")).is_some());
}

#[test]
fn the_first_lines_determine_the_format() {
    let cases = [
        ("# c\n0.0.0.0 a.example\n0.0.0.0 b.example\n", Format::Hosts),
        ("# c\na.example\nb.example # x\n", Format::Domains),
        ("[Adblock Plus 2.0]\n! c\n||a.example^\n", Format::Adblock),
        ("! c\nexample.com\n||a.example^\n@@||b.example^\n", Format::Adblock),
        ("$TTL 2h\n@ SOA a. b. 1 2 3 4 5\na.example CNAME .\n", Format::Rpz),
        ("; c\na.example 60 IN CNAME .\n", Format::Rpz),
        ("# c\n192.0.2.1\n192.0.2.0/24 ; x\n", Format::Ip),
        ("", Format::Domains),
    ];
    for (text, want) in cases {
        assert_eq!(read(None, text).format, want, "{text}");
    }
}

#[test]
fn lines_without_an_end_are_given_up() {
    let text = format!("a.example\n{}\nb.example\n{}", "x".repeat(100_000), "y".repeat(MAX_LINE + 1));
    for piece in [usize::MAX, 1000] {
        let mut reader = Reader::new(Some(Format::Domains), KEY);
        text.as_bytes().chunks(piece.min(text.len())).for_each(|piece| reader.push(piece));
        let list = reader.finish();
        assert_eq!(counts(&list), (4, 2, 2));
        assert!(list.report.notes.iter().all(|note| note.reason == TOO_LONG));
    }
}

proptest! {
    #[test]
    fn pieces_of_any_size_read_the_same(
        text in "(((0\\.0\\.0\\.0 )?([a-c]\\.){1,3}example|\\|\\|[a-c]\\.example\\^|#x| [a-c] CNAME \\.|192\\.0\\.2\\.[0-9])\r?\n?){0,30}",
        cuts in prop::collection::vec(1usize..40, 1..20),
        format in 0usize..6,
    ) {
        let formats = [None, Some(Format::Hosts), Some(Format::Domains), Some(Format::Adblock), Some(Format::Rpz), Some(Format::Ip)];
        let whole = read(formats[format], &text);
        let (mut reader, mut rest, mut cut) = (Reader::new(formats[format], KEY), text.as_bytes(), cuts.iter().cycle());
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.len().min(*cut.next().expect("a cycle")));
            reader.push(piece);
            rest = after;
        }
        let pieces = reader.finish();
        prop_assert_eq!((pieces.format, pieces.names, pieces.report), (whole.format, whole.names, whole.report));
    }

    #[test]
    fn any_bytes_are_a_list_of_some_kind(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        words in "(\\|\\||@@|[*]\\.|\\$|\\^|/|[(;)]|0\\.0\\.0\\.0|CNAME|SOA|rpz-ip|\\PC|[a-z.]| |\n|important|dnstype=A|denyallow=){0,60}",
        format in 0usize..6,
    ) {
        let formats = [None, Some(Format::Hosts), Some(Format::Domains), Some(Format::Adblock), Some(Format::Rpz), Some(Format::Ip)];
        for text in [bytes.as_slice(), words.as_bytes()] {
            let list = Reader::read(formats[format], KEY, text);
            prop_assert!(list.names.len() + list.rules.len() + list.nets.len() <= list.report.taken as usize);
            prop_assert!(list.report.notes.len() <= NOTES && list.report.notes.len() as u64 <= list.report.ignored);
            prop_assert!(list.report.notes.iter().all(|note| note.line >= 1 && note.line <= list.report.lines));
        }
    }
}

#[test]
fn a_list_of_resolvers_is_kept_as_text_if_it_is_asked_for() {
    let kept = |format: Format, text: &str| {
        let mut reader = Reader::new(Some(format), KEY).keeping_servers(true);
        reader.push(text.as_bytes());
        let servers = reader.finish().servers.expect("kept");
        let networks: Vec<String> = servers.networks.iter().map(ToString::to_string).collect();
        (servers.names.into_iter().collect::<Vec<_>>().join(" "), networks.join(" "))
    };
    let adblock = "||a.example^\n||b.example^$important\n@@||c.example^\n";
    assert_eq!(kept(Format::Adblock, adblock), ("a.example b.example".to_owned(), String::new()));
    assert_eq!(kept(Format::Domains, "A.example\n"), ("a.example".to_owned(), String::new()));
    assert_eq!(kept(Format::Ip, "192.0.2.1\n2001:db8::/32\n").1, "192.0.2.1/32 2001:db8::/32");
    assert!(read(Format::Ip, "192.0.2.1\n").servers.is_none());
}

#[test]
fn ignored_lines_are_counted_by_reason_without_the_words_of_the_line() {
    let browser = "||a.example^$third-party\n||b.example^\n||c.example^$script,domain=x.example\n##.banner\n";
    let list = read(Format::Adblock, browser);
    let reasons: Vec<_> = list
        .report
        .reasons
        .iter()
        .map(|count| (count.reason.as_ref(), count.lines, count.first_line))
        .collect();
    assert_eq!(list.report.ignored, 3);
    assert_eq!(reasons.iter().map(|(_, lines, _)| lines).sum::<u64>(), 3, "{reasons:?}");
    let (modifier, lines, first) = reasons[0];
    assert!(modifier.starts_with("… is not known"), "{modifier}");
    assert_eq!((lines, first), (2, 1), "two modifiers are one reason");
    let zone = read(Format::Rpz, "a.example TXT \"walled\"\nb.example TXT \"garden\"\nc.example CNAME .\n");
    assert_eq!(zone.report.ignored, 2);
    assert_eq!(zone.report.reasons.iter().map(|count| count.lines).collect::<Vec<_>>(), [2], "{zone:?}");
}

/// A list chooses words of its own in some reasons.
#[test]
fn the_number_of_reasons_is_bounded() {
    let text: String = (0..500).map(|n| format!("a{n}.example TYPE{n} data\n")).collect();
    let report = read(Format::Rpz, &text).report;
    assert_eq!(report.reasons.iter().map(|count| count.lines).sum::<u64>(), report.ignored);
    assert!(report.ignored >= 500 && report.reasons.len() == 21, "{:?}", report.reasons);
    assert_eq!(report.reasons.last().map(|count| count.reason.as_ref()), Some("other reasons"));
}
