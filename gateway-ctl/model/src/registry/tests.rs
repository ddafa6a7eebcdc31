//! Properties of every kind, and the generic edits as the API uses them.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::Secret;
use crate::kinds::{Device, Tunnel};
use crate::resource::{META_KEYS, Meta, from_stored, to_stored};
use crate::state::{KindVisitor, visit_kinds};

const KEY: &str = "QAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEE=";
const PEER: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE=";
const PSK: &str = "UFNLUFNLUFNLUFNLUFNLUFNLUFNLUFNLUFNLUFNLUFM=";

/// Id of a device for references; there is also a tunnel `spare`.
const SPARE: Id = Id::from_u128(0x0193f3a8_0c5e_7cc2_8a0e_2f6d1b9f4a11);

/// Generators of the schemas of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schemas {
    input: fn(&mut SchemaGenerator) -> Schema,
    output: fn(&mut SchemaGenerator) -> Schema,
}

impl Schemas {
    pub(crate) const fn of<R: Resource>() -> Schemas {
        Schemas { input: input_schema::<R>, output: output_schema::<R> }
    }

    /// Generates both, self-contained: input and output.
    fn generate(&self) -> (Schema, Schema) {
        let settings = || schemars::generate::SchemaSettings::draft2020_12();
        let mut input = settings().for_deserialize().into_generator();
        let mut output = settings().for_serialize().into_generator();
        ((self.input)(&mut input), (self.output)(&mut output))
    }
}

fn draft() -> State {
    let mut state = State::new("2026-11-20T12:00:00Z".parse().unwrap());
    let meta = Meta { id: SPARE, slot: 1, ..Meta::default() };
    state.put(Device { meta, name: "spare".into(), ..Device::default() }).unwrap();
    of("tunnel").create(&mut state, tunnel("spare")).unwrap();
    of("dns_zone").create(&mut state, json!({"name": "spare.lan"})).unwrap();
    // Every rule there can be is built in; one is left out to be made.
    let rule = state.alert_rules.by_key("bluetooth_ids").unwrap().meta.id;
    state.alert_rules.take(rule, Revision(0));
    state.begin("2026-11-20T12:00:01Z".parse().unwrap())
}

fn of(name: &str) -> &'static Kind {
    kind(name).unwrap()
}

fn tunnel(name: &str) -> Value {
    json!({
        "name": name, "type": "wireguard", "private_key": KEY, "addresses": ["10.64.0.2/32"],
        "peers": [{"public_key": PEER, "preshared_key": PSK, "endpoint": "vpn.example.net:51820", "allowed_ips": ["0.0.0.0/0", "::/0"]}],
    })
}

