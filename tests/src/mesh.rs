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

use anyhow::Result;

use crate::netns::{Namespace, Prefix};
use crate::network_permit::NetworkPermit;

pub use client::StockClient;
pub use coordinator::MeshServer;
pub use member::MeshGateway;

/// Address of the coordinator.
pub const HUB: &str = "10.9.0.1";

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
