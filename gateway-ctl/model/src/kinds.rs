//! The kinds of resources, one module each.

pub mod device;
pub mod device_group;
pub mod policy_source;
pub mod routing_policy;
pub mod trust_class;
pub mod tunnel;
pub mod tunnel_health;

pub use device::{Device, DeviceLive, DeviceStatus};
pub use device_group::DeviceGroup;
pub use policy_source::{DomainPattern, Source, SourceType};
pub use routing_policy::{
    FailPolicy, Hop, HopMode, HopType, PolicyLive, PolicyStatus, Reject, RoutingPolicy, Sticky,
};
pub use trust_class::{Internet, LanAccess, TrustClass};
pub use tunnel::{AdminState, Peer, Tunnel, TunnelType, Uplink};
pub use tunnel_health::{Health, HealthCheck, HealthCheckType, PeerLive, TunnelLive, TunnelStatus};
