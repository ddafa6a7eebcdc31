//! The Debian package of the daemon, packed from the programs under test by the code of `cargo xtask dist`: its daemon with
//! the dashboard, and what dpkg and its scripts do on a machine with systemd.

mod machine;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};
use gateway_tests::daemon::find_program;
use gateway_tests::testbed::Testbed;
use tempfile::TempDir;

use machine::Machine;

const URL: &str = "http://127.0.0.1:8080";

fn dashboard() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ui/dist")
}

/// Packs the programs of a folder into another one.
fn pack(programs: &Path, into: &Path) -> Result<PathBuf> {
    let xtask = find_program()?.with_file_name("xtask");
    ensure!(xtask.is_file(), "no {}: run `cargo build --workspace --bins`", xtask.display());
    let mut command = Command::new(xtask);
    command.args(["dist", "--programs"]).arg(programs).arg("--into").arg(into);
    let output = command.output().context("xtask")?;
    ensure!(output.status.success(), "xtask dist: {}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout)?;
    Ok(PathBuf::from(printed.trim()))
}

/// Returns the package, which all tests share.
fn package() -> &'static Path {
    static PACKAGE: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, package) = PACKAGE.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let programs = find_program().expect("programs");
        let package = pack(programs.parent().expect("a folder"), folder.path()).expect("packed");
        (folder, package)
    });
    package
}

