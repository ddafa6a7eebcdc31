//! The external filter through the API, against a fake of the API of Pi-hole 6.

use std::net::TcpListener;

use gateway_tests::pihole::{PASSWORD, PiHole};
use serde_json::json;

use crate::contract::client::Client;

fn filter(seats: usize) -> PiHole {
    PiHole::start(TcpListener::bind("127.0.0.1:0").expect("a port"), seats).expect("a filter")
}

#[tokio::test]
async fn the_filter_is_configured_used_and_removed_and_its_password_is_never_shown() {
    let (client, filter) = (Client::new(), filter(1));
    let nothing = client.get("/dns/extfilter/status").await.data();
    assert_eq!((&nothing["configured"], &nothing["enabled"]), (&json!(false), &json!(false)));
    client.post("/dns/extfilter/enable", json!({})).await.error(409, "invalid_state");
    let url = format!("http://{}", filter.at);
    let config = json!({"url": url, "resolver": "127.0.0.1:5353", "password": PASSWORD});
    let set = client.put("/dns/extfilter/config", config).await;
    assert_eq!(set.status, 200, "{}", set.text);
    let shown = client.get("/dns/extfilter/config").await.data();
    assert_eq!(shown, json!({"url": url, "resolver": "127.0.0.1:5353", "has_password": true}));
    // The output of a GET is a valid PUT and keeps the password.
    assert_eq!(client.put("/dns/extfilter/config", shown).await.status, 200);

    let status = client.get("/dns/extfilter/status").await.data();
    let mut expected = json!({
        "configured": true, "enabled": false, "reachable": true, "version": "v6.2.3", "url": url,
        "blocking": true, "queries_today": 1234, "blocked_today": 56, "error": null,
    });
    assert_eq!(status, expected);
    let enabled = client.post("/dns/extfilter/enable", json!({})).await;
    expected["enabled"] = json!(true);
    assert_eq!((enabled.status, enabled.data()), (200, expected.clone()), "{}", enabled.text);
    let setting = client.get("/settings/dns.backend").await.data();
    assert_eq!((&setting["value"], &setting["apply"]), (&json!("extfilter"), &json!("live")));
    expected["enabled"] = json!(false);
    assert_eq!(client.post("/dns/extfilter/disable", json!({})).await.data(), expected);
    assert_eq!(client.get("/settings/dns.backend").await.data()["value"], "integrated");
    // All calls share the only session seat.
    assert_eq!((filter.logins(), filter.sessions()), (1, 1));

    let other = json!({"url": url, "resolver": "127.0.0.1:5353", "password": "hunter2hunter2"});
    client.put("/dns/extfilter/config", other).await.data();
    let refused = client.get("/dns/extfilter/status").await.data();
    assert_eq!(refused["error"], "the filter backend does not accept the password");
    assert_eq!((&refused["reachable"], filter.sessions()), (&json!(true), 0), "the seat was given back");
    for place in ["/settings", "/audit", "/secrets", "/dns/extfilter/config", "/dns/extfilter/status"] {
        let text = client.get(place).await.text;
        assert!(!text.contains("correct horse") && !text.contains("hunter2"), "{place}: {text}");
    }
    assert!(client.get("/secrets").await.text.contains("dns.extfilter.password"));
}

#[tokio::test]
async fn one_that_is_gone_is_reported() {
    let client = Client::new();
    let at = filter(1).at;
    let config = json!({"url": format!("http://{at}"), "password": PASSWORD});
    client.put("/dns/extfilter/config", config).await.data();
    let status = client.post("/dns/extfilter/enable", json!({})).await.data();
    assert_eq!((&status["enabled"], &status["reachable"]), (&json!(true), &json!(false)));
    let error = status["error"].as_str().expect("an error");
    assert!(error.starts_with("the filter backend cannot be reached: "), "{error}");
}

#[tokio::test]
async fn an_invalid_filter_address_is_refused() {
    let client = Client::new();
    for (config, path) in [
        (json!({"url": "http://pi.hole"}), "resolver"),
        (json!({"url": "ftp://192.168.1.2"}), "url"),
        (json!({"resolver": "192.168.1.2"}), "url"),
        (json!({"url": "http://192.168.1.2", "resolver": "pi.hole"}), "resolver"),
    ] {
        let answer = client.put("/dns/extfilter/config", config.clone()).await;
        let details = answer.error(422, "validation_failed");
        assert_eq!(details["fields"][0]["path"], path, "{config}");
    }
}
