//! The network with the daemon in it, and the objects of the tests, created through the REST API.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::daemon::{Api, Daemon};
use crate::tap::Tap;
use crate::topology::{Host, Topology};
use crate::wait::wait_ok;
use crate::wireguard::Exit;

/// Timeout of the first handshake of a tunnel.
const HANDSHAKE: Duration = Duration::from_secs(20);

/// A network with its daemon.
#[derive(Debug)]
pub struct Testbed {
    // Field order is drop order: the daemon first, then its network.
    pub daemon: Daemon,
    pub network: Topology,
}

impl Testbed {
    /// Returns a running daemon in a new network.
    pub fn start() -> Result<Self> {
        let mut testbed = Self::prepare()?;
        testbed.daemon.start()?;
        Ok(testbed)
    }

    /// Returns a daemon that is configured but not started.
    pub fn prepare() -> Result<Self> {
        let network = Topology::build()?;
        let daemon = Daemon::prepare(&network)?;
        Ok(Self { daemon, network })
    }

    /// Returns a running daemon with two uplinks, and the tap on the second.
    pub fn start_with_two_uplinks() -> Result<(Self, Tap)> {
        let mut testbed = Self::prepare()?;
        let tap = testbed.network.add_uplink()?;
        let wans = json!([{"name": "one", "interface": "eth0"}, {"name": "two", "interface": "eth2"}]);
        testbed.daemon.configure(&json!({"network": {"wans": wans}}))?;
        testbed.daemon.start()?;
        Ok((testbed, tap))
    }

    pub fn api(&self) -> &Api {
        self.daemon.api()
    }

    /// Creates a device record of a host and returns its id.
    pub fn device(&self, host: &Host) -> Result<String> {
        create(self.api(), "/devices", &json!({"name": host.name, "mac": host.mac}))
    }

    /// Creates the tunnel to an exit and brings it up. Returns its id when the tunnel is healthy.
    pub fn tunnel(&self, name: &str, exit: &Exit) -> Result<String> {
        let id = create(self.api(), "/tunnels", &exit.tunnel(name))?;
        self.bring_up(&id)?;
        Ok(id)
    }

    pub fn bring_up(&self, tunnel: &str) -> Result<()> {
        self.api().act(&format!("/tunnels/{tunnel}/up"))?;
        wait_ok(HANDSHAKE, "the tunnel to be up and healthy", || {
            let object = self.api().get(&format!("/tunnels/{tunnel}"))?;
            let well = object["status"] == "up" && object["healthy"] == true;
            ensure!(well, "status {}, healthy {}", object["status"], object["healthy"]);
            Ok(())
        })
    }

    pub fn bring_down(&self, tunnel: &str) -> Result<Value> {
        self.api().act(&format!("/tunnels/{tunnel}/down"))
    }

    /// Returns the network interface of a tunnel.
    pub fn interface(&self, tunnel: &str) -> Result<String> {
        let object = self.api().get(&format!("/tunnels/{tunnel}"))?;
        object["interface"].as_str().map(str::to_owned).with_context(|| format!("no interface in {object}"))
    }

    /// Creates a proxy record. Returns its id when a probe had the expected result (`up`, `down`).
    pub fn proxy(&self, object: &Value, status: &str) -> Result<String> {
        let id = create(self.api(), "/proxies", object)?;
        self.wait_for_proxy(&id, status)?;
        Ok(id)
    }

    pub fn wait_for_proxy(&self, id: &str, status: &str) -> Result<()> {
        wait_ok(HANDSHAKE, &format!("the proxy to be {status}"), || {
            let object = self.api().get(&format!("/proxies/{id}"))?;
            ensure!(object["status"] == status, "status {}: {}", object["status"], object["last_error"]);
            Ok(())
        })
    }

    /// Returns the openvpn processes of this daemon, including those of an earlier instance.
    pub fn openvpn_processes(&self) -> Vec<i32> {
        let folder = self.daemon.state_directory().with_file_name("run").join("openvpn");
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let ours = |pid: &i32| {
            std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|at| at.starts_with(&folder))
                && std::fs::read_to_string(format!("/proc/{pid}/comm"))
                    .is_ok_and(|name| name.trim() == "openvpn")
        };
        pids.filter(ours).collect()
    }

    /// Stores a policy and returns its id. The policy has no effect until it is applied.
    pub fn store_policy(&self, policy: &Value) -> Result<String> {
        create(self.api(), "/routing/policies", policy)
    }

    /// Stores a policy, applies everything and returns the id of the policy.
    pub fn policy(&self, policy: &Value) -> Result<String> {
        let id = self.store_policy(policy)?;
        self.apply()?;
        Ok(id)
    }

    /// Replaces a policy and applies everything.
    pub fn replace_policy(&self, id: &str, policy: &Value) -> Result<()> {
        self.api().put(&format!("/routing/policies/{id}"), policy)?;
        self.apply().map(drop)
    }

    pub fn apply(&self) -> Result<Value> {
        self.api().act("/routing/policies/apply")
    }

    /// Returns the evaluation of a device.
    pub fn evaluate(&self, device: &str) -> Result<Value> {
        self.api().post("/policy/evaluate", &json!({"device_id": device}))
    }
}

/// Returns a fail-closed policy with VPN hops. The caller changes other fields as needed.
pub fn policy(name: &str, priority: u32, source: (&str, &str), tunnels: &[&str]) -> Value {
    let hops: Vec<_> = tunnels.iter().map(|tunnel| json!({"type": "vpn", "target": tunnel})).collect();
    json!({
        "name": name,
        "priority": priority,
        "enabled": true,
        "source_type": source.0,
        "source_value": source.1,
        "hops": hops,
        "splitting": false,
        "fail_policy": "fail-closed",
    })
}

/// Creates an object and returns its id.
pub fn create(api: &Api, collection: &str, object: &Value) -> Result<String> {
    let made = api.post(collection, object)?;
    made["id"].as_str().map(str::to_owned).with_context(|| format!("POST {collection}: no id in {made}"))
}
