//! A measured server in its network: the gateway or Kea, and a relay on its LAN.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use gateway_tests::cores;
use gateway_tests::daemon::Daemon;
use gateway_tests::dhcp::{DISCOVER, Relay};
use gateway_tests::netns::{Namespace, Prefix};
use gateway_tests::process::Process;
use gateway_tests::wait::wait_for;
use serde_json::json;
use tempfile::TempDir;

use super::perfdhcp;
use crate::dns::first_on;
use crate::topology::connect;

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const RELAY: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
/// The relay of perfdhcp.
const OTHER_RELAY: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 3);
const RANGE: [&str; 2] = ["10.1.0.0", "10.8.255.255"];
const LEASE_SEC: u32 = 43_200;
/// Timeout of a message of the load.
const TIMEOUT: Duration = Duration::from_millis(200);
const START: Duration = Duration::from_secs(30);
/// Client that waits for the start. It is none of the load.
const FIRST_CLIENT: [u8; 6] = [2, 7, 0, 0, 0, 1];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Make {
    Ours,
    Kea,
}

impl Make {
    pub(super) fn name(self) -> &'static str {
        match self {
            Make::Ours => "ours",
            Make::Kea => "kea, memfile",
        }
    }
}

#[derive(Debug)]
pub(super) struct Server {
    pub make: Make,
    pub relay: Relay,
    pid: u32,
    // Field order is drop order: processes end first, then files, then networks.
    _daemon: Option<Daemon>,
    _process: Option<Process>,
    _folder: TempDir,
    namespaces: [Namespace; 3],
}

impl Server {
    /// Starts a server without leases on a core, and waits until it offers an address.
    pub(super) fn start(make: Make, core: usize) -> Result<Server> {
        let prefix = Prefix::unique()?;
        let [lan, gateway, wan] = ["lan", "gateway", "wan"].map(|label| Namespace::create(&prefix, label));
        let (lan, gateway, wan) = (lan?, gateway?, wan?);
        connect(&lan, &gateway, &wan).context("build the links")?;
        for (namespace, interface, address) in [(&lan, "eth0", RELAY), (&gateway, "eth1", SERVER)] {
            // The network of connect() has too few addresses.
            namespace
                .ip(&format!("address flush dev {interface}\naddress add {address}/8 dev {interface}"))?;
        }
        lan.ip(&format!("address add {OTHER_RELAY}/8 dev eth0"))?;
        let folder = tempfile::Builder::new().prefix("gateway-").tempdir().context("temporary directory")?;
        let (mut daemon, mut process) = (None, None);
        let pid = match make {
            Make::Ours => {
                daemon.insert(ours(&gateway, &prefix, core)?).pid().context("the daemon does not run")?
            }
            Make::Kea => process.insert(kea(&gateway, folder.path(), core)?).pid(),
        };
        let relay = Relay::within(&lan, RELAY, SERVER, TIMEOUT)?;
        let offers = || relay.ask(FIRST_CLIENT, DISCOVER, &[]).is_some();
        wait_for(START, &format!("{} to offer an address", make.name()), offers)
            .with_context(|| fs::read_to_string(folder.path().join("log")).unwrap_or_default())?;
        Ok(Server {
            make,
            relay,
            pid,
            _daemon: daemon,
            _process: process,
            _folder: folder,
            namespaces: [lan, gateway, wan],
        })
    }

    /// Returns the exchanges per second that perfdhcp gets from the server.
    pub(super) fn sustained_by_perfdhcp(&self) -> Result<f64> {
        let [lan, ..] = &self.namespaces;
        perfdhcp::sustained(lan, &OTHER_RELAY.to_string(), &SERVER.to_string())
    }

    /// Returns the processor time that the server has used.
    pub(super) fn processor_time(&self) -> Result<Duration> {
        cores::used_by(self.pid)
    }

    pub(super) fn resident(&self) -> Result<u64> {
        cores::resident(self.pid)
    }
}

fn ours(gateway: &Namespace, prefix: &Prefix, core: usize) -> Result<Daemon> {
    let mut daemon = Daemon::prepare_in(gateway, prefix)?;
    daemon.keep_to(Some(core));
    daemon.start()?;
    let settings = json!({
        "enabled": true, "interface": "eth1", "mask": "255.0.0.0", "range_start": RANGE[0], "range_end": RANGE[1],
        "lease_sec": LEASE_SEC, "ping_check": false,
    });
    daemon.api().put("/dhcp", &settings)?;
    Ok(daemon)
}

/// Starts Kea with the options that the gateway sends by default, and UDP sockets, which are faster than its raw ones.
fn kea(gateway: &Namespace, folder: &Path, core: usize) -> Result<Process> {
    let file = folder.join("kea.json");
    let path = |name: &str| folder.join(name).display().to_string();
    let configuration = json!({"Dhcp4": {
        "interfaces-config": {"interfaces": ["eth1"], "dhcp-socket-type": "udp"},
        "lease-database": {"type": "memfile", "name": path("leases"), "lfc-interval": 0},
        "valid-lifetime": LEASE_SEC,
        "option-data": [
            {"name": "routers", "data": SERVER}, {"name": "domain-name-servers", "data": SERVER},
            {"name": "domain-name", "data": "lan"},
        ],
        "subnet4": [{"subnet": "10.0.0.0/8", "pools": [{"pool": RANGE.join(" - ")}]}],
        "loggers": [{"name": "kea-dhcp4", "severity": "ERROR", "output_options": [{"output": path("log")}]}],
    }});
    fs::write(&file, configuration.to_string()).context("the configuration of kea")?;
    let mut command = first_on(gateway, &core.to_string(), "kea-dhcp4");
    command.env("KEA_PIDFILE_DIR", folder).env("KEA_LOCKFILE_DIR", folder);
    command.arg("-c").arg(&file).stdin(Stdio::null()).stdout(Stdio::null());
    gateway.spawn(command)
}
