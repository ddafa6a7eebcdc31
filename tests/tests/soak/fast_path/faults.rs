//! Faults: changes of the plan, of the kernel and of the network after which packets may have another path, other
//! addresses or no leave.

use gateway_tests::netns::Namespace;
use gateway_tests::wait::{wait_for, wait_ok};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, send, socket};
use serde_json::{Value, json};
use std::os::fd::AsRawFd as _;

use super::gateway::{Gateway, NEXT_HOP, SOON};
use super::hosts::{BOUND, End, FAILOVER, FREE, KNOWN, destination, text};
use super::traffic::Traffic;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A new plan without an effect on the hosts.
    Swap,
    OtherTunnel,
    /// The policy of a host is off, so its traffic takes the uplink.
    PolicyOff,
    Blocked,
    HostMac,
    NextHopMac,
    UplinkDown,
    LanDown,
    Address,
    NewRoute,
    RouteMtu,
    Unreachable,
    Rule,
    Mtu,
    ManyFlows,
    Conntrack,
    NftablesDrift,
    RuleDrift,
    Killed,
    Stopped,
    Quarantine,
    Bypass,
    TunnelDown,
    InterfaceDown,
    ExitKilled,
    PrivacyClass,
    TrustClass,
    Inspection,
    Setting,
    Lease,
}

const NEW_MAC: [u8; 6] = [2, 0, 0, 0x11, 0x30, 0x77];

impl Fault {
    pub const ALL: [Fault; 30] = [
        Fault::Swap,
        Fault::OtherTunnel,
        Fault::PolicyOff,
        Fault::Blocked,
        Fault::HostMac,
        Fault::NextHopMac,
        Fault::UplinkDown,
        Fault::LanDown,
        Fault::Address,
        Fault::NewRoute,
        Fault::RouteMtu,
        Fault::Unreachable,
        Fault::Rule,
        Fault::Mtu,
        Fault::ManyFlows,
        Fault::Conntrack,
        Fault::NftablesDrift,
        Fault::RuleDrift,
        Fault::Killed,
        Fault::Stopped,
        Fault::Quarantine,
        Fault::Bypass,
        Fault::TunnelDown,
        Fault::InterfaceDown,
        Fault::ExitKilled,
        Fault::PrivacyClass,
        Fault::TrustClass,
        Fault::Inspection,
        Fault::Setting,
        Fault::Lease,
    ];

