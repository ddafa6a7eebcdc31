//! Test of the webhook: targets that are refused, tokens, and formats.

use gateway_tests::webhook_receiver::WebhookReceiver;
use serde_json::json;

use super::testbed::Testbed;

#[test]
fn test_reports_the_answer_and_is_not_repeated() {
    let receiver = WebhookReceiver::on_loopback().expect("a receiver");
    let testbed = Testbed::new();
    let (status, body) = testbed.send("POST", "/alerts/webhook/test", None);
    assert_eq!((status, &body["error"]["code"]), (409, &json!("invalid_state")), "{body}");
    testbed.configure(&receiver.url("/"), json!({"enabled": false, "format": "json"}));
    let result = testbed.test_webhook();
    assert_eq!(
        (&result["delivered"], &result["status"], &result["error"]),
        (&json!(true), &json!(200), &json!(null))
    );
    receiver.answer_next(500);
    let result = testbed.test_webhook();
    assert_eq!((&result["delivered"], &result["status"]), (&json!(false), &json!(500)), "{result}");
    let observed = testbed.observed("alert_deliveries").expect("an entry");
    assert_eq!(observed["state"], "ok", "the webhook is off: {observed}");
    testbed.configure(&receiver.url("/"), json!({"format": "json"}));
    let observed = testbed.observed("alert_deliveries").expect("an entry");
    assert_eq!(observed["state"], "degraded", "{observed}");
    let requests = receiver.requests();
    assert_eq!((requests.len(), &requests[0].json()["type"]), (2, &json!("alert.firing")));
    assert_eq!(requests[0].json()["data"]["kind"], "test");
    let audit = testbed.get("/audit?action=test_alert_webhook");
    assert_eq!(audit.as_array().map(Vec::len), Some(3), "{audit}");
}

#[test]
fn private_addresses_are_refused_unless_they_are_allowed() {
    let receiver = WebhookReceiver::on_loopback().expect("a receiver");
    let testbed = Testbed::new();
    let port = receiver.address.port();
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "169.254.169.254", "10.0.0.1"] {
        testbed.configure(&format!("http://{host}:{port}/"), json!({"allow_private": false}));
        let result = testbed.test_webhook();
        assert!(result["error"].as_str().expect("an error").contains("allow_private"), "{host}: {result}");
    }
    assert_eq!(receiver.requests().len(), 0);
    testbed.configure(&format!("http://localhost:{port}/"), json!({}));
    assert_eq!(testbed.test_webhook()["delivered"], true);
}

#[test]
fn token_goes_to_its_receiver_and_is_never_shown() {
    const TOKEN: &str = "tk_AgQdq7mVBoFD37zQVN29RhuMzNIz2";
    let receiver = WebhookReceiver::on_loopback().expect("a receiver");
    let testbed = Testbed::new();
    testbed.configure(&receiver.url("/{token}/x?key={token}"), json!({"format": "slack", "token": TOKEN}));
    assert_eq!(testbed.test_webhook()["delivered"], true);
    receiver.answer_next(500);
    let failed = testbed.test_webhook();
    testbed.configure(&receiver.url("/topic"), json!({"format": "ntfy", "token": TOKEN}));
    assert_eq!(testbed.test_webhook()["delivered"], true);
    let requests = receiver.requests();
    assert_eq!(requests[0].path, format!("/{TOKEN}/x?key={TOKEN}"));
    assert_eq!(requests[0].header("authorization"), None);
    assert_eq!(requests[2].header("authorization"), Some(&*format!("Bearer {TOKEN}")));
    assert_eq!(
        (requests[2].header("title"), requests[2].header("priority")),
        (Some("Test of the receiver"), Some("3"))
    );
    for shown in [failed, testbed.get("/alerts/webhook"), testbed.get("/audit"), testbed.get("/settings")] {
        assert!(!shown.to_string().contains(TOKEN), "{shown}");
    }
    // For another host it has to be sent again.
    let elsewhere = json!({"enabled": true, "url": "https://other.example/"});
    let (_, body) = testbed.send("PUT", "/alerts/webhook", Some(&elsewhere));
    assert_eq!(body["data"]["has_token"], false, "{body}");
}

/// An omitted secret stays, null clears it: of the webhook by what the receiver gets, of the others by what is shown.
#[test]
fn null_clears_a_stored_secret_and_leaves_the_other() {
    const SECRETS: [&str; 2] = ["secret", "token"];
    let receiver = WebhookReceiver::on_loopback().expect("a receiver");
    let testbed = Testbed::new();
    let url = receiver.url("/");
    let got = || -> [bool; 2] {
        assert_eq!(testbed.test_webhook()["delivered"], true);
        let request = receiver.requests().pop().expect("a request");
        ["webhook-signature", "authorization"].map(|header| request.header(header).is_some())
    };
    let shown = || SECRETS.map(|name| testbed.get("/alerts/webhook")[format!("has_{name}")] == true);
    for (cleared, left) in [("token", [true, false]), ("secret", [false, true])] {
        testbed.configure(&url, json!({"secret": "correct horse battery", "token": "tk_1"}));
        testbed.configure(&url, json!({}));
        assert_eq!((got(), shown()), ([true; 2], [true; 2]));
        testbed.configure(&url, json!({ cleared: null }));
        assert_eq!((got(), shown()), (left, left), "{cleared}");
    }
    let mail = json!({"host": "smtp.example", "username": "anna"});
    let broker = json!({"host": "broker.example", "username": "anna"});
    for (path, mut settings) in [("/alerts/email", mail), ("/alerts/mqtt", broker)] {
        for (password, is_kept) in [(json!("hunter2"), true), (json!(null), false)] {
            settings["password"] = password;
            let (status, body) = testbed.send("PUT", path, Some(&settings));
            assert_eq!((status, &body["data"]["has_password"]), (200, &json!(is_kept)), "{path} {body}");
        }
    }
}
