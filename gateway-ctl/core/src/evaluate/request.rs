//! Questions, and why one has no answer.

use std::net::IpAddr;

use gateway_model::EditError;
use gateway_model::domain::DomainName;
use gateway_model::id::{Id, MacAddr};
use gateway_model::problem::Problems;
use gateway_model::validated::parse_port;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dns::Name;
use crate::flow_log::FlowId;

/// Source and destination of the traffic. One of `mac`, `device_id` and `flow_id` is required.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Request {
    pub mac: Option<MacAddr>,
    pub device_id: Option<Id>,
    /// Address, with a port or without: `203.0.113.7`, `203.0.113.7:443`, `[2001:db8::7]:443`. Or a name, as if the
    /// device had just resolved its addresses: `www.example.com:443`. Without it, a public address that no policy for
    /// destinations names.
    pub destination: Option<String>,
    /// Another name of `destination`.
    pub to: Option<String>,
    /// Time of the decision, which is made by the plan that was in force then. Default: now.
    pub at: Option<Timestamp>,
    /// Flow of the flow log, whose decision is made again by the plan that made it. All other fields are those of the flow,
    /// and must be absent.
    pub flow_id: Option<FlowId>,
    /// Names that the device resolved to the destination: the knowledge of the resolver, not of the caller.
    #[serde(skip)]
    pub known_as: Vec<Name>,
    /// Leg that the flow has: the knowledge of the flow log.
    #[serde(skip)]
    pub previous_leg: Option<u8>,
    /// Destination port, if `destination` has none; 443 by default.
    pub port: Option<u16>,
    pub protocol: Option<Protocol>,
    /// Ingress LAN interface of the packet. Default: the interface of the device's network.
    pub interface: Option<String>,
    /// VLAN of the packet.
    pub vlan: Option<u16>,
    /// By default both, or that of the destination.
    pub family: Option<Family>,
    /// Source address. Default: one that was observed with the device.
    pub source: Option<IpAddr>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    #[default]
    Tcp,
    Udp,
    Icmp,
}

impl Protocol {
    pub const fn as_str(self) -> &'static str {
        match self {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Icmp => "icmp",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    Ipv4,
    Ipv6,
}

impl Request {
    /// The destination as it is given.
    pub(super) fn destination(&self) -> Option<&str> {
        self.destination.as_deref().or(self.to.as_deref()).map(str::trim)
    }

    /// The destination, if it is given by its name.
    pub fn name(&self) -> Option<Name> {
        self.name_and_port().map(|(name, _)| name)
    }

    /// The destination, if it is given by a name: the name, and the port behind it.
    pub(super) fn name_and_port(&self) -> Option<(Name, Option<u16>)> {
        let text = self.destination()?;
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(parse_port(port)?)),
            None => (text, None),
        };
        DomainName::parse(host).ok().map(|host| (Name::from(&host), port))
    }
}

/// Reason for which a request has no result.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("the question is not valid: {0}")]
    Invalid(Problems),
    #[error("there is no {resource_type} {id}")]
    NotFound { resource_type: &'static str, id: String },
}

impl From<Refusal> for EditError {
    fn from(refusal: Refusal) -> EditError {
        match refusal {
            Refusal::Invalid(problems) => EditError::Invalid(problems),
            Refusal::NotFound { resource_type, id } => EditError::NotFound { resource_type, id },
        }
    }
}
