//! Collections of the resolver, of DHCP, of peers and of alerts: tests beyond those of every collection.

use serde_json::{Value, json};

use crate::contract::client::Client;
use crate::contract::examples;

fn id(object: &Value) -> &str {
    object["id"].as_str().expect("an id")
}

fn warnings(answer: &crate::contract::client::Answer) -> Vec<String> {
    let body = answer.json();
    let list = body["warnings"].as_array().cloned().unwrap_or_default();
    list.iter().map(|warning| warning["path"].as_str().expect("a path").to_owned()).collect()
}

#[tokio::test]
async fn objects_without_effect_have_one_warning() {
    let client = Client::new();
    for (vlan, isolation) in [(30, true), (31, false)] {
        let cidr = format!("192.168.{vlan}.0/24");
        let name = format!("guests {vlan}");
        let segment =
            json!({"name": name, "vlan_id": vlan, "interface": "eth1", "cidr": cidr, "isolation": isolation});
        let answer = client.post("/segments", segment).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        let count = warnings(&answer).iter().filter(|path| path.as_str() == "isolation").count();
        assert_eq!(count, usize::from(isolation), "{}", answer.text);
        assert_eq!(answer.text.contains("without effect"), isolation, "{}", answer.text);
    }
}

#[tokio::test]
async fn domains_are_blocked_in_one_change_and_each_only_once() {
    let client = Client::new();
    let before = client.audit_count().await;
    let answer = client
        .post("/dns/blocklist", json!({"domains": ["Ads.Example.", "bücher.example", "ads.example"]}))
        .await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    assert_eq!(answer.data(), json!({"changed": ["ads.example", "xn--bcher-kva.example"], "unchanged": []}));
    assert_eq!(client.audit_count().await, before + 1);
    let again =
        client.post("/dns/blocklist", json!({"domains": ["ads.example", "new.example"]})).await.data();
    assert_eq!(again, json!({"changed": ["new.example"], "unchanged": ["ads.example"]}));
    let list = client.get("/dns/blocklist").await;
    assert_eq!(list.header("x-total-count"), "3");

    let details =
        client.post("/dns/blocklist", json!({"domains": ["fine.example", "not fine", "192.0.2.1"]})).await;
    let details = details.error(422, "validation_failed");
    let paths: Vec<&Value> =
        details["fields"].as_array().expect("fields").iter().map(|field| &field["path"]).collect();
    assert_eq!(paths, ["domains[1]", "domains[2]"]);
    assert_eq!(client.get("/dns/blocklist").await.header("x-total-count"), "3", "all or none");
    client.post("/dns/blocklist", json!({"domains": []})).await.error(422, "validation_failed");
    let details =
        client.post("/dns/blocklist", json!({"domain": "ADS.example"})).await.error(409, "conflict");
    assert_eq!(details["field"], "domain");
}

#[tokio::test]
async fn a_disabled_entry_is_enabled_by_blocking_it_again() {
    let client = Client::new();
    client.create("/dns/blocklist", json!({"domain": "ads.example", "enabled": false})).await;
    let again = client.post("/dns/blocklist", json!({"domains": ["ads.example"]})).await.data();
    assert_eq!(again["changed"], json!(["ads.example"]));
    assert_eq!(client.get("/dns/blocklist/ads.example").await.data()["enabled"], true);
}

#[tokio::test]
async fn entries_of_lists_go_by_domain_by_id_or_by_body() {
    let client = Client::new();
    for path in ["/dns/blocklist", "/dns/allowlist"] {
        let made = client.create(path, json!({"domain": "bücher.example"})).await;
        // Percent-encoded Unicode form.
        let by_name = client.get(&format!("{path}/B%C3%BCcher.example")).await;
        assert_eq!(by_name.data(), made);
        let answer = client.put(&format!("{path}/{}", id(&made)), json!({"domain": "other.example"})).await;
        assert_eq!(answer.data()["domain"], "other.example", "{}", answer.text);
        assert_eq!(client.delete(&format!("{path}/Other.Example.")).await.status, 200);
        client.delete(&format!("{path}/other.example")).await.error(404, "not_found");
        client.post(path, json!({"domains": ["a.example", "b.example"]})).await;
        let body = json!({"domains": ["A.example", "c.example"]});
        let answer = client.send("DELETE", path, Some(body), &[]).await;
        assert_eq!(
            answer.data(),
            json!({"changed": ["a.example"], "unchanged": ["c.example"]}),
            "{}",
            answer.text
        );
        let answer = client.send("DELETE", path, Some(json!({"domain": "b.example"})), &[]).await;
        assert_eq!(answer.data()["changed"], json!(["b.example"]));
        assert_eq!(client.get(path).await.data(), json!([]));
        client.send("DELETE", path, Some(json!({})), &[]).await.error(422, "validation_failed");
        client.send("DELETE", path, None, &[]).await.error(400, "bad_request");
    }
}

