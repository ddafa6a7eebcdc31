//! Rules of the resolver's kinds: tables of good and bad inputs.

use serde_json::{Value, json};

use crate::bulk_edit::{Op, Order, change};
use crate::edit::EditError;
use crate::kinds::test_objects::*;

#[test]
fn filter_rules_are_what_the_resolver_can_do() {
    let mut state = draft();
    let good = [
        (
            json!({"pattern": "Example.com."}),
            json!({"pattern": "example.com", "match": "suffix", "action": "block"}),
        ),
        (json!({"pattern": "/ads?/", "match": "regex"}), json!({"pattern": "/ads?/"})),
        (
            json!({"pattern": "example.com", "match": "adblock", "action": "refuse"}),
            json!({"pattern": "||example.com^"}),
        ),
        (
            json!({"pattern": "a.b", "action": "rewrite", "answer": "FD00::1", "qtypes": ["aaaa", "type65"]}),
            json!({"answer": "fd00::1", "qtypes": ["AAAA", "TYPE65"]}),
        ),
        (
            json!({"pattern": "a.b", "schedule": {"days": ["mon"], "start": "22:00", "end": "06:00"}}),
            json!({"schedule": {"days": ["mon"], "start": "22:00", "end": "06:00"}, "hits": null}),
        ),
    ];
    for (input, want) in good {
        let (value, warnings) = made(&mut state, "dns_filter_rule", input);
        for (key, want) in want.as_object().unwrap() {
            assert_eq!(&value[key], want, "{value}");
        }
        assert!(warnings.is_empty(), "{warnings:?}");
    }
    let unknown = "0193f3a8-0c5e-7cc2-8a0e-2f6d1b9f4a11";
    refused(
        "dns_filter_rule",
        &[
            (json!({"pattern": ""}), &["pattern required"]),
            (json!({"pattern": "a b"}), &["pattern format"]),
            (json!({"pattern": "(", "match": "regex"}), &["pattern format"]),
            (json!({"pattern": "a.b", "action": "rewrite"}), &["answer required"]),
            (json!({"pattern": "a.b", "action": "rewrite", "answer": "a b"}), &["answer format"]),
            (json!({"pattern": "a.b", "answer": "192.0.2.1"}), &["answer conflict"]),
            (json!({"pattern": "@@||a.b^", "match": "adblock"}), &["action conflict"]),
            (json!({"pattern": "||a.b^", "match": "adblock", "action": "allow"}), &["pattern conflict"]),
            (json!({"pattern": "a.b", "qtypes": ["A", "a"]}), &["qtypes[1] duplicate"]),
            (
                json!({"pattern": "a.b", "scope": {"privacy_class": "none"}}),
                &["scope.privacy_class unknown_reference"],
            ),
            (json!({"pattern": "a.b", "qtypes": ["NONSENSE"]}), &["qtypes[0] format"]),
            (
                json!({"pattern": "a.b", "scope": {"devices": [unknown]}}),
                &["scope.devices[0] unknown_reference"],
            ),
            (
                json!({"pattern": "a.b", "schedule": {"start": "24:00", "end": "7:00"}}),
                &["schedule.start format", "schedule.end format"],
            ),
        ],
    );
}

#[test]
fn a_rule_holds_the_devices_and_groups_it_is_for() {
    let mut state = draft();
    let device = create(&mut state, "device", json!({"name": "tv"})).unwrap().id.to_string();
    let group = create(&mut state, "device_group", json!({"name": "kids"})).unwrap().id.to_string();
    made(
        &mut state,
        "dns_filter_rule",
        json!({"pattern": "a.b", "scope": {"devices": [device], "groups": [group]}}),
    );
    for (noun, id) in [("device", device), ("device_group", group)] {
        let error = of(noun).delete(&mut state, &id, None, true).unwrap_err();
        let EditError::InUse { references, .. } = error else { panic!("{error}") };
        assert_eq!((references.referenced_by["dns_filter_rules"], references.total), (1, 1));
    }
}

