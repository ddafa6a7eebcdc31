//! Objects that came from a node: owners, conflicts, interfaces.

use serde_json::json;

use super::*;
use crate::edit::EditError;
use crate::registry::kind;

const NODE: &str = "0193f3a8-0c5e-7cc2-8a0e-2f6d1b9f4a01";
const FIRST: &str = "0193f3a8-0c5e-7cc2-8a0e-2f6d1b9f4a11";
const SECOND: &str = "0193f3a8-0c5e-7cc2-8a0e-2f6d1b9f4a12";

/// Returns a state with the node `primary`, from which devices and policies are taken.
fn state() -> (State, Node) {
    let mut state = State::new("2026-11-20T12:00:00Z".parse().unwrap());
    let input = json!({"name": "primary", "url": "https://primary.example", "role": "primary",
        "sync_policy": "pull", "sync_resources": "devices,routing",
        "allowed_receive_resources": "devices,routing", "interface_map": {"lan0": "br-lan"}});
    let made = kind("node").unwrap().create(&mut state, input).unwrap();
    let node = state.nodes.get(made.id).unwrap().as_ref().clone();
    assert_ne!(node.meta.id, NODE.parse().unwrap());
    (next(&state), node)
}

fn next(state: &State) -> State {
    state.begin("2026-11-20T12:00:01Z".parse().unwrap())
}

fn device(id: &str, name: &str, mac: &str) -> Value {
    json!({"id": id, "name": name, "mac": mac})
}

fn devices(list: Value) -> Map<String, Value> {
    json!({"devices": list}).as_object().unwrap().clone()
}

fn paths(result: Result<Outcome, Problems>) -> Vec<String> {
    result.unwrap_err().iter().map(|problem| format!("{} {}", problem.path, problem.code)).collect()
}

#[test]
fn received_objects_keep_their_ids_and_are_read_only() {
    let (mut draft, node) = state();
    let first = device(FIRST, "printer", "02:00:00:00:00:01");
    receive(&mut draft, &node, devices(json!([first]))).unwrap();
    let id: Id = FIRST.parse().unwrap();
    assert_eq!(draft.devices.get(id).unwrap().meta.origin_node, Some(node.meta.id));
    let mut draft = next(&draft);
    let devices_kind = kind("device").unwrap();
    let edited = json!({"name": "scanner", "mac": "02:00:00:00:00:01"});
    let refused = devices_kind.replace(&mut draft, FIRST, None, edited).unwrap_err();
    assert!(
        matches!(&refused, EditError::WrongState { message, .. } if message.contains("primary")),
        "{refused}"
    );
    let refused = devices_kind.delete(&mut draft, FIRST, None, true).unwrap_err();
    assert!(matches!(refused, EditError::WrongState { .. }), "{refused}");
    // A plan that changes nothing of it may list it.
    let (shown, _) = devices_kind.get(&draft, FIRST).unwrap();
    assert_eq!(shown["origin_node"], node.meta.id.to_string());
    devices_kind.replace(&mut draft, FIRST, None, shown).unwrap();
    let order = Order { mode: Mode::Replace, resources: devices(json!([])), ..Order::default() };
    assert_eq!(paths(change(&mut draft, &order)), ["resources.devices conflict"]);
}

#[test]
fn objects_that_the_node_does_not_list_are_deleted_and_no_others() {
    let (mut draft, node) = state();
    kind("device").unwrap().create(&mut draft, json!({"name": "mine", "mac": "02:00:00:00:00:09"})).unwrap();
    let pair = [device(FIRST, "one", "02:00:00:00:00:01"), device(SECOND, "two", "02:00:00:00:00:02")];
    receive(&mut draft, &node, devices(json!(pair))).unwrap();
    assert_eq!(held(&draft, node.meta.id, SyncKind::Devices).len(), 2);
    let mut draft = next(&draft);
    // The second takes the address of the first, which is deleted: it keeps its own id nevertheless.
    receive(&mut draft, &node, devices(json!([device(SECOND, "two", "02:00:00:00:00:01")]))).unwrap();
    let names: Vec<&str> = draft.devices.iter().map(|device| device.name.as_str()).collect();
    assert_eq!((names.len(), names.contains(&"mine"), names.contains(&"two")), (2, true, true));
    assert_eq!(
        draft.devices.get(SECOND.parse().unwrap()).unwrap().mac.unwrap().to_string(),
        "02:00:00:00:00:01"
    );
    assert_eq!(offered(&draft, SyncKind::Devices)["devices"].as_array().unwrap().len(), 1);
    assert_eq!(inventory(&draft).len(), 2);
}

#[test]
fn an_object_of_another_owner_is_a_conflict_and_is_not_merged() {
    let (mut draft, node) = state();
    let mine = json!({"name": "mine", "mac": "02:00:00:00:00:09"});
    let mine = kind("device").unwrap().create(&mut draft, mine).unwrap().id.to_string();
    let refused = receive(&mut draft, &node, devices(json!([device(FIRST, "x", "02:00:00:00:00:09")])));
    assert_eq!(paths(refused), ["resources.devices[0].mac conflict"]);
    let refused = receive(&mut draft, &node, devices(json!([device(&mine, "x", "02:00:00:00:00:01")])));
    assert_eq!(paths(refused), ["resources.devices[0].id conflict"]);
    let refused = receive(&mut draft, &node, devices(json!([{"name": "no id"}])));
    assert_eq!(paths(refused), ["resources.devices[0].id format"]);
}

#[test]
fn interfaces_are_mapped_or_refused() {
    let policy = |interface: &str| {
        json!({"routing_policies": [{"id": FIRST, "name": "lan", "priority": 10, "enabled": true,
            "source_type": "interface", "source_value": interface, "hops": [], "fail_policy": "fail-closed"}]})
        .as_object()
        .unwrap()
        .clone()
    };
    let (mut draft, node) = state();
    assert_eq!(
        paths(receive(&mut draft, &node, policy("eth9"))),
        ["resources.routing_policies[0].source_value unknown_reference"]
    );
    let (mut draft, node) = state();
    receive(&mut draft, &node, policy("lan0")).unwrap();
    let id: Id = FIRST.parse().unwrap();
    assert_eq!(draft.routing_policies.get(id).unwrap().source_value, "br-lan");
    assert!(draft.applied.policies.contains(id), "a policy that arrives is applied");
}

#[test]
fn a_deleted_node_leaves_its_objects_to_this_gateway() {
    let (mut draft, node) = state();
    receive(&mut draft, &node, devices(json!([device(FIRST, "one", "02:00:00:00:00:01")]))).unwrap();
    assert_eq!(draft.received_from(node.meta.id), 1);
    let mut draft = next(&draft);
    kind("node").unwrap().delete(&mut draft, &node.meta.id.to_string(), None, false).unwrap();
    assert_eq!(draft.devices.get(FIRST.parse().unwrap()).unwrap().meta.origin_node, None);
    let edited = json!({"name": "other", "mac": "02:00:00:00:00:01"});
    kind("device").unwrap().replace(&mut draft, FIRST, None, edited).unwrap();
}