#[tokio::test]
async fn a_zone_counts_its_records_and_holds_them() {
    let client = Client::new();
    let zone = client.create("/dns/zones", json!({"name": "home.lan"})).await;
    let item = format!("/dns/zones/{}", id(&zone));
    let first = client.get(&item).await;
    let body = json!({"zone": "home.lan", "name": "NAS.home.lan", "type": "A", "value": "192.168.1.9"});
    let record = client.create("/dns/records", body).await;
    assert_eq!((&record["name"], &record["zone"]), (&json!("nas"), &json!("home.lan")));
    let second = client.get(&item).await;
    assert_eq!((&first.data()["records_count"], &second.data()["records_count"]), (&json!(0), &json!(1)));
    assert_ne!(first.header("etag"), second.header("etag"), "the shown zone has changed");
    assert!(second.data()["serial"].as_u64() > first.data()["serial"].as_u64());
    let details = client.delete(&item).await.error(409, "in_use");
    assert_eq!(details["references"]["referenced_by"]["dns_records"], 1, "{details}");
    client.delete(&format!("{item}?force=true")).await.error(409, "in_use");
    let alias = json!({"zone": "home.lan", "name": "nas", "type": "CNAME", "value": "a.example"});
    let details = client.post("/dns/records", alias).await.error(409, "conflict");
    assert_eq!((&details["field"], &details["existing_id"]), (&json!("type"), &record["id"]));
    assert_eq!(
        client.get("/dns/records?zone=home.lan&type=A").await.data().as_array().map(Vec::len),
        Some(1)
    );
    assert_eq!(client.get("/dns/records?zone=home.lan&type=MX").await.data(), json!([]));
    client.delete(&format!("/dns/records/{}", id(&record))).await;
    let third = client.get(&item).await.data()["serial"].as_u64();
    assert!(third > second.data()["serial"].as_u64(), "a serial grows with deletions too");
    assert_eq!(client.delete(&item).await.status, 200);
}

#[tokio::test]
async fn a_filter_rule_holds_the_devices_it_is_for() {
    let client = Client::new();
    let device = client.create("/devices", examples::device(1)).await;
    let body = json!({"pattern": "example.com", "scope": {"devices": [device["id"]]}});
    client.create("/dns/filter-rules", body.clone()).await;
    client.post("/dns/filter-rules", body).await.error(409, "conflict");
    let details = client.delete(&format!("/devices/{}", id(&device))).await.error(409, "in_use");
    assert_eq!(details["references"]["referenced_by"]["dns_filter_rules"], 1, "{details}");
    let wrong = json!({"pattern": "(((", "match": "regex", "action": "rewrite", "qtypes": ["X"]});
    let details = client.post("/dns/filter-rules", wrong).await.error(422, "validation_failed");
    assert_eq!(details["fields"].as_array().map(Vec::len), Some(3), "{details}");
    let unknown_device =
        json!({"pattern": "a.b", "scope": {"devices": ["0193f3a8-0c5e-7cc2-8a0e-2f6d1b9f4a11"]}});
    client.post("/dns/filter-rules", unknown_device).await.error(422, "unknown_reference");
}

#[tokio::test]
async fn built_in_presets_are_there_and_cannot_be_changed() {
    let client = Client::new();
    let list = client.get("/dns/presets?provider=Quad9").await.data();
    let preset = &list[0];
    assert_eq!(preset["upstreams"][0], "9.9.9.9", "{list}");
    let item = format!("/dns/presets/{}", id(preset));
    assert_eq!(client.put(&item, preset.clone()).await.status, 200);
    let mut edited = preset.clone();
    edited["upstreams"] = json!(["192.0.2.66"]);
    client.put(&item, edited.clone()).await.error(409, "invalid_state");
    client.delete(&item).await.error(409, "invalid_state");
    edited["name"] = json!("mine");
    assert_eq!(client.create("/dns/presets", edited).await["builtin"], false);
    let feeds = client.get("/dns/threat-feeds?enabled=false").await.data();
    let mut feed = feeds[0].clone();
    feed["enabled"] = json!(true);
    let item = format!("/dns/threat-feeds/{}", id(&feed));
    assert_eq!(client.put(&item, feed).await.data()["enabled"], true);
    client.delete(&item).await.error(409, "invalid_state");
}

