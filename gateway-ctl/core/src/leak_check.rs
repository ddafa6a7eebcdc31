//! Leak check: packets as a host would send them, where the plan lets them leave, and a report of where they left.
//!
//! Nothing here sends anything. The interfaces by which a probe may leave come from the function that the kernel runs
//! ([`evaluate`](crate::evaluate)); the kernel programs and a tap behind the egress guard report what became of it. If
//! the settings name servers, the gateway asks them by the same egresses for the address that they see.

mod exit_address;
pub(crate) mod frame;
mod probe;
mod report;
mod risks;
mod sighting;
mod subject;
mod trial;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use gateway_common::classify::IpPacket;
use gateway_model::id::Id;
use gateway_model::settings::groups::HostBlocks;
use gateway_model::validated::Endpoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::indexes::LegId;

pub use frame::HOPS;
pub use probe::plan;
pub use report::{CheckResult, InterfacePackets, LeakVerdict, Report, compare, nothing_sent};
pub use sighting::{NameAnswer, Outcome, Run, Sighting, SightingKind, recognise};
pub use subject::Host;
pub use trial::{Trial, Wanted, plan_trials};

/// Kind of leak that a check looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Check {
    /// DNS queries to the gateway, and to another resolver: plain and over TLS.
    Dns,
    /// IPv4 packets to the internet.
    Ipv4,
    /// IPv6 packets to the internet.
    Ipv6,
    /// STUN binding requests, by which a browser learns its public address.
    Webrtc,
    /// DNS over HTTPS to a known public resolver.
    Doh,
    /// QUIC to port 443.
    Quic,
    /// A TCP connection to the internet.
    Route,
}

impl Check {
    pub const ALL: [Check; 7] =
        [Check::Dns, Check::Ipv4, Check::Ipv6, Check::Webrtc, Check::Doh, Check::Quic, Check::Route];

    /// Reports whether the check of an address family is that of IPv6. `None` for other checks.
    fn is_ipv6(self) -> Option<bool> {
        match self {
            Check::Ipv4 => Some(false),
            Check::Ipv6 => Some(true),
            _ => None,
        }
    }
}

/// Packet that a check sends as if the host had sent it.
#[derive(Clone, Debug)]
pub struct Probe {
    pub check: Check,
    /// Human-readable description: `TCP to 2.1.1.1:443`.
    pub label: String,
    pub frame: Vec<u8>,
    /// Index of the LAN interface by which it enters.
    pub interface: u32,
    /// The frame as the kernel programs read it.
    pub packet: IpPacket,
    pub expected: Expected,
    /// Uplinks and tunnels by which it may leave.
    pub legs: BTreeSet<LegId>,
    /// The plan lets it take the default route, whether there is one or not.
    pub is_direct: bool,
    pub token: Token,
}

impl Probe {
    /// Reports whether it leaves by the default route.
    fn leaves_directly(&self) -> bool {
        self.is_direct && matches!(self.expected, Expected::Leaves { .. })
    }
}

/// Content by which a probe is recognised, whatever address its source was translated to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// Sequence number of a SYN.
    Sequence(u32),
    /// Bytes near the beginning of the payload.
    Payload([u8; 4]),
    /// First label of the name that a DNS query asks for, in lower case.
    Label(String),
    /// Message id of a DNS query to the gateway for this name.
    Query { id: u16, name: String },
}

/// Treatment of a probe by the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// It does not leave. Human-readable reason.
    Stopped(String),
    /// The gateway answers it.
    Answered,
    /// It leaves by one of these interfaces.
    Leaves { by: BTreeSet<String> },
    /// It is handed to this proxy, and does not leave as it is.
    Proxied(String),
}

/// Egress and address family by which the gateway asks servers for the address that they see.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExitQuery {
    pub leg: LegId,
    /// Name of the tunnel or mesh peer, or interface of the uplink.
    pub egress: String,
    pub interface: String,
    /// Address of the interface, from which the gateway asks.
    pub source: IpAddr,
    /// `None` for an uplink, and for a mesh peer.
    pub tunnel: Option<Id>,
}

impl ExitQuery {
    /// Reports whether the query goes by a tunnel or a mesh peer, which hides the address of the uplink.
    fn is_by_tunnel(&self) -> bool {
        self.tunnel.is_some() || self.leg.is_tunnel()
    }
}

/// Queries of the check of an address family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitCheck {
    pub check: Check,
    /// One for each egress by which the probes may leave.
    pub expected: Vec<ExitQuery>,
    /// One for each other uplink, whose address the tunnels among the expected egresses hide.
    pub uplinks: Vec<ExitQuery>,
    /// Sentences about egresses of the probes by which no server is asked.
    pub unknown: Vec<String>,
}

/// Address that a server saw, by query; else the human-readable reason for which there is none.
pub type ExitAnswers = BTreeMap<ExitQuery, Result<IpAddr, String>>;

impl ExitCheck {
    /// Returns all queries.
    pub fn queries(&self) -> impl Iterator<Item = &ExitQuery> {
        self.expected.iter().chain(&self.uplinks)
    }
}

/// Everything that a check sends, and what its report needs.
#[derive(Clone, Debug)]
pub struct Plan {
    pub host: Host,
    pub blocks: HostBlocks,
    pub checks: Vec<Check>,
    pub probes: Vec<Probe>,
    /// Probes that could not be made, and why: human-readable.
    pub unsent: Vec<(Check, String)>,
    /// Packets to the internet leave by a tunnel or a proxy, or not at all.
    pub is_protected: bool,
    /// Interfaces of uplinks, and those below them.
    pub uplinks: BTreeSet<String>,
    /// Servers of the settings, which are asked for the address that they see.
    pub servers: Vec<Endpoint>,
    pub exits: Vec<ExitCheck>,
}
