//! State machines without input or output: they take events with their times, and return actions.

pub mod deadman;
pub mod dhcp;
pub mod hosts;
pub mod liveness;
pub mod prefix_delegation;
pub mod router_advertiser;
pub mod tunnel_health;
pub mod uplink_health;
pub mod wan_manager;
