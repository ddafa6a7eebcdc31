//! Paths of devices: where the traffic of each one goes now, and the graph from devices to uplinks.

mod current;
mod graph;

use std::borrow::Cow;

use gateway_core::evaluate::Decision;
use gateway_core::gateway_verdict::Treatment;
use gateway_core::paths::{DevicePath, Paths};
use gateway_model::Id;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error as _};

use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::ApiError;
use crate::query::parameters::Limit;
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::Table;

/// Value of the parameter `policy` for devices that no policy decides on.
const NO_POLICY: &str = "none";

pub(super) fn rows(t: &mut Table) {
    t.view("/policy/paths", "list_policy_paths", list)
        .heavy()
        .summary("Path of each device to the internet: policy, decision, egress")
        .doc(
            "Evaluates each device like /policy/evaluate, for the families that its LAN has, over the applied policies. Sorted by name. X-Total-Count counts all matches.",
        )
        .query::<PathsQuery>();
    t.view("/policy/paths/graph", "get_policy_path_graph", graph::show)
        .heavy()
        .summary("Graph of live paths: devices, policies, hops and uplinks with their states and counters")
        .doc("The numbers of devices are those of /policy/paths. Counters begin when the object is made or the programs are loaded.");
}

/// Query of the paths.
#[derive(Default, serde::Deserialize, JsonSchema)]
#[serde(default)]
struct PathsQuery {
    /// Maximum number of devices: 1 to 1000; 100 if it is not given.
    limit: Limit<100, 1000>,
    /// Id of the last device of the page before.
    after: Option<Id>,
    /// Only devices with this decision.
    decision: Option<Decision>,
    /// Only devices that the verdict of /status counts so.
    treatment: Option<Treatment>,
    /// Only devices that this policy or exception decides on, by id; none: no policy does.
    policy: Option<PolicyChoice>,
    /// Only members of this device group, by id.
    group: Option<Id>,
    /// Only devices that leave by this tunnel, uplink or proxy, by name.
    egress: Option<String>,
    /// Only devices whose name, MAC address or address contains this text.
    search: Option<String>,
}

/// Policy that decides on a device.
enum PolicyChoice {
    None,
    Policy(Id),
}

impl<'de> Deserialize<'de> for PolicyChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PolicyChoice, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == NO_POLICY {
            return Ok(PolicyChoice::None);
        }
        text.parse().map(PolicyChoice::Policy).map_err(|_| D::Error::custom("an id or none"))
    }
}

impl JsonSchema for PolicyChoice {
    fn schema_name() -> Cow<'static, str> {
        "PolicyChoice".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }
}

async fn list(cx: Cx, request: Req<()>) -> Result<WithHeaders<Vec<DevicePath>>, ApiError> {
    let query: PathsQuery = request.query.read()?;
    let (limit, after) = (query.limit.get(), query.after);
    let conditions = Conditions::of(query);
    let (_, paths) = current::paths_now(&cx).await?;
    blocking(move || {
        let matching: Vec<&DevicePath> =
            paths.devices.iter().filter(|device| conditions.hold_for(device)).collect();
        let start = match after {
            None => 0,
            Some(id) => first_after(&paths, &matching, id),
        };
        let total = matching.len();
        let page = matching.into_iter().skip(start).take(limit).cloned().collect();
        let mut answer = WithHeaders::new(page);
        answer.total = Some(total);
        Ok(answer)
    })
    .await?
}

/// Returns the index of the first match behind a device, which itself need not match any more. 0 if the device is gone.
fn first_after(paths: &Paths, matching: &[&DevicePath], id: Id) -> usize {
    let key = |device: &DevicePath| (device.name.clone(), device.device_id);
    let Some(last) = paths.devices.iter().find(|device| device.device_id == id).map(key) else { return 0 };
    matching.partition_point(|device| key(device) <= last)
}

/// Conditions of a request; all must hold.
#[derive(Default)]
struct Conditions {
    decision: Option<Decision>,
    treatment: Option<Treatment>,
    /// The inner value is `None` for devices without a policy.
    policy: Option<Option<Id>>,
    group: Option<Id>,
    egress: Option<String>,
    search: Option<String>,
}

