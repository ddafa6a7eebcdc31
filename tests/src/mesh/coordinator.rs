//! The daemon as coordinator of the mesh, in the namespace of the hub.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{HUB, MeshNetwork};
use crate::certificate::ServerCertificate;
use crate::daemon::{Api, Daemon};
use crate::netns::Namespace;
use crate::wait::wait_until;

const PORT: u16 = 8443;
/// Time for a client to join, or to learn something.
const SOON: Duration = Duration::from_secs(30);

/// A gateway that coordinates the mesh.
#[derive(Debug)]
pub struct MeshServer {
    // Field order is drop order.
    pub daemon: Daemon,
    certificate: ServerCertificate,
}

impl MeshServer {
    /// Starts a coordinator without nodes. Ephemeral nodes stay for a second after their connection.
    pub fn start(network: &MeshNetwork) -> Result<Self> {
        let certificate = ServerCertificate::issue(&[HUB])?;
        let mut daemon = Daemon::prepare_in(&network.hub, &network.prefix)?;
        let coordinator = json!({
            "enabled": true,
            "host": HUB,
            "listen_addr": format!("{HUB}:{PORT}"),
            "ephemeral_sec": 1,
        });
        daemon.configure(&json!({
            "tls": {"cert": certificate.file(), "key": certificate.key_file()},
            "mesh": {"coordinator": coordinator},
        }))?;
        daemon.start()?;
        let server = Self { daemon, certificate };
        server.wait_until_up()?;
        Ok(server)
    }

    /// Waits until the coordinator accepts connections.
    pub fn wait_until_up(&self) -> Result<()> {
        let is_up = || self.api().get("/mesh/status").ok().filter(|status| status["state"] == "up");
        wait_until(SOON, "the coordinator to serve", is_up)
            .with_context(|| self.daemon.last_words())
            .map(drop)
    }

    /// Ends the daemon without a farewell: all its connections break.
    pub fn kill(&mut self) -> Result<()> {
        self.daemon.kill9()
    }

    /// Starts the daemon with what the last one stored.
    pub fn start_again(&mut self) -> Result<()> {
        self.daemon.start()?;
        self.wait_until_up()
    }

    pub fn api(&self) -> &Api {
        self.daemon.api()
    }

    pub fn port(&self) -> u16 {
        PORT
    }

    /// The certificate that clients have to trust.
    pub fn authority(&self) -> std::path::PathBuf {
        self.certificate.file()
    }

    /// Creates a pre-auth key of an hour.
    pub fn key(&self, reusable: bool, ephemeral: bool) -> Result<String> {
        let key = self.create_key(&json!({"reusable": reusable, "ephemeral": ephemeral}))?;
        Ok(key["key"].as_str().context("a key")?.to_owned())
    }

    /// Creates a pre-auth key with these terms.
    pub fn create_key(&self, terms: &Value) -> Result<Value> {
        self.api().post("/mesh/create-key", terms)
    }

    /// All peers.
    pub fn peers(&self) -> Result<Vec<Value>> {
        Ok(self.api().get("/mesh/peers")?.as_array().context("a list")?.clone())
    }

    /// The peer of this name, if there is one.
    pub fn peer(&self, name: &str) -> Result<Option<Value>> {
        Ok(self.peers()?.into_iter().find(|peer| peer["name"] == name))
    }

    /// Waits until a node is connected. Returns its address.
    pub fn wait_for(&self, name: &str) -> Result<IpAddr> {
        let connected = || self.peer(name).ok().flatten().filter(|peer| peer["online"] == true);
        let peer = wait_until(SOON, &format!("{name} to join the mesh"), connected)?;
        Ok(peer["ips"][0].as_str().context("an address")?.parse()?)
    }

    /// Reads a metric of the daemon.
    pub fn metric(&self, hub: &Namespace, name: &str) -> Result<u64> {
        let page = hub.run("curl", &["-s", "http://127.0.0.1:8080/metrics"])?;
        let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.with_context(|| format!("no {name} in {page}"))?.trim().parse().context("a number")
    }
}
