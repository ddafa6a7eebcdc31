//! Kea as the delegating router of a provider (RFC 8415).

use std::fs;
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use tempfile::TempDir;

use crate::netns::Namespace;
use crate::process::Process;
use crate::wait::wait_for;

const START: Duration = Duration::from_secs(20);

/// Running server. Dropping it ends it; it forgets its leases.
#[derive(Debug)]
pub struct DelegatingRouter {
    _process: Process,
    folder: TempDir,
}

impl DelegatingRouter {
    /// Starts a server that delegates prefixes of 56 bits out of this one of 40 bits, by an interface. Routes lead to the
    /// client at this address.
    pub fn start(
        namespace: &Namespace,
        interface: &str,
        pool: Ipv6Addr,
        client: Ipv6Addr,
        lifetimes_sec: (u32, u32),
    ) -> Result<DelegatingRouter> {
        let folder = tempfile::tempdir()?;
        let subnet = json!({
            "subnet": "2001:db8:113::/64",
            "interface": interface,
            "pd-pools": [{"prefix": pool, "prefix-len": 40, "delegated-len": 56}],
        });
        let log = json!({
            "name": "kea-dhcp6",
            "severity": "DEBUG",
            "debuglevel": 50,
            "output_options": [{"output": log_path(&folder), "flush": true}],
        });
        let (preferred, valid) = lifetimes_sec;
        let configuration = json!({"Dhcp6": {
            "interfaces-config": {"interfaces": [interface]},
            "lease-database": {"type": "memfile", "persist": false},
            "server-id": {"type": "LL", "persist": false},
            "preferred-lifetime": preferred,
            "valid-lifetime": valid,
            "subnet6": [subnet],
            "loggers": [log],
        }});
        let path = folder.path().join("kea.json");
        fs::write(&path, configuration.to_string())?;
        let mut command = namespace.command("kea-dhcp6");
        command.arg("-c").arg(&path);
        for variable in ["KEA_LOCKFILE_DIR", "KEA_PIDFILE_DIR"] {
            command.env(variable, folder.path());
        }
        let process = namespace.spawn(command)?;
        let router = DelegatingRouter { _process: process, folder };
        wait_for(START, "kea to start", || router.log().contains("DHCP6_STARTED"))
            .with_context(|| router.log())?;
        namespace.ip(&format!("route replace {pool}/40 via {client}"))?;
        Ok(router)
    }

    /// Returns the log of the server.
    pub fn log(&self) -> String {
        fs::read_to_string(log_path(&self.folder)).unwrap_or_default()
    }
}

fn log_path(folder: &TempDir) -> PathBuf {
    folder.path().join("kea.log")
}
