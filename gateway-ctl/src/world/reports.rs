//! Last reports of the services, as a part of the world.

pub mod dhcp_clients;
pub(crate) mod leased_names;
pub(crate) mod proxies;
pub mod tunnels;
pub mod uplinks;

use std::sync::Arc;

use gateway_core::gateway_verdict::PresentHost;

use crate::os::transport::BridgeStates;
use dhcp_clients::DhcpStates;
use leased_names::LeasedNames;
use proxies::ProxyStates;
use tunnels::TunnelStates;
use uplinks::UplinkStates;

/// Last reports of the services. Each service publishes its own.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    pub tunnels: Arc<TunnelStates>,
    pub proxies: Arc<ProxyStates>,
    /// Bridges, by the ID of the tunnel that each transports.
    pub transports: Arc<BridgeStates>,
    pub uplinks: Arc<UplinkStates>,
    /// Names of DHCP leases and reservations.
    pub leased_names: Arc<LeasedNames>,
    pub dhcp_clients: Arc<DhcpStates>,
    /// Hosts on the LAN that the verdict counts.
    pub hosts: Arc<Vec<PresentHost>>,
}