#[test]
fn zones_have_servers_unless_they_are_primary() {
    let mut state = draft();
    let (zone, _) =
        made(&mut state, "dns_zone", json!({"name": "Büro.example", "soa": {"rname": "admin@büro.example"}}));
    assert_eq!((&zone["name"], &zone["records_count"]), (&json!("xn--bro-hoa.example"), &json!(0)));
    made(
        &mut state,
        "dns_zone",
        json!({"name": "corp.example", "type": "forward", "upstreams": ["10.0.0.53:5353"]}),
    );
    refused(
        "dns_zone",
        &[
            (json!({"name": "."}), &["name format"]),
            (json!({"name": "a..b"}), &["name format"]),
            (json!({"name": "HOME.lan"}), &["name taken"]),
            (json!({"name": "a.b", "type": "stub"}), &["upstreams required"]),
            (json!({"name": "a.b", "upstreams": ["10.0.0.53"]}), &["upstreams conflict"]),
            (json!({"name": "a.b", "type": "forward", "upstreams": ["nonsense!"]}), &["upstreams[0] format"]),
            (json!({"name": "a.b", "ttl": 0}), &["ttl range"]),
            (
                json!({"name": "a.b", "soa": {"refresh": 0, "expire": 0}}),
                &["soa.refresh range", "soa.expire range", "soa.expire conflict"],
            ),
            (json!({"name": "a.b", "soa": {"rname": "a@b@c"}}), &["soa.rname format"]),
        ],
    );
}

#[test]
fn a_signed_zone_has_a_key_that_stays_until_it_is_cleared() {
    let mut state = draft();
    // The example of RFC 6605.
    let key = "GU6SnQ/Ou+xC5RumuIUIuJZteXT2z0O/ok1s38Et6mQ=";
    let ds = "55648 13 2 B4C8C1FE2E7477127B27115656AD6256F424625BF5C1E2770CE6D6E37DF61D17";
    let input = json!({"name": "example.net", "dnssec": true, "signing_key": key});
    let (zone, warnings) = made(&mut state, "dns_zone", input);
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!((&zone["ds"], &zone["has_signing_key"]), (&json!(ds), &json!(true)));
    assert!(!zone.to_string().contains(key));
    let id = zone["id"].as_str().unwrap().to_owned();
    let mut replace = |input: Value| of("dns_zone").replace(&mut state, &id, None, input).unwrap().value;
    let kept = replace(json!({"name": "example.net", "dnssec": true, "dnskey": "another", "ttl": 60}));
    assert_eq!((&kept["ds"], &kept["dnskey"]), (&zone["ds"], &zone["dnskey"]));
    let off = replace(json!({"name": "example.net"}));
    assert_eq!((&off["ds"], &off["has_signing_key"]), (&Value::Null, &json!(true)));
    assert_eq!(replace(json!({"name": "example.net", "dnssec": true}))["ds"], zone["ds"], "the key was kept");
    let other = replace(json!({"name": "example.net", "dnssec": true, "signing_key": null}));
    assert!(other["ds"].is_string() && other["ds"] != zone["ds"]);

    let (made_here, _) = made(&mut state, "dns_zone", json!({"name": "example.org", "dnssec": true}));
    assert!(made_here["dnskey"].as_str().unwrap().starts_with("257 3 13 ") && made_here["ds"].is_string());
    let (plain, _) = made(&mut state, "dns_zone", json!({"name": "plain.example"}));
    assert_eq!((&plain["dnskey"], &plain["has_signing_key"]), (&Value::Null, &json!(false)));
    let nothing = json!({"name": "a.b", "dnssec": true, "signing_key": "AAAA"});
    refused("dns_zone", &[(nothing, &["signing_key format"])]);
    let copy = json!({"name": "a.b", "type": "secondary", "upstreams": ["10.0.0.53"], "dnssec": true});
    let (copy, warnings) = made(&mut state, "dns_zone", copy);
    assert_eq!((&copy["serial"], &copy["dnskey"]), (&Value::Null, &Value::Null));
    assert_eq!(warnings, ["dnssec"]);
    let record = json!({"zone": "example.org", "name": "@", "type": "DS", "value": ds});
    assert_eq!(refusal(create(&mut state, "dns_record", record)), ["type conflict"]);
}

