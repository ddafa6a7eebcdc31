//! The kinds of resources, one module each.

pub mod alert_rule;
pub mod api_key;
pub mod device;
pub mod device_group;
pub mod dhcp_reservation;
pub mod dns;
pub mod dns_filter_rule;
pub mod dns_forwarder;
pub mod dns_list;
pub mod dns_preset;
pub mod dns_record;
pub mod dns_rewrite;
pub mod dns_zone;
pub mod federation_role;
pub mod node;
pub mod policy_source;
pub mod routing_policy;
pub mod threat_feed;
pub mod trust_class;
pub mod tunnel;
pub mod tunnel_health;
pub mod user;

pub use alert_rule::AlertRule;
pub use api_key::ApiKey;
pub use device::{Device, DeviceLive, DeviceStatus};
pub use device_group::DeviceGroup;
pub use dhcp_reservation::DhcpReservation;
pub use dns_filter_rule::DnsFilterRule;
pub use dns_forwarder::DnsForwarder;
pub use dns_list::{DnsAllow, DnsBlock};
pub use dns_preset::DnsPreset;
pub use dns_record::DnsRecord;
pub use dns_rewrite::DnsRewrite;
pub use dns_zone::DnsZone;
pub use federation_role::FederationRole;
pub use node::Node;
pub use policy_source::{DomainPattern, Source, SourceType};
pub use routing_policy::{
    FailPolicy, Hop, HopMode, HopType, PolicyLive, PolicyStatus, Reject, RoutingPolicy, Sticky,
};
pub use threat_feed::ThreatFeed;
pub use trust_class::{Internet, LanAccess, TrustClass};
pub use tunnel::{AdminState, Peer, Tunnel, TunnelType, Uplink};
pub use tunnel_health::{Health, HealthCheck, HealthCheckType, PeerLive, TunnelLive, TunnelStatus};
pub use user::User;
