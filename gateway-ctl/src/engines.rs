//! Engines of tunnels, bridges and proxies, and the backends that drive them.

use std::borrow::Cow;
use std::sync::Arc;

use crate::os::Netlink;
use crate::os::openvpn::OpenVpn;
use crate::os::proxy::Relay;
use crate::os::transport::Transports;
use crate::os::virtual_link::VirtualLinks;
use crate::os::wireguard::WireGuard;
use crate::reconcile::{self, EgressBackend, SyncedBackend};

/// Engines that carry packets to legs that are no plain interfaces. Clones are the same engines.
#[derive(Clone, Debug)]
pub struct EgressEngines {
    pub wireguard: Arc<WireGuard>,
    pub openvpn: Arc<OpenVpn>,
    pub transports: Arc<Transports>,
    pub relay: Arc<Relay>,
}

impl EgressEngines {
    /// Returns the backends that make links and carry packets, in the order in which a run applies them.
    pub fn backends(&self, netlink: Netlink) -> Vec<Box<dyn EgressBackend>> {
        let wireguard = reconcile::Tunnels::new(self.wireguard.clone());
        let openvpn = reconcile::Processes::new(self.openvpn.clone());
        let transports = reconcile::Transports::new(self.transports.clone());
        let relay = reconcile::Proxies::new(self.relay.clone());
        let virtual_links = VirtualLinks::new(netlink);
        vec![
            Box::new(SyncedBackend::new("virtual_links", virtual_links, VirtualLinks::want).making_links()),
            Box::new(SyncedBackend::new("wireguard", wireguard, reconcile::Tunnels::want).making_links()),
            Box::new(SyncedBackend::new("openvpn", openvpn, |plan| Cow::Borrowed(&plan.openvpn))),
            Box::new(SyncedBackend::new("bridges", transports, |plan| Cow::Borrowed(&plan.transports))),
            Box::new(SyncedBackend::new("proxies", relay, |plan| Cow::Borrowed(&plan.proxies))),
        ]
    }
}
