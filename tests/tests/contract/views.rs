//! Views of the plan, with a gateway that compiles and explains but enforces nothing.

use std::time::Duration;

use axum::body::Body;
use gateway_api::gateway::Gateway;
use gateway_model::kinds::alert_rule::AlertKind;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::contract::client::Client;
use crate::contract::examples;

/// Returns a device whose traffic is bound to a tunnel, applied.
async fn testbed() -> (Client, Value, Value) {
    let client = Client::new();
    let device = client.create("/devices", examples::device(1)).await;
    client.create("/tunnels", examples::tunnel(1)).await;
    let mut policy = examples::policy(1);
    policy["source_type"] = json!("device");
    policy["source_value"] = device["id"].clone();
    policy["hops"] = json!([{"type": "vpn", "target": "exit-1"}]);
    let policy = client.create("/routing/policies", policy).await;
    (client, device, policy)
}

async fn apply(client: &Client) -> Value {
    let answer = client.send("POST", "/routing/policies/apply", None, &[]).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.data()
}

#[tokio::test]
async fn a_policy_counts_from_the_next_apply_on() {
    let (client, device, policy) = testbed().await;
    let question = json!({"device_id": device["id"]});
    let before = client.post("/policy/evaluate", question.clone()).await.data();
    assert_eq!(before["matched_policies"], json!([]), "{before}");
    assert_eq!(before["pending_changes"], 1);
    let status = client.get("/status").await.data();
    assert_eq!((&status["pending_changes"], &status["pending_policies"]), (&json!(true), &json!(1)));
    assert_eq!(status["last_saved"]["action"], "create_routing_policy", "{status}");
    assert!(status["hostname"].as_str().is_some_and(|name| !name.is_empty()), "{status}");

    let applied = apply(&client).await;
    assert_eq!((&applied["policies"], &applied["enforced"]), (&json!(1), &json!(false)), "{applied}");
    let status = client.get("/status").await.data();
    assert_eq!((&status["pending_policies"], &status["last_saved"]), (&json!(0), &json!(null)), "{status}");
    assert_eq!(status["pending_changes"], false);
    assert_eq!(status["applied_revision"], applied["applied_revision"]);
    let after = client.post("/policy/evaluate", question).await.data();
    assert_eq!(after["effective"]["policy"]["id"], policy["id"], "{after}");
    assert_eq!(after["decision"], "block", "the tunnel is not up, and the policy fails closed: {after}");
    assert!(after["sentence"].as_str().is_some_and(|sentence| sentence.contains("exit-1")), "{after}");
    // Compiled, but not in any kernel: the response must not claim enforcement.
    let shown =
        client.get(&format!("/routing/policies/{}", policy["id"].as_str().expect("an id"))).await.data();
    assert_eq!((&shown["routing"], &shown["status"]), (&json!(false), &json!("error")));
}

#[tokio::test]
async fn evaluate_takes_a_mac_or_an_id_and_says_what_is_wrong_with_others() {
    let (client, device, _) = testbed().await;
    let ask = |body: Value| client.post("/policy/evaluate", body);
    assert_eq!(ask(json!({"mac": "02-00-00-00-01-01"})).await.data()["device"]["id"], device["id"]);
    ask(json!({})).await.error(422, "validation_failed");
    ask(json!({"device_id": "laptop"})).await.error(422, "validation_failed");
    ask(json!({"device_id": "0193f3a8-0c5e-7cc2-8a0e-2f6d1b9f4a11"})).await.error(404, "not_found");
    let warned = ask(json!({"mac": "02:00:00:00:01:01", "prot": 80})).await;
    assert_eq!(warned.json()["warnings"][0]["path"], "prot");
}

#[tokio::test]
async fn conflicts_are_found_among_stored_policies() {
    let client = Client::new();
    let mut first = examples::policy(1);
    first["source_type"] = json!("all");
    first["source_value"] = json!("");
    let first = client.create("/routing/policies", first).await;
    let second = client.create("/routing/policies", examples::policy(2)).await;
    let answer = client.send("POST", "/policy/conflicts", None, &[]).await;
    let list = answer.data();
    let shadowed = list.as_array().expect("a list").iter().find(|conflict| conflict["kind"] == "shadowed");
    let shadowed = shadowed.unwrap_or_else(|| panic!("{list}"));
    assert_eq!(shadowed["policies"], json!([second["id"], first["id"]]));
    assert_eq!(answer.header("x-total-count"), list.as_array().expect("a list").len().to_string());
}

