//! Membership in a mesh of another coordinator, over connections without a kernel.

use std::net::SocketAddr;
use std::sync::Arc;

use gateway_mesh::serve::serve_connection;
use gateway_mesh::{
    AuthKeyTerms, Change, Coordinator, KeyPair, Ledger, LedgerError, Lifetimes, MeshProfile, Roster, Settings,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::contract::client::Client;

/// Ledger of a coordinator that forgets with its test.
struct Memory;

impl Ledger for Memory {
    fn store(&self, _: &Roster, _: &Change) -> Result<(), LedgerError> {
        Ok(())
    }
}

/// A coordinator without TLS and relay, on loopback.
struct Server {
    coordinator: Arc<Coordinator>,
    address: SocketAddr,
}

fn now() -> Timestamp {
    Timestamp::now()
}

impl Server {
    async fn start() -> Server {
        let settings = Settings {
            identity: KeyPair::random().expect("a key"),
            relay: None,
            profile: MeshProfile {
                domain: "mesh.internal".to_owned(),
                owner: "owner".to_owned(),
                derp_map: gateway_mesh::wire::DerpMap::default(),
            },
            lifetimes: Lifetimes::default(),
            verify_clients: true,
        };
        let coordinator = Coordinator::new(settings, Roster::default(), Arc::new(Memory), Arc::new(now));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
        let address = listener.local_addr().expect("an address");
        let served = coordinator.clone();
        tokio::spawn(async move {
            while let Ok((socket, from)) = listener.accept().await {
                tokio::spawn(serve_connection(served.clone(), from.ip(), socket));
            }
        });
        Server { coordinator, address }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn key(&self) -> String {
        let expires = now().checked_add(SignedDuration::from_hours(1)).expect("a time");
        let terms =
            AuthKeyTerms { reusable: false, ephemeral: false, expires, tags: Vec::new(), usage_limit: 0 };
        self.coordinator.create_key(terms, &Memory).expect("stored").expect("a key").1
    }
}

#[tokio::test]
async fn a_gateway_without_a_registration_says_so() {
    let client = Client::new();
    let config = client.get("/mesh/config").await.data();
    assert_eq!((&config["enabled"], &config["coordinator_url"]), (&json!(false), &Value::Null), "{config}");
    for path in ["/mesh/up", "/mesh/down"] {
        client.send("POST", path, None, &[]).await.error(409, "invalid_state");
    }
}

#[tokio::test]
async fn registration_joins_and_keeps_no_pre_auth_key() {
    let (client, server) = (Client::new(), Server::start().await);
    let key = server.key();
    let body = json!({"coordinator_url": server.url(), "auth_key": key, "hostname": "branch"});
    let answer = client.post("/mesh/register", body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let members = server.coordinator.members();
    assert_eq!(members.len(), 1);
    assert_eq!((members[0].node.name.as_str(), members[0].node.os.as_str()), ("branch", "linux"));
    let config = client.get("/mesh/config").await.data();
    assert_eq!((&config["enabled"], &config["hostname"]), (&json!(true), &json!("branch")), "{config}");
    assert_eq!((&config["auth_key"], &config["listen_port"]), (&json!(false), &json!(41641)));
    let entry = client.last_audit().await;
    assert_eq!((&entry["action"], &entry["result"]), (&json!("join_mesh"), &json!("success")), "{entry}");
    for path in ["/audit", "/mesh/status", "/mesh/config", "/settings", "/config/export", "/secrets"] {
        assert!(!client.get(path).await.text.contains(&key), "{path} has the key");
    }
    client.delete("/mesh/peers/1").await.error(409, "invalid_state");
    let down = client.send("POST", "/mesh/down", None, &[]).await.data();
    assert_eq!(down["state"], "down", "{down}");
    assert_eq!(client.get("/mesh/config").await.data()["enabled"], false);
    let up = client.send("POST", "/mesh/up", None, &[]).await.data();
    assert_ne!(up["state"], "down", "{up}");
}

#[tokio::test]
async fn a_second_registration_is_the_same_node() {
    let (client, server) = (Client::new(), Server::start().await);
    for _ in 0..2 {
        let body = json!({"coordinator_url": server.url(), "auth_key": server.key()});
        let answer = client.post("/mesh/register", body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    assert_eq!(server.coordinator.members().len(), 1);
}

#[tokio::test]
async fn a_refusal_says_the_reason_and_stores_nothing() {
    let (client, server) = (Client::new(), Server::start().await);
    let key = format!("{}AAAA", &server.key()[..20]);
    let body = json!({"coordinator_url": server.url(), "auth_key": key});
    let details = client.post("/mesh/register", body).await.error(422, "validation_failed");
    assert_eq!(details["fields"][0]["path"], "auth_key", "{details}");
    let message = details["fields"][0]["message"].as_str().expect("a message");
    assert!(message.starts_with("The coordinator refuses: ") && !message.contains(&key), "{message}");
    assert_eq!(client.get("/mesh/config").await.data()["coordinator_url"], Value::Null);
    assert!(server.coordinator.members().is_empty());
}

#[tokio::test]
async fn what_is_no_coordinator_is_unreachable() {
    let client = Client::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let body = json!({"coordinator_url": format!("http://{address}"), "auth_key": "key"});
    client.post("/mesh/register", body).await.error(502, "upstream_failed");
    let body = json!({"coordinator_url": "ftp://gw.example.net", "auth_key": "a b", "listen_port": 0});
    let details = client.post("/mesh/register", body).await.error(422, "validation_failed");
    let fields = details["fields"].as_array().expect("fields").iter();
    let paths: Vec<_> = fields.map(|field| field["path"].as_str().expect("a path")).collect();
    assert_eq!(paths, ["coordinator_url", "auth_key", "listen_port"]);
}

#[tokio::test]
async fn a_coordinator_is_no_member() {
    let (client, server) = (Client::new(), Server::start().await);
    for (key, value) in [("host", json!("gw.example.net")), ("enabled", json!(true))] {
        client.put(&format!("/settings/mesh.coordinator.{key}"), json!({ "value": value })).await;
    }
    let body = json!({"coordinator_url": server.url(), "auth_key": server.key()});
    let details = client.post("/mesh/register", body).await.error(409, "invalid_state");
    assert_eq!(details["setting"], "mesh.coordinator.enabled");
}
