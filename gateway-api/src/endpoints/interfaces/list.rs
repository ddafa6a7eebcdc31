//! List of the interfaces.

use gateway_core::interfaces::{InterfaceRole, role};
use gateway_model::id::MacAddr;
use gateway_model::settings::groups::{InterfaceMethod, InterfacesConfig};
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Cx;
use crate::error::ApiError;
use crate::reply::WithHeaders;
use crate::request::Req;

/// An interface of the host.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Interface {
    name: String,
    role: InterfaceRole,
    /// `veth`, `bridge`, `vlan`, `tun`, …; empty for plain hardware.
    kind: String,
    up: bool,
    mac: Option<MacAddr>,
    mtu: u32,
    addresses: Vec<String>,
    /// Bridge, bond or VRF that it is a port of.
    master: Option<String>,
    /// For a VLAN: its parent and its id.
    parent: Option<String>,
    vlan_id: Option<u16>,
    /// The gateway makes it, as the configuration wants.
    made: bool,
    /// Method of the configuration.
    method: InterfaceMethod,
}

pub(super) async fn show(cx: Cx, _: Req<()>) -> Result<WithHeaders<Vec<Interface>>, ApiError> {
    let world = cx.open()?.world();
    let configured: InterfacesConfig = world.state.group();
    let (facts, network) = (&world.facts, &world.network);
    let interface = |(name, link): (&String, &gateway_core::facts::Link)| {
        let config = configured.0.iter().find(|(other, _)| other.as_str() == name);
        Interface {
            name: name.clone(),
            role: role(&world.state, network, facts, name),
            kind: link.kind.clone(),
            up: link.up,
            mac: link.mac.map(MacAddr),
            mtu: link.mtu,
            addresses: facts.addresses.get(name).into_iter().flatten().map(ToString::to_string).collect(),
            master: link.master.clone(),
            parent: link.vlan.as_ref().map(|(parent, _)| parent.clone()),
            vlan_id: link.vlan.as_ref().map(|(_, id)| *id),
            made: network.virtual_links.contains_key(name),
            method: config.map(|(_, config)| config.method).unwrap_or_default(),
        }
    };
    Ok(WithHeaders::counted(facts.links.iter().map(interface).collect()))
}
