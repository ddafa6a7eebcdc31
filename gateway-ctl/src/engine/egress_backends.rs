//! List of the egress backends, in the order in which a run puts them.

use std::borrow::Cow;
use std::sync::Arc;

use crate::effects::openvpn::OpenVpn;
use crate::effects::proxy::Relay;
use crate::effects::transport::Transports;
use crate::effects::wireguard::WireGuard;
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