/// A minimal input of each kind.
fn sample(kind: &Kind) -> Value {
    match kind.noun {
        "trust_class" => json!({"name": "lab"}),
        "device" => json!({"name": "laptop", "mac": "02:42:ac:11:00:02"}),
        "device_group" => json!({"name": "team"}),
        "tunnel" => tunnel("home"),
        "routing_policy" => json!({"name": "p", "source_type": "all"}),
        "user" => json!({"username": "anna", "role": "viewer"}),
        "api_key" => json!({"name": "backup", "role": "viewer"}),
        "privacy_class" => json!({"name": "mine", "block_doh": true, "fail_policy_floor": "fail-degraded"}),
        "proxy" => json!({"name": "exit", "address": "192.0.2.7", "username": "u", "password": "hunter2"}),
        "chain" => {
            json!({"name": "two", "hops": [{"type": "interface", "target": "eth0"}, {"type": "vpn", "target": "spare"}]})
        }
        "profile" => {
            json!({"name": "media", "hops": [{"type": "interface", "target": "eth0"}], "sticky": "source"})
        }
        "exception" => json!({"type": "quarantine", "device_id": SPARE}),
        "bridge" => {
            json!({"name": "b", "kind": "transport", "transport": {"type": "udp2tcp", "address": "192.0.2.8", "port": 443}})
        }
        "segment" => json!({"name": "guests", "interface": "eth1", "vlan_id": 20, "cidr": "192.168.20.0/24"}),
        "preset" => json!({"name": "mine", "category": "work", "template": {"profile": {"name": "x"}}}),
        "splitting_endpoint" => json!({"tunnel": "spare", "weight": 2}),
        "test_definition" => {
            json!({"name": "t", "source": {"cidr": "192.168.1.0/24"}, "deny": ["203.0.113.7:25"]})
        }
        "dns_filter_rule" => json!({"pattern": "ads*.example.com", "match": "wildcard", "qtypes": ["a"]}),
        "dns_zone" => json!({"name": "Home.lan"}),
        "dns_record" => {
            json!({"zone": "spare.lan", "name": "mail", "type": "MX", "value": "10 mx.spare.lan."})
        }
        "dns_forwarder" => json!({"upstreams": ["9.9.9.9"], "protocol": "tls", "tls_name": "dns.quad9.net"}),
        "dns_rewrite" => json!({"domain": "*.nas.lan", "answer": "192.168.1.9"}),
        "dns_allow" | "dns_block" => json!({"domain": "Bücher.example"}),
        "dns_preset" => {
            json!({"name": "mine", "upstreams": ["https://dns.example.net/dns-query"], "mode": "doh"})
        }
        "threat_feed" => json!({"name": "mine", "url": "https://example.net/list.txt"}),
        "dhcp_reservation" => json!({"mac": "02-42-ac-11-00-02", "ip": "192.168.1.20", "hostname": "NAS"}),
        "federation_role" => json!({"name": "branch", "permissions": [{"kind": "dns", "pull": true}]}),
        "node" => {
            json!({"name": "branch", "url": "https://branch.example.net", "public_key": PEER, "sync_policy": "push", "sync_resources": "routing, dns"})
        }
        "alert_rule" => json!({"name": "Suspicious", "kind": "bluetooth_ids", "threshold": 2}),
        other => panic!("no sample of {other}"),
    }
}

/// A deleted exception is kept as revoked; all alert rules are built in.
fn can_be_deleted(kind: &Kind) -> bool {
    !matches!(kind.noun, "exception" | "alert_rule")
}

fn problems(result: Result<Written, EditError>) -> Vec<(String, &'static str)> {
    match result {
        Err(EditError::Invalid(problems)) => problems.iter().map(|p| (p.path.clone(), p.code)).collect(),
        other => panic!("expected problems, got {other:?}"),
    }
}

#[test]
fn shown_objects_can_be_sent_back_without_a_warning() {
    for kind in KINDS {
        let mut state = draft();
        let created = kind.create(&mut state, sample(kind)).unwrap();
        let again = kind
            .replace(&mut state, &created.id.to_string(), Some(created.revision), created.value.clone())
            .unwrap();
        // What the first one warned of still holds; nothing else comes up.
        assert_eq!(again.warnings, created.warnings, "{}", kind.noun);
        assert_eq!(again.value, created.value, "{}", kind.noun);
        assert_eq!(kind.get(&state, &created.id.to_string()).unwrap().0, created.value);
        assert!(kind.list(&state, &Filter::default()).contains(&created.value));
    }
}

#[test]
fn the_metadata_is_assigned_and_not_taken_from_the_input() {
    for kind in KINDS {
        let mut state = draft();
        let mut input = sample(kind);
        input["id"] = "00000000-0000-4000-8000-000000000000".into();
        input["slot"] = 77.into();
        input["revision"] = 9.into();
        input["created_at"] = "1999-01-01T00:00:00Z".into();
        let created = kind.create(&mut state, input).unwrap();
        // It is warned of as much as without them.
        let plain = kind.create(&mut draft(), sample(kind)).unwrap();
        assert_eq!(created.warnings, plain.warnings, "{}", kind.noun);
        // A rule shows its kind as its id.
        let id = if kind.noun == "alert_rule" { "bluetooth_ids".to_owned() } else { created.id.to_string() };
        assert_eq!(created.value["id"], id);
        assert_ne!(created.value["id"], "00000000-0000-4000-8000-000000000000");
        assert_eq!(created.value["revision"], 1);
        assert_eq!(created.value["created_at"], "2026-11-20T12:00:01Z");
        assert_ne!(created.value["slot"], 77);
    }
}