    pub fn inject(self, gateway: &mut Gateway) {
        let target = destination(false).ip();
        match self {
            Fault::Swap => {
                gateway
                    .testbed
                    .api()
                    .post("/devices", &json!({"name": "spare", "mac": "02:00:00:00:99:99"}))
                    .expect("stored");
            }
            Fault::OtherTunnel => replace(gateway, "failover", |policy| {
                policy["hops"] = json!([{"type": "vpn", "target": "wg-b"}]);
            }),
            Fault::PolicyOff => {
                allow(gateway, BOUND, &[End::Uplink, End::ExitA]);
                replace(gateway, "bound", |policy| policy["enabled"] = json!(false));
                allow(gateway, BOUND, &[End::Uplink]);
            }
            Fault::Blocked => {
                allow(gateway, BOUND, &[]);
                replace(gateway, "bound", |policy| policy["hops"] = json!([]));
            }
            Fault::HostMac => set_host_mac(gateway, [2, 0, 0, 0x10, 9, KNOWN]),
            Fault::NextHopMac => set_next_hop(gateway, NEW_MAC),
            Fault::UplinkDown => gateway.testbed.network.gateway.ip("link set eth0 down").expect("down"),
            Fault::LanDown => gateway.testbed.network.gateway.ip("link set eth1 down").expect("down"),
            Fault::Address => gateway
                .testbed
                .network
                .gateway
                .ip("address add 203.0.113.3/24 dev eth0\naddress del 203.0.113.2/24 dev eth0\n\
                     route replace default via 203.0.113.1")
                .expect("another address"),
            Fault::NewRoute => route(gateway, &format!("add {target}/32 via 203.0.113.1")),
            Fault::RouteMtu => route(gateway, &format!("add {target}/32 via 203.0.113.1 mtu 1330")),
            Fault::Unreachable => route(gateway, &format!("add unreachable {target}/32")),
            Fault::Rule => gateway
                .testbed
                .network
                .gateway
                .ip("rule add priority 5 to 192.0.2.1 lookup main")
                .expect("a rule"),
            Fault::Mtu => gateway.testbed.network.gateway.ip("link set eth0 mtu 1340").expect("an MTU"),
            Fault::ManyFlows => {
                for chunk in Traffic::new_flows(FREE, 1500).chunks(50) {
                    gateway.send(chunk);
                    gateway.receive();
                }
            }
            Fault::Conntrack => {
                flush_conntrack(&gateway.testbed.network.gateway);
                // Deleted entries alone take effect within the lifetimes of entries; other rules do at once.
                gateway.testbed.network.gateway.nft("table inet other { }\n").expect("a table");
            }
            Fault::NftablesDrift => {
                gateway
                    .testbed
                    .network
                    .gateway
                    .run("nft", &["delete", "table", "inet", "gateway"])
                    .expect("deleted");
            }
            Fault::RuleDrift => {
                let rules = gateway.testbed.network.gateway.run("ip", &["-4", "rule"]).expect("rules");
                let ours = rules.lines().filter(|line| line.starts_with("47"));
                for priority in ours.filter_map(|line| line.split(':').next()) {
                    // The daemon may have repaired it meanwhile.
                    let _ = gateway
                        .testbed
                        .network
                        .gateway
                        .run("ip", &["-4", "rule", "del", "priority", priority]);
                }
            }
            Fault::Killed => {
                gateway.testbed.daemon.kill9().expect("killed");
                return;
            }
            Fault::Stopped => {
                gateway.testbed.daemon.terminate().expect("ended");
                return;
            }
            Fault::Quarantine => {
                allow(gateway, KNOWN, &[]);
                except(gateway, "quarantine", KNOWN);
            }
            Fault::Bypass => {
                allow(gateway, BOUND, &[End::Uplink, End::ExitA]);
                except(gateway, "emergency-bypass", BOUND);
            }
            Fault::TunnelDown => drop(gateway.testbed.bring_down("wg-a").expect("down")),
            Fault::InterfaceDown => {
                let interface = gateway.testbed.interface("wg-a").expect("an interface");
                // A repair may be faster.
                let _ = gateway.testbed.network.gateway.ip(&format!("link set {interface} down"));
            }
            Fault::ExitKilled => {
                gateway.testbed.network.exit_a.kill9().expect("killed");
                wait_for(SOON, "the tunnel to be known as down", || !is_healthy(gateway, "wg-a"))
                    .expect("down");
            }
            Fault::PrivacyClass => set_device(gateway, BOUND, "privacy_class", json!("strict")),
            Fault::TrustClass => set_device(gateway, KNOWN, "trust_class", json!("trusted")),
            Fault::Inspection => {
                gateway.api().post("/privacy/block-webrtc", &json!({"enabled": true})).expect("switched");
            }
            Fault::Setting => switch(gateway, "off"),
            Fault::Lease => renew_lease(gateway),
        }
        settle(gateway);
    }

