//! DHCP server: real clients, names, other servers, floods and crashes.

mod clients;
mod crashes;
mod flood;
mod servers;
mod storage;

use std::fs;

use anyhow::{Context, ensure};
use gateway_tests::daemon::Api;
use gateway_tests::process::Process;
use gateway_tests::testbed::Testbed;
use gateway_tests::topology::Host;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::e2e::SOON;

/// Returns the settings of a server for the LAN with these last octets.
pub(crate) fn settings(first: u8, last: u8) -> Value {
    json!({
        "enabled": true, "interface": "eth1", "lease_sec": 600,
        "range_start": format!("192.168.10.{first}"), "range_end": format!("192.168.10.{last}"),
        "options": [{"code": 42, "value": "192.168.10.1"}],
    })
}

/// Starts another server on a host. It ends with the process, before its files.
pub(crate) fn other_server(host: &Host) -> anyhow::Result<(Process, TempDir)> {
    let folder = tempfile::tempdir()?;
    let (conf, file) = (folder.path().join("udhcpd.conf"), folder.path().join("leases"));
    fs::write(&file, "")?;
    let text = format!(
        "start 192.168.10.220\nend 192.168.10.230\ninterface eth0\nlease_file {}\npidfile {}\noption router {}\n",
        file.display(),
        folder.path().join("pid").display(),
        host.v4
    );
    fs::write(&conf, text)?;
    let mut command = host.namespace.command("busybox");
    command.args(["udhcpd", "-f"]).arg(&conf);
    let server = host.namespace.spawn(command)?;
    wait_ok(SOON, "the other server to listen", || {
        let sockets = host.namespace.run("ss", &["-lun"])?;
        ensure!(sockets.contains(":67 "), "{sockets}");
        Ok(())
    })?;
    Ok((server, folder))
}

/// Enables the server. Returns the warnings.
pub(crate) fn enable(testbed: &Testbed, settings: &Value) -> Vec<Value> {
    let reply = testbed.api().send("PUT", "/dhcp", Some(settings)).expect("an answer");
    assert_eq!(reply.status, 200, "{}", reply.body);
    wait_ok(SOON, "the server to serve", || {
        let health = health(testbed.api())?;
        ensure!(health["state"] != "failed", "{health}");
        Ok(())
    })
    .expect("served");
    reply.body["warnings"].as_array().cloned().unwrap_or_default()
}

/// Returns the entry of the server in /observer.
fn health(api: &Api) -> anyhow::Result<Value> {
    let observer = api.get("/observer")?;
    let entries = observer.as_array().context("a list")?;
    let entry = entries.iter().find(|entry| entry["subsystem"] == "dhcp");
    entry.cloned().context("no dhcp in /observer")
}

fn leases(api: &Api, query: &str) -> Vec<Value> {
    let leases = api.get(&format!("/dhcp/leases{query}")).expect("leases");
    leases.as_array().expect("a list").clone()
}

/// Makes a host one without an address.
fn forget_address(host: &Host) {
    host.namespace.ip("address flush dev eth0").expect("flushed");
    host.namespace.ip("link set eth0 up").expect("up");
}

/// Resolves a name, or an address with `-x`, by the gateway.
fn resolve(host: &Host, query: &[&str]) -> String {
    let arguments = [&["+short", "+tries=1", "+timeout=2", "@192.168.10.1"][..], query].concat();
    host.namespace.run("dig", &arguments).unwrap_or_default().trim().to_owned()
}

fn wait_for_name(host: &Host, query: &[&str], expected: &str) {
    wait_ok(SOON, &format!("{query:?} to be {expected}"), || {
        let answer = resolve(host, query);
        ensure!(answer == expected, "{answer:?}");
        Ok(())
    })
    .expect("resolved");
}
