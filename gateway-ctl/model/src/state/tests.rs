//! Rules between objects: uniqueness, references, memberships, conflicts of policies, the applied set.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::references::WhenDeleted;
use crate::registry::kind;
use crate::settings::group::GroupKind;
use crate::settings::groups::AlertWebhook;
use crate::{Kind, Written};

fn draft() -> State {
    State::default().begin("2026-11-20T12:00:00Z".parse().unwrap())
}

fn of(name: &str) -> &'static Kind {
    kind(name).unwrap()
}

fn create(state: &mut State, kind: &str, input: Value) -> Written {
    of(kind).create(state, input).unwrap()
}

fn device(state: &mut State, name: &str, mac: &str) -> Id {
    create(state, "device", json!({"name": name, "mac": mac})).id
}

fn tunnel(state: &mut State, name: &str) -> Id {
    create(state, "tunnel", json!({"name": name, "type": "wireguard", "private_key": "QAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEE="})).id
}

fn policy(hops: &[(&str, &str)], more: Value) -> Value {
    let hops: Vec<Value> =
        hops.iter().map(|(kind, target)| json!({"type": kind, "target": target})).collect();
    let mut policy = json!({"source_type": "all", "hops": hops});
    for (key, value) in more.as_object().unwrap() {
        policy[key] = value.clone();
    }
    policy
}