#[test]
fn records_stand_in_their_zone_in_one_spelling() {
    let mut state = draft();
    let zone = state.dns_zones.by_key("home.lan").unwrap().meta.id.to_string();
    let cases = [
        (
            json!({"zone": "home.lan", "name": "NAS.home.lan", "type": "A", "value": "192.168.1.9"}),
            ("nas", "192.168.1.9"),
        ),
        (
            json!({"zone": "Home.LAN.", "name": "", "type": "TXT", "value": "\"a\" \"b\""}),
            ("@", "\"a\" \"b\""),
        ),
        (
            json!({"zone": zone, "name": "www", "type": "CNAME", "value": "NAS.home.lan."}),
            ("www", "nas.home.lan"),
        ),
        (json!({"zone": zone, "name": "*.dev", "type": "AAAA", "value": "FD00::1"}), ("*.dev", "fd00::1")),
        (
            json!({"zone": "home.lan", "name": "*.home.lan", "type": "A", "value": "192.168.1.9"}),
            ("*", "192.168.1.9"),
        ),
        (
            json!({"zone": "home.lan", "name": "_http._tcp", "type": "SRV", "value": "5 1 80 nas.home.lan"}),
            ("_http._tcp", "1 80 nas.home.lan"),
        ),
    ];
    for (input, want) in cases {
        let (record, _) = made(&mut state, "dns_record", input);
        assert_eq!(record["zone"], "home.lan", "{record}");
        assert_eq!((record["name"].as_str().unwrap(), record["value"].as_str().unwrap()), want);
    }
    assert_eq!(
        state.dns_records.iter().find(|record| record.name == "_http._tcp").unwrap().priority,
        Some(5)
    );
    let (shown, _) = of("dns_zone").get(&state, &zone).unwrap();
    assert_eq!(shown["records_count"], 6);
    assert!(shown["serial"].as_u64() > Some(0));
}

#[test]
fn records_that_cannot_stand_are_refused() {
    let record = |name: &str, kind: &str, value: &str| json!({"zone": "home.lan", "name": name, "type": kind, "value": value});
    refused(
        "dns_record",
        &[
            (json!({"name": "a", "value": "192.0.2.1"}), &["zone required"]),
            (json!({"zone": "other.lan", "value": "192.0.2.1"}), &["zone unknown_reference"]),
            (record("a.other.lan.", "A", "192.0.2.1"), &["name format"]),
            (record("a*b", "A", "192.0.2.1"), &["name format"]),
            (record("a", "A", "::1"), &["value format"]),
            (record("a", "ALIAS", "192.0.2.1"), &["type enum"]),
            (record("@", "CNAME", "b.c"), &["type conflict"]),
            (
                json!({"zone": "home.lan", "value": "192.0.2.1", "priority": 1, "ttl": 0}),
                &["ttl range", "priority conflict"],
            ),
            (
                json!({"zone": "home.lan", "type": "HTTPS", "value": ". port=1", "priority": 0}),
                &["priority conflict"],
            ),
        ],
    );
    let mut state = draft();
    made(&mut state, "dns_zone", json!({"name": "f.lan", "type": "forward", "upstreams": ["10.0.0.1"]}));
    let wrong = create(&mut state, "dns_record", json!({"zone": "f.lan", "value": "192.0.2.1"}));
    assert_eq!(refusal(wrong), ["zone conflict"]);
}

#[test]
fn an_alias_stands_alone_and_a_zone_with_records_stays() {
    let mut state = draft();
    let zone = state.dns_zones.by_key("home.lan").unwrap().meta.id.to_string();
    let record = |kind: &str, value: &str| json!({"zone": zone, "name": "www", "type": kind, "value": value});
    made(&mut state, "dns_record", record("A", "192.0.2.1"));
    assert_eq!(refusal(create(&mut state, "dns_record", record("CNAME", "a.b"))), ["type taken"]);
    assert_eq!(refusal(create(&mut state, "dns_record", record("A", "192.0.2.1"))), ["value taken"]);
    let mut disabled = record("CNAME", "a.b");
    disabled["enabled"] = false.into();
    made(&mut state, "dns_record", disabled);
    made(&mut state, "dns_record", record("A", "192.0.2.2"));
    let error = of("dns_zone").delete(&mut state, &zone, None, true).unwrap_err();
    let EditError::InUse { references, .. } = error else { panic!("{error}") };
    assert_eq!(references.referenced_by["dns_records"], 3);
    let renamed = of("dns_zone").replace(&mut state, &zone, None, json!({"name": "new.lan"}));
    assert!(refusal(renamed)[0].starts_with("in use"));
    let other = json!({"name": "home.lan", "type": "stub", "upstreams": ["10.0.0.1"]});
    assert_eq!(refusal(of("dns_zone").replace(&mut state, &zone, None, other)), ["type conflict"]);
}

#[test]
fn reverse_zones_have_numbers_for_names() {
    let mut state = draft();
    made(&mut state, "dns_zone", json!({"name": "168.192.in-addr.arpa"}));
    for (name, want) in [("9.1", "9.1"), ("9.1.168.192.in-addr.arpa.", "9.1"), ("7", "7")] {
        let input = json!({"zone": "168.192.in-addr.arpa", "name": name, "type": "PTR", "value": format!("h{}.lan", name.len())});
        assert_eq!(made(&mut state, "dns_record", input).0["name"], want);
    }
}

