//! Forwarding for nodes of the mesh: to prefixes in LANs, and to the internet if this gateway is an exit.
//!
//! The packets of nodes get a mark before routing, so they leave as marked traffic of the LAN does. Replies get the mark that the
//! egress guard admits at the interface of the mesh. Nothing else is forwarded to that interface.

use gateway_common::wire::Mark;
use gateway_core::plan::MeshForwarding;
use ipnet::IpNet;

use super::super::error::Error;
use super::text::{Text, names, set};

/// Destinations that an exit does not lead to: networks that are not the internet (RFC 6890).
const NOT_INTERNET4: &str = "{ 0.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, 169.254.0.0/16, 172.16.0.0/12, \
                             192.168.0.0/16, 224.0.0.0/3 }";
/// Global unicast addresses (RFC 4291).
const INTERNET6: &str = "2000::/3";

/// Rules of the forwarding.
pub(super) struct MeshRules<'r> {
    forwarding: &'r MeshForwarding,
    interface: String,
}

impl<'r> MeshRules<'r> {
    pub(super) fn new(forwarding: &'r MeshForwarding) -> Result<Option<MeshRules<'r>>, Error> {
        let interface = names(std::slice::from_ref(&forwarding.interface))?;
        Ok(interface.map(|interface| MeshRules { forwarding, interface }))
    }

    /// Prefixes of a family, as matches of the destination.
    fn subnets(&self) -> impl Iterator<Item = String> + use<> {
        let (v4, v6): (Vec<IpNet>, Vec<IpNet>) =
            self.forwarding.subnets.iter().copied().partition(|net| matches!(net, IpNet::V4(_)));
        [("ip", v4), ("ip6", v6)].into_iter().filter_map(|(family, nets)| {
            let nets = set(IpNet::aggregate(&nets).iter().map(IpNet::to_string))?;
            Some(format!("{family} daddr {nets}"))
        })
    }

    /// Internet addresses of the families in which this gateway is an exit.
    fn internet(&self) -> impl Iterator<Item = String> + use<> {
        let v4 = self.forwarding.exit_ipv4.then(|| format!("ip daddr != {NOT_INTERNET4}"));
        let v6 = self.forwarding.exit_ipv6.then(|| format!("ip6 daddr {INTERNET6}"));
        v4.into_iter().chain(v6)
    }

    /// Marks the packets of nodes before routing. Those to this host have no mark, and neither have others, which the forward
    /// chain drops.
    pub(super) fn marks(&self, text: &mut Text) {
        text.chain("mesh_marks", "type filter hook prerouting priority mangle; policy accept;");
        text.rule(&format!("iifname != {} accept", self.interface));
        text.rule("fib daddr type local accept");
        let local = Mark::LOCAL.0;
        for subnets in self.subnets() {
            text.rule(&format!("{subnets} meta mark set {local:#010x} accept"));
        }
        if let Some(exit) = self.forwarding.exit {
            for internet in self.internet() {
                text.rule(&format!("{internet} meta mark set {exit:#010x} accept"));
            }
        }
        text.end();
    }

    /// Adds the rules of the forward chain.
    pub(super) fn forward(&self, text: &mut Text, lan: Option<&str>, uplinks: Option<&str>) {
        let (mesh, local) = (&self.interface, Mark::LOCAL.0);
        let new = "ct state new,established,related accept";
        let reply = "ct state established,related ct direction reply";
        if let Some(lan) = lan {
            for subnets in self.subnets() {
                text.rule(&format!("iifname {mesh} oifname {lan} meta mark {local:#010x} {subnets} {new}"));
            }
            text.rule(&format!("iifname {lan} oifname {mesh} meta mark {local:#010x} {reply} accept"));
        }
        if let (Some(uplinks), Some(exit)) = (uplinks, self.forwarding.exit) {
            for internet in self.internet() {
                text.rule(&format!(
                    "iifname {mesh} oifname {uplinks} meta mark {exit:#010x} {internet} {new}"
                ));
            }
            text.rule(&format!(
                "iifname {uplinks} oifname {mesh} {reply} meta mark set {local:#010x} accept"
            ));
        }
    }

    /// Adds the masquerading of new flows.
    pub(super) fn masquerade(&self, text: &mut Text, lan: Option<&str>, uplinks: Option<&str>) {
        for egress in lan.into_iter().chain(uplinks) {
            text.rule(&format!("iifname {} oifname {egress} masquerade", self.interface));
        }
    }
}