fn dpkg_deb(arguments: &[&str], package: &Path) -> String {
    let output = Command::new("dpkg-deb").args(arguments).arg(package).output().expect("dpkg-deb");
    assert!(output.status.success(), "dpkg-deb {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn daemon_of_the_package_serves_the_dashboard() {
    let folder = tempfile::tempdir().expect("a folder");
    let unpack = ["--extract", &package().display().to_string()].map(str::to_owned);
    let status = Command::new("dpkg-deb").args(unpack).arg(folder.path()).status().expect("dpkg-deb");
    assert!(status.success());
    let program = folder.path().join("usr/sbin/gatewayd");

    // The example is valid as it is installed.
    let mut check = Command::new(&program);
    let check = check.arg("--config").arg(folder.path().join("etc/gatewayd/config.yaml")).arg("check-config");
    let check = check.output().expect("gatewayd");
    assert!(check.status.success(), "{check:?}");

    let mut testbed = Testbed::prepare().expect("testbed");
    testbed.daemon.use_program(program);
    testbed.daemon.start().expect("started");
    let gateway = &testbed.network.gateway;
    let page = gateway.run("curl", &["-sf", "-H", "Accept: text/html", &format!("{URL}/")]).expect("curl");
    assert_eq!(page, fs::read_to_string(dashboard().join("index.html")).expect("built"));
    let script = page.split('"').find(|word| word.starts_with("/assets/") && word.ends_with(".js"));
    let script = script.expect("a script in the page");
    let content = gateway.run("curl", &["-sf", &format!("{URL}{script}")]).expect("curl");
    assert_eq!(content, fs::read_to_string(dashboard().join(&script[1..])).expect("built"));

    let client = folder.path().join("usr/bin/gateway-ctl").display().to_string();
    let status = gateway.run(&client, &["status"]).expect("gateway-ctl");
    assert!(status.contains("\"version\""), "{status}");
}

#[test]
fn package_names_its_files_and_what_they_need() {
    let field = |name: &str| {
        let output = Command::new("dpkg-deb").arg("--field").arg(package()).arg(name).output();
        String::from_utf8(output.expect("dpkg-deb").stdout).expect("text").trim().to_owned()
    };
    let depends = field("Depends");
    for name in ["libc6 (>= ", "nftables", "procps"] {
        assert!(depends.contains(name), "{name} is not in {depends}");
    }
    let file = format!("gatewayd_{}_{}.deb", field("Version"), field("Architecture"));
    assert_eq!(package().file_name().expect("a name").to_str(), Some(file.as_str()));
    let listed = dpkg_deb(&["--contents"], package());
    for file in [
        "-rwxr-xr-x root/root ./usr/sbin/gatewayd",
        "-rwxr-xr-x root/root ./usr/bin/gateway-ctl",
        "-rw-r----- root/root ./etc/gatewayd/config.yaml",
        "-rw-r--r-- root/root ./usr/lib/systemd/system/gatewayd.service",
        "-rw-r--r-- root/root ./usr/lib/systemd/system/gatewayd-guard.service",
        "-rw-r--r-- root/root ./usr/share/gatewayd/grafana/gatewayd.json",
        "-rw-r--r-- root/root ./usr/share/gatewayd/prometheus/gatewayd.rules.yml",
        "-rw-r--r-- root/root ./usr/share/bash-completion/completions/gateway-ctl",
        "-rw-r--r-- root/root ./usr/share/zsh/vendor-completions/_gateway-ctl",
        "-rw-r--r-- root/root ./usr/share/fish/vendor_completions.d/gateway-ctl.fish",
        "-rw-r--r-- root/root ./usr/share/man/man1/gateway-ctl.1.gz",
        "-rw-r--r-- root/root ./usr/share/man/man5/gateway.yaml.5.gz",
        "-rw-r--r-- root/root ./usr/share/man/man8/gatewayd.8.gz",
        "-rw-r--r-- root/root ./usr/share/doc/gatewayd/copyright",
        "-rw-r--r-- root/root ./usr/share/doc/gatewayd/third-party.txt.gz",
    ] {
        let (mode_and_owner, path) = file.rsplit_once(' ').expect("a path");
        let is_listed = |line: &str| line.starts_with(mode_and_owner) && line.ends_with(path);
        assert!(listed.lines().any(is_listed), "{file} is not in\n{listed}");
    }
}

#[test]
fn daemon_without_the_dashboard_is_not_packed() {
    let folder = tempfile::tempdir().expect("a folder");
    let client = find_program().expect("programs").with_file_name("gateway-ctl");
    for name in ["gatewayd", "gateway-ctl"] {
        fs::copy(&client, folder.path().join(name)).expect("copied");
    }
    let error = pack(folder.path(), folder.path()).expect_err("refused").to_string();
    assert!(error.contains("does not contain") && error.contains("ui/dist/index.html"), "{error}");
    let entries = fs::read_dir(folder.path()).expect("entries").map(|entry| entry.expect("a file").path());
    assert!(!entries.into_iter().any(|path| path.extension().is_some_and(|extension| extension == "deb")));
}

#[test]
fn installation_starts_nothing() {
    let machine = Machine::start().expect("machine");
    machine.install(package()).expect("installed");
    let calls = machine.calls();
    assert_eq!(calls, ["--system daemon-reload"], "systemctl");
    assert!(machine.links().is_empty(), "{:?}", machine.links());
    for path in ["etc/gatewayd/initialised", "var/lib/gatewayd", "run/gatewayd"] {
        assert!(!machine.has(path), "{path}");
    }
    assert!(machine.has("etc/gatewayd/config.yaml"));
}

#[test]
fn upgrade_restarts_a_running_daemon_without_a_stop() {
    let machine = Machine::start().expect("machine");
    machine.install(package()).expect("installed");
    machine.forget_calls();
    machine.install(package()).expect("upgraded");
    let stopped = ["--system daemon-reload", "--quiet is-active gatewayd.service"];
    assert_eq!(machine.calls(), stopped, "a daemon that does not run is not started");

    machine.set_running(true);
    machine.forget_calls();
    machine.install(package()).expect("upgraded");
    let running = [&stopped[..], &["try-restart gatewayd.service"]].concat();
    assert_eq!(machine.calls(), running);

    machine.append("etc/gatewayd/config.yaml", "unknown_key: 1\n");
    machine.forget_calls();
    let shown = machine.install(package()).expect("upgraded");
    assert_eq!(machine.calls(), stopped, "a daemon that the new version cannot replace continues to run");
    assert!(shown.contains("unknown_key") && shown.contains("continues to run"), "{shown}");
}

#[test]
fn removal_keeps_the_store_and_a_purge_removes_it() {
    let machine = Machine::start().expect("machine");
    machine.install(package()).expect("installed");
    machine.append("etc/gatewayd/initialised", "");
    machine.append("var/lib/gatewayd/store", "data");
    machine.link("gatewayd.service");
    machine.set_running(true);
    machine.forget_calls();
    machine.run(&["dpkg", "--remove", "gatewayd"]).expect("removed");
    assert_eq!(machine.calls(), ["stop gatewayd.service gatewayd-guard.service", "--system daemon-reload"]);
    assert!(!machine.has("usr/sbin/gatewayd"));
    for path in ["etc/gatewayd/config.yaml", "etc/gatewayd/initialised", "var/lib/gatewayd/store"] {
        assert!(machine.has(path), "{path}");
    }
    machine.run(&["dpkg", "--purge", "gatewayd"]).expect("purged");
    for path in ["etc/gatewayd", "var/lib/gatewayd"] {
        assert!(!machine.has(path), "{path}");
    }
    assert!(machine.links().is_empty(), "{:?}", machine.links());
}
