//! List of the carriers, in the order in which they come.

use std::borrow::Cow;
use std::sync::Arc;

use crate::effects::openvpn::OpenVpn;
use crate::effects::proxy::Relay;
use crate::effects::transport::Transports;
use crate::effects::wireguard::WireGuard;
use crate::reconcile::{self, Carried, Carrier};

pub fn carriers(
    wireguard: Arc<WireGuard>,
    openvpn: Arc<OpenVpn>,
    transports: Arc<Transports>,
    relay: Arc<Relay>,
) -> Vec<Box<dyn Carrier>> {
    let wireguard = reconcile::Tunnels::new(wireguard);
    let openvpn = reconcile::Processes::new(openvpn);
    let transports = reconcile::Transports::new(transports);
    let relay = reconcile::Proxies::new(relay);
    vec![
        Box::new(Carried::new("wireguard", wireguard, reconcile::Tunnels::want).making_links()),
        Box::new(Carried::new("openvpn", openvpn, |plan| Cow::Borrowed(&plan.openvpn))),
        Box::new(Carried::new("bridges", transports, |plan| Cow::Borrowed(&plan.transports))),
        Box::new(Carried::new("proxies", relay, |plan| Cow::Borrowed(&plan.proxies))),
    ]
}