    pub fn repair(self, gateway: &mut Gateway) {
        let target = destination(false).ip();
        match self {
            Fault::Swap => {
                let devices = gateway.api().get("/devices").expect("devices");
                let spare = devices.as_array().expect("a list").iter().find(|device| device["name"] == "spare");
                let id = spare.expect("the device")["id"].as_str().expect("an id").to_owned();
                gateway.api().delete(&format!("/devices/{id}")).expect("deleted");
            }
            Fault::OtherTunnel => restore_policy(gateway, "failover", 11, FAILOVER),
            Fault::PolicyOff | Fault::Blocked => {
                allow(gateway, BOUND, &[End::Uplink, End::ExitA]);
                restore_policy(gateway, "bound", 10, BOUND);
                allow(gateway, BOUND, &[End::ExitA]);
            }
            Fault::HostMac => set_host_mac(gateway, super::hosts::mac(KNOWN)),
            Fault::NextHopMac => set_next_hop(gateway, NEXT_HOP),
            Fault::UplinkDown => gateway
                .testbed
                .network
                .gateway
                .ip("link set eth0 up\nroute replace default via 203.0.113.1\nroute replace default via 2001:db8:113::1")
                .expect("up"),
            Fault::LanDown => {
                gateway.testbed.network.gateway.ip("link set eth1 up").expect("up");
                gateway.set_neighbours();
            }
            Fault::Address => gateway
                .testbed
                .network
                .gateway
                .ip("address add 203.0.113.2/24 dev eth0\naddress del 203.0.113.3/24 dev eth0\n\
                     route replace default via 203.0.113.1")
                .expect("the first address"),
            Fault::NewRoute | Fault::RouteMtu => route(gateway, &format!("del {target}/32")),
            Fault::Unreachable => route(gateway, &format!("del unreachable {target}/32")),
            Fault::Rule => gateway.testbed.network.gateway.ip("rule del priority 5").expect("deleted"),
            Fault::Mtu => gateway.testbed.network.gateway.ip("link set eth0 mtu 1500").expect("an MTU"),
            Fault::ManyFlows | Fault::NftablesDrift | Fault::RuleDrift | Fault::InterfaceDown => {}
            Fault::Conntrack => {
                gateway.testbed.network.gateway.run("nft", &["delete", "table", "inet", "other"]).expect("deleted");
            }
            Fault::Killed | Fault::Stopped => {
                gateway.testbed.daemon.start().expect("started");
                for tunnel in ["wg-a", "wg-b"] {
                    gateway.testbed.bring_up(tunnel).expect("up");
                }
            }
            Fault::Quarantine => {
                allow(gateway, KNOWN, &[End::Uplink]);
                revoke(gateway);
            }
            Fault::Bypass => {
                revoke(gateway);
                allow(gateway, BOUND, &[End::ExitA]);
            }
            Fault::TunnelDown => gateway.testbed.bring_up("wg-a").expect("up"),
            Fault::ExitKilled => {
                gateway.testbed.network.exit_a.start().expect("started");
                gateway.open_exits();
            }
            Fault::PrivacyClass => set_device(gateway, BOUND, "privacy_class", json!("standard")),
            Fault::TrustClass => set_device(gateway, KNOWN, "trust_class", json!("standard")),
            Fault::Inspection => {
                gateway.api().post("/privacy/block-webrtc", &json!({"enabled": false})).expect("switched");
            }
            Fault::Setting => switch(gateway, "on"),
            Fault::Lease => renew_lease(gateway),
        }
        wait_for(SOON, "both tunnels to be well", || {
            ["wg-a", "wg-b"].iter().all(|tunnel| is_healthy(gateway, tunnel))
        })
        .expect("well");
        settle(gateway);
    }
}

/// Waits until plan and kernel agree, also about changes that the kernel has just reported.
fn settle(gateway: &Gateway) {
    gateway.reconcile();
    gateway.reconcile();
}

/// Sets the ends at which packets of a host may arrive. A reading before it belongs to the former state.
fn allow(gateway: &mut Gateway, host: u8, ends: &[End]) {
    gateway.receive();
    gateway.allowed.insert(host, ends.iter().copied().collect());
}

fn replace(gateway: &Gateway, name: &str, change: impl Fn(&mut Value)) {
    let id = &gateway.policies[name];
    let mut policy = gateway.api().get(&format!("/routing/policies/{id}")).expect("the policy");
    change(&mut policy);
    gateway.testbed.replace_policy(id, &policy).expect("applied");
}