#[test]
fn a_mac_address_belongs_to_one_device() {
    let mut state = draft();
    let first = device(&mut state, "a", "02:42:ac:11:00:02");
    let clash = of("device")
        .create(&mut state, json!({"name": "b", "macs": ["02:42:ac:11:00:03", "02-42-AC-11-00-02"]}));
    match clash {
        Err(EditError::Conflict { field, existing_id, .. }) => {
            assert_eq!((field.as_str(), existing_id), ("macs[1]", first))
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(state.devices.len(), 1);
    assert_eq!(state.device_by_mac("02:42:ac:11:00:02".parse().unwrap()).unwrap().meta.id, first);
    // Its own addresses do not conflict, and released ones are free.
    of("device")
        .replace(&mut state, &first.to_string(), None, json!({"name": "a", "mac": "02:42:ac:11:00:04"}))
        .unwrap();
    device(&mut state, "b", "02:42:ac:11:00:02");
}

#[test]
fn names_of_tunnels_classes_and_groups_are_unique() {
    let mut state = draft();
    tunnel(&mut state, "home");
    let again = of("tunnel").create(&mut state, json!({"name": "home", "type": "wireguard", "private_key": "QAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEE="}));
    assert!(matches!(again, Err(EditError::Conflict { ref field, .. }) if field == "name"), "{again:?}");
    assert!(matches!(
        of("trust_class").create(&mut state, json!({"name": "guest"})),
        Err(EditError::Conflict { .. })
    ));
    create(&mut state, "device_group", json!({"name": "g"}));
    assert!(matches!(
        of("device_group").create(&mut state, json!({"name": "g"})),
        Err(EditError::Conflict { .. })
    ));
}

#[test]
fn the_built_in_classes_are_there_and_stay() {
    let mut state = draft();
    let levels: Vec<(String, u8)> =
        state.trust_classes.iter().map(|class| (class.name.clone(), class.level)).collect();
    let want = [("trusted", 80), ("standard", 50), ("iot", 30), ("guest", 20), ("quarantine", 0)];
    assert_eq!(levels, want.map(|(name, level)| (name.to_owned(), level)));
    let id = state.trust_class_by_name("guest").unwrap().meta.id.to_string();
    assert!(matches!(
        of("trust_class").delete(&mut state, &id, None, true),
        Err(EditError::Protected { .. })
    ));
    let renamed = of("trust_class").replace(&mut state, &id, None, json!({"name": "visitors"}));
    assert!(matches!(renamed, Err(EditError::Protected { .. })));
    let edited = of("trust_class")
        .replace(&mut state, &id, None, json!({"name": "guest", "level": 10, "builtin": false}))
        .unwrap();
    assert_eq!((&edited.value["level"], &edited.value["builtin"]), (&json!(10), &json!(true)));
}

#[test]
fn a_class_in_use_is_neither_deleted_nor_renamed() {
    let mut state = draft();
    let class = create(&mut state, "trust_class", json!({"name": "lab"})).id.to_string();
    let device = create(&mut state, "device", json!({"name": "a", "trust_class": "lab"})).id.to_string();
    match of("trust_class").delete(&mut state, &class, None, true) {
        Err(EditError::InUse { references, .. }) => {
            assert_eq!((references.total, references.referenced_by["devices"]), (1, 1));
        }
        other => panic!("{other:?}"),
    }
    let renamed = of("trust_class").replace(&mut state, &class, None, json!({"name": "laboratory"}));
    assert!(matches!(renamed, Err(EditError::InUse { .. })));
    let by_name = of("trust-class").references(&state, "lab").unwrap();
    assert_eq!(by_name, of("trust-class").references(&state, &class).unwrap());
    of("device").delete(&mut state, &device, None, false).unwrap();
    of("trust_class").delete(&mut state, &class, None, false).unwrap();
}

#[test]
fn a_device_that_a_policy_names_cannot_be_deleted_even_by_force() {
    let mut state = draft();
    let id = device(&mut state, "a", "02:42:ac:11:00:02").to_string();
    let input = json!({"source_type": "device", "source_value": id});
    let policy = create(&mut state, "routing_policy", input).id.to_string();
    state.freeze_applied();
    assert!(matches!(of("device").delete(&mut state, &id, None, true), Err(EditError::InUse { .. })));
    of("routing_policy").delete(&mut state, &policy, None, false).unwrap();
    // The applied version still steers its traffic.
    match of("device").delete(&mut state, &id, None, false) {
        Err(EditError::InUse { references, .. }) => {
            assert!(references.only_applied);
            assert_eq!(references.referenced_by["routing_policies"], 1);
        }
        other => panic!("{other:?}"),
    }
    state.freeze_applied();
    of("device").delete(&mut state, &id, None, false).unwrap();
}

#[test]
fn references_say_what_becomes_of_each_object_when_the_target_is_deleted() {
    let mut state = draft();
    let id = tunnel(&mut state, "home").to_string();
    tunnel(&mut state, "other");
    let with = |hops: &[(&str, &str)], more: serde_json::Value| policy(hops, more);
    let (home, other) = (("vpn", "home"), ("vpn", "other"));
    let cases = [
        ("closed", with(&[home], json!({})), WhenDeleted::Blocked, vec![]),
        ("open", with(&[home], json!({"fail_policy": "fail-open"})), WhenDeleted::Direct, vec![]),
        ("path", with(&[home, other], json!({})), WhenDeleted::Blocked, vec![]),
        (
            "failover",
            with(&[home, other], json!({"hop_mode": "failover"})),
            WhenDeleted::OtherHops,
            vec!["other"],
        ),
        ("pool", with(&[home, other], json!({"splitting": true})), WhenDeleted::OtherHops, vec!["other"]),
        (
            "degraded",
            with(&[home, other], json!({"fail_policy": "fail-degraded"})),
            WhenDeleted::OtherHops,
            vec!["other"],
        ),
        (
            "no plain direct",
            with(&[("interface", "eth0"), home], json!({"fail_policy": "fail-degraded"})),
            WhenDeleted::Blocked,
            vec![],
        ),
    ];
    for (priority, (name, mut input, ..)) in (100..).zip(cases.clone()) {
        (input["name"], input["priority"]) = (json!(name), json!(priority));
        create(&mut state, "routing_policy", input);
    }
    create(&mut state, "profile", json!({"name": "kids", "hops": [{"type": "vpn", "target": "home"}]}));
    let references = of("tunnel").references(&state, &id).unwrap();
    assert_eq!((references.total, references.objects.len()), (8, 8));
    let object = |name: &str| references.objects.iter().find(|object| object.name == name).unwrap();
    for (name, _, expected, hops) in cases {
        assert_eq!(object(name).when_deleted, expected, "{name}");
        assert_eq!(object(name).hops, hops, "{name}");
        assert_eq!((object(name).r#type, object(name).collection), ("routing_policy", "routing_policies"));
    }
    assert_eq!(object("kids").when_deleted, WhenDeleted::Unavailable);
    assert!(references.objects.is_sorted_by_key(|object| std::cmp::Reverse(object.when_deleted)));

    let device = device(&mut state, "a", "02:42:ac:11:00:02").to_string();
    create(&mut state, "device_group", json!({"name": "family", "members": [device]}));
    create(
        &mut state,
        "routing_policy",
        json!({"name": "one", "source_type": "device", "source_value": device}),
    );
    let references = of("device").references(&state, &device).unwrap();
    let outcomes: Vec<_> =
        references.objects.iter().map(|object| (object.name.as_str(), object.when_deleted)).collect();
    assert_eq!(outcomes, [("one", WhenDeleted::Refused), ("family", WhenDeleted::Released)]);
}

/// The version in force decides on the traffic, too.
#[test]
fn worse_outcome_of_the_pending_and_the_applied_version_counts() {
    let mut state = draft();
    let id = tunnel(&mut state, "home").to_string();
    let made =
        create(&mut state, "routing_policy", policy(&[("vpn", "home")], json!({"fail_policy": "fail-open"})));
    state.freeze_applied();
    let mut closed = made.value.clone();
    closed["fail_policy"] = json!("fail-closed");
    of("routing_policy").replace(&mut state, &made.id.to_string(), None, closed).unwrap();
    let references = of("tunnel").references(&state, &id).unwrap();
    assert_eq!((references.total, references.objects[0].when_deleted), (1, WhenDeleted::Direct));
}

#[test]
fn a_tunnel_that_policies_name_goes_by_force_only_and_a_missing_one_is_a_warning() {
    let mut state = draft();
    let id = tunnel(&mut state, "home").to_string();
    let named = create(&mut state, "routing_policy", policy(&[("vpn", "home")], json!({})));
    assert!(named.warnings.is_empty());
    assert_eq!(of("tunnel").references(&state, "home").unwrap().referenced_by["routing_policies"], 1);
    assert!(matches!(of("tunnel").delete(&mut state, &id, None, false), Err(EditError::InUse { .. })));
    of("tunnel").delete(&mut state, &id, None, true).unwrap();
    let again = of("routing_policy").replace(&mut state, &named.id.to_string(), None, named.value).unwrap();
    assert_eq!(again.warnings[0].path, "hops[0].target");
}

#[test]
fn a_tunnel_that_receivers_of_alerts_name_goes_by_force_only() {
    let mut state = draft();
    let id = tunnel(&mut state, "home").to_string();
    tunnel(&mut state, "other");
    let receivers = [
        ("alerts.webhook", json!({"url": "https://alerts.example/hook", "egress": "home"})),
        ("alerts.email", json!({"host": "smtp.example", "egress": "home"})),
        ("alerts.mqtt", json!({"host": "broker.example", "egress": "home"})),
    ];
    let put = |state: &mut State, key: &str, group: &Value| {
        GroupKind::find(key).unwrap().put(state, group.clone()).unwrap();
    };
    for (key, group) in &receivers {
        put(&mut state, key, group);
        let Err(EditError::InUse { references, .. }) = of("tunnel").delete(&mut state, &id, None, false)
        else {
            panic!("{key} names it")
        };
        assert_eq!((references.referenced_by[key], references.total, references.loose), (1, 1, 1));
        let object = &references.objects[0];
        assert_eq!((object.id, object.name.as_str()), (None, *key));
        assert_eq!(object.when_deleted, WhenDeleted::Unavailable);
        let mut another = group.clone();
        another["egress"] = json!("other");
        put(&mut state, key, &another);
    }
    of("tunnel").delete(&mut state, &id, None, false).unwrap();
    // By force, the name dangles.
    put(&mut state, "alerts.webhook", &receivers[0].1);
    let id = tunnel(&mut state, "home").to_string();
    of("tunnel").delete(&mut state, &id, None, true).unwrap();
    assert_eq!(state.group::<AlertWebhook>().egress, "home");
}

#[test]
fn renaming_a_tunnel_warns_of_the_policies_that_lose_it() {
    let mut state = draft();
    let id = tunnel(&mut state, "home").to_string();
    create(&mut state, "routing_policy", policy(&[("vpn", "home")], json!({})));
    let mut input = of("tunnel").get(&state, &id).unwrap().0;
    input["name"] = "office".into();
    let renamed = of("tunnel").replace(&mut state, &id, None, input).unwrap();
    assert_eq!(renamed.warnings.iter().filter(|warning| warning.path == "name").count(), 1);
}

#[test]
fn groups_keep_the_memberships_and_devices_show_them() {
    let mut state = draft();
    let a = device(&mut state, "a", "02:42:ac:11:00:02");
    let first = create(&mut state, "device_group", json!({"name": "first", "members": [a.to_string()]})).id;
    let second = create(&mut state, "device_group", json!({"name": "second"})).id;
    let shown = |state: &State| of("device").get(state, &a.to_string()).unwrap().0;
    assert_eq!(shown(&state)["groups"], json!([first]));

    let mut input = shown(&state);
    input["groups"] = json!([second]);
    let written = of("device").replace(&mut state, &a.to_string(), None, input).unwrap();
    assert_eq!(written.value["groups"], json!([second]));
    assert!(state.device_groups.get(first).unwrap().members.is_empty());
    assert_eq!(state.device_groups.get(second).unwrap().members, [a]);
    // Left out, they stay.
    of("device").replace(&mut state, &a.to_string(), None, json!({"name": "a"})).unwrap();
    assert_eq!(shown(&state)["groups"], json!([second]));
    let unknown = of("device").replace(&mut state, &a.to_string(), None, json!({"name": "a", "groups": [a]}));
    assert!(matches!(unknown, Err(EditError::Invalid(problems)) if problems.all_are("unknown_reference")));

    of("device").delete(&mut state, &a.to_string(), None, false).unwrap();
    assert!(state.device_groups.get(second).unwrap().members.is_empty());
}

#[test]
fn the_class_of_a_device_is_its_own_or_the_strictest_of_its_groups() {
    let mut state = draft();
    let class =
        |state: &State, id: Id| state.trust_class_of(state.devices.get(id).unwrap()).unwrap().name.clone();
    let a = device(&mut state, "a", "02:42:ac:11:00:02");
    assert_eq!(class(&state, a), "standard");
    create(&mut state, "device_group", json!({"name": "g", "members": [a], "trust_class": "trusted"}));
    create(&mut state, "device_group", json!({"name": "h", "members": [a], "trust_class": "guest"}));
    assert_eq!(class(&state, a), "guest");
    of("device")
        .replace(&mut state, &a.to_string(), None, json!({"name": "a", "trust_class": "iot"}))
        .unwrap();
    assert_eq!(class(&state, a), "iot");
    of("device")
        .replace(
            &mut state,
            &a.to_string(),
            None,
            json!({"name": "a", "trust_class": "trusted", "status": "quarantined"}),
        )
        .unwrap();
    assert_eq!(class(&state, a), "quarantine");
}

#[test]
fn the_same_source_and_priority_conflict() {
    let mut state = draft();
    let subnet = |hops: &[(&str, &str)], value: &str, more: Value| {
        let mut policy = policy(hops, more);
        policy["source_type"] = "subnet".into();
        policy["source_value"] = value.into();
        policy
    };
    let first = create(&mut state, "routing_policy", subnet(&[("vpn", "a")], "10.0.0.0/24", json!({}))).id;
    create(
        &mut state,
        "routing_policy",
        subnet(&[("vpn", "a")], "10.0.0.0/24", json!({"name": "the same way"})),
    );
    create(&mut state, "routing_policy", subnet(&[("vpn", "b")], "10.0.0.0/25", json!({})));
    create(&mut state, "routing_policy", subnet(&[("vpn", "b")], "10.0.0.0/24", json!({"priority": 5})));
    let disabled = create(
        &mut state,
        "routing_policy",
        subnet(&[("vpn", "b")], "10.0.0.0/24", json!({"enabled": false})),
    );
    let clash = subnet(&[("vpn", "b")], "10.9.0.0/16, 10.0.0.7/24", json!({}));
    match of("routing_policy").create(&mut state, clash) {
        Err(EditError::PolicyConflict { policies, .. }) => assert_eq!(policies, [first]),
        other => panic!("{other:?}"),
    }
    let enabled = state.update::<RoutingPolicy>(disabled.id, None, |policy| policy.enabled = true);
    assert!(matches!(enabled, Err(EditError::PolicyConflict { .. })));
}

#[test]
fn a_tunnel_has_one_underlay_and_never_itself() {
    let mut state = draft();
    let path = |hops: &[(&str, &str)], vlan: u16| {
        let mut policy = policy(hops, json!({"source_type": "vlan"}));
        policy["source_value"] = vlan.to_string().into();
        policy
    };
    create(&mut state, "routing_policy", path(&[("vpn", "a"), ("vpn", "b")], 1));
    create(&mut state, "routing_policy", path(&[("interface", "eth0"), ("vpn", "a"), ("vpn", "b")], 2));
    create(&mut state, "routing_policy", path(&[("vpn", "b")], 3));
    let conflict = |state: &mut State, hops: &[(&str, &str)]| {
        let result = of("routing_policy").create(state, path(hops, 9));
        assert!(matches!(result, Err(EditError::PolicyConflict { .. })), "{hops:?}: {result:?}");
    };
    conflict(&mut state, &[("vpn", "c"), ("vpn", "b")]);
    conflict(&mut state, &[("interface", "eth1"), ("vpn", "a")]);
    create(&mut state, "routing_policy", path(&[("vpn", "b"), ("vpn", "c")], 4));
    let mut fresh = draft();
    create(&mut fresh, "routing_policy", path(&[("vpn", "a"), ("vpn", "b")], 1));
    create(&mut fresh, "routing_policy", path(&[("vpn", "b"), ("vpn", "c")], 2));
    conflict(&mut fresh, &[("vpn", "c"), ("vpn", "a")]);
    // As alternatives or in a pool they do not carry each other.
    let mut failover = path(&[("vpn", "c"), ("vpn", "a")], 5);
    failover["hop_mode"] = "failover".into();
    create(&mut fresh, "routing_policy", failover);
    let mut pool = path(&[("vpn", "c"), ("vpn", "a")], 6);
    pool["splitting"] = true.into();
    create(&mut fresh, "routing_policy", pool);
}

#[test]
fn interface_hops_are_first_and_proxy_hops_last() {
    let mut state = draft();
    let found = |state: &mut State, hops: &[(&str, &str)]| -> Vec<String> {
        match of("routing_policy").create(state, policy(hops, json!({"enabled": false}))) {
            Ok(_) => Vec::new(),
            Err(EditError::Invalid(problems)) => {
                problems.iter().map(|p| format!("{} {}", p.path, p.code)).collect()
            }
            Err(other) => panic!("{other:?}"),
        }
    };
    assert_eq!(found(&mut state, &[("interface", "eth0"), ("vpn", "a"), ("proxy", "p")]), [""; 0]);
    assert_eq!(found(&mut state, &[("vpn", "a"), ("interface", "eth0")]), ["hops[1].type order"]);
    assert_eq!(found(&mut state, &[("proxy", "p"), ("vpn", "a")]), ["hops[0].type order"]);
    assert_eq!(found(&mut state, &[("vpn", "a"), ("vpn", "a")]), ["hops[1].target duplicate"]);
    assert_eq!(found(&mut state, &[("vpn", "A b")]), ["hops[0].target format"]);
    let many: Vec<String> = (0..17).map(|n| format!("t{n}")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|name| ("vpn", name.as_str())).collect();
    assert_eq!(found(&mut state, &many), ["hops range"]);
}

#[test]
fn missing_and_unsupported_targets_are_refused_by_name() {
    let mut state = draft();
    let codes = |result: Result<Written, EditError>| match result {
        Err(EditError::Invalid(problems)) => {
            problems.iter().map(|p| format!("{} {}", p.path, p.code)).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    for field in ["chain", "profile", "privacy_class"] {
        let mut input = policy(&[], json!({}));
        input[field] = "x".into();
        assert_eq!(
            codes(of("routing_policy").create(&mut state, input)),
            [format!("{field} unknown_reference")]
        );
    }
    let list = json!({"source_type": "domain", "source_value": "list:ads"});
    assert_eq!(codes(of("routing_policy").create(&mut state, list)), ["source_value not_supported"]);
    let openvpn =
        json!({"name": "o", "type": "openvpn", "config": "client\nremote x.example\nca /etc/ca.crt"});
    assert_eq!(codes(of("tunnel").create(&mut state, openvpn)), ["config format"]);
}

#[test]
fn ended_exceptions_are_no_referrers() {
    let mut state = draft();
    let id = device(&mut state, "a", "02:42:ac:11:00:02");
    for _ in 0..5 {
        create(&mut state, "exception", json!({"type": "quarantine", "device_id": id, "duration_min": 10}));
    }
    let body = json!({"source_type": "device", "source_value": id, "hops": []});
    create(&mut state, "routing_policy", body);
    let total = |state: &State| of("device").references(state, &id.to_string()).unwrap().total;
    assert_eq!(total(&state), 6);
    let later = state.begin(state.now() + jiff::SignedDuration::from_mins(11));
    assert_eq!(total(&later), 1);
}

#[test]
fn an_apply_freezes_the_policies_until_the_next() {
    let mut state = draft();
    let id = create(&mut state, "routing_policy", policy(&[("vpn", "a")], json!({}))).id;
    assert!(state.applied.policies.is_empty());
    state.freeze_applied();
    let mut next = state.begin(state.now());
    next.update::<RoutingPolicy>(id, None, |policy| policy.hops.clear()).unwrap();
    assert_eq!(next.applied.policies.get(id).unwrap().hops.len(), 1);
    assert!(next.routing_policies.get(id).unwrap().hops.is_empty());
    next.freeze_applied();
    assert!(next.applied.policies.get(id).unwrap().hops.is_empty());
    assert_eq!(next.applied.revision, next.revision);
}

#[test]
fn a_published_state_is_not_touched_by_a_draft() {
    let mut state = draft();
    let id = device(&mut state, "a", "02:42:ac:11:00:02");
    let published = state.clone();
    let mut next = published.begin(published.now());
    next.remove::<Device>(id, None, false).unwrap();
    device(&mut next, "b", "02:42:ac:11:00:02");
    assert_eq!(published.devices.get(id).unwrap().name, "a");
    assert_eq!(published.device_by_mac("02:42:ac:11:00:02".parse().unwrap()).unwrap().meta.id, id);
}

#[test]
fn slots_are_stable_and_freed_ones_are_used_last() {
    let mut state = draft();
    let a = device(&mut state, "a", "02:42:ac:11:00:02");
    let b = device(&mut state, "b", "02:42:ac:11:00:03");
    let slot = |state: &State, id: Id| state.devices.get(id).unwrap().meta.slot;
    assert_eq!((slot(&state, a), slot(&state, b)), (1, 2));
    state.remove::<Device>(b, None, false).unwrap();
    let c = device(&mut state, "c", "02:42:ac:11:00:04");
    assert_eq!(slot(&state, c), 3);
    assert!(state.devices.slot_owner(2).is_none());
    state.devices.resume(crate::table::SLOTS, Revision(0));
    let d = device(&mut state, "d", "02:42:ac:11:00:05");
    assert_eq!((slot(&state, d), state.devices.slot_owner(2).unwrap()), (2, d));
}

#[test]
fn ten_thousand_devices_created_one_by_one_cost_no_more_each() {
    let mut state = State::default();
    let started = std::time::Instant::now();
    for n in 0..10_000u32 {
        let mut next = state.begin(state.now());
        let [a, b, c, d] = n.to_be_bytes();
        device(&mut next, "x", &format!("02:00:{a:02x}:{b:02x}:{c:02x}:{d:02x}"));
        state = next;
    }
    assert_eq!(state.devices.len(), 10_000);
    // Generous: about 0.2 s on an idle core; a quadratic algorithm takes minutes.
    assert!(started.elapsed() < std::time::Duration::from_secs(10), "{:?}", started.elapsed());
}

proptest! {
    /// Whatever is edited, the indexes agree with the rows.
    #[test]
    fn indexes_follow_the_rows(edits in prop::collection::vec((0u8..3, 0usize..6, 0u8..8, 0u8..8), 1..60)) {
        let mut state = draft();
        let mut ids: Vec<Id> = Vec::new();
        for (op, which, mac, other) in edits {
            let input = json!({"name": "d", "mac": format!("02:00:00:00:00:{mac:02x}"), "macs": [format!("02:00:00:00:00:{other:02x}")]});
            match (op, ids.get(which % ids.len().max(1)).copied()) {
                (0, _) | (_, None) => ids.extend(of("device").create(&mut state, input).ok().map(|written| written.id)),
                (1, Some(id)) => drop(of("device").replace(&mut state, &id.to_string(), None, input)),
                (_, Some(id)) => {
                    state.remove::<Device>(id, None, false).unwrap();
                    ids.retain(|have| *have != id);
                }
            }
            let mut owned = std::collections::BTreeMap::new();
            for device in state.devices.iter() {
                for mac in device.all_macs() {
                    prop_assert_eq!(owned.insert(mac, device.meta.id), None, "two devices with one address");
                }
                prop_assert_eq!(state.devices.slot_owner(device.meta.slot), Some(device.meta.id));
            }
            for octet in 0..8 {
                let mac = MacAddr([2, 0, 0, 0, 0, octet]);
                prop_assert_eq!(state.device_by_mac(mac).map(|device| device.meta.id), owned.get(&mac).copied());
            }
        }
    }
}
