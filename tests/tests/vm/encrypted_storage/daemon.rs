//! The daemon with its records in the encrypted storage.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gateway_tests::daemon::Api;
use gateway_tests::dns::{A, Client, Upstream};
use gateway_tests::name_server;
use gateway_tests::testbed::Testbed;
use gateway_tests::topology::LAN_V4;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

/// Timeout for an emulated machine, which is slow.
const SLOW: Duration = Duration::from_secs(90);
pub(super) const PASSPHRASE: &str = "correct horse battery";

pub(super) fn status(api: &Api) -> Value {
    api.get("/storage/encrypted").expect("the state")
}

pub(super) fn wait_for_state(api: &Api, state: &str) {
    wait_ok(SLOW, &format!("the storage to be {state}"), || {
        let status = api.get("/storage/encrypted")?;
        anyhow::ensure!(status["state"] == state, "{status}");
        Ok(())
    })
    .expect("the state");
}

fn has_record(api: &Api, name: &str) -> bool {
    api.get("/dns/log?limit=500").expect("the log").to_string().contains(name)
}

fn wait_for_record(api: &Api, name: &str) {
    wait_ok(SLOW, &format!("the record of {name}"), || {
        anyhow::ensure!(has_record(api, name), "none");
        Ok(())
    })
    .expect("the query log");
}

fn ask(testbed: &Testbed, name: &str) {
    let client = Client::of(&testbed.network.laptop, LAN_V4.into()).expect("a client");
    let mut client = client.with_timeout(Duration::from_secs(10)).expect("a client");
    wait_ok(SLOW, "an answer", || client.ask(name, A).map(drop)).expect("an answer");
    wait_for_record(testbed.api(), name);
}

