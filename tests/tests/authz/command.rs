//! `gatewayd user`: with the daemon stopped, and through its socket while it holds the store.

use std::path::Path;

use gateway_api::context::{Api, Settings};
use gateway_api::gateway::Gateway;
use gateway_api::serve::{self, Limits};
use gateway_api::user_command::{Command, run_with};
use gateway_api::{config, endpoints, initialise};
use gateway_ctl::clock::SystemClock;
use gateway_ctl::store::Store;
use gateway_model::settings::bootstrap::{Bootstrap, parse};
use gateway_model::{Role, Secret};

use crate::authz::testbed::PASSWORD;

fn configuration(folder: &Path) -> Bootstrap {
    let at = folder.display();
    // Names of a bpf file system have no dots; nothing is pinned there.
    let text = format!(
        "state_dir: {at}/state\nruntime_dir: {at}/run\nmarker: {at}/initialised\n\
         bpf: {{ pin_dir: /sys/fs/bpf/nothing-of-authz }}\n"
    );
    parse(&text).expect("a configuration")
}

async fn user(config: &Bootstrap, command: Command) -> Result<String, String> {
    run_with(config, command, Secret::new(PASSWORD)).await.map_err(|error| error.to_string())
}

fn add(name: &str, role: Role) -> Command {
    Command::Add { username: name.into(), role }
}

/// Adds, lists and deletes users. The result does not depend on the owner of the store.
async fn exercise(config: &Bootstrap) {
    let anna = user(config, add("anna", Role::Admin)).await.expect("added");
    let bert = user(config, add("bert", Role::Viewer)).await.expect("added");
    let clash = user(config, add("Anna", Role::Viewer)).await.expect_err("there already");
    assert!(clash.contains("username"), "{clash}");
    let list = user(config, Command::List).await.expect("listed");
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines[0], "ID\tUSERNAME\tROLE\tENABLED\tLAST_LOGIN");
    assert_eq!(lines[1], format!("{}\tanna\tadmin\ttrue\t-", anna.trim()));
    assert_eq!(lines[2], format!("{}\tbert\tviewer\ttrue\t-", bert.trim()));
    let del = |id: &str| Command::Del { id: id.trim().to_owned() };
    assert_eq!(user(config, del(&bert)).await.expect("deleted"), bert);
    let missing = user(config, del(&bert)).await.expect_err("gone");
    assert!(missing.contains("There is no user"), "{missing}");
    assert!(user(config, del("nonsense/../x")).await.is_err());
    let last = user(config, del(&anna)).await.expect_err("the last one");
    assert!(last.contains("last administrator"), "{last}");
    let weak =
        run_with(config, add("cleo", Role::Viewer), Secret::new("short")).await.expect_err("too short");
    assert!(weak.to_string().contains("at least 12"), "{weak}");
}

#[tokio::test]
async fn with_the_daemon_stopped_the_store_is_opened() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = configuration(folder.path());
    let refused = user(&config, Command::List).await.expect_err("never initialised");
    assert!(refused.contains("gatewayd init"), "{refused}");
    initialise::run(&config, false).expect("initialised");
    exercise(&config).await;
    let store = Store::open(config::store_path(&config), SystemClock::shared()).expect("not left locked");
    assert_eq!(store.current().users.len(), 1);
    assert!(store.verify_audit().expect("checked").intact);
}

#[test]
fn verifying_the_audit_trail_says_that_the_daemon_is_running() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("config.yaml");
    let text = format!(
        "state_dir: {0}\nruntime_dir: {0}/run\nnetwork: {{ wan_iface: wan0, lan_iface: lan0 }}\n",
        folder.path().display()
    );
    std::fs::write(&file, &text).expect("written");
    let config = parse(&text).expect("a configuration");
    let verify = || {
        let mut command =
            std::process::Command::new(gateway_tests::daemon::find_program().expect("gatewayd"));
        let output = command.arg("--config").arg(&file).args(["audit", "verify"]).output().expect("runs");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let store = Store::open(config::store_path(&config), SystemClock::shared()).expect("a store");
    let (verified, text) = verify();
    assert!(!verified && text.contains("systemctl stop gatewayd"), "{text}");
    drop(store);
    assert!(verify().0);
}

#[tokio::test]
async fn the_first_user_does_not_cost_the_first_tunnels() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = configuration(folder.path());
    let text = "tunnels:\n  - name: home\n    type: wireguard\n    private_key: QAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEE=\n    \
        addresses: [10.64.0.2/32]\n    peers:\n      - public_key: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE=\n        \
        endpoint: 192.0.2.1:51820\n        allowed_ips: [0.0.0.0/0]\n";
    config.tunnels = parse(text).expect("a configuration").tunnels;
    initialise::run(&config, false).expect("initialised");
    user(&config, add("anna", Role::Admin)).await.expect("added");
    let store = Store::open(config::store_path(&config), SystemClock::shared()).expect("a store");
    assert_eq!((store.current().users.len(), store.current().tunnels.len()), (1, 1));
}

#[tokio::test]
async fn while_the_daemon_holds_the_store_commands_use_its_socket() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = configuration(folder.path());
    let gateway = Gateway::detached(&config.state_dir).expect("a store");
    let silent = user(&config, Command::List).await.expect_err("nobody listens");
    assert!(silent.contains("does not answer"), "{silent}");
    let mut settings = Settings::default();
    settings.auth.enabled = true;
    let api = Api::new(endpoints::table(), gateway, settings).expect("an API");
    let socket = config::socket_path(&config);
    std::fs::create_dir_all(socket.parent().expect("a folder")).expect("the folder");
    let listener = tokio::net::UnixListener::bind(&socket).expect("the socket");
    let (_stop, stopping) = tokio::sync::watch::channel(false);
    let server = serve::unix(listener, api.clone(), Limits::default(), stopping);
    exercise(&config).await;
    let store = &api.open().expect("open").store;
    assert_eq!(store.current().users.len(), 1);
    let (entries, _) = store.audit(50, None, &Default::default()).expect("read");
    assert!(entries.iter().all(|entry| entry.actor == "system"), "{entries:?}");
    assert!(entries.iter().any(|entry| entry.action == "delete_user"));
    server.abort();
}
