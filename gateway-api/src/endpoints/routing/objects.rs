//! Objects that policies use: profiles, chains, privacy classes, segments, presets.

use std::collections::BTreeMap;

use gateway_core::chain_status;
use gateway_ctl::world::World;
use gateway_model::State;
use gateway_model::kinds::{Chain, PrivacyClass, Profile, Segment};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::super::interfaces::presence::missing_hops;
use crate::context::Cx;
use crate::error::ApiError;
use crate::gateway::Open;
use crate::reply::WithHeaders;
use crate::request::Req;
use crate::table::Method::{Post, Put};
use crate::table::{Collection, Live, Ops, Table};

pub(super) fn rows(t: &mut Table) {
    t.collection::<Profile>(Collection {
        path: "/profiles",
        item: "/profiles/{id}",
        actions: ["create_profile", "replace_profile", "delete_profile"],
        ops: Ops::ALL,
        live: None,
    });
    t.collection::<Chain>(Collection {
        path: "/chains",
        item: "/chains/{id}",
        actions: ["create_chain", "replace_chain", "delete_chain"],
        ops: Ops::ALL,
        live: Some(Live::beside(observe_chains)),
    });
    let missing = |open: &Open, object: &Value| {
        let world = open.worlds.last();
        missing_hops(&world.config, &world.facts, object)
    };
    for (method, path) in
        [(Post, "/profiles"), (Put, "/profiles/{id}"), (Post, "/chains"), (Put, "/chains/{id}")]
    {
        t.warned(method, path, missing);
    }
    t.collection::<PrivacyClass>(Collection {
        path: "/privacy-classes",
        item: "/privacy-classes/{id}",
        actions: ["create_privacy_class", "replace_privacy_class", "delete_privacy_class"],
        ops: Ops::ALL,
        live: None,
    });
    t.collection::<Segment>(Collection {
        path: "/segments",
        item: "/segments/{id}",
        actions: ["create_segment", "replace_segment", "delete_segment"],
        ops: Ops::ALL,
        live: None,
    });
    t.view("/vlans", "list_vlans", vlans).summary("List the VLANs of this host and of segments");
}

/// Adds the status of chains with their current egress.
fn observe_chains(open: &Open, state: &State, shown: &mut [Value]) {
    let world = open.world();
    crate::endpoints::observed::add_observed(shown, &state.chains, |row| {
        chain_status::live(world.live(), row)
    });
}

/// A VLAN: an interface of this host, a segment, or both.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(super) struct Vlan {
    /// VLAN id (IEEE 802.1Q).
    pub vlan_id: u16,
    /// Parent interface of the VLAN.
    pub parent: String,
    /// VLAN interface of this host; null if there is none.
    pub interface: Option<String>,
    /// The VLAN interface is up.
    pub up: bool,
    /// The interface belongs to the LAN, so policies apply to its traffic.
    pub lan: bool,
    /// Name of the segment on this VLAN; null if there is none.
    pub segment: Option<String>,
}

async fn vlans(cx: Cx, _: Req<()>) -> Result<WithHeaders<Vec<Vlan>>, ApiError> {
    let open = cx.open()?;
    let World { facts, state, network, .. } = open.world();
    let lan = &network.lan;
    let mut vlans: BTreeMap<(u16, String), Vlan> = BTreeMap::new();
    for (name, link) in &facts.links {
        let Some((parent, id)) = &link.vlan else { continue };
        let own = facts.bridge_or_self(name, |name| lan.iter().any(|lan| lan == name));
        let is_uplink = network.uplinks.iter().any(|uplink| uplink.interface == *name);
        let vlan = Vlan {
            vlan_id: *id,
            parent: parent.clone(),
            interface: Some(name.clone()),
            up: link.up,
            lan: own.is_some() || lan.contains(parent) && !is_uplink,
            segment: None,
        };
        vlans.insert((*id, parent.clone()), vlan);
    }
    for segment in state.segments.iter() {
        let (Some(id), Some(parent)) = (segment.vlan_id, &segment.interface) else { continue };
        let parent = parent.to_string();
        let vlan = vlans.entry((id, parent.clone())).or_insert_with(|| Vlan {
            vlan_id: id,
            lan: lan.contains(&parent),
            parent,
            ..Vlan::default()
        });
        vlan.segment = Some(segment.name.clone());
    }
    Ok(WithHeaders::counted(vlans.into_values().collect()))
}
