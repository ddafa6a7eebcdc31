//! Example bodies for the collections that this version has.

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
        // A key of the test's own making: 32 bytes, not in use anywhere.
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

/// The text of a `.conf` file.
pub const WIREGUARD_CONF: &str = "[Interface]\n\
    PrivateKey = UGUzZkxPUElZVU5XQ0JTQk5WSVdHWEJSS0dCVE5PUVM=\n\
    Address = 10.8.0.2/32\n\
    PostUp = touch /never\n\
    [Peer]\n\
    PublicKey = NkFPQVZWR0lLQVlFSk9TUVhIWFBZS0hITkhDQlBTV08=\n\
    Endpoint = 192.0.2.1:51820\n\
    AllowedIPs = 0.0.0.0/0\n";
