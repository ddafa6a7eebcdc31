//! A mesh among namespaces without internet: a gateway that coordinates it, and stock clients and gateways in its LAN.
//!
//! ```text
//!  node-1 10.9.0.11 ─┐
//!                    hub 10.9.0.1 (coordinator, relay, STUN)
//!  node-2 10.9.0.12 ─┘
//! ```

mod client;
mod coordinator;
mod member;

use anyhow::{Context, Result};

use crate::netns::{Namespace, Prefix};
use crate::network_permit::NetworkPermit;
use crate::process::Process;

pub use client::StockClient;
pub use coordinator::MeshServer;
pub use member::{LanHost, MeshGateway};

/// Address of the coordinator.
pub const HUB: &str = "10.9.0.1";

/// Address of a server of the internet.
pub const INTERNET: &str = "203.0.113.7";

/// A web server whose page is the address of the client.
const ANSWER: &str = "
import http.server, sys
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.client_address[0].encode())
http.server.ThreadingHTTPServer((sys.argv[1], 80), Page).serve_forever()
";

/// The namespaces of a mesh.
#[derive(Debug)]
pub struct MeshNetwork {
    // Field order is drop order.
    pub nodes: Vec<Namespace>,
    pub hub: Namespace,
    pub(crate) prefix: Prefix,
    _permit: NetworkPermit,
}

impl MeshNetwork {
    /// Creates the hub and as many hosts around it.
    pub fn create(nodes: usize) -> Result<Self> {
        let permit = NetworkPermit::take()?;
        let prefix = Prefix::unique()?;
        let hub = Namespace::create(&prefix, "hub")?;
        hub.ip(&format!(
            "link add eth0 type veth peer name far0\nlink set eth0 up\nlink set far0 up\nlink add eth1 type bridge\nlink set eth1 up\n\
             address add {HUB}/24 dev eth1"
        ))?;
        let mut network = Self { nodes: Vec::new(), hub, prefix, _permit: permit };
        for number in 1..=nodes {
            let node = Namespace::create(&network.prefix, &format!("node-{number}"))?;
            network.hub.ip(&format!(
                "link add port{number} type veth peer name eth0 netns {}\nlink set port{number} master eth1 up",
                node.name()
            ))?;
            // Clients without a default route take themselves for offline. It leads to the hub, which forwards nothing.
            node.ip(&format!(
                "address add 10.9.0.{}/24 dev eth0\nlink set eth0 up\nroute add default via {HUB}",
                10 + number
            ))?;
            network.nodes.push(node);
        }
        Ok(network)
    }

    /// Makes the last node a server of the internet, which answers with the address of its client. The others have a route to it.
    pub fn serve_internet(&self) -> Result<Process> {
        let (server, others) = self.nodes.split_last().context("a node")?;
        server.ip(&format!("link set lo up\naddress add {INTERNET}/24 dev eth0"))?;
        for node in others {
            node.ip(&format!("route add {INTERNET}/32 dev eth0"))?;
        }
        // The coordinator has the network in its LAN, and so takes no source of it for a forged one.
        self.hub.ip("address add 203.0.113.1/24 dev eth1")?;
        let mut command = server.command("python3");
        command.args(["-c", ANSWER, INTERNET]);
        server.spawn(command)
    }

    /// Begins to count the packets for the server of the internet that leave a node by its uplink.
    pub fn count_leaks(&self, node: usize) -> Result<()> {
        self.hub.nft(&format!(
            "table netdev leaks {{\n chain in {{\n type filter hook ingress device \"port{node}\" priority 0;\n \
             ip daddr {INTERNET} counter\n ip saddr 192.168.77.0/24 counter\n }}\n}}\n"
        ))
    }

    /// Packets that have left since [`MeshNetwork::count_leaks`].
    pub fn leaks(&self) -> Result<u64> {
        let listed = self.hub.run("nft", &["list", "table", "netdev", "leaks"])?;
        let counts = listed.split("packets ").skip(1).map(|rest| rest.split(' ').next().unwrap_or_default());
        counts.map(|count| count.parse::<u64>().context("a number")).sum()
    }

    /// Lets UDP of the hosts reach the hub only, so that they have no direct path.
    pub fn block_direct_paths(&self) -> Result<()> {
        for node in &self.nodes {
            node.nft(&format!(
                "table inet mesh {{\n chain out {{\n type filter hook output priority 0;\n ip daddr {HUB} accept;\n \
                 oifname lo accept;\n meta l4proto udp drop;\n }}\n}}\n"
            ))?;
        }
        Ok(())
    }
}
