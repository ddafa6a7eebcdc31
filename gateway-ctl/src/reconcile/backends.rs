//! Backends of a run, as one interface that tests can replace.

use std::collections::BTreeSet;

use gateway_core::plan::{AddressKey, LinkSettings, Plan, RouteKey};

use super::egress_backends::EgressBackend;
use crate::os::address::Addresses;
use crate::os::link::Links;
use crate::os::nft::{self, Nft};
use crate::os::route::{self, Routes};
use crate::os::rule::{InstalledRule, Rules};
use crate::os::sysctl::Sysctls;
use crate::os::{Backend, Netlink};

/// Backends by subsystem. Those that see only the plan's objects are created for the plan.
pub trait Host: Send + Sync + 'static {
    type Links: Backend<Key = String, Value = LinkSettings> + Send;
    type Addresses: Backend<Key = AddressKey, Value = ()> + Send;
    type Sysctls: Backend<Key = String, Value = String> + Send;
    type Routes: Backend<Key = RouteKey, Value = route::InstalledRoute>;
    type Rules: Backend<Key = InstalledRule, Value = ()>;
    type Nft: Backend<Key = (), Value = nft::InstalledTable> + Send;

    /// Returns the egress backends in the order in which a run applies them; a run removes in reverse order.
    fn egress_backends(&self) -> &[Box<dyn EgressBackend>];
    fn links(&self, plan: &Plan) -> Self::Links;
    fn addresses(&self, plan: &Plan) -> Self::Addresses;
    fn sysctls(&self, plan: &Plan) -> Self::Sysctls;
    fn routes(&self) -> &Self::Routes;
    fn rules(&self) -> &Self::Rules;
    fn nft(&self, ruleset: &Nft) -> Self::Nft;
}

/// Kernel of this machine, in the network namespace of the connection, with the egress backends that the daemon runs.
pub struct Kernel {
    netlink: Netlink,
    egress_backends: Vec<Box<dyn EgressBackend>>,
    routes: Routes,
    rules: Rules,
}

impl Kernel {
    pub fn new(netlink: Netlink, egress_backends: Vec<Box<dyn EgressBackend>>) -> Self {
        let (routes, rules) = (Routes::new(netlink.clone()), Rules::new(netlink.clone()));
        Self { netlink, egress_backends, routes, rules }
    }
}

impl Host for Kernel {
    type Links = Links;
    type Addresses = Addresses;
    type Sysctls = Sysctls;
    type Routes = Routes;
    type Rules = Rules;
    type Nft = Nft;

    fn egress_backends(&self) -> &[Box<dyn EgressBackend>] {
        &self.egress_backends
    }

    fn links(&self, plan: &Plan) -> Links {
        Links::new(self.netlink.clone(), plan.links.keys().cloned())
    }

    fn addresses(&self, plan: &Plan) -> Addresses {
        let is_configured = |name: &String| plan.configured.contains(name);
        let links = plan.links.keys().filter(|name| !is_configured(name));
        let ours: BTreeSet<String> = links.chain(plan.wireguard.keys()).cloned().collect();
        let wanted: BTreeSet<_> =
            plan.addresses.keys().filter(|key| !ours.contains(&key.interface)).cloned().collect();
        let is_lan = |key: &AddressKey| plan.nft.lan.contains(&key.interface);
        let routed = wanted.iter().filter(|key| is_lan(key) && !plan.has_network(key)).cloned().collect();
        Addresses::new(self.netlink.clone(), ours).with_wanted(wanted, routed)
    }

    fn sysctls(&self, plan: &Plan) -> Sysctls {
        Sysctls::new(plan.sysctls.keys().cloned())
    }

    fn routes(&self) -> &Routes {
        &self.routes
    }

    fn rules(&self) -> &Rules {
        &self.rules
    }

    fn nft(&self, ruleset: &Nft) -> Nft {
        ruleset.clone()
    }
}
