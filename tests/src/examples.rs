//! Example bodies for the collections of this version.

use serde_json::{Value, json};

pub mod dns;

/// A collection and a body that it accepts. Bodies of one collection differ by `n`.
pub struct Example {
    pub path: &'static str,
    pub body: fn(u8) -> Value,
}

pub const COLLECTIONS: &[Example] = &[
    Example { path: "/devices", body: device },
    Example { path: "/device-groups", body: device_group },
    Example { path: "/trust-classes", body: trust_class },
    Example { path: "/tunnels", body: tunnel },
    Example { path: "/routing/policies", body: policy },
    Example { path: "/profiles", body: profile },
    Example { path: "/chains", body: chain },
    Example { path: "/privacy-classes", body: privacy_class },
    Example { path: "/proxies", body: proxy },
    Example { path: "/bridges", body: bridge },
    Example { path: "/segments", body: segment },
    Example { path: "/presets", body: preset },
    Example { path: "/test-definitions", body: test_definition },
    Example { path: "/dns/filter-rules", body: dns::filter_rule },
    Example { path: "/dns/zones", body: dns::zone },
    Example { path: "/dns/forwarders", body: dns::forwarder },
    Example { path: "/dns/rewrites", body: dns::rewrite },
    Example { path: "/dns/allowlist", body: dns::listed_domain },
    Example { path: "/dns/blocklist", body: dns::listed_domain },
    Example { path: "/dns/presets", body: dns::dns_preset },
    Example { path: "/dns/threat-feeds", body: dns::feed },
    Example { path: "/dhcp/reservations", body: dns::reservation },
    Example { path: "/nodes", body: dns::node },
    Example { path: "/federation-roles", body: dns::federation_role },
];

pub fn device(n: u8) -> Value {
    json!({
        "name": format!("laptop {n}"), "mac": format!("02:00:00:00:01:{n:02x}"), "hostname": "laptop",
        "trust_class": "standard", "tags": ["work"], "notes": "on the desk",
    })
}

pub fn device_group(n: u8) -> Value {
    json!({"name": format!("group {n}"), "description": "the children's"})
}

pub fn trust_class(n: u8) -> Value {
    json!({"name": format!("class-{n}"), "description": "ours", "level": 40})
}

pub fn tunnel(n: u8) -> Value {
    json!({
        "name": format!("exit-{n}"), "type": "wireguard",
        // A key made for the tests: 32 bytes that are not in use elsewhere.
        "private_key": "UGUzZkxPUElZVU5XQ0JTQk5WSVdHWEJSS0dCVE5PUVM=",
        "addresses": [format!("10.9.{n}.2/32")],
        "peers": [{
            "public_key": "NkFPQVZWR0lLQVlFSk9TUVhIWFBZS0hITkhDQlBTV08=",
            "preshared_key": "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVowMTIzNDU=",
            "endpoint": "192.0.2.1:51820", "allowed_ips": ["0.0.0.0/0", "::/0"],
        }],
    })
}

pub fn policy(n: u8) -> Value {
    json!({
        "name": format!("policy {n}"), "priority": 100 + u16::from(n), "enabled": true,
        "source_type": "subnet", "source_value": format!("10.1.{n}.0/24"), "hops": [],
        "fail_policy": "fail-closed",
    })
}

pub fn profile(n: u8) -> Value {
    json!({
        "name": format!("profile {n}"), "hops": [{"type": "interface", "target": "eth0"}],
        "fail_policy": "fail-closed", "privacy_class": "standard",
    })
}

pub fn chain(n: u8) -> Value {
    json!({
        "name": format!("chain {n}"),
        "hops": [{"type": "interface", "target": "eth0"}, {"type": "vpn", "target": "exit-1"}],
    })
}

pub fn privacy_class(n: u8) -> Value {
    json!({"name": format!("privacy {n}"), "block_doh": true, "fail_policy_floor": "fail-degraded"})
}

pub fn proxy(n: u8) -> Value {
    json!({"name": format!("proxy-{n}"), "address": "192.0.2.7", "username": "u", "password": "hunter2"})
}

pub fn bridge(n: u8) -> Value {
    json!({
        "name": format!("bridge-{n}"), "kind": "transport",
        "transport": {"type": "udp2tcp", "address": "192.0.2.8", "port": 443},
    })
}

pub fn segment(n: u8) -> Value {
    json!({
        "name": format!("segment {n}"), "interface": "eth1", "vlan_id": n, "cidr": format!("192.168.{n}.0/24"),
        "trust_class": "guest",
    })
}

pub fn preset(n: u8) -> Value {
    json!({
        "name": format!("preset {n}"), "category": "gaming",
        "template": {"policy": {"name": format!("preset {n}"), "priority": 10, "source_type": "all", "hops": []}},
    })
}

pub fn test_definition(n: u8) -> Value {
    json!({
        "name": format!("test {n}"), "source": {"cidr": "192.168.1.0/24"}, "deny": ["203.0.113.7:25"],
        "gate": false,
    })
}

/// Text of a `.conf` file.
pub const WIREGUARD_CONF: &str = "[Interface]\n\
    PrivateKey = UGUzZkxPUElZVU5XQ0JTQk5WSVdHWEJSS0dCVE5PUVM=\n\
    Address = 10.8.0.2/32\n\
    PostUp = touch /never\n\
    [Peer]\n\
    PublicKey = NkFPQVZWR0lLQVlFSk9TUVhIWFBZS0hITkhDQlBTV08=\n\
    Endpoint = 192.0.2.1:51820\n\
    AllowedIPs = 0.0.0.0/0\n";

/// Text of an `.ovpn` file.
pub const OVPN: &str = "client\n\
    dev tun\n\
    remote vpn.example.net 1194 udp\n\
    remote 198.51.100.7 443 tcp\n\
    remote-cert-tls server\n\
    up /bin/touch\n\
    redirect-gateway def1\n\
    data-ciphers AES-256-GCM:AES-128-GCM\n\
    <auth-user-pass>\nalice\nwonderland\n</auth-user-pass>\n\
    <ca>\n-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n</ca>\n\
    <cert>\n-----BEGIN CERTIFICATE-----\nMIIC\n-----END CERTIFICATE-----\n</cert>\n\
    <key>\n-----BEGIN PRIVATE KEY-----\nSECRETKEYOFTHECLIENT\n-----END PRIVATE KEY-----\n</key>\n";