#[test]
fn a_stored_row_is_read_back_as_it_was() {
    struct Check(State);
    impl KindVisitor for Check {
        fn visit<R: Resource + Default + PartialEq + std::fmt::Debug>(&mut self) {
            for row in R::table(&self.0).iter() {
                let stored = to_stored(row);
                assert_eq!(&from_stored::<R>(&stored).unwrap(), row);
                let shown: BTreeSet<String> = stored.as_object().unwrap().keys().cloned().collect();
                assert!(META_KEYS.iter().all(|key| shown.contains(*key)));
            }
        }
    }
    let mut state = draft();
    for kind in KINDS {
        kind.create(&mut state, sample(kind)).unwrap();
    }
    visit_kinds(&mut Check(state));
}

#[test]
fn secrets_are_stored_and_never_shown() {
    let mut state = draft();
    let created = of("tunnels").create(&mut state, tunnel("home")).unwrap();
    let text = created.value.to_string();
    assert!(!text.contains(KEY) && !text.contains(PSK), "{text}");
    assert_eq!(created.value["has_private_key"], true);
    assert_eq!(created.value["has_password"], false);
    assert_eq!(created.value["peers"][0]["has_preshared_key"], true);
    assert!(created.value.get("private_key").is_none());
    let rows = of("tunnels").changed_rows(&state);
    let stored: Value = serde_json::from_slice(rows[0].json.as_ref().unwrap()).unwrap();
    assert_eq!(stored["private_key"], KEY);
    assert_eq!(stored["peers"][0]["preshared_key"], PSK);
    assert!(stored.get("has_private_key").is_none() && stored.get("password").is_none());
    assert!(!format!("{state:?}").contains(KEY));
}

#[test]
fn the_declared_secrets_are_those_of_the_type() {
    /// Reads the pointers of the secrets of a row as the patterns that the kind declares.
    fn check<R: Resource>(mut row: R) {
        let patterns: BTreeSet<String> = row
            .secrets()
            .into_iter()
            .map(|(pointer, _)| pointer[1..].replace("/0/", "[]/").replace('/', "."))
            .collect();
        assert_eq!(patterns, R::SECRETS.iter().map(|path| (*path).to_owned()).collect(), "{}", R::NOUN);
    }
    struct Check;
    impl KindVisitor for Check {
        fn visit<R: Resource + Default + PartialEq + std::fmt::Debug>(&mut self) {
            if R::NOUN != Tunnel::NOUN {
                check(R::default());
            }
        }
    }
    visit_kinds(&mut Check);
    // A tunnel has secrets in its peers too.
    let mut tunnel = Tunnel::default();
    tunnel.peers.push(serde_json::from_value(json!({"public_key": PEER})).unwrap());
    check(tunnel);
}

#[test]
fn omitted_secrets_stay_and_null_clears_them() {
    let mut state = draft();
    let tunnels = of("tunnels");
    let created = tunnels.create(&mut state, tunnel("home")).unwrap();
    let id = created.id.to_string();
    let mut input = created.value.clone();
    input["keepalive"] = 10.into();
    tunnels.replace(&mut state, &id, None, input.clone()).unwrap();
    let row = state.tunnel_by_name("home").unwrap().clone();
    assert_eq!(
        (row.keepalive, row.private_key.expose(), row.peers[0].preshared_key.expose()),
        (10, KEY, PSK)
    );
    input["peers"][0]["preshared_key"] = Value::Null;
    tunnels.replace(&mut state, &id, None, input.clone()).unwrap();
    assert_eq!(state.tunnel_by_name("home").unwrap().peers[0].preshared_key, Secret::default());
    input["private_key"] = Value::Null;
    assert_eq!(problems(tunnels.replace(&mut state, &id, None, input)), [("private_key".into(), "required")]);
}