#[tokio::test]
async fn a_fail_closed_policy_leaks_in_no_state_and_a_fail_open_one_does() {
    let (client, _, policy) = testbed().await;
    apply(&client).await;
    let matrix = client.get("/policy/leak-matrix").await.data();
    assert_eq!(matrix["states"], json!(["up", "degraded", "down", "flapping", "daemon_down", "boot"]));
    assert_eq!(matrix["risk"], "none", "{matrix}");
    let cells = matrix["rows"][0]["cells"].as_object().expect("cells");
    assert_eq!(cells.len(), 6);
    assert!(cells.values().all(|cell| cell["leak"] == false), "{matrix}");
    assert_eq!(client.get("/policy/fail-matrix").await.data()[0]["leak_possible"], false);

    let item = format!("/routing/policies/{}", policy["id"].as_str().expect("an id"));
    let mut open = client.get(&item).await.data();
    open["fail_policy"] = json!("fail-open");
    assert_eq!(client.put(&item, open).await.status, 200);
    apply(&client).await;
    assert_eq!(client.get("/policy/leak-matrix").await.data()["rows"][0]["cells"]["down"]["leak"], true);
    let row = client.get("/policy/fail-matrix").await.data()[0].clone();
    assert_eq!((&row["if_all_fail"], &row["leak_possible"]), (&json!("direct"), &json!(true)), "{row}");
}

#[tokio::test]
async fn the_leak_matrix_shows_single_hops_and_stored_policies() {
    let (client, _, policy) = testbed().await;
    apply(&client).await;
    let usual = client.get("/policy/leak-matrix").await.data();
    assert_eq!(usual["hops"], json!([]));
    let per_hop = client.get("/policy/leak-matrix?per_hop=true").await.data();
    let hop = &per_hop["hops"][0];
    let state = format!("{} down", hop["target"].as_str().expect("a tunnel"));
    assert_eq!((&hop["type"], &hop["state"]), (&json!("vpn"), &json!(state)), "{per_hop}");
    assert_eq!(per_hop["states"][6], json!(state));
    assert_eq!(per_hop["rows"][0]["cells"][&state]["outcome"], "blocked", "{per_hop}");

    // Nothing is pending yet.
    assert_eq!(client.get("/policy/leak-matrix?pending=true").await.data(), usual);
    let item = format!("/routing/policies/{}", policy["id"].as_str().expect("an id"));
    let mut open = client.get(&item).await.data();
    open["fail_policy"] = json!("fail-open");
    assert_eq!(client.put(&item, open).await.status, 200);
    assert_eq!(client.get("/policy/leak-matrix").await.data(), usual);
    let pending = client.get("/policy/leak-matrix?pending=true&per_hop=true").await.data();
    assert_eq!(pending["rows"][0]["cells"][&state]["outcome"], "direct", "{pending}");
    assert_eq!(client.get("/policy/leak-matrix?per_hop=true").await.data(), per_hop);
    assert_eq!(client.get("/policy/leak-matrix?per_hop=2").await.status, 400);
}

#[tokio::test]
async fn paths_of_devices_agree_with_the_dry_run_and_are_paged() {
    let (client, device, policy) = testbed().await;
    for n in 2..=5 {
        client.create("/devices", examples::device(n)).await;
    }
    apply(&client).await;
    let answer = client.get("/policy/paths").await;
    let list = answer.data();
    let list = list.as_array().expect("a list");
    assert_eq!((list.len(), answer.header("x-total-count")), (5, "5"));
    for path in list {
        let question = json!({"device_id": path["device_id"]});
        let evaluation = client.post("/policy/evaluate", question).await.data();
        assert_eq!(path["decision"], evaluation["decision"], "{path}");
        assert_eq!(path["sentence"], evaluation["sentence"], "{path}");
        assert_eq!(path["policy"], evaluation["effective"]["policy"], "{path}");
    }
    let own = client.get(&format!("/policy/paths?policy={}", policy["id"].as_str().expect("an id"))).await;
    assert_eq!(
        (own.data()[0]["device_id"].clone(), own.data().as_array().map(Vec::len)),
        (device["id"].clone(), Some(1))
    );
    assert_eq!(own.data()[0]["treatment"], "blocked", "{}", own.text);
    assert_eq!(client.get("/policy/paths?policy=none").await.header("x-total-count"), "4");

    // Page by page.
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("/policy/paths?limit=2{after}")).await.data();
        let page = page.as_array().expect("a list").clone();
        let Some(last) = page.last() else { break };
        after = format!("&after={}", last["device_id"].as_str().expect("an id"));
        seen.extend(page);
    }
    assert_eq!(&seen, list);
    for wrong in ["limit=0", "decision=x", "treatment=x", "policy=x", "group=x", "after=x", "color=x"] {
        client.get(&format!("/policy/paths?{wrong}")).await.error(400, "invalid_parameter");
    }

    let graph = client.get("/policy/paths/graph").await;
    let (data, etag) = (graph.data(), graph.header("etag").to_owned());
    // Without a kernel no host is observed, and records do not count.
    assert_eq!((&data["devices"], &data["counts"]["blocked"]), (&json!(0), &json!(0)), "{data}");
    assert_eq!(data["counts"]["records_silent"], 5, "{data}");
    let shown = &data["policies"][0];
    assert_eq!((&shown["id"], &shown["devices"]), (&policy["id"], &json!(0)), "{shown}");
    assert_eq!((&shown["decision"], &shown["when_down"]), (&json!("block"), &json!("block")), "{shown}");
    assert_eq!((&shown["packets"], &shown["status"]), (&json!(null), &json!("error")), "nothing is enforced");
    assert_eq!((&data["hops"][0]["target"], &data["hops"][0]["usable"]), (&json!("exit-1"), &json!(false)));
    assert_eq!(data["hops"][0]["policies"], json!([policy["id"]]));
    assert_eq!(data["unmatched"]["devices"], 0, "{data}");
    let again = client.send("GET", "/policy/paths/graph", None, &[("if-none-match", &etag)]).await;
    assert_eq!(again.status, 304, "{}", again.text);
}

