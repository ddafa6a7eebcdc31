//! Tests for every kind of target.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::backup::log::Log;
use crate::backup::relay::{Relay, Silent};
use crate::backup::testbed::{PASSPHRASE, Testbed, empty};

/// Returns the names in a folder of the server, including drafts.
pub(super) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        // The object store keeps metadata beside the objects.
        .filter(|name| name.starts_with("gateway-") || !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

/// Returns the names that count as a backup.
pub(super) fn backups(folder: &Path) -> Vec<String> {
    names(folder).into_iter().filter(|name| name.starts_with("gateway-") && name.ends_with(".age")).collect()
}

/// Checks that a backup is stored, counts, and can be imported by another gateway. Only the configured number is kept,
/// and a restart loses no state.
pub(super) async fn comes_and_goes(target: &Value, folder: &Path) {
    let testbed = Testbed::new().await;
    testbed.configure(target, json!({"retain": 2})).await;
    fs::write(folder.join("mine.txt"), "x").expect("a file of somebody else");
    let first = testbed.backup().await;
    assert_eq!(backups(folder), std::slice::from_ref(&first));
    assert_eq!(empty().import(&folder.join(&first)).await, 200, "the backup is taken in elsewhere");
    let second = testbed.backup().await;
    let testbed = testbed.restart();
    let history = testbed.get("/backup/status").await["history"].clone();
    assert_eq!((&history[0]["name"], &history[1]["name"]), (&json!(second), &json!(first)));
    let third = testbed.backup().await;
    assert_eq!(backups(folder), [second, third]);
    assert!(folder.join("mine.txt").exists());
    let status = testbed.get("/backup/status").await;
    assert_eq!(
        (&status["target"]["reachable"], &status["target"]["backups"]),
        (&json!(true), &json!(2)),
        "{status}"
    );
    // Also by the schedule.
    testbed.clock.advance(std::time::Duration::from_secs(24 * 3600));
    testbed.open().backup.tick().await;
    let status = testbed.get("/backup/status").await;
    assert_eq!(
        (&status["history"][0]["trigger"], &status["last_result"]),
        (&json!("schedule"), &json!("ok"))
    );
}

/// Checks a run that fails: its message, and that no file counts as a backup.
pub(super) async fn fails(testbed: &Testbed, target: &Value, folder: &Path) -> String {
    let before = backups(folder);
    testbed.configure(target, json!({})).await;
    let message = testbed.run().await.error(502, "upstream_failed");
    assert_eq!(backups(folder), before);
    let status = testbed.get("/backup/status").await;
    assert_eq!((&status["last_result"], &status["target"]["reachable"]), (&json!("failed"), &json!(false)));
    assert!(status["history"][0]["error"].is_string() && status["next_run"].is_string(), "{status}");
    message
}

/// Breaks the connection during the upload. There is no partial backup, and the next run cleans up.
pub(super) async fn breaks(
    target: &Value,
    by: impl Fn(std::net::SocketAddr) -> Value,
    at: std::net::SocketAddr,
    folder: &Path,
) {
    let testbed = Testbed::new().await;
    let relay = Relay::start(at, 100_000).await;
    testbed.configure(&by(relay.address), json!({})).await;
    let answer = testbed.run().await;
    assert!(matches!(answer.status, 502 | 504), "{}", answer.body);
    assert!(relay.is_broken(), "the way lasted: {}", answer.body);
    assert_eq!(backups(folder), Vec::<String>::new());
    testbed.configure(target, json!({})).await;
    let made = testbed.backup().await;
    assert_eq!(names(folder), std::slice::from_ref(&made), "nothing is left of the upload that broke");
    assert_eq!(empty().import(&folder.join(made)).await, 200);
}

/// Checks an unresponsive server: the run ends in time, and meanwhile the API answers.
pub(super) async fn hangs(by: impl Fn(std::net::SocketAddr) -> Value) {
    let testbed = Testbed::new().await;
    let silent = Silent::start().await;
    testbed.configure(&by(silent.address), json!({})).await;
    let begun = std::time::Instant::now();
    let running = testbed.run();
    let asking = async {
        let mut seen = false;
        for _ in 0..20 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            let asked = std::time::Instant::now();
            seen |= testbed.get("/backup/status").await["running_since"].is_string();
            assert!(asked.elapsed() < std::time::Duration::from_secs(3), "the API waits for the backup");
        }
        let busy = testbed.send("POST", "/backup/run", None).await;
        busy.error(409, "invalid_state");
        assert!(seen, "the status shows that a backup is being made");
    };
    let (answer, ()) = tokio::join!(running, asking);
    let message = answer.error(504, "upstream_timeout");
    assert!(message.contains("did not answer within"), "{message}");
    assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{:?}", begun.elapsed());
    let status = testbed.get("/backup/status").await;
    assert_eq!((&status["running_since"], &status["last_result"]), (&Value::Null, &json!("failed")));
}

/// Checks that neither the log, nor a status, nor the audit log, nor the configuration contains a secret.
pub(super) async fn tells_no_secret(target: &Value, wrong: &Value, secrets: &[&str]) {
    let log = Log::start();
    let testbed = Testbed::new().await;
    testbed.configure(target, json!({})).await;
    testbed.backup().await;
    testbed.configure(wrong, json!({})).await;
    let refused = testbed.run().await;
    assert!(refused.status >= 500, "{}", refused.body);
    let mut texts = vec![("the answer", refused.body.to_string())];
    for path in ["/backup/status", "/backup/config", "/audit?limit=100", "/settings", "/observer", "/secrets"]
    {
        texts.push((path, testbed.get(path).await.to_string()));
    }
    let logged = log.text();
    assert!(logged.contains("backup made") && logged.contains("backup failed"), "nothing was logged");
    texts.push(("the log", logged));
    for secret in secrets.iter().chain(&[PASSPHRASE]) {
        for (what, text) in &texts {
            assert!(!text.contains(secret), "{secret:?} is in {what}");
        }
    }
}
