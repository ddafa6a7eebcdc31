//! Refused values, and times of the schedule.

use serde_json::{Value, json};

use super::*;
use crate::edit::EditError;
use crate::settings::group::GroupKind;

const HOST_KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl server";

fn put(input: Value) -> Result<Vec<String>, Vec<(String, &'static str)>> {
    let mut draft = State::default().begin("2026-11-21T12:00:00Z".parse().unwrap());
    match GroupKind::find("backup.config").unwrap().put(&mut draft, input) {
        Ok(warnings) => Ok(warnings.into_iter().map(|warning| warning.path).collect()),
        Err(EditError::Invalid(found)) => Err(found.iter().map(|p| (p.path.clone(), p.code)).collect()),
        Err(error) => panic!("{error}"),
    }
}

fn good() -> Value {
    json!({"enabled": true, "target": {"path": "/backup"}, "passphrase": "correct horse"})
}

/// The problem of a configuration with one key exchanged.
fn wrong(mut base: Value, key: &str, value: Value) -> (String, &'static str) {
    let (parent, leaf) = key.rsplit_once('.').map_or((None, key), |(parent, leaf)| (Some(parent), leaf));
    match parent {
        Some(parent) => base[parent][leaf] = value,
        None => base[leaf] = value,
    }
    let problems = put(base.clone()).expect_err(&base.to_string());
    assert_eq!(problems.len(), 1, "{base}: {problems:?}");
    problems.into_iter().next().unwrap()
}

#[test]
fn invalid_targets_are_refused_with_their_path() {
    assert_eq!(put(good()), Ok(Vec::new()));
    let wrong = |key: &str, value: Value| wrong(good(), key, value);
    for schedule in ["61 * * * *", "daily, please", "* * * *", "0 0 3 * * *", "0 3 30 2 *", ""] {
        assert_eq!(wrong("schedule", json!(schedule)), ("schedule".to_owned(), code::FORMAT), "{schedule}");
    }
    assert_eq!(wrong("schedule", json!("*".repeat(300))), ("schedule".to_owned(), code::FORMAT));
    assert_eq!(wrong("retain", json!(0)), ("retain".to_owned(), code::RANGE));
    assert_eq!(wrong("retain", json!(1001)), ("retain".to_owned(), code::RANGE));
    assert_eq!(wrong("passphrase", json!("short")), ("passphrase".to_owned(), code::RANGE));
    assert_eq!(wrong("passphrase", Value::Null), ("passphrase".to_owned(), code::REQUIRED));
    assert_eq!(wrong("include", json!(["leases"])), ("include[0]".to_owned(), code::NOT_SUPPORTED));
    assert_eq!(
        wrong("include", json!(["config", "history"])),
        ("include[1]".to_owned(), code::NOT_SUPPORTED)
    );
    assert_eq!(wrong("include", json!([])), ("include".to_owned(), code::REQUIRED));
    assert_eq!(wrong("target", json!({})), ("target.path".to_owned(), code::REQUIRED));
    for path in ["backup", "/a/../b", "/a\nb"] {
        assert_eq!(wrong("target.path", json!(path)), ("target.path".to_owned(), code::FORMAT), "{path}");
    }
}

#[test]
fn a_disabled_backup_may_be_incomplete() {
    assert_eq!(put(json!({})), Ok(Vec::new()));
    assert_eq!(put(json!({"target": {"path": "/backup"}})), Ok(Vec::new()));
    assert!(BackupConfig::default().missing().is_some());
}

#[test]
fn a_server_with_ssh_needs_its_key() {
    let mut base = good();
    base["target"] = json!({"type": "sftp", "url": "sftp://nas.example:2222", "username": "gw", "secret": "x",
        "path": "backups", "host_key": HOST_KEY});
    assert_eq!(put(base.clone()), Ok(Vec::new()));
    let wrong = |key: &str, value: Value| wrong(base.clone(), &format!("target.{key}"), value);
    assert_eq!(wrong("host_key", json!("")), ("target.host_key".to_owned(), code::REQUIRED));
    for key in [
        "ssh-ed25519 AAAA",
        "SHA256:abc",
        "ecdsa-sha2-nistp256 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl",
    ] {
        assert_eq!(wrong("host_key", json!(key)), ("target.host_key".to_owned(), code::FORMAT), "{key}");
    }
    assert_eq!(wrong("host_key", json!("ssh-rsa AAAA")), ("target.host_key".to_owned(), code::NOT_SUPPORTED));
    for url in
        ["https://nas.example", "sftp://gw@nas.example", "sftp://nas.example/srv", "nas.example", "sftp:"]
    {
        assert_eq!(wrong("url", json!(url)), ("target.url".to_owned(), code::FORMAT), "{url}");
    }
    assert_eq!(wrong("secret", Value::Null), ("target.secret".to_owned(), code::REQUIRED));
    assert_eq!(wrong("private_key", json!("AAAA")), ("target.private_key".to_owned(), code::FORMAT));
    let config: BackupConfig = serde_json::from_value(base).unwrap();
    assert_eq!(config.target.ssh_server(), Some(("nas.example".to_owned(), 2222)));
    assert_eq!(config.target.label(), "sftp://nas.example:2222/backups");
}

