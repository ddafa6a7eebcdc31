//! Secrets of objects that a caller may change, but whose secrets he may not read.

use gateway_model::Role;
use serde_json::json;

use crate::authz::testbed::Testbed;

#[tokio::test]
async fn operator_cannot_send_a_stored_password_elsewhere() {
    let testbed = Testbed::new();
    let operator = testbed.session(testbed.user("olga", Role::Operator));
    let proxy =
        json!({"name": "home", "address": "192.0.2.7", "username": "gw", "password": "s3cret-of-proxy"});
    let created = testbed.send(&operator, "POST", "/proxies", Some(proxy)).await;
    assert_eq!((created.status, &created.data()["has_password"]), (201, &json!(true)), "{}", created.body);
    let path = format!("/proxies/{}", created.data()["id"].as_str().expect("an id"));
    let mut shown = testbed.send(&operator, "GET", &path, None).await.data().clone();
    shown["notes"] = json!("same place");
    let kept = testbed.send(&operator, "PUT", &path, Some(shown.clone())).await;
    assert_eq!(kept.data()["has_password"], true, "{}", kept.body);
    shown["address"] = json!("198.51.100.66");
    let moved = testbed.send(&operator, "PUT", &path, Some(shown)).await;
    assert_eq!((moved.status, &moved.data()["has_password"]), (200, &json!(false)), "{}", moved.body);
    let warnings = moved.body["warnings"].to_string();
    assert!(warnings.contains("\"password\"") && warnings.contains("address changed"), "{warnings}");
    assert!(!moved.body.to_string().contains("s3cret"));
}
