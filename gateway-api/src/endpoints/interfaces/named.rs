//! Interface that a path names, and its protection.

use gateway_core::interfaces::{InterfaceRole, role};
use gateway_ctl::world::World;
use gateway_model::IfName;

use crate::error::{ApiError, Code};

pub(super) const NOUN: &str = "interface";

/// Reads the name of the path, and returns it with the role of the interface.
pub(super) fn named(world: &World, name: &str) -> Result<(IfName, InterfaceRole), ApiError> {
    let name: IfName = name.parse().map_err(|error| {
        ApiError::invalid_parameter("name", format!("The name of an interface is {error}."))
    })?;
    let World { state, network, facts, .. } = world;
    let is_known = facts.links.contains_key(name.as_str())
        || network.interfaces.contains_key(name.as_str())
        // A gateway without a kernel knows no interfaces.
        || facts.links.is_empty();
    if !is_known {
        return Err(ApiError::not_found(NOUN, name.as_str()));
    }
    let role = role(state, network, facts, name.as_str());
    Ok((name, role))
}

/// Refuses a change of an interface that has another purpose.
pub(super) fn protected(name: &IfName, role: InterfaceRole, what: &str) -> ApiError {
    let because = match role {
        InterfaceRole::Lan => "belongs to the LAN",
        InterfaceRole::Uplink => "is an uplink",
        InterfaceRole::Tunnel => "belongs to a tunnel",
        InterfaceRole::Loopback => "is the loopback interface",
        InterfaceRole::Port => "is a port of a bridge or a bond",
        InterfaceRole::Other => "is protected",
    };
    ApiError::new(Code::InterfaceProtected, format!("{name} {because}: {what}."))
        .detail("interface", name.as_str())
        .detail("role", serde_json::to_value(role).unwrap_or_default())
}