#[test]
fn forwarders_can_reach_their_resolvers() {
    let mut state = draft();
    for input in [
        json!({"upstreams": ["9.9.9.9"]}),
        json!({"domain": "Corp.example", "upstreams": ["ns.corp.example"]}),
        json!({"priority": 2, "upstreams": ["https://dns.quad9.net/dns-query"], "protocol": "https", "bootstrap": ["9.9.9.9"]}),
        json!({"priority": 3, "upstreams": ["9.9.9.9"], "protocol": "quic", "tls_name": "dns.quad9.net"}),
    ] {
        made(&mut state, "dns_forwarder", input);
    }
    let (_, warnings) =
        made(&mut state, "dns_forwarder", json!({"priority": 4, "upstreams": ["9.9.9.9"], "egress": "wan2"}));
    assert_eq!(warnings, ["egress"]);
    refused(
        "dns_forwarder",
        &[
            (json!({}), &["upstreams required"]),
            (json!({"upstreams": []}), &["upstreams required"]),
            (json!({"upstreams": ["9.9.9.9", "9.9.9.9"]}), &["upstreams[1] duplicate"]),
            (json!({"upstreams": ["9.9.9.9"], "protocol": "tls"}), &["tls_name required"]),
            (json!({"upstreams": ["9.9.9.9"], "tls_name": "a.b"}), &["tls_name conflict"]),
            (json!({"upstreams": ["dns.example.net"]}), &["bootstrap required"]),
            (json!({"upstreams": ["https://a.b/"], "bootstrap": ["9.9.9.9"]}), &["upstreams[0] conflict"]),
            (json!({"upstreams": ["0.0.0.0"]}), &["upstreams[0] range"]),
            (json!({"upstreams": ["9.9.9.9"], "egress": "no such way"}), &["egress format"]),
            (json!({"upstreams": ["9.9.9.9"], "proxy": "none"}), &["proxy unknown_reference"]),
        ],
    );
    assert_eq!(
        refusal(create(&mut state, "dns_forwarder", json!({"upstreams": ["1.1.1.1"]}))),
        ["priority taken"]
    );
}

#[test]
fn rewrites_answer_addresses_together_or_a_name_alone() {
    let mut state = draft();
    for answer in ["192.168.1.9", "fd00::9", "aaaa"] {
        made(&mut state, "dns_rewrite", json!({"domain": "*.Nas.lan", "answer": answer}));
    }
    let name = json!({"domain": "*.nas.lan", "answer": "other.lan"});
    assert_eq!(refusal(create(&mut state, "dns_rewrite", name)), ["answer taken"]);
    let again = json!({"domain": "*.nas.lan", "answer": "FD00::9"});
    assert_eq!(refusal(create(&mut state, "dns_rewrite", again)), ["answer taken"]);
    refused(
        "dns_rewrite",
        &[
            (json!({}), &["domain required", "answer required"]),
            (json!({"domain": "a b", "answer": "192.0.2.1"}), &["domain format"]),
            (json!({"domain": "a.*.b", "answer": "192.0.2.1"}), &["domain format"]),
            (json!({"domain": "a.b", "answer": "a b"}), &["answer format"]),
            (json!({"domain": "a.b", "answer": "A.B."}), &["answer conflict"]),
        ],
    );
}

#[test]
fn list_entries_are_domains_or_lists_on_the_web() {
    let mut state = draft();
    let (entry, _) = made(&mut state, "dns_block", json!({"domain": "Ads.Bücher.example."}));
    assert_eq!(
        (&entry["domain"], &entry["rules_count"]),
        (&json!("ads.xn--bcher-kva.example"), &Value::Null)
    );
    made(&mut state, "dns_block", json!({"name": "ads", "url": "https://example.net/ads.txt"}));
    let (_, warnings) = made(&mut state, "dns_allow", json!({"domain": "ads.bücher.example"}));
    assert_eq!(warnings, ["domain"]);
    assert!(of("dns_block").find(&state, "ADS.bücher.example").is_some());
    for input in
        [json!({"domain": "ads.bücher.example"}), json!({"name": "b", "url": "https://example.net/ads.txt"})]
    {
        assert!(refusal(create(&mut state, "dns_block", input))[0].ends_with("taken"));
    }
    refused(
        "dns_block",
        &[
            (json!({}), &["domain required"]),
            (json!({"domain": "."}), &["domain format"]),
            (json!({"domain": "*.a.b"}), &["domain format"]),
            (json!({"domain": "a.b", "name": "x"}), &["name conflict"]),
            (json!({"domain": "a.b", "url": "https://a.b/"}), &["url conflict"]),
            (json!({"url": "https://a.b/"}), &["name required"]),
            (json!({"name": "x", "url": "file:///etc/passwd"}), &["url format"]),
        ],
    );
}

