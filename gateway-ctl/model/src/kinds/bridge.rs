//! Bridges: permanent connections between two sides of the gateway.
//!
//! A transport carries the outer packets of the tunnels that name it. A segment connects a LAN network to an egress.
//! Both take effect at once, without an apply.

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use super::hops::{Hop, HopType};
use super::proxy::Proxy;
use super::tunnel::Tunnel;
use crate::edit::EditError;
use crate::id::IfName;
use crate::id_or_name::keep_name;
use crate::problem::{Problems, code};
use crate::references::{Hold, Ref};
use crate::resource::{Keys, Meta, Resource};
use crate::state::State;
use crate::validated::{Cidr, check_name, check_slug, is_host_name, named_endpoint, text_enum};

text_enum! {
    #[derive(Default)]
    pub enum BridgeKind {
        /// Forwards everything from a source into a target, and back.
        #[default]
        Segment = "segment",
        /// Carries a tunnel's outer packets over something else.
        Transport = "transport",
    }
}

text_enum! {
    pub enum BridgeSourceType {
        Interface = "interface",
        Vlan = "vlan",
        Subnet = "subnet",
        Tunnel = "tunnel",
    }
}

text_enum! {
    pub enum TransportType {
        /// Each datagram behind its length in 16 bits, in one TCP connection, as the program `tcp2udp` takes them.
        Udp2Tcp = "udp2tcp",
        /// Datagrams through a SOCKS5 proxy (UDP ASSOCIATE) to the endpoint of the tunnel's peer.
        Socks5 = "socks5",
    }
}

text_enum! {
    #[derive(Default)]
    pub enum BridgeStatus {
        Disabled = "disabled",
        Up = "up",
        Degraded = "degraded",
        #[default]
        Down = "down",
        Error = "error",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BridgeSource {
    pub r#type: BridgeSourceType,
    /// Name of the interface or tunnel, VLAN id, or network.
    pub value: String,
}

/// Endpoint and protocol for the outer packets of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Transport {
    pub r#type: TransportType,
    /// Address or name of the host.
    pub address: String,
    pub port: u16,
}

/// A bridge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Bridge {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    /// Unique; tunnels name a transport by it.
    #[schemars(regex(pattern = "^[a-z0-9_-]{1,32}$"))]
    pub name: String,
    pub enabled: bool,
    pub kind: BridgeKind,
    /// Source of a segment.
    pub source: Option<BridgeSource>,
    /// Target of a segment.
    pub target: Option<Hop>,
    /// Of a segment: hide the addresses of the source behind the target's. Only true is supported.
    pub nat: bool,
    /// Parameters of a transport.
    pub transport: Option<Transport>,
}

impl Default for Bridge {
    fn default() -> Bridge {
        Bridge {
            meta: Meta::default(),
            name: String::new(),
            enabled: true,
            kind: BridgeKind::Segment,
            source: None,
            target: None,
            nat: true,
            transport: None,
        }
    }
}

/// Live state of a bridge, shown beside the stored fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct BridgeLive {
    pub status: BridgeStatus,
    pub healthy: bool,
    /// Null: it was never tested.
    pub last_test: Option<BridgeTest>,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BridgeTest {
    pub at: Timestamp,
    pub ok: bool,
    pub latency_ms: Option<f64>,
    pub error: Option<String>,
}

impl BridgeSource {
    fn validate(&self, state: &State, problems: &mut Problems) {
        let path = "source.value";
        match self.r#type {
            BridgeSourceType::Interface => {
                if let Err(error) = self.value.parse::<IfName>() {
                    problems.add(code::FORMAT, path, format!("Expected {}.", error.0));
                }
            }
            BridgeSourceType::Vlan => {
                if !self.value.parse().is_ok_and(|id: u16| (1..=4094).contains(&id)) {
                    problems.add(code::FORMAT, path, "Expected a VLAN id from 1 to 4094.");
                }
            }
            BridgeSourceType::Subnet => {
                if let Err(error) = self.value.parse::<Cidr>() {
                    problems.add(code::FORMAT, path, format!("Expected {}.", error.0));
                }
            }
            BridgeSourceType::Tunnel => {
                if state.tunnel_by_name(&self.value).is_none() {
                    let message = format!("There is no tunnel {:?}.", self.value);
                    problems.add(code::UNKNOWN_REFERENCE, path, message);
                }
                problems.not_supported("source.type", "A segment that begins in a tunnel");
            }
        }
    }
}