#[test]
fn both_forms_of_a_host_key_are_the_same() {
    // As ssh-keygen -l shows the key above.
    let fingerprint = "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU";
    assert_eq!(host_key_fingerprint(HOST_KEY), host_key_fingerprint(fingerprint));
    assert!(host_key_fingerprint(HOST_KEY).is_some());
}

#[test]
fn a_server_with_http_has_an_address_without_a_password() {
    let mut base = good();
    base["target"] =
        json!({"type": "webdav", "url": "https://dav.example/files/", "username": "gw", "secret": "x"});
    assert_eq!(put(base.clone()), Ok(Vec::new()));
    let wrong = |key: &str, value: Value| wrong(base.clone(), &format!("target.{key}"), value);
    for url in ["https://gw:x@dav.example/", "sftp://dav.example", "https://dav.example/?a=b", "dav.example"]
    {
        assert_eq!(wrong("url", json!(url)), ("target.url".to_owned(), code::FORMAT), "{url}");
    }
    assert_eq!(wrong("username", json!("")), ("target.username".to_owned(), code::REQUIRED));
    assert_eq!(wrong("ca_certificate", json!("x")), ("target.ca_certificate".to_owned(), code::FORMAT));
    base["target"]["url"] = json!("http://dav.example/");
    base["target"]["region"] = json!("eu");
    assert_eq!(put(base.clone()), Ok(vec!["target.url".to_owned(), "target.region".to_owned()]));
    base["target"]["url"] = json!("http://127.0.0.1:8081/");
    base["target"]["region"] = json!("");
    assert_eq!(put(base), Ok(Vec::new()));
}

#[test]
fn an_object_store_has_a_bucket_and_a_key() {
    let mut base = good();
    base["target"] = json!({"type": "s3", "url": "https://s3.example", "username": "AKIA", "secret": "x",
        "path": "bucket/gateways/home"});
    assert_eq!(put(base.clone()), Ok(Vec::new()));
    let wrong = |key: &str, value: Value| wrong(base.clone(), &format!("target.{key}"), value);
    assert_eq!(wrong("secret", Value::Null), ("target.secret".to_owned(), code::REQUIRED));
    assert_eq!(wrong("username", json!("")), ("target.username".to_owned(), code::REQUIRED));
    assert_eq!(wrong("path", json!("")), ("target.path".to_owned(), code::REQUIRED));
    assert_eq!(wrong("path", json!("a bucket")), ("target.path".to_owned(), code::FORMAT));
    assert_eq!(wrong("region", json!("eu west")), ("target.region".to_owned(), code::FORMAT));
    let config: BackupConfig = serde_json::from_value(base).unwrap();
    assert_eq!(config.target.bucket(), ("bucket", "gateways/home"));
}

#[test]
fn the_schedule_is_by_the_clocks_of_the_zone() {
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    let config = BackupConfig::default();
    assert_eq!(
        config.next_after(at("2026-11-21T02:59:59Z"), &TimeZone::UTC),
        Some(at("2026-11-21T03:00:00Z"))
    );
    assert_eq!(
        config.next_after(at("2026-11-21T03:00:00Z"), &TimeZone::UTC),
        Some(at("2026-11-22T03:00:00Z"))
    );
    let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
    assert_eq!(config.next_after(at("2026-07-01T00:00:00Z"), &berlin), Some(at("2026-07-01T01:00:00Z")));
    assert_eq!(config.next_after(at("2026-12-01T00:00:00Z"), &berlin), Some(at("2026-12-01T02:00:00Z")));
    // On the last Sunday of March there is no half past two; of October there are two, and one counts.
    let early = BackupConfig { schedule: "30 2 * * *".into(), ..BackupConfig::default() };
    let missing = early.next_after(at("2026-03-28T12:00:00Z"), &berlin).unwrap();
    assert_eq!(missing, at("2026-03-29T01:00:00Z"));
    let first = early.next_after(at("2026-10-24T12:00:00Z"), &berlin).unwrap();
    assert_eq!(first, at("2026-10-25T00:30:00Z"));
    assert_eq!(early.next_after(first, &berlin), Some(at("2026-10-26T01:30:00Z")));
}