#[test]
fn a_preshared_key_follows_its_peer_and_not_its_index() {
    let mut state = draft();
    let created = of("tunnels").create(&mut state, tunnel("home")).unwrap();
    let mut input = created.value.clone();
    let other =
        json!({"public_key": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAI=", "allowed_ips": ["10.0.0.0/8"]});
    input["peers"].as_array_mut().unwrap().insert(0, other);
    of("tunnels").replace(&mut state, &created.id.to_string(), None, input).unwrap();
    let peers = &state.tunnel_by_name("home").unwrap().peers;
    assert_eq!((peers[0].preshared_key.is_set(), peers[1].preshared_key.expose()), (false, PSK));
}

#[test]
fn unknown_keys_are_warnings_and_everything_wrong_is_reported_at_once() {
    let mut state = draft();
    let policies = of("routing-policies");
    let created = policies.create(&mut state, json!({"source_type": "all", "fail_polcy": "fail-open", "hops": [{"type": "vpn", "target": "x", "colour": 1}]})).unwrap();
    let paths: Vec<&str> = created.warnings.iter().map(|warning| warning.path.as_str()).collect();
    assert_eq!(paths, ["fail_polcy", "hops[0].colour", "hops[0].target"]);

    let found = problems(policies.create(&mut state, json!({
        "name": 7, "priority": "high", "source_type": "vlan", "source_value": "5000", "fail_policy": "open",
        "hops": [{"type": "interface", "target": "eth0"}, {"type": "tunnel", "target": "a"}, {"target": "b"}],
        "sticky": "mac", "chain": "c",
    })));
    let found: BTreeSet<(String, &str)> = found.into_iter().collect();
    let want = [
        ("name", "type"),
        ("priority", "type"),
        ("source_value", "format"),
        ("fail_policy", "enum"),
        ("hops[1].type", "enum"),
        ("hops[2].type", "required"),
        ("sticky", "enum"),
        ("chain", "unknown_reference"),
    ];
    assert_eq!(found, want.map(|(path, code)| (path.to_owned(), code)).into());
}

#[test]
fn required_keys_must_be_there() {
    for kind in KINDS {
        let found = problems(kind.create(&mut draft(), json!({})));
        for key in kind.required {
            assert!(found.contains(&((*key).to_owned(), "required")), "{} {key}", kind.noun);
        }
        assert_eq!(problems(kind.create(&mut draft(), json!([])))[0].1, "type");
        for key in kind.required {
            let mut input = sample(kind);
            input[*key] = Value::Null;
            assert_eq!(problems(kind.create(&mut draft(), input))[0], ((*key).to_owned(), "required"));
        }
    }
}

#[test]
fn stale_and_missing_rows_are_distinguished() {
    for kind in KINDS.iter().filter(|kind| can_be_deleted(kind)) {
        let mut state = draft();
        let created = kind.create(&mut state, sample(kind)).unwrap();
        let id = created.id.to_string();
        let mut next = state.begin("2026-11-20T12:00:02Z".parse().unwrap());
        let again = kind.replace(&mut next, &id, Some(created.revision), created.value.clone()).unwrap();
        assert_eq!(again.revision, created.revision, "{}: nothing was changed", kind.noun);
        assert!(!kind.is_changed(&next) || kind.changed_rows(&next).iter().all(|row| row.id != created.id));
        let other = Revision(created.revision.0 + 7);
        let stale = kind.replace(&mut next, &id, Some(other), created.value.clone());
        assert!(
            matches!(stale, Err(EditError::Stale { current, .. }) if current == created.revision),
            "{stale:?}"
        );
        assert!(matches!(kind.delete(&mut next, &id, Some(other), false), Err(EditError::Stale { .. })));
        assert_eq!(
            kind.delete(&mut next, &id, Some(created.revision), false).unwrap(),
            Deleted { id: id.clone(), deleted: true }
        );
        for id in [id.as_str(), "no-uuid"] {
            assert!(matches!(kind.get(&next, id), Err(EditError::NotFound { .. })));
            assert!(matches!(kind.delete(&mut next, id, None, false), Err(EditError::NotFound { .. })));
            assert!(matches!(kind.replace(&mut next, id, None, json!({})), Err(EditError::NotFound { .. })));
        }
    }
}

#[test]
fn a_draft_knows_which_rows_it_touched() {
    for kind in KINDS.iter().filter(|kind| can_be_deleted(kind)) {
        let mut state = draft();
        let created = kind.create(&mut state, sample(kind)).unwrap();
        assert_eq!(kind.changed_rows(&state).len(), 1);
        let next = state.begin(state.now());
        assert!(!kind.is_changed(&next));
        let mut next = next;
        kind.delete(&mut next, &created.id.to_string(), None, false).unwrap();
        assert_eq!(kind.changed_rows(&next), [StoredRow { id: created.id, json: None }]);
        let changes = kind.changes(&state, &next, 10);
        assert_eq!((changes.len(), changes[0].op), (1, ChangeOp::Delete));
    }
}

#[test]
fn the_fields_of_a_change_are_named_and_the_values_are_not() {
    let mut before = draft();
    let created = of("tunnels").create(&mut before, tunnel("home")).unwrap();
    let mut after = before.begin(before.now());
    let mut input = created.value;
    input["keepalive"] = 9.into();
    input["private_key"] = PSK.into();
    of("tunnels").replace(&mut after, &created.id.to_string(), None, input).unwrap();
    let mut fields = of("tunnels").changes(&before, &after, 10).remove(0).fields;
    fields.sort();
    assert_eq!(fields, ["keepalive", "private_key", "public_key"]);
}

#[test]
fn names_of_kinds_come_in_every_spelling() {
    for name in ["routing-policy", "routing_policies", "trust-class", "trust_classes", "device-groups"] {
        assert!(kind(name).is_some(), "{name}");
    }
    assert!(kind("colour").is_none());
}

#[test]
fn schemas_show_the_difference_between_input_and_output() {
    for kind in KINDS {
        let (input, output) = kind.schemas.generate();
        let keys = |schema: &Schema| -> BTreeSet<String> {
            schema
                .get("properties")
                .and_then(Value::as_object)
                .map(|map| map.keys().cloned().collect())
                .unwrap_or_default()
        };
        let (input_keys, output_keys) = (keys(&input), keys(&output));
        assert!(
            META_KEYS.iter().all(|key| !input_keys.contains(*key) && output_keys.contains(*key)),
            "{}",
            kind.noun
        );
        let required: Vec<&str> = input
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        assert_eq!(required, kind.required, "{}", kind.noun);
        for secret in kind.secrets.iter().filter(|path| !path.contains('.')) {
            assert!(input_keys.contains(*secret) && !output_keys.contains(*secret), "{secret}");
            assert!(
                output_keys.contains(&format!("has_{secret}"))
                    && !input_keys.contains(&format!("has_{secret}"))
            );
        }
    }
    let (_, output) = of("tunnels").schemas.generate();
    assert!(output.get("properties").unwrap().get("status").is_some());
    let (_, output) = of("devices").schemas.generate();
    assert!(output.get("properties").unwrap().get("groups").is_some());
}

#[test]
fn the_shown_form_has_the_fields_of_its_schema() {
    let mut state = draft();
    for kind in KINDS {
        let created = kind.create(&mut state, sample(kind)).unwrap();
        let (_, output) = kind.schemas.generate();
        let properties = output.get("properties").and_then(Value::as_object).unwrap().clone();
        for key in created.value.as_object().unwrap().keys() {
            assert!(properties.contains_key(key), "{}.{key}", kind.noun);
        }
    }
}
