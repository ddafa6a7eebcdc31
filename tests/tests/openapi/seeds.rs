//! Requests that succeed, one for each endpoint, and their objects. Each endpoint has its own objects: the order of
//! requests is unknown, and some delete.

use std::sync::atomic::{AtomicU8, Ordering};

use gateway_api::table::{Endpoint, Method};
use gateway_tests::examples::{self, COLLECTIONS};
use serde_json::{Value, json};

use crate::openapi::server::{ASSET, FILE, Server};

/// Parameters and body of a request.
#[derive(Default)]
pub(super) struct Seed {
    pub parameters: Vec<(&'static str, String)>,
    pub body: Option<Value>,
}

const PASSPHRASE: &str = "correct horse battery";

/// Returns a number that no other object has.
fn number() -> u8 {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Returns a request that succeeds, after it created the prerequisites. Returns `None` if the endpoint needs neither
/// parameters nor a body.
pub(super) fn of(server: &Server, row: &Endpoint) -> Option<Seed> {
    let placeholder = gateway_api::table::placeholders(row.path).next();
    let body = body(server, row);
    if placeholder.is_none() {
        return body.map(|body| Seed { body: Some(body), ..Seed::default() });
    }
    let mut parameters = Vec::new();
    match row.path {
        "/settings/{key}" => {
            if row.method == Method::Delete {
                server.call("PUT", "/settings/network.mode", Some(&json!({"value": "primary"})));
            }
            let key = if row.method == Method::Delete { "network.mode" } else { "log.level" };
            parameters.push(("key", key.to_owned()));
        }
        "/references/{type}/{id}" => {
            parameters.push(("type", "trust-class".to_owned()));
            parameters.push(("id", "standard".to_owned()));
        }
        path if path.starts_with("/interfaces/") => {
            let name = format!("eth{}", number());
            if path.ends_with("/stop") || path.ends_with("/renew") {
                let body = json!({"method": "dhcp"});
                server.call("PUT", &format!("/interfaces/{name}/config"), Some(&body));
            }
            parameters.push(("name", name));
        }
        path if path.starts_with("/hosts/") => parameters.push(("id", server.observe_host(number()))),
        "/alerts/{id}/unmute" => parameters.push(("id", server.muted_alert(number()))),
        path if path.starts_with("/alerts/{id}/") => parameters.push(("id", server.raise_alert(number()))),
        "/assets/{file}" => parameters.push(("file", ASSET.to_owned())),
        "/{path}" => parameters.push(("path", FILE.to_owned())),
        "/auth/tokens/{id}" => {
            parameters.push(("id", session(server)));
        }
        _ => {
            let made = object(server, row.path)?;
            parameters.push((placeholder?, made));
        }
    }
    Some(Seed { parameters, body })
}

/// Returns the collection of the path.
fn collection(path: &str) -> Option<&'static examples::Example> {
    let of = path.replace("/gateway-nodes", "/nodes");
    COLLECTIONS.iter().chain([&examples::dns::RECORDS]).find(|example| of.starts_with(example.path))
}

/// Creates the object of an item path and returns its id.
fn object(server: &Server, path: &str) -> Option<String> {
    let made = match path {
        path if path.starts_with("/alerts/rules") => server.call("GET", "/alerts/rules", None)[0].take(),
        path if path.starts_with("/auth/users") => server.call("POST", "/auth/users", Some(&user())),
        path if path.starts_with("/auth/keys") => server.call(
            "POST",
            "/auth/keys",
            Some(&json!({"name": format!("key {}", number()), "role": "viewer"})),
        ),
        path => {
            let (path, body) = make(server, path)?;
            server.call("POST", path, Some(&body))
        }
    };
    made["id"].as_str().map(str::to_owned)
}

/// Returns path and body that create an object, after it created the referenced objects.
fn make(server: &Server, path: &str) -> Option<(&'static str, Value)> {
    let n = number();
    if path.starts_with("/exceptions") {
        let device = server.call("POST", "/devices", Some(&examples::device(n)));
        return Some(("/exceptions", json!({"type": "quarantine", "device_id": device["id"]})));
    }
    if path.starts_with("/splitting/endpoints") {
        let tunnel = server.call("POST", "/tunnels", Some(&examples::tunnel(n)));
        return Some(("/splitting/endpoints", json!({"tunnel": tunnel["name"]})));
    }
    if path.starts_with("/dns/records") {
        let zones = server.call("GET", "/dns/zones", None);
        let there = zones
            .as_array()
            .is_some_and(|zones| zones.iter().any(|zone| zone["name"] == examples::dns::ZONE));
        if !there {
            server.call("POST", "/dns/zones", Some(&json!({"name": examples::dns::ZONE})));
        }
    }
    let example = collection(path)?;
    Some((example.path, (example.body)(n)))
}

fn user() -> Value {
    json!({"username": format!("user-{}", number()), "password": PASSPHRASE, "role": "viewer"})
}

/// Logs a user in and returns the id of the session.
fn session(server: &Server) -> String {
    let user = user();
    server.call("POST", "/auth/users", Some(&user));
    server.call("POST", "/auth/login", Some(&json!({"username": user["username"], "password": PASSPHRASE})));
    let sessions = server.call("GET", "/auth/tokens", None);
    sessions[0]["id"].as_str().expect("a session").to_owned()
}

fn body(server: &Server, row: &Endpoint) -> Option<Value> {
    row.input.schema()?;
    Some(match (row.method, row.path) {
        (_, "/apply" | "/validate") => {
            json!({"resources": {"devices": [{"name": format!("planned {}", number())}]}})
        }
        (_, "/rollback") => {
            let plan = json!({"resources": {"devices": [{"name": format!("planned {}", number())}]}});
            json!({"snapshot": server.call("POST", "/apply", Some(&plan))["snapshot"]})
        }
        (_, "/config/import") => server.call("GET", "/config/export", None),
        (_, "/backup/import") => {
            let export = server.call("POST", "/backup/export", Some(&json!({"passphrase": PASSPHRASE})));
            json!({"passphrase": PASSPHRASE, "content": export["content"]})
        }
        (
            _,
            "/config/export-encrypted"
            | "/backup/export-encrypted"
            | "/backup/export"
            | "/secrets/set-passphrase",
        ) => {
            json!({"passphrase": PASSPHRASE})
        }
        (_, "/hosts/{id}/adopt") => json!({"name": format!("adopted {}", number())}),
        (_, "/tunnels/import-wireguard") => {
            json!({"name": format!("imported-{}", number()), "config": examples::WIREGUARD_CONF})
        }
        (_, "/tunnels/upload-ovpn") => {
            json!({"name": format!("uploaded-{}", number()), "config": examples::OVPN})
        }
        (Method::Delete, _) => json!({"domains": ["site.example"]}),
        (_, "/auth/login") => {
            let user = user();
            server.call("POST", "/auth/users", Some(&user));
            json!({"username": user["username"], "password": PASSPHRASE})
        }
        (_, "/auth/change-password") => {
            let user = user();
            server.call("POST", "/auth/users", Some(&user));
            json!({"username": user["username"], "current_password": PASSPHRASE, "new_password": "another horse battery"})
        }
        (_, "/auth/setup") => json!({"username": "first", "password": PASSPHRASE}),
        (_, "/auth/users") => user(),
        (_, "/auth/users/{id}") => json!({"username": format!("user-{}", number()), "role": "operator"}),
        (_, "/auth/keys") => json!({"name": format!("key {}", number()), "role": "viewer"}),
        (_, "/policy/evaluate") => {
            let device = server.call("POST", "/devices", Some(&examples::device(number())));
            json!({"device_id": device["id"]})
        }
        (_, "/splitting/activate") => {
            let n = number();
            let hops = json!([{"type": "vpn", "target": "one"}, {"type": "vpn", "target": "two"}]);
            let mut policy = examples::policy(n);
            policy["hops"] = hops;
            let policy = server.call("POST", "/routing/policies", Some(&policy));
            server.call("POST", "/routing/policies/apply", None);
            json!({"policy_id": policy["id"]})
        }
        (_, "/interfaces/{name}/config") => json!({"method": "none"}),
        (_, "/presets/{id}/apply") => json!({"name": format!("of a preset {}", number())}),
        (_, "/test-definitions/run") => json!({}),
        (_, "/bluetooth/name") => json!({"name": "gateway"}),
        (_, "/storage/encrypted/passphrase") => {
            json!({"passphrase": "correct horse battery", "new_passphrase": "another horse battery"})
        }
        (_, "/storage/encrypted/stored-key" | "/storage/encrypted/tpm2-key") => {
            json!({"passphrase": "correct horse battery"})
        }
        (_, "/system/deadman") => json!({"enabled": true, "hours": 24}),
        (_, "/pq-crypto") => json!({"mode": "preferred"}),
        (_, "/settings/{key}") => json!({"value": "debug"}),
        // Examples with read-only fields are skipped.
        (_, "/alerts/{id}/mute") => json!({"duration_sec": 3600}),
        (_, "/alerts/rules/{id}") => json!({"name": "A tunnel is down", "severity": "critical"}),
        // Singletons: the output of a GET is a valid PUT.
        (Method::Put, path) if !path.contains('{') => server.call("GET", path, None),
        (_, path) => make(server, path)?.1,
    })
}
