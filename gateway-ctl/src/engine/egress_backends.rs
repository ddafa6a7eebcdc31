//! List of the backends that make links and carry packets, in the order in which a run applies them.

use std::borrow::Cow;
use std::sync::Arc;

use crate::os::Netlink;
use crate::os::openvpn::OpenVpn;
use crate::os::proxy::Relay;
use crate::os::transport::Transports;
use crate::os::virtual_link::VirtualLinks;
use crate::os::wireguard::WireGuard;
use crate::reconcile::{self, EgressBackend, SyncedBackend};

pub fn egress_backends(
    netlink: Netlink,
    wireguard: Arc<WireGuard>,
    openvpn: Arc<OpenVpn>,
    transports: Arc<Transports>,
    relay: Arc<Relay>,
) -> Vec<Box<dyn EgressBackend>> {
    let wireguard = reconcile::Tunnels::new(wireguard);
    let openvpn = reconcile::Processes::new(openvpn);
    let transports = reconcile::Transports::new(transports);
    let relay = reconcile::Proxies::new(relay);
    let virtual_links = VirtualLinks::new(netlink);
    vec![
        Box::new(SyncedBackend::new("virtual_links", virtual_links, VirtualLinks::want).making_links()),
        Box::new(SyncedBackend::new("wireguard", wireguard, reconcile::Tunnels::want).making_links()),
        Box::new(SyncedBackend::new("openvpn", openvpn, |plan| Cow::Borrowed(&plan.openvpn))),
        Box::new(SyncedBackend::new("bridges", transports, |plan| Cow::Borrowed(&plan.transports))),
        Box::new(SyncedBackend::new("proxies", relay, |plan| Cow::Borrowed(&plan.proxies))),
    ]
}