fn restore_policy(gateway: &Gateway, name: &str, priority: u32, host: u8) {
    let policy = gateway.policy(name, priority, host);
    gateway.testbed.replace_policy(&gateway.policies[name], &policy).expect("applied");
}

fn set_host_mac(gateway: &mut Gateway, mac: [u8; 6]) {
    gateway.macs.insert(KNOWN, mac);
    gateway.set_neighbours();
    set_device(gateway, KNOWN, "mac", json!(text(mac)));
}

fn set_next_hop(gateway: &mut Gateway, mac: [u8; 6]) {
    let text = text(mac);
    let network = &gateway.testbed.network;
    network.internet.ip(&format!("link set up0 address {text}")).expect("another MAC address");
    network
        .gateway
        .ip(&format!(
            "neigh replace 203.0.113.1 lladdr {text} dev eth0\nneigh replace 2001:db8:113::1 lladdr {text} dev eth0"
        ))
        .expect("neighbours");
    gateway.next_hop = mac;
}

fn set_device(gateway: &Gateway, host: u8, field: &str, value: Value) {
    let path = format!("/devices/{}", gateway.devices[&host]);
    let mut device = gateway.api().get(&path).expect("the device");
    device[field] = value;
    gateway.api().put(&path, &device).expect("stored");
}

fn route(gateway: &Gateway, change: &str) {
    gateway.testbed.network.gateway.ip(&format!("route {change}")).expect("a route");
}

fn except(gateway: &Gateway, kind: &str, host: u8) {
    let exception =
        json!({"type": kind, "device_id": gateway.devices[&host], "reason": "test", "allow_direct": true});
    gateway.api().post("/exceptions", &exception).expect("an exception");
}

fn revoke(gateway: &Gateway) {
    let exceptions = gateway.api().get("/exceptions").expect("exceptions");
    for exception in exceptions.as_array().expect("a list").iter().filter(|one| one["status"] == "active") {
        let id = exception["id"].as_str().expect("an id");
        gateway.api().delete(&format!("/exceptions/{id}")).expect("revoked");
    }
}

fn is_healthy(gateway: &Gateway, tunnel: &str) -> bool {
    let object = gateway.api().get(&format!("/tunnels/{tunnel}")).expect("the tunnel");
    object["status"] == "up" && object["healthy"] == true
}

/// Switches the fast path of the gateway that has it.
fn switch(gateway: &Gateway, value: &str) {
    if gateway.is_fast {
        gateway.api().put("/settings/dataplane.fast_path", &json!({"value": value})).expect("set");
    }
}

fn renew_lease(gateway: &Gateway) {
    let before = gateway.dhcp.acknowledged();
    gateway.api().act("/interfaces/eth3/dhcp/renew").expect("asked");
    wait_ok(SOON, "a renewal", || {
        anyhow::ensure!(gateway.dhcp.acknowledged() > before);
        Ok(())
    })
    .expect("renewed");
}

/// Deletes all entries of conntrack, as `conntrack -F` does.
fn flush_conntrack(namespace: &Namespace) {
    /// IPCTNL_MSG_CT_DELETE of the subsystem NFNL_SUBSYS_CTNETLINK (linux/netfilter/nfnetlink_conntrack.h).
    const DELETE: u16 = 1 << 8 | 2;
    const REQUEST: u16 = 1;
    namespace.within(|| {
        let netlink =
            socket(AddressFamily::Netlink, SockType::Raw, SockFlag::empty(), SockProtocol::NetlinkNetFilter);
        let netlink = netlink.expect("a socket");
        // Length, type, flags, sequence, port; then family, version and resource.
        let message =
            [&20_u32.to_ne_bytes()[..], &DELETE.to_ne_bytes(), &REQUEST.to_ne_bytes(), &[0; 8], &[0; 4]]
                .concat();
        send(netlink.as_raw_fd(), &message, MsgFlags::empty()).expect("sent");
    });
}
