//! Tests of exports and imports.

use serde_json::json;

use super::*;
use crate::kinds::{RoutingPolicy, Tunnel};
use crate::settings::bootstrap::parse;
use crate::settings::group::{GROUPS, GroupKind};
use crate::settings::keys::{self, Apply};

fn now() -> Timestamp {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

fn state() -> State {
    let mut draft = State::new(now()).begin(now());
    let webhook = GroupKind::find("alerts.webhook").unwrap();
    webhook.put(&mut draft, json!({"url": "https://a.example/", "secret": "s3cret-s3cret-s3cret"})).unwrap();
    draft
}

#[test]
fn a_document_comes_back_as_it_was_and_applies_without_change() {
    for secrets in [true, false] {
        let state = state();
        let document = Document::of(&state, &Bootstrap::default(), secrets, "1", "gw", now());
        let bytes = document.to_bytes();
        assert_eq!(String::from_utf8_lossy(&bytes).contains("s3cret-s3cret"), secrets);
        let read = Document::from_bytes(&bytes).unwrap();
        assert_eq!(read, document);
        let mut draft = state.begin(now());
        let outcome = read.clone().import(&mut draft, &Bootstrap::default(), Mode::Replace).unwrap();
        assert!(outcome.changes.iter().all(|change| change.op == bulk_edit::Op::Unchanged));
        assert_eq!(
            Document::of(&draft, &Bootstrap::default(), true, "1", "gw", now()).settings,
            Document::of(&state, &Bootstrap::default(), true, "1", "gw", now()).settings
        );
    }
}

#[test]
fn a_redacted_secret_that_is_not_here_is_reported() {
    let document = Document::of(&state(), &Bootstrap::default(), false, "1", "gw", now());
    let mut draft = State::new(now()).begin(now());
    let outcome = document.clone().import(&mut draft, &Bootstrap::default(), Mode::Replace).unwrap();
    assert!(
        outcome.warnings.iter().any(|warning| warning.path == "settings.alerts.webhook.secret"),
        "{:?}",
        outcome.warnings
    );
}

#[test]
fn backups_without_their_passphrase_are_taken_in_switched_off() {
    let backup = GroupKind::find("backup.config").unwrap();
    let mut state = State::new(now()).begin(now());
    let target =
        json!({"type": "webdav", "url": "https://dav.example/", "username": "gw", "secret": "s3cret-of-dav"});
    let config = json!({"enabled": true, "target": target, "passphrase": "correct horse"});
    backup.put(&mut state, config).unwrap();
    for secrets in [true, false] {
        let document = Document::of(&state, &Bootstrap::default(), secrets, "1", "gw", now());
        assert_eq!(String::from_utf8_lossy(&document.to_bytes()).contains("s3cret-of-dav"), secrets);
        let mut draft = State::new(now()).begin(now());
        let warnings =
            document.clone().import(&mut draft, &Bootstrap::default(), Mode::Replace).unwrap().warnings;
        let shown = backup.shown(&draft);
        assert_eq!(shown["enabled"], secrets);
        assert_eq!(shown["target"]["has_secret"], secrets);
        let paths: Vec<&str> = warnings.iter().map(|warning| warning.path.as_str()).collect();
        let warned = ["enabled", "passphrase", "target.secret"]
            .map(|name| format!("settings.backup.config.{name}"))
            .iter()
            .all(|path| paths.contains(&path.as_str()));
        assert!(secrets != warned, "{paths:?}");
    }
}

#[test]
fn foreign_newer_and_damaged_documents_are_distinguished() {
    let rule = |text: &str| Document::from_bytes(text.as_bytes()).unwrap_err().list()[0].code;
    assert_eq!(rule("{"), code::FORMAT);
    assert_eq!(rule("{}"), code::REQUIRED);
    assert_eq!(rule(r#"{"schema": "other/1"}"#), code::FORMAT);
    assert_eq!(rule(r#"{"schema": "gateway-config/0"}"#), code::FORMAT);
    assert_eq!(rule(r#"{"schema": "gateway-config/2", "version": "9"}"#), code::NOT_SUPPORTED);
    assert!(Document::from_bytes(br#"{"data": {"schema": "gateway-config/1"}}"#).is_ok());
}

#[test]
fn a_streamed_document_is_the_document() {
    for secrets in [true, false] {
        let (state, file) = (pending(), parse("log: { level: warn }").unwrap());
        let mut bytes = Vec::new();
        Document::write(&state, &file, secrets, "1", "gw", now(), &mut bytes).unwrap();
        let document = Document::of(&state, &file, secrets, "1", "gw", now());
        assert_eq!(Document::from_bytes(&bytes).unwrap(), document);
        for text in
            [bytes.clone(), format!("{{\"data\": {}}}", String::from_utf8(bytes).unwrap()).into_bytes()]
        {
            let value = read::read(&text[..], 1 << 20).unwrap();
            assert_eq!(Document::decode(value).unwrap().0, document);
        }
    }
    let (_, warnings) = Document::decode(json!({"schema": "gateway-config/1", "sceme": 1})).unwrap();
    assert_eq!(warnings[0].path, "sceme");
    assert!(Document::decode(json!({"schema": "gateway-config/1", "resources": [1]})).is_err());
}

fn set(state: &State, values: &[(&str, Value)]) -> State {
    let mut draft = state.begin(now());
    for (key, value) in values {
        draft.set(key, value.clone());
    }
    draft
}

/// Paths of the warnings, without those of objects that are in every state.
fn paths(outcome: &Outcome) -> Vec<&str> {
    let paths = outcome.warnings.iter().map(|warning| warning.path.as_str());
    paths.filter(|path| !path.contains("federation_roles") && !path.contains("alert_rules")).collect()
}

#[test]
fn each_setting_is_exported_or_listed_as_not_exported() {
    let groups = GROUPS.iter().map(|group| group.key);
    for key in keys::keys().chain(groups).chain(keys::INTERNAL.iter().copied()) {
        let listed = NOT_EXPORTED.iter().any(|(known, reason)| *known == key && !reason.is_empty());
        let of_file = keys::apply_of(key) == Some(Apply::File);
        assert!(settings::is_exported(key) != (listed || of_file), "{key}");
    }
}

#[test]
fn values_set_at_run_time_come_back_and_others_are_taken_back() {
    let file = parse("dns: { upstream_servers: [9.9.9.9] }\nlog: { level: warn }").unwrap();
    let values = [
        ("reconcile.interval_sec", json!(7)),
        ("network.wans", json!([{"interface": "wan7"}])),
        ("auth.local_net", json!("10.0.0.0/8")),
        (keys::PQ_CRYPTO_MODE, json!("required")),
    ];
    let state = set(&State::new(now()), &values);
    let document = Document::of(&state, &file, false, "1", "gw", now());
    for (key, value) in &values {
        assert_eq!(document.settings.get(*key), Some(value), "{key}");
    }
    assert_eq!(document.file.get("dns.upstream_servers"), Some(&json!(["9.9.9.9"])));
    let read = Document::from_bytes(&document.to_bytes()).unwrap();
    let mut draft = set(&State::new(now()), &[("audit.keep_days", json!(3))]).begin(now());
    let outcome = read.clone().import(&mut draft, &file, Mode::Replace).unwrap();
    for (key, value) in &values {
        assert_eq!(draft.settings.get(key), Some(value), "{key}");
    }
    assert_eq!(draft.settings.get("audit.keep_days"), None, "the export does not name it");
    assert_eq!(outcome.settings.len(), values.len() + 1, "{:?}", outcome.settings);
    assert_eq!(paths(&outcome), ["settings.auth.local_net"], "it waits for a restart");
    let mut merged = set(&State::new(now()), &[("audit.keep_days", json!(3))]).begin(now());
    let outcome = read.clone().import(&mut merged, &parse("").unwrap(), Mode::Merge).unwrap();
    assert_eq!(merged.settings.get("audit.keep_days"), Some(&json!(3)));
    let paths = paths(&outcome);
    assert!(paths.contains(&"file.dns.upstream_servers") && paths.contains(&"file.log.level"), "{paths:?}");
}

#[test]
fn objects_are_not_checked_with_the_settings_that_the_import_replaces() {
    let dhcp = GroupKind::find("dhcp").unwrap();
    let with = |network: u8| {
        let mut draft = State::new(now()).begin(now());
        let at = |host: u8| format!("10.0.{network}.{host}");
        let config =
            json!({"interface": "lan0", "range_start": at(10), "range_end": at(99), "gateway": at(1)});
        dhcp.put(&mut draft, config).unwrap();
        let kind = crate::registry::kind("dhcp_reservation").unwrap();
        kind.create(&mut draft, json!({"mac": "02:00:00:00:00:01", "ip": at(7)})).unwrap();
        draft
    };
    let document = Document::of(&with(1), &Bootstrap::default(), true, "1", "gw", now());
    let mut draft = with(2).begin(now());
    document.clone().import(&mut draft, &Bootstrap::default(), Mode::Replace).unwrap();
    assert_eq!(dhcp.shown(&draft), dhcp.shown(&with(1)));
    let again = Document::of(&draft, &Bootstrap::default(), true, "1", "gw", now());
    assert_eq!(again.resources["dhcp_reservations"][0]["ip"], "10.0.1.7");
    let revision = draft.settings.revision();
    let mut same = draft.begin(now());
    again.import(&mut same, &Bootstrap::default(), Mode::Replace).unwrap();
    assert_eq!(same.settings.revision(), revision, "nothing has changed");
}

#[test]
fn a_document_that_is_not_complete_takes_no_setting_back() {
    let partial = Document { schema: "gateway-config/1".to_owned(), ..Document::default() };
    let mut draft = set(&state(), &[("audit.keep_days", json!(3))]).begin(now());
    partial.clone().import(&mut draft, &Bootstrap::default(), Mode::Replace).unwrap();
    assert_eq!(draft.settings.get("audit.keep_days"), Some(&json!(3)));
    assert!(draft.settings.get("alerts.webhook").is_some());
}

#[test]
fn values_that_conflict_with_the_file_of_another_machine_are_left_out_with_a_warning() {
    let state =
        set(&State::new(now()), &[("network.lan_iface", json!(["enp2s0"])), ("log.level", json!("debug"))]);
    let document = Document::of(&state, &Bootstrap::default(), true, "1", "gw", now());
    let other = parse("network: { wan_iface: enp2s0, lan_iface: enp1s0 }").unwrap();
    let mut draft = State::new(now()).begin(now());
    let outcome = document.clone().import(&mut draft, &other, Mode::Replace).unwrap();
    assert_eq!(paths(&outcome), ["settings.network.lan_iface"]);
    assert_eq!(draft.settings.get("network.lan_iface"), None);
    assert_eq!(draft.settings.get("log.level"), Some(&json!("debug")));
    // Values that are wrong anywhere are faults.
    for (key, value) in [("reconcile.interval_sec", json!(1)), (keys::PQ_CRYPTO_MODE, json!("quantum"))] {
        let mut wrong = document.clone();
        wrong.settings.insert(key.to_owned(), value);
        let problems =
            wrong.clone().import(&mut State::new(now()).begin(now()), &other, Mode::Replace).unwrap_err();
        assert!(problems.has(&format!("settings.{key}")), "{problems}");
    }
    let mut foreign = document;
    foreign.settings.insert("node_id".to_owned(), json!("x"));
    let mut draft = State::new(now()).begin(now());
    let outcome = foreign.clone().import(&mut draft, &Bootstrap::default(), Mode::Replace).unwrap();
    assert!(paths(&outcome).contains(&"settings.node_id") && draft.settings.get("node_id").is_none());
}

fn policy(name: &str, priority: u32) -> Value {
    json!({"name": name, "priority": priority, "source_type": "subnet", "source_value": "10.1.0.0/16",
        "hops": [], "fail_policy": "fail-closed"})
}

/// A state with four policies: applied, changed since, new, and deleted since.
fn pending() -> State {
    let mut draft = State::new(now()).begin(now());
    let kind = crate::registry::kind("routing_policy").unwrap();
    let mut ids = Vec::new();
    for (index, name) in ["applied", "changed", "deleted"].into_iter().enumerate() {
        ids.push(kind.create(&mut draft, policy(name, 10 + index as u32)).unwrap().id);
    }
    draft.freeze_applied();
    let mut draft = draft.begin(now());
    let mut changed = policy("changed", 11);
    changed["source_value"] = json!("10.2.0.0/16");
    kind.replace(&mut draft, &ids[1].to_string(), None, changed).unwrap();
    kind.delete(&mut draft, &ids[2].to_string(), None, false).unwrap();
    kind.create(&mut draft, policy("new", 13)).unwrap();
    draft
}

/// Names, sources and states of the stored and the applied policies.
fn policies(state: &State) -> [Vec<(String, String, bool)>; 2] {
    let of = |table: &crate::Table<RoutingPolicy>| {
        let mut all: Vec<_> = table
            .iter()
            .map(|policy| {
                (policy.name.clone(), policy.source_value.clone(), state.is_applied(policy.meta.id))
            })
            .collect();
        all.sort();
        all
    };
    [of(&state.routing_policies), of(&state.applied.policies)]
}

#[test]
fn what_is_pending_at_the_export_is_pending_after_the_import() {
    let state = pending();
    assert_eq!(state.pending_policy_ids().len(), 3);
    for secrets in [true, false] {
        let document = Document::of(&state, &Bootstrap::default(), secrets, "1", "gw", now());
        let document = Document::from_bytes(&document.to_bytes()).unwrap();
        // Onto a fresh gateway, onto the same one, and onto one that has applied everything since.
        let mut later = state.begin(now());
        later.freeze_applied();
        for base in [State::new(now()), state.clone(), later] {
            let mut draft = base.begin(now());
            let outcome = document.clone().import(&mut draft, &Bootstrap::default(), Mode::Replace).unwrap();
            assert_eq!(policies(&draft), policies(&state), "{:?}", outcome.warnings);
            let again = Document::of(&draft, &Bootstrap::default(), secrets, "1", "gw", now());
            assert_eq!(
                (again.pending, again.resources),
                (document.pending.clone(), document.resources.clone())
            );
            assert!(draft.applied.revision < draft.revision || draft.applied.revision.0 == 0);
        }
    }
}

#[test]
fn an_applied_form_that_is_not_valid_leaves_the_stored_one_in_force_with_a_warning() {
    let mut document = Document::of(&pending(), &Bootstrap::default(), true, "1", "gw", now());
    for pending in &mut document.pending {
        if let Some(applied) = &mut pending.applied {
            applied["fail_policy"] = json!("fail-nicely");
        }
    }
    let mut draft = State::new(now()).begin(now());
    let outcome = document.clone().import(&mut draft, &Bootstrap::default(), Mode::Replace).unwrap();
    assert_eq!(paths(&outcome).iter().filter(|path| path.starts_with("pending[")).count(), 2, "{outcome:?}");
    let [stored, applied] = policies(&draft);
    assert_eq!(stored.len(), 3);
    assert_eq!(applied.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>(), ["applied", "changed"]);
}

#[test]
fn what_depends_on_a_tunnel_without_key_is_left_out_with_it_and_named() {
    let key = "QAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEE=";
    let resources = json!({
        "tunnels": [{"name": "home", "type": "wireguard", "private_key": key, "addresses": ["10.0.0.2/32"]},
            {"name": "away", "type": "wireguard", "private_key": key, "addresses": ["10.0.0.3/32"]}],
        "splitting_endpoints": [{"tunnel": "home"}, {"tunnel": "away"}],
        "bridges": [{"name": "segment", "kind": "segment", "source": {"type": "interface", "value": "eth1"},
            "target": {"type": "vpn", "target": "home"}}],
        "routing_policies": [{"name": "p", "priority": 10, "source_type": "all",
            "hops": [{"type": "vpn", "target": "home"}]}],
    });
    let Value::Object(resources) = resources else { unreachable!() };
    let order = Order { mode: Mode::Merge, resources, freeze: true, ..Order::default() };
    let mut state = State::new(now()).begin(now());
    bulk_edit::change(&mut state, &order).unwrap_or_else(|problems| panic!("{problems}"));
    let document = Document::of(&state, &Bootstrap::default(), false, "1", "gw", now());
    let mut draft = State::new(now()).begin(now());
    let outcome = document
        .clone()
        .import(&mut draft, &Bootstrap::default(), Mode::Replace)
        .unwrap_or_else(|problems| panic!("{problems}"));
    let text = format!("{:?}", outcome.warnings);
    for path in ["tunnels[0]", "tunnels[1]", "splitting_endpoints[0]", "splitting_endpoints[1]", "bridges[0]"]
    {
        assert!(paths(&outcome).contains(&format!("resources.{path}").as_str()), "{path}: {text}");
    }
    assert!(text.contains("tunnel \\\"home\\\""), "{text}");
    assert_eq!(draft.routing_policies.len(), 1, "its traffic stays blocked");
    assert_eq!(<Tunnel as crate::resource::Stored>::table(&draft).iter().count(), 0);
    // A reference to what the export never had stays a fault.
    let mut broken = document;
    broken.resources["splitting_endpoints"][0]["tunnel"] = json!("ghost");
    assert!(
        broken
            .clone()
            .import(&mut State::new(now()).begin(now()), &Bootstrap::default(), Mode::Replace)
            .is_err()
    );
}