#[tokio::test]
async fn histories_are_shown_on_request() {
    let client = Client::new();
    client.create("/tunnels", examples::tunnel(1)).await;
    assert!(client.get("/dns/status").await.data()["history"].is_null());
    assert_eq!(client.get("/dns/status?history=true").await.data()["history"], json!([]));
    assert!(client.get("/system/wan-health").await.data()[0]["history"].is_null());
    let health = client.get("/system/wan-health?history=true&minutes=5").await.data();
    assert_eq!(health[0]["history"], json!({"spans": [], "minutes": []}), "{health}");
    let tunnels = client.get("/tunnels/history").await.data();
    assert_eq!((&tunnels[0]["name"], &tunnels[0]["minutes"]), (&json!("exit-1"), &json!([])), "{tunnels}");
    client.get("/tunnels/history?minutes=0").await.error(400, "invalid_parameter");
    client.get("/dns/status?history=maybe").await.error(400, "invalid_parameter");
    let manager = client.get("/system/wan-manager").await.data();
    assert_eq!(manager["kernel"]["new_connections"], json!([]), "{manager}");
    assert_eq!((&manager["kernel"]["agrees"], &manager["kernel"]["read_at"]), (&json!(null), &json!(null)));
}

#[tokio::test]
async fn filters_of_the_dns_log_are_checked() {
    let client = Client::new();
    let device = client.create("/devices", examples::device(1)).await;
    let mac = device["mac"].as_str().expect("a MAC address");
    for query in [
        "type=AAAA",
        "cached=true",
        "slower_than=50",
        "upstream=9.9",
        "egress=auto",
        "not_domain==example.com&not_status=blocked&not_type=A&not_client=192.0.2.1",
        "since=2026-11-20T12:00:00Z",
    ] {
        assert_eq!(client.get(&format!("/dns/log?{query}&client={mac}")).await.data(), json!([]), "{query}");
    }
    for query in [
        "type=$",
        "cached=x",
        "slower_than=x",
        "list=x",
        "since=x",
        "until=x",
        "client=x",
        "not_status=x",
        "not_client=x",
    ] {
        client.get(&format!("/dns/log?{query}")).await.error(400, "invalid_parameter");
    }
}

#[tokio::test]
async fn the_plan_is_shown_and_changes_its_hash_with_its_content() {
    let (client, _, policy) = testbed().await;
    let empty = client.get("/render").await.data();
    assert_eq!((&empty["backend"], &empty["generation"]), (&json!("ebpf"), &json!(0)));
    assert_eq!(client.get("/render").await.data()["hash"], empty["hash"]);
    apply(&client).await;
    let full = client.get("/render").await.data();
    assert_ne!(full["hash"], empty["hash"]);
    assert!(full["maps"].to_string().contains("02:00:00:00:01:01"), "{full}");
    let enforced = client.get("/enforce").await.data();
    assert!(enforced.to_string().contains(policy["id"].as_str().expect("an id")), "{enforced}");
}

#[tokio::test]
async fn without_a_kernel_the_observer_and_reconcile_say_so() {
    let client = Client::new();
    let answer = client.send("POST", "/enforce/reconcile", None, &[]).await;
    assert_eq!((answer.status, &answer.data()["enforced"]), (200, &json!(false)));
    let observed = client.get("/observer").await.data();
    assert!(observed.to_string().contains("disabled"), "{observed}");
    let status = client.get("/status").await.data();
    assert_eq!((&status["ready"], &status["dataplane"]), (&json!(false), &json!("detached")));
    assert_eq!(status["snapshot_age_sec"], Value::Null);
    assert_eq!(client.get("/drift").await.data(), json!([]));
}