impl Conditions {
    fn of(query: PathsQuery) -> Conditions {
        let PathsQuery { decision, treatment, policy, group, egress, search, .. } = query;
        let policy = policy.map(|policy| match policy {
            PolicyChoice::None => None,
            PolicyChoice::Policy(id) => Some(id),
        });
        let search = search.map(|text| text.to_lowercase()).filter(|text| !text.is_empty());
        Conditions { decision, treatment, policy, group, egress, search }
    }

    fn hold_for(&self, device: &DevicePath) -> bool {
        let leaves_by = |name: &String| {
            let by_hop = device.hop.as_ref().is_some_and(|hop| hop.target == *name);
            by_hop || device.egress.contains(name) || device.uplink.as_ref() == Some(name)
        };
        let contains = |text: &String| {
            let mac = device.mac.map(|mac| mac.to_string());
            let addresses = device.addresses.iter().map(ToString::to_string);
            let texts = std::iter::once(device.name.to_lowercase()).chain(mac).chain(addresses);
            texts.into_iter().any(|own| own.contains(text))
        };
        self.decision.is_none_or(|decision| decision == device.decision)
            && self.treatment.is_none_or(|treatment| treatment == device.treatment)
            && self.policy.is_none_or(|policy| policy == device.decided_by())
            && self.group.is_none_or(|group| device.group_ids.contains(&group))
            && self.egress.as_ref().is_none_or(leaves_by)
            && self.search.as_ref().is_none_or(contains)
    }
}

#[cfg(test)]
mod tests {
    use gateway_core::paths::FamilyDecisions;
    use gateway_model::kinds::device::DeviceStatus;

    use super::*;
    use crate::request::Query;

    fn device(n: u8, name: &str, decision: Decision) -> DevicePath {
        DevicePath {
            device_id: format!("0193f3a8-0c5e-7cc2-8a0e-2f6d1b9f4a{n:02x}").parse().expect("an id"),
            name: name.to_owned(),
            mac: None,
            addresses: vec![std::net::Ipv4Addr::new(192, 168, 1, n).into()],
            group_ids: Vec::new(),
            status: DeviceStatus::Known,
            decision,
            treatment: Treatment::NoPolicy,
            families: FamilyDecisions { ipv4: Some(decision), ipv6: None },
            policy: None,
            exception: None,
            hop: None,
            via: None,
            egress: vec!["a".to_owned()],
            uplink: Some("wan0".to_owned()),
            sentence: String::new(),
        }
    }

    fn holds(query: &str, device: &DevicePath) -> bool {
        let query = Query::parse(Some(query)).expect("a query");
        let read = query.read().unwrap_or_else(|error| panic!("{query:?}: {error:?}"));
        Conditions::of(read).hold_for(device)
    }

    #[test]
    fn conditions_hold_all_or_the_device_is_left_out() {
        let laptop = device(7, "Laptop", Decision::Tunnel);
        for query in ["", "decision=tunnel", "treatment=no_policy&policy=none", "egress=a", "egress=wan0"] {
            assert!(holds(query, &laptop), "{query}");
        }
        for query in ["search=lap", "search=LAPT", "search=1.7"] {
            assert!(holds(query, &laptop), "{query}");
        }
        let other = "0193f3a8-0c5e-7cc2-8a0e-2f6d1b9f4aff";
        for query in
            ["decision=block", "treatment=blocked", "egress=b", "search=tv", "egress=a&decision=direct"]
        {
            assert!(!holds(query, &laptop), "{query}");
        }
        assert!(!holds(&format!("policy={other}"), &laptop) && !holds(&format!("group={other}"), &laptop));
        for query in ["decision=x", "treatment=", "policy=x", "group=1"] {
            let query = Query::parse(Some(query)).expect("a query");
            assert!(query.read::<PathsQuery>().is_err(), "{query:?}");
        }
    }

    #[test]
    fn the_next_page_begins_behind_the_last_device() {
        let devices = ["a", "b", "c", "d"].iter().zip(1..);
        let devices = devices.map(|(name, n)| device(n, name, Decision::Direct)).collect::<Vec<_>>();
        let paths = Paths { devices, ..Paths::default() };
        let matching: Vec<&DevicePath> = paths.devices.iter().filter(|device| device.name != "b").collect();
        let after = |n: usize| first_after(&paths, &matching, paths.devices[n].device_id);
        assert_eq!([after(0), after(1), after(2), after(3)], [1, 1, 2, 3], "b is listed no more");
    }
}
