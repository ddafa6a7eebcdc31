//! Faults: changes of the plan, of the kernel and of the network after which packets may have another path, other
//! addresses or no leave.

use gateway_tests::testbed::create;
use serde_json::json;

use super::changes::{
    change_policy, change_tunnel, delete_named, except, flush_conntrack, renew_lease, replace_address,
    restore_policy, revoke, set_device, set_host_mac, set_next_hop, switch,
};
use super::gateway::{Gateway, NEXT_HOP, TUNNELS};
use super::hosts::{self, BOUND, End, FAILOVER, FREE, KNOWN, destination};
use super::traffic::Traffic;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A new plan without an effect on the hosts.
    Swap,
    /// Ten plans that move a host between the tunnels.
    SwapBurst,
    OtherTunnel,
    /// The policy of a host is off, so its traffic takes the uplink.
    PolicyOff,
    /// A policy has no hop.
    NoHop,
    /// Another policy of the same host comes first.
    Overruled,
    HostMac,
    NextHopMac,
    UplinkDown,
    LanDown,
    SegmentDown,
    Address,
    NewRoute,
    RouteMtu,
    Unreachable,
    Rule,
    Mtu,
    ManyFlows,
    Conntrack,
    /// Conntrack forgets the flows of IPv6.
    ConntrackOfOneFamily,
    NftablesDrift,
    RuleDrift,
    Killed,
    Stopped,
    Quarantine,
    Bypass,
    Blocked,
    TunnelDown,
    TunnelDisabled,
    TunnelDeleted,
    InterfaceDown,
    ExitKilled,
    PrivacyClass,
    TrustClass,
    /// A trust class without access to the other network of the LAN.
    Guest,
    Inspection,
    Setting,
    Lease,
}

const NEW_MAC: [u8; 6] = [2, 0, 0, 0x11, 0x30, 0x77];

impl Fault {
    pub(super) const ALL: [Fault; 38] = [
        Fault::Swap,
        Fault::SwapBurst,
        Fault::OtherTunnel,
        Fault::PolicyOff,
        Fault::NoHop,
        Fault::Overruled,
        Fault::HostMac,
        Fault::NextHopMac,
        Fault::UplinkDown,
        Fault::LanDown,
        Fault::SegmentDown,
        Fault::Address,
        Fault::NewRoute,
        Fault::RouteMtu,
        Fault::Unreachable,
        Fault::Rule,
        Fault::Mtu,
        Fault::ManyFlows,
        Fault::Conntrack,
        Fault::ConntrackOfOneFamily,
        Fault::NftablesDrift,
        Fault::RuleDrift,
        Fault::Killed,
        Fault::Stopped,
        Fault::Quarantine,
        Fault::Bypass,
        Fault::Blocked,
        Fault::TunnelDown,
        Fault::TunnelDisabled,
        Fault::TunnelDeleted,
        Fault::InterfaceDown,
        Fault::ExitKilled,
        Fault::PrivacyClass,
        Fault::TrustClass,
        Fault::Guest,
        Fault::Inspection,
        Fault::Setting,
        Fault::Lease,
    ];

    /// Returns which tunnels work in the settled state that the fault leads to.
    pub(super) fn tunnels(self) -> [bool; 2] {
        match self {
            Fault::UplinkDown => [false; 2],
            Fault::ExitKilled | Fault::TunnelDown | Fault::TunnelDisabled | Fault::TunnelDeleted => {
                [false, true]
            }
            _ => [true; 2],
        }
    }

