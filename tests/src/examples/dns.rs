//! Example bodies for the collections of the resolver, of DHCP and of peers.

use serde_json::{Value, json};

use super::Example;

/// Example of a record. Records need the zone [`ZONE`].
pub const RECORDS: Example = Example { path: "/dns/records", body: record };

pub const ZONE: &str = "home.lan";

pub fn filter_rule(n: u8) -> Value {
    json!({
        "pattern": format!("ads{n}.example.com"), "match": "exact", "action": "block", "qtypes": ["A", "AAAA"],
        "schedule": {"days": ["sat", "sun"], "start": "22:00", "end": "06:30"}, "comment": "ours",
    })
}

pub fn zone(n: u8) -> Value {
    json!({"name": format!("zone-{n}.lan"), "ttl": 60, "soa": {"rname": "admin@example.com"}})
}

pub fn record(n: u8) -> Value {
    json!({"zone": ZONE, "name": format!("mail-{n}"), "type": "MX", "value": "10 mx.home.lan."})
}

pub fn forwarder(n: u8) -> Value {
    json!({
        "domain": format!("corp-{n}.example"), "upstreams": ["9.9.9.9", "[2620:fe::fe]:853"], "protocol": "tls",
        "tls_name": "dns.quad9.net",
    })
}

pub fn rewrite(n: u8) -> Value {
    json!({"domain": format!("*.nas-{n}.lan"), "answer": "192.168.1.9"})
}

pub fn listed_domain(n: u8) -> Value {
    json!({"domain": format!("site-{n}.example"), "comment": "ours"})
}

pub fn dns_preset(n: u8) -> Value {
    json!({"name": format!("preset {n}"), "upstreams": ["https://dns.example.net/dns-query"], "mode": "doh"})
}

pub fn feed(n: u8) -> Value {
    json!({"name": format!("feed {n}"), "url": format!("https://example.net/{n}.txt"), "format": "hosts"})
}

pub fn reservation(n: u8) -> Value {
    json!({"mac": format!("02:00:00:00:02:{n:02x}"), "ip": format!("192.168.1.{n}"), "hostname": format!("host-{n}")})
}

pub fn node(n: u8) -> Value {
    let key = format!("{n:02x}{}=", "A".repeat(41));
    json!({"name": format!("branch {n}"), "url": format!("https://branch-{n}.example.net/"), "role": "secondary",
        "public_key": key})
}

pub fn federation_role(n: u8) -> Value {
    json!({"name": format!("role-{n}"), "permissions": [{"kind": "dns", "push": false, "pull": true, "approve": false}]})
}