impl Transport {
    /// `host:port` if its address is a name, which has to be resolved.
    pub fn endpoint_name(&self) -> Option<String> {
        named_endpoint(&self.address, self.port)
    }
}

impl Bridge {
    fn validate_segment(&self, state: &State, problems: &mut Problems) {
        match &self.source {
            Some(source) => source.validate(state, problems),
            None => problems.required("source"),
        }
        match &self.target {
            None => problems.required("target"),
            Some(hop) => match hop.r#type {
                HopType::Vpn if state.tunnel_by_name(&hop.target).is_none() => {
                    let message = format!("There is no tunnel {:?}.", hop.target);
                    problems.add(code::UNKNOWN_REFERENCE, "target.target", message);
                }
                HopType::Proxy if state.find::<Proxy>(&hop.target).is_none() => {
                    let message = format!("There is no proxy {:?}.", hop.target);
                    problems.add(code::UNKNOWN_REFERENCE, "target.target", message);
                }
                _ => check_name("target.target", &hop.target, problems),
            },
        }
        if self.transport.is_some() {
            problems.add(code::CONFLICT, "transport", "A bridge of kind segment has none.");
        }
        if !self.nat {
            problems.not_supported("nat", "A segment whose addresses are not hidden");
        }
    }

    fn validate_transport(&self, problems: &mut Problems) {
        match &self.transport {
            None => problems.required("transport"),
            Some(transport) => {
                let address = &transport.address;
                if address.parse::<std::net::IpAddr>().is_err() && !is_host_name(address) {
                    let message = "Expected an address or a host name, without the port.";
                    problems.add(code::FORMAT, "transport.address", message);
                }
                if transport.port == 0 {
                    problems.add(code::RANGE, "transport.port", "Must be from 1 to 65535.");
                }
            }
        }
        for (field, given) in [("source", self.source.is_some()), ("target", self.target.is_some())] {
            if given {
                problems.add(code::CONFLICT, field, "A bridge of kind transport has none.");
            }
        }
    }
}

impl Resource for Bridge {
    const NOUN: &'static str = "bridge";
    const COLLECTION: &'static str = "bridges";
    const READ_ONLY: &'static [&'static str] = &["status", "healthy", "last_test"];
    const REQUIRED: &'static [&'static str] = &["name", "kind"];

    fn label(&self) -> &str {
        &self.name
    }

    fn alias(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn validate(&self, state: &State, problems: &mut Problems) {
        check_slug("name", &self.name, problems);
        match self.kind {
            BridgeKind::Segment => self.validate_segment(state, problems),
            BridgeKind::Transport => self.validate_transport(problems),
        }
    }

    fn admit(&self, before: Option<&Self>, state: &State) -> Result<(), EditError> {
        keep_name(self, before, false, state)
    }

    fn refs(&self) -> Vec<Ref> {
        let source = self.source.iter().filter(|source| source.r#type == BridgeSourceType::Tunnel);
        let source = source.map(|source| Ref::new(Tunnel::NOUN, &source.value, "source.value", Hold::Loose));
        let target = self.target.iter().filter_map(|hop| match hop.r#type {
            HopType::Vpn => Some(Ref::new(Tunnel::NOUN, &hop.target, "target.target", Hold::Loose)),
            HopType::Proxy => Some(Ref::new(Proxy::NOUN, &hop.target, "target.target", Hold::Loose)),
            HopType::Interface | HopType::MeshPeer => None,
        });
        source.chain(target).collect()
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", self.name.as_str());
    }

    fn shown_schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(BridgeLive::json_schema(generator))
    }
}