#[tokio::test]
async fn tunnels_of_applied_policies_are_listed_with_their_state() {
    let (client, _, policy) = testbed().await;
    assert_eq!(client.get("/tunnels/egress").await.data(), json!([]));
    apply(&client).await;
    let egress = client.get("/tunnels/egress").await.data();
    assert_eq!(
        (&egress[0]["policy_id"], &egress[0]["tunnel"]),
        (&policy["id"], &json!("exit-1")),
        "{egress}"
    );
    assert_eq!(egress[0]["active"], false);
}

#[tokio::test]
async fn events_tell_of_each_commit() {
    let client = Client::new();
    let request =
        Request::get("/api/v1/events").header("host", "localhost").body(Body::empty()).expect("request");
    let response = gateway_api::dispatch::answer(client.api.clone(), request, None).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body();
    let mut next = async || {
        let frame =
            tokio::time::timeout(Duration::from_secs(10), body.frame()).await.expect("an event in time");
        let data = frame.expect("no end").expect("no error").into_data().expect("data");
        String::from_utf8(data.to_vec()).expect("UTF-8")
    };
    assert!(next().await.starts_with("event: revision\n"));
    let device = client.create("/devices", examples::device(1)).await;
    assert_eq!(next().await, format!("event: revision\ndata: {{\"revision\":{}}}\n\n", device["revision"]));
}

#[tokio::test]
async fn events_tell_what_is_worth_an_alert_while_it_lasts() {
    let client = Client::new();
    let Gateway::Open(open) = &client.api.gateway else { panic!("it is open") };
    let kind = AlertKind::DnsUpstreamDown;
    open.active_alerts.raise(kind, "192.0.2.1 by auto", "no answer in time".into());
    open.alerts.process();
    let request =
        Request::get("/api/v1/events").header("host", "localhost").body(Body::empty()).expect("request");
    let mut body = gateway_api::dispatch::answer(client.api.clone(), request, None).await.into_body();
    let mut next = async || {
        let frame =
            tokio::time::timeout(Duration::from_secs(10), body.frame()).await.expect("an event in time");
        let data = frame.expect("no end").expect("no error").into_data().expect("data");
        String::from_utf8(data.to_vec()).expect("UTF-8")
    };
    let alert = |text: String| -> Value {
        let data = text.split("event: alert\ndata: ").nth(1).unwrap_or_else(|| panic!("no alert: {text}"));
        serde_json::from_str(data.trim()).expect("JSON")
    };
    let raised = alert(next().await);
    assert_eq!(
        (&raised["kind"], &raised["subject"], &raised["message"], &raised["active"], &raised["status"]),
        (
            &json!("dns_upstream_down"),
            &json!("192.0.2.1 by auto"),
            &json!("no answer in time"),
            &json!(true),
            &json!("active")
        )
    );
    open.active_alerts.clear(kind, "192.0.2.1 by auto");
    open.alerts.process();
    let ended = alert(next().await);
    assert_eq!(
        (&ended["id"], &ended["since"], &ended["active"], &ended["status"]),
        (&raised["id"], &raised["since"], &json!(false), &json!("resolved"))
    );
    for number in 0..1000 {
        open.active_alerts.raise(AlertKind::RogueDhcp, &number.to_string(), String::new());
    }
    // A subscriber that fell behind receives all open alerts.
    open.alerts.process();
    assert_eq!(next().await.matches("event: alert").count(), 1000);
}

#[tokio::test]
async fn prometheus_reads_the_figures_of_the_other_rows() {
    let (client, _, policy) = testbed().await;
    apply(&client).await;
    let scrape = || async {
        let request = Request::get("/metrics").header("host", "localhost").body(Body::empty());
        client.raw(request.expect("request")).await
    };
    let answer = scrape().await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(answer.header("content-type").starts_with("application/openmetrics-text"));
    let status = client.get("/status").await.data();
    let has =
        |line: String| assert!(answer.text.lines().any(|have| have == line), "{line}:\n{}", answer.text);
    has(format!("gateway_applied_revision {}", status["applied_revision"]));
    has("gateway_objects{type=\"routing_policy\"} 1".to_owned());
    let labels = format!("id={},name={}", policy["id"], policy["name"]);
    has(format!("gateway_policy_packets_total{{{labels}}} 0"));
    has(format!("gateway_policy_status{{{labels},status=\"error\"}} 1"));
    has("# EOF".to_owned());
    // Names come from users: they cannot end a label or begin a sample.
    let mut hostile = examples::policy(2);
    hostile["name"] = json!("x\"} 1\ngateway_forged 1");
    let created = client.send("POST", "/routing/policies", Some(hostile), &[]).await;
    assert!(matches!(created.status, 201 | 422), "{}", created.text);
    assert!(!scrape().await.text.lines().any(|line| line.starts_with("gateway_forged")));
}
