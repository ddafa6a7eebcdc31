//! Configuration of interfaces and the check for captive portals through the API, without a kernel.

use serde_json::json;

use crate::contract::client::Client;

const CONFIG: &str = "/interfaces/eth7/config";

#[tokio::test]
async fn a_configuration_is_stored_whole_and_sent_back_unmodified() {
    let client = Client::new();
    let shown = client.get(CONFIG).await.data();
    assert_eq!(
        (&shown["method"], &shown["address"], &shown["state"]["role"]),
        (&json!("none"), &json!(null), &json!("other"))
    );
    let wanted = json!({"method": "static", "address": "10.44.0.7", "prefix": 24, "gateway": "10.44.0.1", "dns": ["10.44.0.1"]});
    let set = client.put(CONFIG, wanted).await;
    assert_eq!(set.status, 200, "{}", set.text);
    let audit = client.last_audit().await;
    assert_eq!(
        (&audit["action"], &audit["resource_id"]),
        (&json!("replace_interface_config"), &json!("eth7")),
        "{audit}"
    );
    let answer = client.get(CONFIG).await;
    let (etag, shown) = (answer.header("etag").to_owned(), answer.data());
    assert_eq!((&shown["gateway"], &shown["pending_restart"]), (&json!("10.44.0.1"), &json!(false)));
    let again = client.put(CONFIG, shown.clone()).await;
    assert_eq!((again.status, again.json().get("warnings")), (200, None), "{}", again.text);
    assert_eq!(client.get("/settings/interfaces").await.data()["value"]["eth7"]["prefix"], 24);
    // Another request has changed it.
    let stale = client.send("PUT", CONFIG, Some(shown), &[("if-match", "\"0\"")]).await;
    stale.error(412, "precondition_failed");
    assert!(!etag.is_empty());
    let typo = client.put(CONFIG, json!({"method": "none", "adress": "10.0.0.1"})).await.json();
    assert_eq!(typo["warnings"][0]["path"], "adress", "{typo}");
    assert_eq!(
        client.get("/settings/interfaces").await.data()["value"],
        json!({}),
        "an empty one is removed"
    );
}

#[tokio::test]
async fn each_wrong_field_is_named() {
    let client = Client::new();
    let wrong = json!({"method": "static", "address": "10.44.0.7", "prefix": 24, "gateway": "fd00::1", "mtu": 68, "dns": ["0.0.0.0"]});
    let error = client.put(CONFIG, wrong).await.error(422, "validation_failed");
    let fields = error["fields"].as_array().expect("fields").iter();
    let mut paths: Vec<&str> = fields.filter_map(|one| one["path"].as_str()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["dns[0]", "gateway", "mtu"]);
    client.put(CONFIG, json!({"method": "ppp"})).await.error(422, "validation_failed");
    client.put(CONFIG, json!({})).await.error(422, "validation_failed");
    client.get("/interfaces/a%2Fb/config").await.error(400, "invalid_parameter");
    let other = json!({"method": "static", "address": "10.44.0.7", "prefix": 24});
    assert_eq!(client.put(CONFIG, other.clone()).await.status, 200);
    let overlap = client.put("/interfaces/eth8/config", other).await.error(422, "validation_failed");
    assert_eq!(overlap["fields"][0]["path"], "address", "{overlap}");
}

#[tokio::test]
async fn interfaces_that_the_gateway_depends_on_are_protected() {
    let client = Client::new();
    for name in ["eth0", "eth1", "lo", "wg-x"] {
        let error = client.post(&format!("/interfaces/{name}/dhcp/start"), json!({})).await;
        error.error(409, "interface_protected");
        let error = client.put(&format!("/interfaces/{name}/config"), json!({"method": "dhcp"})).await;
        error.error(409, "interface_protected");
    }
    let gateway = json!({"method": "static", "address": "10.1.0.1", "prefix": 24, "gateway": "10.1.0.2"});
    let error = client.put("/interfaces/eth1/config", gateway.clone()).await.error(422, "validation_failed");
    assert_eq!(error["fields"][0]["path"], "gateway");
    let shown = client.put("/interfaces/eth0/config", gateway).await.data();
    assert_eq!((&shown["pending_restart"], &shown["state"]["role"]), (&json!(true), &json!("uplink")));
}

#[tokio::test]
async fn the_client_is_started_and_stopped_by_the_stored_method() {
    let client = Client::new();
    let control =
        async |command: &str| client.post(&format!("/interfaces/eth7/dhcp/{command}"), json!({})).await;
    for command in ["stop", "renew"] {
        control(command).await.error(409, "invalid_state");
    }
    assert_eq!(control("start").await.data()["method"], "dhcp");
    assert_eq!(client.last_audit().await["action"], "start_dhcp_client");
    assert_eq!(client.get(CONFIG).await.data()["method"], "dhcp");
    assert_eq!(control("start").await.status, 200, "it is started already");
    assert_eq!(control("renew").await.status, 200);
    assert_eq!(control("stop").await.data()["method"], "none");
    let fixed = json!({"method": "static", "address": "10.44.0.7", "prefix": 24});
    assert_eq!(client.put(CONFIG, fixed).await.status, 200);
    for command in ["start", "stop", "renew"] {
        control(command).await.error(409, "invalid_state");
    }
}

#[tokio::test]
async fn the_check_for_portals_sends_nothing_without_a_kernel() {
    let report = Client::new().post("/captive/check", json!({})).await.data();
    assert_eq!(
        (&report["state"], &report["uplinks"][0]["interface"]),
        (&json!("offline"), &json!("eth0")),
        "{report}"
    );
    assert_eq!(report["uplinks"][0]["targets"][0]["error"], "this gateway is not attached to a kernel");
    let client = Client::new();
    let wrong = json!({"value": {"targets": [{"url": "https://probe.example/", "address": "192.0.2.1"}]}});
    let error = client.put("/settings/captive", wrong).await.error(422, "validation_failed");
    assert_eq!(error["fields"][0]["path"], "captive.targets[0].url", "{error}");
}