    pub(super) fn inject(self, gateway: &mut Gateway) {
        let target = destination(false, false).ip();
        let route = |change: &str| {
            gateway.change_kernel("route", |kernel| kernel.ip(&format!("route {change}")).expect("a route"));
        };
        match self {
            Fault::Swap => {
                create(gateway.api(), "/devices", &json!({"name": "spare", "mac": "02:00:00:00:99:99"}))
                    .expect("stored");
            }
            Fault::SwapBurst => {
                for number in 0..10 {
                    let hops = [TUNNELS[number % 2], TUNNELS[1 - number % 2]];
                    change_policy(gateway, "failover", |policy| {
                        policy["hops"] = json!(hops.map(|target| json!({"type": "vpn", "target": target})));
                    });
                }
            }
            Fault::OtherTunnel => change_policy(gateway, "failover", |policy| {
                policy["hops"] = json!([{"type": "vpn", "target": "wg-b"}]);
            }),
            Fault::PolicyOff => {
                gateway.arrivals.allow(BOUND, &[End::Uplink, End::ExitA]);
                change_policy(gateway, "bound", |policy| policy["enabled"] = json!(false));
                gateway.arrivals.allow(BOUND, &[End::Uplink]);
            }
            Fault::NoHop => {
                change_policy(gateway, "bound", |policy| policy["hops"] = json!([]));
                gateway.arrivals.allow(BOUND, &[]);
            }
            Fault::Overruled => {
                gateway.arrivals.allow(BOUND, &[End::ExitA, End::ExitB]);
                let mut policy = gateway.policy("overruling", 1, BOUND);
                policy["hops"] = json!([{"type": "vpn", "target": "wg-b"}]);
                gateway.testbed.policy(&policy).expect("applied");
                gateway.arrivals.allow(BOUND, &[End::ExitB]);
            }
            Fault::HostMac => set_host_mac(gateway, [2, 0, 0, 0x10, 9, KNOWN]),
            Fault::NextHopMac => set_next_hop(gateway, NEW_MAC),
            Fault::UplinkDown => {
                gateway.change_kernel("link", |kernel| kernel.ip("link set eth0 down").expect("down"))
            }
            Fault::LanDown => {
                gateway.change_kernel("link", |kernel| kernel.ip("link set eth1 down").expect("down"))
            }
            Fault::SegmentDown => {
                gateway.change_kernel("link", |kernel| kernel.ip("link set eth3 down").expect("down"));
            }
            Fault::Address => replace_address(gateway, ["203.0.113.2", "203.0.113.3"]),
            Fault::NewRoute => route(&format!("add {target}/32 via 203.0.113.1")),
            Fault::RouteMtu => route(&format!("add {target}/32 via 203.0.113.1 mtu 1330")),
            Fault::Unreachable => route(&format!("add unreachable {target}/32")),
            Fault::Rule => gateway.change_kernel("rule", |kernel| {
                kernel.ip("rule add priority 5 to 192.0.2.1 lookup main").expect("a rule");
            }),
            Fault::Mtu => {
                gateway.change_kernel("link", |kernel| kernel.ip("link set eth0 mtu 1340").expect("an MTU"))
            }
            Fault::ManyFlows => {
                for chunk in Traffic::new_flows(FREE, 1500).chunks(50) {
                    gateway.send(chunk);
                    gateway.arrivals.receive();
                }
            }
            // Deleted entries alone take effect within the lifetimes of entries; other rules do at once.
            Fault::Conntrack | Fault::ConntrackOfOneFamily => gateway.change_kernel("nftables", |kernel| {
                let family = if self == Fault::Conntrack { libc::AF_UNSPEC } else { libc::AF_INET6 };
                flush_conntrack(kernel, family as u8);
                kernel.nft("table inet other { }\n").expect("a table");
            }),
            Fault::NftablesDrift => gateway.change_kernel("nftables", |kernel| {
                kernel.run("nft", &["delete", "table", "inet", "gateway"]).expect("deleted");
            }),
            Fault::RuleDrift => gateway.change_kernel("rule", |kernel| {
                let rules = kernel.run("ip", &["-4", "rule"]).expect("rules");
                let ours = rules.lines().filter(|line| line.starts_with("47"));
                for priority in ours.filter_map(|line| line.split(':').next()) {
                    // The daemon may have repaired it meanwhile.
                    let _ = kernel.run("ip", &["-4", "rule", "del", "priority", priority]);
                }
            }),
            Fault::Killed => gateway.testbed.daemon.kill9().expect("killed"),
            Fault::Stopped => drop(gateway.testbed.daemon.terminate().expect("ended")),
            Fault::Quarantine => {
                except(gateway, "quarantine", KNOWN);
                gateway.settle(self.tunnels());
                gateway.arrivals.allow(KNOWN, &[]);
            }
            Fault::Bypass => {
                gateway.arrivals.allow(BOUND, &[End::Uplink, End::ExitA]);
                except(gateway, "emergency-bypass", BOUND);
            }
            Fault::Blocked => {
                set_device(gateway, BOUND, "status", json!("blocked"));
                gateway.settle(self.tunnels());
                gateway.arrivals.allow(BOUND, &[]);
            }
            Fault::TunnelDown => drop(gateway.testbed.bring_down("wg-a").expect("down")),
            Fault::TunnelDisabled => {
                change_tunnel(gateway, "wg-a", |tunnel| tunnel["enabled"] = json!(false))
            }
            Fault::TunnelDeleted => delete_named(gateway, "/tunnels", "wg-a"),
            Fault::InterfaceDown => {
                let interface = gateway.testbed.interface("wg-a").expect("an interface");
                gateway.change_kernel("link", |kernel| {
                    kernel.ip(&format!("link set {interface} down")).expect("down");
                });
            }
            Fault::ExitKilled => gateway.testbed.network.exit_a.kill9().expect("killed"),
            Fault::PrivacyClass => set_device(gateway, BOUND, "privacy_class", json!("strict")),
            Fault::TrustClass => set_device(gateway, KNOWN, "trust_class", json!("trusted")),
            Fault::Guest => set_device(gateway, KNOWN, "trust_class", json!("guest")),
            Fault::Inspection => {
                gateway.api().post("/privacy/block-webrtc", &json!({"enabled": true})).expect("switched");
            }
            Fault::Setting => switch(gateway, false),
            Fault::Lease => renew_lease(gateway),
        }
        gateway.settle(self.tunnels());
    }

