//! Rules of nodes.

use serde_json::json;

use crate::kinds::test_objects::*;

#[test]
fn nodes_name_roles_and_kinds_that_there_are() {
    let mut state = draft();
    let key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE=";
    let (node, _) = made(
        &mut state,
        "node",
        json!({
            "name": "branch", "url": "https://Branch.example.net", "public_key": key, "status": "approved",
            "role": "secondary", "sync_policy": "push", "sync_resources": " routing, trust-classes,",
        }),
    );
    assert_eq!(node["status"], "pending", "it was not approved");
    assert_eq!(node["sync_resources"], "routing,trust_classes");
    assert!(node["fingerprint"].as_str().unwrap().starts_with("SHA256:"));
    let role = of("federation_role").find(&state, "secondary").unwrap().to_string();
    assert_eq!(of("federation_role").references(&state, &role).unwrap().referenced_by["nodes"], 1);
    for (input, want) in [
        (json!({"name": "branch", "url": "https://a.b"}), "name taken"),
        (json!({"name": "x", "url": "https://branch.example.net/"}), "url taken"),
        (json!({"name": "x", "url": "https://a.b", "public_key": key}), "public_key taken"),
    ] {
        assert_eq!(refusal(create(&mut state, "node", input)), [want]);
    }
    refused(
        "node",
        &[
            (json!({}), &["name required", "url required"]),
            (json!({"name": "x", "url": "ftp://a.b"}), &["url format"]),
            (json!({"name": "x", "url": "https://a.b", "role": "king"}), &["role unknown_reference"]),
            (
                json!({"name": "x", "url": "https://a.b", "sync_resources": "colours,dns,dns"}),
                &["sync_resources enum", "sync_resources duplicate"],
            ),
            (json!({"name": "x", "url": "https://a.b", "public_key": "AAAA"}), &["public_key format"]),
        ],
    );
    refused(
        "federation_role",
        &[
            (json!({"name": "Not A Slug"}), &["name format"]),
            (json!({"name": "primary"}), &["name taken"]),
            (
                json!({"name": "a", "permissions": [{"kind": "dns", "push": true}, {"kind": "dns", "pull": true}]}),
                &["permissions[1].kind duplicate"],
            ),
            (json!({"name": "a", "permissions": [{"kind": "colours"}]}), &["permissions[0].kind enum"]),
        ],
    );
}

#[test]
fn a_kind_has_one_primary() {
    let mut state = draft();
    let node = |name: &str, policy: &str| {
        json!({"name": name, "url": format!("https://{name}.example.net"), "role": "primary",
            "sync_policy": policy, "sync_resources": "dns,routing", "allowed_receive_resources": "dns"})
    };
    made(&mut state, "node", node("one", "pull"));
    assert_eq!(refusal(create(&mut state, "node", node("two", "both"))), ["sync_resources conflict"]);
    made(&mut state, "node", node("three", "push"));
}

#[test]
fn an_approval_is_of_one_key() {
    let mut state = draft();
    let key = |last: char| format!("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA{last}E=");
    let input = |key: String| json!({"name": "a", "url": "https://a.b", "public_key": key});
    let id = create(&mut state, "node", input(key('A'))).unwrap().id;
    state
        .update::<crate::kinds::Node>(id, None, |node| node.status = crate::kinds::NodeStatus::Approved)
        .unwrap();
    let replaced = |state: &mut crate::State, key| {
        let written = of("node").replace(state, &id.to_string(), None, input(key)).unwrap();
        written.value["status"].as_str().unwrap().to_owned()
    };
    let sync = json!({"sync_policy": "push", "sync_resources": "dns"});
    let shown = of("node").replace(&mut state, &id.to_string(), None, sync).unwrap().value;
    assert_eq!((&shown["status"], &shown["public_key"]), (&json!("approved"), &json!(key('A'))));
    assert_eq!(replaced(&mut state, key('A')), "approved");
    assert_eq!(replaced(&mut state, key('B')), "pending");
}
