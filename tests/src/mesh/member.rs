//! A gateway as a member of the mesh, in the namespace of a node. Its uplink is the network of the mesh.

use std::fs;
use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{HUB, MeshNetwork, MeshServer};
use crate::daemon::{Api, Daemon};
use crate::netns::{Namespace, Prefix};
use crate::wait::{wait_ok, wait_until};

/// Interface of the mesh.
const INTERFACE: &str = "mesh0";
/// Time to join, or to learn something.
const SOON: Duration = Duration::from_secs(60);

/// A host in the LAN of a gateway.
#[derive(Debug)]
pub struct LanHost {
    pub namespace: Namespace,
    pub mac: String,
}

/// Third number of the addresses in the LAN of a gateway.
fn lan(gateway: usize) -> usize {
    76 + gateway
}

/// A gateway that is a member of the mesh.
#[derive(Debug)]
pub struct MeshGateway {
    // Field order is drop order.
    pub daemon: Daemon,
    name: String,
    _prefix: Prefix,
}

impl MeshGateway {
    /// Starts a gateway in the namespace of the node of this number, from 1 on. It is no member yet.
    pub fn start(network: &MeshNetwork, number: usize) -> Result<Self> {
        let namespace = &network.nodes[number - 1];
        namespace.ip("link add eth1 type veth peer name far1\nlink set far1 up")?;
        Self::start_daemon(namespace, number)
    }

    /// [`MeshGateway::start`], with a host in its LAN.
    pub fn start_with_host(network: &MeshNetwork, number: usize) -> Result<(Self, LanHost)> {
        let namespace = &network.nodes[number - 1];
        let host = Namespace::create(&network.prefix, &format!("host-{number}"))?;
        namespace.ip(&format!("link add eth1 type veth peer name eth0 netns {}", host.name()))?;
        let mac = format!("02:00:00:00:77:{number:02x}");
        host.ip(&format!(
            "link set eth0 address {mac}\nlink set eth0 up\nlink set lo up\naddress add 192.168.{0}.20/24 dev eth0",
            lan(number)
        ))?;
        let gateway = Self::start_daemon(namespace, number)?;
        host.ip(&format!("route add default via 192.168.{}.1", lan(number)))?;
        Ok((gateway, LanHost { namespace: host, mac }))
    }

    fn start_daemon(namespace: &Namespace, number: usize) -> Result<Self> {
        let prefix = Prefix::unique()?;
        namespace.ip(&format!("link set eth1 up\naddress add 192.168.{}.1/24 dev eth1", lan(number)))?;
        let mut daemon = Daemon::prepare_in(namespace, &prefix)?;
        daemon.start()?;
        Ok(Self { daemon, name: format!("gateway-{number}"), _prefix: prefix })
    }

    /// Sets a setting.
    pub fn set(&self, key: &str, value: &Value) -> Result<()> {
        self.api().put(&format!("/settings/{key}"), &json!({"value": value})).map(drop)
    }

    pub fn api(&self) -> &Api {
        self.daemon.api()
    }

    /// Joins the mesh with a pre-auth key, and returns the own address there.
    pub fn join(&self, server: &MeshServer, key: &str) -> Result<IpAddr> {
        let authorities = fs::read_to_string(server.authority()).context("certificate of the coordinator")?;
        let registration = json!({
            "coordinator_url": format!("https://{HUB}:{}", server.port()),
            "auth_key": key,
            "hostname": self.name,
            "ca_certificate": authorities,
        });
        self.api().post("/mesh/register", &registration)?;
        self.wait_for_state("up")?;
        let status = self.status()?;
        Ok(status["node"]["ips"][0].as_str().context("an address")?.parse()?)
    }

    pub fn status(&self) -> Result<Value> {
        self.api().get("/mesh/status")
    }

    /// Waits until the membership has this state.
    pub fn wait_for_state(&self, state: &str) -> Result<()> {
        wait_ok(SOON, &format!("the state {state} of the membership"), || {
            let status = self.status()?;
            ensure!(status["state"] == state, "{status}");
            Ok(())
        })
        .with_context(|| self.daemon.last_words())
        .map(drop)
    }

    /// The peer of this name, if there is one.
    pub fn peer(&self, name: &str) -> Result<Option<Value>> {
        let peers = self.api().get("/mesh/peers")?;
        Ok(peers.as_array().context("a list")?.iter().find(|peer| peer["name"] == name).cloned())
    }

    /// Waits until packets of a peer go this way.
    pub fn wait_for_connection(&self, peer: &str, connection: &str) -> Result<Value> {
        let found = || self.peer(peer).ok().flatten().filter(|peer| peer["connection"] == connection);
        wait_until(SOON, &format!("a path to {peer}: {connection}"), found)
            .with_context(|| format!("{:?}; {}", self.peer(peer), self.daemon.last_words()))
    }

    /// Asks for the page of a host in the mesh, from the gateway itself.
    pub fn ask(&self, namespace: &Namespace, address: IpAddr) -> Result<String> {
        let url = format!("http://{address}/");
        namespace.run("curl", &["--silent", "--show-error", "--fail", "--max-time", "3", &url])
    }

    /// Tells whether the gateway has the interface of the mesh.
    pub fn has_interface(&self, namespace: &Namespace) -> bool {
        namespace.run("ip", &["link", "show", INTERFACE]).is_ok()
    }
}