    pub(super) fn repair(self, gateway: &mut Gateway) {
        let target = destination(false, false).ip();
        let route = |change: &str| {
            gateway.change_kernel("route", |kernel| kernel.ip(&format!("route {change}")).expect("a route"));
        };
        match self {
            Fault::Swap => delete_named(gateway, "/devices", "spare"),
            Fault::SwapBurst | Fault::OtherTunnel => restore_policy(gateway, "failover", 11, FAILOVER),
            Fault::PolicyOff | Fault::NoHop => {
                let now = if self == Fault::PolicyOff { End::Uplink } else { End::ExitA };
                gateway.arrivals.allow(BOUND, &[now, End::ExitA]);
                restore_policy(gateway, "bound", 10, BOUND);
                gateway.arrivals.allow(BOUND, &[End::ExitA]);
            }
            Fault::Overruled => {
                gateway.arrivals.allow(BOUND, &[End::ExitA, End::ExitB]);
                delete_named(gateway, "/routing/policies", "overruling");
                gateway.testbed.apply().expect("applied");
                gateway.arrivals.allow(BOUND, &[End::ExitA]);
            }
            Fault::HostMac => set_host_mac(gateway, hosts::mac(KNOWN)),
            Fault::NextHopMac => set_next_hop(gateway, NEXT_HOP),
            Fault::UplinkDown => gateway.change_kernel("link", |kernel| {
                kernel
                    .ip("link set eth0 up\nroute replace default via 203.0.113.1\n\
                         route replace default via 2001:db8:113::1")
                    .expect("up");
            }),
            Fault::LanDown | Fault::SegmentDown => {
                let link = if self == Fault::LanDown { "eth1" } else { "eth3" };
                gateway
                    .change_kernel("link", |kernel| kernel.ip(&format!("link set {link} up")).expect("up"));
                gateway.set_neighbours();
            }
            Fault::Address => replace_address(gateway, ["203.0.113.3", "203.0.113.2"]),
            Fault::NewRoute | Fault::RouteMtu => route(&format!("del {target}/32")),
            Fault::Unreachable => route(&format!("del unreachable {target}/32")),
            Fault::Rule => {
                gateway.change_kernel("rule", |kernel| kernel.ip("rule del priority 5").expect("deleted"))
            }
            Fault::Mtu => {
                gateway.change_kernel("link", |kernel| kernel.ip("link set eth0 mtu 1500").expect("an MTU"))
            }
            Fault::ManyFlows | Fault::NftablesDrift | Fault::RuleDrift | Fault::InterfaceDown => {}
            Fault::Conntrack | Fault::ConntrackOfOneFamily => gateway.change_kernel("nftables", |kernel| {
                kernel.run("nft", &["delete", "table", "inet", "other"]).expect("deleted");
            }),
            Fault::Killed | Fault::Stopped => {
                gateway.testbed.daemon.start().expect("started");
                TUNNELS.iter().for_each(|tunnel| gateway.testbed.bring_up(tunnel).expect("up"));
            }
            Fault::Quarantine => {
                gateway.arrivals.allow(KNOWN, &[End::Uplink]);
                revoke(gateway);
            }
            Fault::Bypass => {
                revoke(gateway);
                gateway.settle([true; 2]);
                gateway.arrivals.allow(BOUND, &[End::ExitA]);
            }
            Fault::Blocked => {
                gateway.arrivals.allow(BOUND, &[End::ExitA]);
                set_device(gateway, BOUND, "status", json!("known"));
            }
            Fault::TunnelDown => gateway.testbed.bring_up("wg-a").expect("up"),
            Fault::TunnelDisabled => {
                change_tunnel(gateway, "wg-a", |tunnel| tunnel["enabled"] = json!(true));
                gateway.testbed.bring_up("wg-a").expect("up");
            }
            Fault::TunnelDeleted => gateway.create_tunnel("wg-a"),
            Fault::ExitKilled => {
                gateway.testbed.network.exit_a.start().expect("started");
                gateway.open_exits();
            }
            Fault::PrivacyClass => set_device(gateway, BOUND, "privacy_class", json!("standard")),
            Fault::TrustClass | Fault::Guest => set_device(gateway, KNOWN, "trust_class", json!("standard")),
            Fault::Inspection => {
                gateway.api().post("/privacy/block-webrtc", &json!({"enabled": false})).expect("switched");
            }
            Fault::Setting => switch(gateway, true),
            Fault::Lease => renew_lease(gateway),
        }
        gateway.wait_for_uplink();
        gateway.settle([true; 2]);
    }
}
