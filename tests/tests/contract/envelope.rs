//! Every response has the envelope, including all errors.

use axum::body::Body;
use gateway_api::context::{Cx, Settings};
use gateway_api::endpoints;
use gateway_api::error::ApiError;
use gateway_api::request::Req;
use gateway_api::table::{Availability, Endpoint, Method};
use http::Request;
use serde_json::json;

use crate::contract::client::Client;
use crate::contract::examples;

/// Returns the path of an endpoint with unknown objects for its placeholders.
fn concrete(endpoint: &Endpoint) -> String {
    endpoint
        .full_path()
        .split('/')
        .map(|part| if part.starts_with('{') { "00000000-0000-4000-8000-000000000000" } else { part })
        .collect::<Vec<_>>()
        .join("/")
}

fn request(method: &str, uri: &str) -> http::request::Builder {
    Request::builder().method(method).uri(uri).header("host", "localhost")
}

#[tokio::test]
async fn every_row_answers_in_the_envelope() {
    let client = Client::new();
    for endpoint in client.api.table.endpoints() {
        let name = format!("{} {}", endpoint.method.as_str(), endpoint.full_path());
        if endpoint.output.media() == Some("text/event-stream") || endpoint.path == "/flows/stream" {
            continue; // Goes on for ever; each has a test of its own.
        }
        let answer = client
            .raw(request(endpoint.method.as_str(), &concrete(endpoint)).body(Body::empty()).expect("request"))
            .await;
        assert!(!answer.header("x-request-id").is_empty(), "{name}");
        if let Some(needs) = endpoint.needs() {
            assert_eq!(answer.error(501, "not_supported")["needs"], needs, "{name}");
        } else if let Some(media) = endpoint.output.media()
            && !endpoint.input.is_required()
            && !endpoint.path.contains('{')
        {
            assert_eq!(answer.status, 200, "{name}");
            assert_eq!(answer.header("content-type"), media, "{name}");
        } else if answer.status < 300 {
            assert_eq!(answer.header("content-type"), "application/json", "{name}");
            answer.data();
        } else {
            let body = answer.json();
            let code = body["error"]["code"].as_str().unwrap_or_else(|| panic!("{name}: {body}")).to_owned();
            answer.error(answer.status, &code);
            // The host may have no Bluetooth adapter and no device-mapper.
            let of_host = ["/bluetooth/", "/storage/encrypted/"];
            let may_be_missing = of_host.iter().any(|path| endpoint.path.starts_with(path));
            assert!(answer.status < 500 || may_be_missing && answer.status == 501, "{name}: {body}");
        }
    }
}

#[tokio::test]
async fn head_is_answered_as_get_without_a_body_and_options_names_the_methods() {
    let client = Client::new();
    let get = client.get("/version").await;
    let head = client.send("HEAD", "/version", None, &[]).await;
    assert_eq!((head.status, head.text.as_str()), (200, ""));
    assert_eq!(head.header("content-length"), get.text.len().to_string());
    let options = client.send("OPTIONS", "/devices", None, &[]).await;
    assert_eq!((options.status, options.header("allow")), (204, "GET, HEAD, POST, OPTIONS"));
}

#[tokio::test]
async fn an_unknown_path_and_a_wrong_method_are_distinguished() {
    let client = Client::new();
    client.get("/no/such/thing").await.error(404, "route_not_found");
    client
        .raw(request("GET", "/nothing").body(Body::empty()).expect("request"))
        .await
        .error(404, "route_not_found");
    let answer = client.send("PATCH", "/devices", None, &[]).await;
    answer.error(405, "method_not_allowed");
    assert_eq!(answer.header("allow"), "GET, HEAD, POST, OPTIONS");
    client.delete("/devices").await.error(405, "method_not_allowed");
    client.get("/devices/nothing").await.error(404, "not_found");
}

#[tokio::test]
async fn broken_json_is_reported_with_its_position() {
    let client = Client::new();
    let send = |text: &'static str| {
        let request = request("POST", "/api/v1/devices").header("content-type", "application/json");
        client.raw(request.body(Body::from(text)).expect("request"))
    };
    let details = send("{\n  \"name\": ,\n}").await.error(400, "bad_request");
    assert_eq!((&details["line"], &details["column"]), (&json!(2), &json!(11)));
    send("[]").await.error(400, "bad_request");
    send("\"name\"").await.error(400, "bad_request");
    send("").await.error(400, "bad_request");
}

#[tokio::test]
async fn a_body_must_be_json_and_of_bounded_size() {
    let settings = Settings { body_limit: 1000, ..Settings::default() };
    let client = Client::with(endpoints::table(), settings);
    for media in ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x"] {
        let request = request("POST", "/api/v1/devices").header("content-type", media);
        client
            .raw(request.body(Body::from("{}")).expect("request"))
            .await
            .error(415, "unsupported_media_type");
    }
    let upload = request("POST", "/api/v1/tunnels/upload-ovpn")
        .header("content-type", "multipart/form-data; boundary=b");
    let form = format!(
        "--b\r\nContent-Disposition: form-data; name=\"config\"\r\n\r\n{}\r\n--b--\r\n",
        " ".repeat(1000)
    );
    let answer = client.raw(upload.body(Body::from(form)).expect("request")).await;
    assert_eq!(answer.error(413, "payload_too_large")["limit_bytes"], 1000);
    let request = request("POST", "/api/v1/devices").header("content-type", "application/json");
    let answer = client.raw(request.body(Body::from(" ".repeat(1001))).expect("request")).await;
    assert_eq!(answer.error(413, "payload_too_large")["limit_bytes"], 1000);
}

