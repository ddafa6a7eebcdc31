//! Changes of which the faults consist: objects of the API, MAC addresses, entries of conntrack.

use std::os::fd::AsRawFd as _;

use gateway_tests::netns::Namespace;
use gateway_tests::wait::wait_for;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, send, socket};
use serde_json::{Value, json};

use super::gateway::{Gateway, SOON};
use super::hosts::{KNOWN, text};

/// Changes a policy and applies everything.
pub(super) fn change_policy(gateway: &Gateway, name: &str, change: impl Fn(&mut Value)) {
    let id = &gateway.policies[name];
    let mut policy = gateway.api().get(&format!("/routing/policies/{id}")).expect("the policy");
    change(&mut policy);
    gateway.testbed.replace_policy(id, &policy).expect("applied");
}

pub(super) fn restore_policy(gateway: &Gateway, name: &str, priority: u32, host: u8) {
    let policy = gateway.policy(name, priority, host);
    gateway.testbed.replace_policy(&gateway.policies[name], &policy).expect("applied");
}

/// Returns the object of a collection with this name, and its path.
fn find(gateway: &Gateway, collection: &str, name: &str) -> (String, Value) {
    let objects = gateway.api().get(collection).expect("objects");
    let object = objects.as_array().expect("a list").iter().find(|object| object["name"] == name);
    let object = object.unwrap_or_else(|| panic!("no {name} in {collection}")).clone();
    (format!("{collection}/{}", object["id"].as_str().expect("an id")), object)
}

pub(super) fn delete_named(gateway: &Gateway, collection: &str, name: &str) {
    let (path, _) = find(gateway, collection, name);
    gateway.api().delete(&format!("{path}?force=true")).expect("deleted");
}

pub(super) fn change_tunnel(gateway: &Gateway, name: &str, change: impl Fn(&mut Value)) {
    let (path, mut tunnel) = find(gateway, "/tunnels", name);
    change(&mut tunnel);
    gateway.api().put(&path, &tunnel).expect("stored");
}

pub(super) fn set_device(gateway: &Gateway, host: u8, field: &str, value: Value) {
    let path = format!("/devices/{}", gateway.devices[&host]);
    let mut device = gateway.api().get(&path).expect("the device");
    device[field] = value;
    gateway.api().put(&path, &device).expect("stored");
}

pub(super) fn set_host_mac(gateway: &mut Gateway, mac: [u8; 6]) {
    gateway.macs.insert(KNOWN, mac);
    gateway.change_kernel("neighbour", |_| gateway.set_neighbours());
    set_device(gateway, KNOWN, "mac", json!(text(mac)));
}

pub(super) fn set_next_hop(gateway: &mut Gateway, mac: [u8; 6]) {
    let text = text(mac);
    let internet = &gateway.testbed.network.internet;
    gateway.change_kernel("neighbour", |kernel| {
        internet.ip(&format!("link set up0 address {text}")).expect("another MAC address");
        kernel
            .ip(&format!(
                "neigh replace 203.0.113.1 lladdr {text} dev eth0\n\
                 neigh replace 2001:db8:113::1 lladdr {text} dev eth0"
            ))
            .expect("neighbours");
    });
    gateway.next_hop = mac;
}

pub(super) fn except(gateway: &Gateway, kind: &str, host: u8) {
    let exception =
        json!({"type": kind, "device_id": gateway.devices[&host], "reason": "test", "allow_direct": true});
    gateway.api().post("/exceptions", &exception).expect("an exception");
}

/// Revokes all exceptions.
pub(super) fn revoke(gateway: &Gateway) {
    let exceptions = gateway.api().get("/exceptions").expect("exceptions");
    for exception in exceptions.as_array().expect("a list").iter().filter(|one| one["status"] == "active") {
        let id = exception["id"].as_str().expect("an id");
        gateway.api().delete(&format!("/exceptions/{id}")).expect("revoked");
    }
}

/// Switches the fast path of the gateway that has it.
pub(super) fn switch(gateway: &mut Gateway, is_on: bool) {
    if gateway.is_fast {
        let value = if is_on { "on" } else { "off" };
        gateway.api().put("/settings/dataplane.fast_path", &json!({"value": value})).expect("set");
        gateway.fast_path_is_on = is_on;
    }
}

/// Renews the lease of the DHCP client.
pub(super) fn renew_lease(gateway: &Gateway) {
    let before = gateway.dhcp.acknowledged();
    gateway.api().act("/interfaces/eth4/dhcp/renew").expect("asked");
    wait_for(SOON, "a renewal", || gateway.dhcp.acknowledged() > before).expect("renewed");
}

/// Replaces the address of the uplink, and waits until conntrack has forgotten the flows of the former one. A work item of
/// the kernel does that, late on a busy machine; until then, these flows keep it.
pub(super) fn replace_address(gateway: &Gateway, [old, new]: [&str; 2]) {
    gateway.change_kernel("address", |kernel| {
        kernel
            .ip(&format!(
                "address add {new}/24 dev eth0\naddress del {old}/24 dev eth0\n\
                 route replace default via 203.0.113.1"
            ))
            .expect("another address");
        wait_for(SOON, "conntrack to forget the former address", || {
            let table = kernel.run("cat", &["/proc/net/nf_conntrack"]).expect("the table");
            // The gateway's own flows, which are not masqueraded, may keep it.
            let is_of_host = |line: &&str| line.contains(" src=192.168.");
            !table.lines().filter(is_of_host).any(|line| line.contains(&format!(" dst={old} ")))
        })
        .expect("forgotten");
    });
}

/// Deletes the entries of conntrack of a family, or all, as `conntrack -F` does.
pub(super) fn flush_conntrack(namespace: &Namespace, family: u8) {
    /// IPCTNL_MSG_CT_DELETE of the subsystem NFNL_SUBSYS_CTNETLINK (linux/netfilter/nfnetlink_conntrack.h).
    const DELETE: u16 = 1 << 8 | 2;
    const REQUEST: u16 = 1;
    /// Of the message. Without it, the kernel flushes all families.
    const VERSION: u8 = 1;
    namespace.within(|| {
        let netlink =
            socket(AddressFamily::Netlink, SockType::Raw, SockFlag::empty(), SockProtocol::NetlinkNetFilter);
        let netlink = netlink.expect("a socket");
        // Length, type, flags, sequence, port; then family, version and resource.
        let header = [&20_u32.to_ne_bytes()[..], &DELETE.to_ne_bytes(), &REQUEST.to_ne_bytes(), &[0; 8]];
        let message = [&header.concat()[..], &[family, VERSION, 0, 0]].concat();
        send(netlink.as_raw_fd(), &message, MsgFlags::empty()).expect("sent");
    });
}