/// Returns the files that have the text, without the container and what is in the mounted storage.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "encrypted") {
            found.extend(files_with(&path, text));
        } else if path.is_file() && path.extension().is_none_or(|extension| extension != "luks") {
            let bytes = fs::read(&path).expect("a file");
            if bytes.windows(text.len()).any(|part| part == text.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

pub(super) fn unlock(api: &Api, passphrase: &str) -> u16 {
    let body = json!({"passphrase": passphrase});
    api.send("POST", "/storage/encrypted/unlock", Some(&body)).expect("an answer").status
}

pub(super) fn set_up(testbed: &Testbed) {
    let api = testbed.api();
    let short = json!({"size_mb": 64, "passphrase": "short"});
    assert_eq!(api.send("POST", "/storage/encrypted/setup", Some(&short)).expect("an answer").status, 422);
    let large = json!({"size_mb": 1 << 20, "passphrase": PASSPHRASE});
    assert_eq!(api.send("POST", "/storage/encrypted/setup", Some(&large)).expect("an answer").status, 507);
    let request = json!({"size_mb": 64, "passphrase": PASSPHRASE});
    let begun = api.send("POST", "/storage/encrypted/setup", Some(&request)).expect("an answer");
    assert_eq!(begun.status, 202, "{begun:?}");
    wait_for_state(api, "mounted");
    let status = status(api);
    assert_eq!(status["set_up"]["phase"], "done", "{status}");
    assert_eq!(
        (&status["cipher"], &status["size"]),
        (&json!("aes-xts-plain64"), &json!(64 << 20)),
        "{status}"
    );
    assert_eq!(status["keyslots"][0]["kdf"], "argon2id", "{status}");
    let again = api.send("POST", "/storage/encrypted/setup", Some(&request)).expect("an answer");
    assert_eq!(again.status, 409, "{again:?}");
    assert_eq!(api.send("POST", "/storage/encrypted/teardown", None).expect("an answer").status, 409);
}

#[test]
#[ignore = "runs inside the guest"]
fn records_live_in_the_storage_and_wait_for_its_passphrase() {
    let mut testbed = Testbed::prepare().expect("a scene");
    let _upstream = Upstream::start(&testbed.network.internet).expect("an upstream");
    let servers = json!({"dns": {"upstream_servers": [name_server::ADDRESS]}});
    testbed.daemon.configure(&servers).expect("the configuration");
    testbed.daemon.start().expect("the daemon");
    let state = testbed.daemon.state_directory();
    assert_eq!(status(testbed.api())["supported"], true, "{}", status(testbed.api()));

    ask(&testbed, "alicebefore.example");
    set_up(&testbed);
    let inside =
        ["hosts.json", "anomalies.json", "dhcp/leases"].map(|path| state.join("encrypted").join(path));
    wait_for_files(&inside);
    for path in ["hosts.json", "anomalies.json", "dhcp/leases"] {
        assert!(!state.join(path).exists(), "{path} is beside the storage");
    }
    wait_for_record(testbed.api(), "alicebefore.example");
    ask(&testbed, "aliceinside.example");
    // A lock writes what is in memory only.
    testbed.api().act("/storage/encrypted/lock").expect("locked");
    assert!(!has_record(testbed.api(), "aliceinside.example"), "a locked storage shows nothing");
    assert_eq!(unlock(testbed.api(), PASSPHRASE), 200);
    wait_for_record(testbed.api(), "aliceinside.example");
    for name in ["alicebefore", "aliceinside"] {
        assert_eq!(files_with(&state, name), Vec::<String>::new(), "{name}");
    }

    testbed.daemon.kill9().expect("killed");
    testbed.daemon.start().expect("the daemon");
    wait_for_state(testbed.api(), "locked");
    assert_eq!(testbed.api().get("/anomalies/stats").expect("stats")["waits_for"], "encrypted_storage");
    assert!(!has_record(testbed.api(), "alicebefore.example"));
    ask(&testbed, "alicewaiting.example");
    assert_eq!(unlock(testbed.api(), "not the passphrase"), 422);
    assert_eq!(unlock(testbed.api(), PASSPHRASE), 200);
    for name in ["alicebefore.example", "aliceinside.example", "alicewaiting.example"] {
        wait_for_record(testbed.api(), name);
    }

    backups(&testbed, &state);
    keys(&testbed);
    testbed.daemon.terminate().expect("ended");
    assert_eq!(fs::read_dir("/dev/mapper").expect("device-mapper").count(), 1, "the control device only");
    testbed.daemon.start().expect("the daemon");
    wait_for_state(testbed.api(), "mounted");
    wait_for_record(testbed.api(), "alicewaiting.example");

    destroyed(&testbed, &state);
    println!("measured one set-up, one kill and one wipe of encrypted storage");
}

fn wait_for_files(paths: &[PathBuf]) {
    wait_ok(SLOW, "the files in the storage", || {
        let missing: Vec<&PathBuf> = paths.iter().filter(|path| !path.exists()).collect();
        anyhow::ensure!(missing.is_empty(), "{missing:?}");
        Ok(())
    })
    .expect("files");
}

/// Backups can live in the storage, and wait for it.
fn backups(testbed: &Testbed, state: &Path) {
    let api = testbed.api();
    let config = |folder: PathBuf| {
        let target = json!({"type": "local", "path": folder});
        json!({"enabled": true, "passphrase": "a passphrase of backups", "target": target})
    };
    let beside = config(state.join("backups"));
    assert_eq!(api.send("PUT", "/backup/config", Some(&beside)).expect("an answer").status, 422);
    let folder = state.join("encrypted/backups");
    api.put("/backup/config", &config(folder.clone())).expect("configured");
    api.act("/backup/run").expect("a backup");
    let files = || fs::read_dir(&folder).into_iter().flatten().count();
    assert_eq!(files(), 1);
    api.act("/storage/encrypted/lock").expect("locked");
    let refused = api.send("POST", "/backup/run", None).expect("an answer");
    assert_eq!(refused.status, 409, "{refused:?}");
    assert_eq!(api.get("/backup/status").expect("the status")["waits_for"], "encrypted_storage");
    assert_eq!(unlock(api, PASSPHRASE), 200);
    assert_eq!(files(), 1);
}

/// A key among the secrets opens the storage at the start; the new passphrase replaces the one of before.
fn keys(testbed: &Testbed) {
    let api = testbed.api();
    let change = json!({"passphrase": PASSPHRASE, "new_passphrase": "another horse battery"});
    api.put("/storage/encrypted/passphrase", &change).expect("changed");
    let earlier = json!({"passphrase": PASSPHRASE});
    let refused = api.send("PUT", "/storage/encrypted/stored-key", Some(&earlier)).expect("an answer");
    assert_eq!(refused.status, 422, "{refused:?}");
    let passphrase = json!({"passphrase": "another horse battery"});
    let stored = api.put("/storage/encrypted/stored-key", &passphrase).expect("stored");
    assert_eq!(stored["keyslots"].as_array().map(Vec::len), Some(2), "{stored}");
    let removed = api.delete("/storage/encrypted/stored-key").expect("removed");
    assert_eq!(removed["keyslots"].as_array().map(Vec::len), Some(1), "{removed}");
    let stored = api.put("/storage/encrypted/stored-key", &passphrase).expect("stored");
    assert_eq!(stored["has_stored_key"], true, "{stored}");
}

/// A wipe cannot erase single records of a locked storage, so it takes the header: nothing opens it any more.
fn destroyed(testbed: &Testbed, state: &Path) {
    let api = testbed.api();
    api.act("/storage/encrypted/lock").expect("locked");
    api.post("/system/wipe", &json!({"level": "soft"})).expect("wiped");
    wait_for_state(api, "erased");
    assert_eq!(unlock(api, "another horse battery"), 409);
    let header = fs::read(state.join("encrypted.luks")).expect("the container");
    assert!(header[..16 << 20].iter().all(|byte| *byte == 0));
    let torn = api.act("/storage/encrypted/teardown").expect("torn down");
    assert_eq!(torn["state"], "absent", "{torn}");
    assert!(!state.join("encrypted.luks").exists());
}