#[tokio::test]
async fn reservations_go_by_the_address_of_the_card() {
    let client = Client::new();
    let made =
        client.create("/dhcp/reservations", json!({"mac": "02-00-00-00-00-0A", "ip": "192.168.1.10"})).await;
    assert_eq!(made["mac"], "02:00:00:00:00:0a");
    for spelling in ["02:00:00:00:00:0a", "02-00-00-00-00-0A", id(&made)] {
        assert_eq!(client.get(&format!("/dhcp/reservations/{spelling}")).await.data(), made, "{spelling}");
    }
    let other = json!({"mac": "02:00:00:00:00:0b", "ip": "192.168.1.10"});
    let details = client.post("/dhcp/reservations", other).await.error(409, "conflict");
    assert_eq!((&details["field"], &details["existing_id"]), (&json!("ip"), &made["id"]));
    assert_eq!(client.delete("/dhcp/reservations/02:00:00:00:00:0A").await.status, 200);
    assert_eq!(client.last_audit().await["action"], "delete_dhcp_reservation");
    client.delete("/dhcp/reservations/02:00:00:00:00:0a").await.error(404, "not_found");
}

#[tokio::test]
async fn nodes_have_two_paths_and_are_never_approved_by_writing_so() {
    let client = Client::new();
    let made = client.create("/gateway-nodes", examples::dns::node(1)).await;
    assert_eq!(client.get(&format!("/nodes/{}", id(&made))).await.data(), made);
    let mut edited = made.clone();
    edited["status"] = json!("approved");
    edited["sync_policy"] = json!("push");
    edited["sync_resources"] = json!("routing, dns");
    let answer = client.put(&format!("/gateway-nodes/{}", id(&made)), edited).await.data();
    assert_eq!((&answer["status"], &answer["sync_resources"]), (&json!("pending"), &json!("routing,dns")));
    let role = client.create("/federation-roles", json!({"name": "branch"})).await;
    let mut edited = made.clone();
    edited["role"] = json!("branch");
    assert_eq!(client.put(&format!("/nodes/{}", id(&made)), edited).await.status, 200);
    let details = client.delete(&format!("/federation-roles/{}", id(&role))).await.error(409, "in_use");
    assert_eq!(details["references"]["referenced_by"]["nodes"], 1, "{details}");
    client.delete("/federation-roles/primary").await.error(409, "invalid_state");
    let approved = client.send("POST", &format!("/nodes/{}/approve", id(&made)), None, &[]).await.data();
    assert_eq!(approved["status"], "approved");
    assert_eq!(client.last_audit().await["action"], "approve_node");
    let keyless = client.create("/nodes", json!({"name": "x", "url": "https://x.example.net"})).await;
    let path = format!("/nodes/{}/approve", id(&keyless));
    client.send("POST", &path, None, &[]).await.error(409, "invalid_state");
}

#[tokio::test]
async fn rules_of_alerts_are_edited_by_their_kind() {
    let client = Client::new();
    let rules = client.get("/alerts/rules").await.data();
    let kinds: Vec<&Value> = rules.as_array().expect("a list").iter().map(|rule| &rule["id"]).collect();
    assert_eq!(kinds.len(), 40);
    assert!(kinds.contains(&&json!("tunnel_down")), "{kinds:?}");
    for rule in rules.as_array().expect("a list") {
        let answer = client.put(&format!("/alerts/rules/{}", id(rule)), rule.clone()).await;
        assert_eq!((answer.status, warnings(&answer)), (200, Vec::new()), "{}", answer.text);
    }
    let read = client.get("/alerts/rules/tunnel-down").await;
    let tag = read.header("etag").to_owned();
    let mut rule = read.data();
    rule["cooldown_sec"] = json!(60);
    let put = |tag: String, rule: Value| {
        let client = &client;
        async move {
            client.send("PUT", "/alerts/rules/tunnel_down", Some(rule), &[("if-match", tag.as_str())]).await
        }
    };
    assert_eq!(put(tag.clone(), rule.clone()).await.data()["cooldown_sec"], 60);
    put(tag, rule).await.error(412, "precondition_failed");
    client.put("/alerts/rules/nonsense", json!({"name": "x"})).await.error(404, "not_found");
    client.post("/alerts/rules", json!({"name": "x"})).await.error(405, "method_not_allowed");
    client.delete("/alerts/rules/tunnel_down").await.error(405, "method_not_allowed");
}