#[test]
fn built_in_objects_are_valid_and_stay_as_they_are() {
    let mut state = draft();
    for (noun, count, editable) in [
        ("dns_preset", 15, false),
        ("threat_feed", 7, true),
        ("federation_role", 3, false),
        ("alert_rule", 40, true),
    ] {
        let all = of(noun).list(&state, &crate::filter::Filter::default());
        assert_eq!(all.len(), count, "{noun}");
        for shown in all {
            let name = if noun == "alert_rule" { &shown["kind"] } else { &shown["name"] };
            let id = of(noun).find(&state, name.as_str().unwrap()).unwrap().to_string();
            let again = of(noun).replace(&mut state, &id, None, shown.clone()).unwrap();
            assert!(again.warnings.iter().all(|warning| warning.path.is_empty()), "{:?}", again.warnings);
            assert_eq!(again.value["id"], shown["id"]);
            let mut edited = shown.clone();
            let field = if noun == "alert_rule" {
                "description"
            } else if noun == "threat_feed" {
                "url"
            } else {
                "description"
            };
            let field = if noun == "dns_preset" { "privacy_note" } else { field };
            edited[field] = json!(format!("https://example.net/{id}"));
            let result = of(noun).replace(&mut state, &id, None, edited);
            assert_eq!(result.is_ok(), editable, "{noun} {result:?}");
            assert!(matches!(of(noun).delete(&mut state, &id, None, true), Err(EditError::Protected { .. })));
        }
    }
    assert!(state.threat_feeds.iter().all(|feed| !feed.enabled));
    assert!(state.alert_rules.iter().all(|rule| rule.enabled == (rule.kind.as_str() != "device_offline")));
}

#[test]
fn a_plan_adds_records_beside_others_of_their_name() {
    let mut state = draft();
    let record = |value: &str| json!({"zone": "home.lan", "name": "www", "type": "A", "value": value});
    made(&mut state, "dns_record", record("192.0.2.1"));
    let resources = json!({"dns_records": [record("192.0.2.1"), record("192.0.2.2")]});
    let Value::Object(resources) = resources else { panic!("an object") };
    let mut draft = state.begin("2026-11-20T12:00:02Z".parse().unwrap());
    let outcome = change(&mut draft, &Order { resources, ..Order::default() }).unwrap();
    let ops: Vec<Op> =
        outcome.changes.iter().map(|change| change.op).filter(|op| *op != Op::Unchanged).collect();
    assert_eq!((ops, draft.dns_records.len()), (vec![Op::Create], 2));
}

#[test]
fn a_preset_replaces_upstreams_and_cannot_be_deleted_while_used() {
    let mut state = draft();
    let own = create(&mut state, "dns_preset", json!({"name": "own", "upstreams": ["192.0.2.1"]})).unwrap();
    create(&mut state, "dns_forwarder", json!({"preset": "own"})).unwrap();
    for (forwarder, want) in [
        (json!({"preset": "own", "upstreams": ["192.0.2.2"], "priority": 2}), "upstreams conflict"),
        (json!({"preset": "own", "tls_name": "a.example", "priority": 2}), "tls_name conflict"),
        (json!({"preset": "nobody", "priority": 2}), "preset unknown_reference"),
        (json!({"priority": 2}), "upstreams required"),
    ] {
        assert_eq!(refusal(create(&mut state, "dns_forwarder", forwarder.clone())), [want], "{forwarder}");
    }
    let profile = |dns: Value| json!({"name": "p", "dns": dns});
    for (dns, want) in [
        (json!({"mode": "custom"}), "dns.upstreams required"),
        (json!({"mode": "custom", "preset": "own", "upstreams": ["192.0.2.1"]}), "dns.preset conflict"),
        (json!({"mode": "custom", "preset": "nobody"}), "dns.preset unknown_reference"),
        (json!({"mode": "custom", "upstreams": ["http://a.example/"]}), "dns.upstreams[0] format"),
    ] {
        assert_eq!(refusal(create(&mut state, "profile", profile(dns.clone()))), [want], "{dns}");
    }
    let good = create(&mut state, "profile", profile(json!({"mode": "custom", "preset": "own"}))).unwrap();
    assert!(good.warnings.is_empty(), "{:?}", good.warnings);
    assert!(matches!(
        of("dns_preset").delete(&mut state, &own.id.to_string(), None, false),
        Err(EditError::InUse { .. })
    ));
}