#[tokio::test]
async fn a_bodyless_post_as_curl_sends_it_passes() {
    let client = Client::new();
    let request = request("POST", "/api/v1/policy/conflicts").header("content-length", "0");
    let answer = client.raw(request.body(Body::empty()).expect("request")).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
}

#[tokio::test]
async fn foreign_hosts_and_foreign_pages_are_refused() {
    let client = Client::new();
    client
        .send("GET", "/version", None, &[("host", "gateway.lan:8080")])
        .await
        .error(403, "origin_not_allowed");
    let set = client.put("/settings/listen.host_names", json!({"value": ["gateway.lan"]})).await;
    assert_eq!(set.data()["pending_restart"], false, "{}", set.text);
    client.send("GET", "/health", None, &[("host", "evil.example")]).await.error(403, "origin_not_allowed");
    assert_eq!(client.send("GET", "/version", None, &[("host", "gateway.lan:8080")]).await.status, 200);
    let body = || Some(examples::device(1));
    let send = |headers: &'static [(&str, &str)]| client.send("POST", "/devices", body(), headers);
    send(&[("origin", "http://evil.example")]).await.error(403, "origin_not_allowed");
    send(&[("origin", "null")]).await.error(403, "origin_not_allowed");
    send(&[("sec-fetch-site", "cross-site")]).await.error(403, "origin_not_allowed");
    assert_eq!(client.get("/devices").await.data(), json!([]));
    assert_eq!(
        send(&[("origin", "http://127.0.0.1:8080"), ("sec-fetch-site", "same-origin")]).await.status,
        201
    );
}

#[tokio::test]
async fn a_request_id_is_taken_over_if_harmless_and_else_made() {
    let client = Client::new();
    let id = |given: &'static str| async {
        let answer = client.send("GET", "/version", None, &[("x-request-id", given)]).await;
        answer.header("x-request-id").to_owned()
    };
    assert_eq!(id("abc-1.2_3").await, "abc-1.2_3");
    for bad in ["a b", "<script>", &"x".repeat(65)] {
        assert_eq!(id(bad.to_owned().leak()).await.len(), 36, "{bad}");
    }
}

#[tokio::test]
async fn a_panic_ends_one_request_and_nothing_else() {
    let mut table = endpoints::table();
    table.area("test", |t| {
        t.view("/test/panic", "panic", panics).summary("Panics");
    });
    let client = Client::with(table, Settings::default());
    // The panic's message in the error output of the test is expected.
    client.get("/test/panic").await.error(500, "internal");
    assert_eq!(client.get("/version").await.status, 200);
}

async fn panics(_: Cx, _: Req<()>) -> Result<String, ApiError> {
    panic!("on purpose")
}

#[tokio::test]
async fn unknown_query_parameters_are_refused() {
    let client = Client::new();
    let details = client.get("/audit?limt=5").await.error(400, "invalid_parameter");
    assert_eq!(details["parameter"], "limt");
    assert!(
        details["allowed"].as_array().is_some_and(|allowed| allowed.contains(&json!("limit"))),
        "{details}"
    );
    for bad in ["limit=0", "limit=-1", "limit=ten", "limit=1.5", "before=yesterday"] {
        client.get(&format!("/audit?{bad}")).await.error(400, "invalid_parameter");
    }
    client.get("/devices?colour=red").await.error(400, "invalid_parameter");
    client.get("/devices?name=%ff").await.error(400, "invalid_parameter");
}

#[tokio::test]
async fn without_a_usable_store_only_the_rows_that_need_none_answer() {
    let client = Client::blocked("the store is of a newer version");
    assert_eq!(client.get("/health").await.data()["status"], "blocked");
    let answer = client.get("/devices").await;
    let details = answer.error(503, "not_ready");
    assert_eq!(details["state"], "blocked");
    assert!(answer.text.contains("the store is of a newer version"), "{}", answer.text);
    assert!(!answer.header("retry-after").is_empty());
    client.post("/devices", examples::device(1)).await.error(503, "not_ready");
    for endpoint in
        client.api.table.endpoints().iter().filter(|endpoint| {
            endpoint.availability == Availability::Always && endpoint.method == Method::Get
        })
    {
        let answer =
            client.raw(request("GET", &concrete(endpoint)).body(Body::empty()).expect("request")).await;
        let expected = if endpoint.path.contains('{') { 404 } else { 200 };
        assert_eq!(answer.status, expected, "{}", endpoint.full_path());
    }
}
