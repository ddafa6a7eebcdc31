//! Names of the objects for prompts, and ids in place of names in what a model suggests.

use gateway_core::assistant::policy_wish::PolicyNames;
use gateway_ctl::world::World;
use gateway_model::{Device, DeviceGroup, Id, Kind, Resource, RoutingPolicy, State};
use serde_json::Value;

const DEVICES: Kind = Kind::of::<Device>();
const GROUPS: Kind = Kind::of::<DeviceGroup>();
/// Maximum number of names of one kind.
const MAX_NAMES: usize = 60;

/// Returns the names of the objects that policies refer to.
pub(super) fn policy_names(world: &World) -> PolicyNames {
    let state = &world.state;
    PolicyNames {
        devices: state.devices.iter().take(MAX_NAMES).map(|device| device.name.clone()).collect(),
        device_groups: state.device_groups.iter().take(MAX_NAMES).map(|group| group.name.clone()).collect(),
        interfaces: world.network.lan.iter().take(MAX_NAMES).map(ToString::to_string).collect(),
        tunnels: state.tunnels.iter().take(MAX_NAMES).map(|tunnel| tunnel.name.clone()).collect(),
        proxies: state.proxies.iter().take(MAX_NAMES).map(|proxy| proxy.name.clone()).collect(),
        uplinks: world
            .network
            .uplinks
            .iter()
            .take(MAX_NAMES)
            .map(|uplink| uplink.interface.to_string())
            .collect(),
    }
}

/// Returns the objects as a text for a prompt.
pub(super) fn described(world: &World, names: &PolicyNames) -> String {
    let policies = world.state.routing_policies.iter().take(MAX_NAMES);
    let policies: Vec<String> =
        policies.map(|policy| format!("{} (priority {})", policy.name, policy.priority)).collect();
    let lists = [
        ("devices", &names.devices),
        ("device groups", &names.device_groups),
        ("LAN interfaces", &names.interfaces),
        ("tunnels", &names.tunnels),
        ("proxies", &names.proxies),
        ("uplinks", &names.uplinks),
        ("policies", &policies),
    ];
    let known = lists.iter().filter(|(_, names)| !names.is_empty());
    known.map(|(kind, names)| format!("{kind}: {}", names.join(", "))).collect::<Vec<_>>().join("; ")
}

/// Puts ids in place of the names of devices and groups in a policy.
pub(super) fn with_ids(kind: &Kind, state: &State, mut body: Value) -> Value {
    if kind.noun != RoutingPolicy::NOUN {
        return body;
    }
    let Some(value) = body["source_value"].as_str().map(str::to_owned) else { return body };
    let find: &dyn Fn(&str) -> Option<String> = match body["source_type"].as_str() {
        Some("device") => &|name| find(&DEVICES, state, name),
        Some("device_group") => &|name| find(&GROUPS, state, name),
        _ => return body,
    };
    let ids = value.split(',').map(str::trim).map(|name| find(name).unwrap_or_else(|| name.to_owned()));
    body["source_value"] = ids.collect::<Vec<_>>().join(",").into();
    body
}

/// Returns the id of the object with this id or name, whatever the case of its letters. The first of several.
pub(super) fn find(kind: &Kind, state: &State, name: &str) -> Option<String> {
    fn first<R: Resource>(state: &State, name: &str) -> Option<Id> {
        let mut rows = R::table(state).iter();
        rows.find(|row| row.label().eq_ignore_ascii_case(name)).map(|row| row.meta().id)
    }
    let by_name = || match kind.noun {
        Device::NOUN => first::<Device>(state, name),
        DeviceGroup::NOUN => first::<DeviceGroup>(state, name),
        RoutingPolicy::NOUN => first::<RoutingPolicy>(state, name),
        _ => None,
    };
    kind.find(state, name).or_else(by_name).map(|id| id.to_string())
}
