//! List of the egress backends, in the order in which a run applies them.

use std::borrow::Cow;
use std::sync::Arc;

use crate::os::openvpn::OpenVpn;
use crate::os::proxy::Relay;
use crate::os::transport::Transports;
use crate::os::wireguard::WireGuard;
use crate::reconcile::{self, EgressBackend, SyncedBackend};

pub fn egress_backends(
    wireguard: Arc<WireGuard>,
    openvpn: Arc<OpenVpn>,
    transports: Arc<Transports>,
    relay: Arc<Relay>,
) -> Vec<Box<dyn EgressBackend>> {
    let wireguard = reconcile::Tunnels::new(wireguard);
    let openvpn = reconcile::Processes::new(openvpn);
    let transports = reconcile::Transports::new(transports);
    let relay = reconcile::Proxies::new(relay);
    vec![
        Box::new(SyncedBackend::new("wireguard", wireguard, reconcile::Tunnels::want).making_links()),
        Box::new(SyncedBackend::new("openvpn", openvpn, |plan| Cow::Borrowed(&plan.openvpn))),
        Box::new(SyncedBackend::new("bridges", transports, |plan| Cow::Borrowed(&plan.transports))),
        Box::new(SyncedBackend::new("proxies", relay, |plan| Cow::Borrowed(&plan.proxies))),
    ]
}
