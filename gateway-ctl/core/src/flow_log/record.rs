//! Record of a flow.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use gateway_common::verdict::{Action, Reason};
use gateway_common::wire::Mark;
use gateway_model::id::{FormatError, MacAddr};
use gateway_model::{Id, text_enum};
use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Maximum number of paths in a record: the first one and the newest ones.
pub const MAX_PATHS: usize = 8;
/// Maximum number of names by which a client asked for a destination.
pub const MAX_NAMES: usize = 4;

/// Id of a flow: the millisecond of its start, and a hash of what distinguishes it. It is the same after a restart of the
/// daemon, and in all records of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(u64);

/// Bits of the hash.
const HASH_BITS: u32 = 20;

impl FlowId {
    /// Returns the id of a flow with this start. `distinction` is what no other flow of the same start has.
    pub fn new(start: Timestamp, distinction: &[u8]) -> FlowId {
        let millis = u64::try_from(start.as_millisecond()).unwrap_or(0);
        // The seed is the same in every run, because files contain ids.
        let hash = rapidhash::v3::rapidhash_v3(distinction);
        FlowId(millis << HASH_BITS | hash >> (64 - HASH_BITS))
    }

    pub const fn from_raw(raw: u64) -> FlowId {
        FlowId(raw)
    }

    pub const fn raw(self) -> u64 {
        self.0
    }

    /// Returns the start of the flow, in milliseconds since 1970.
    pub const fn start_millis(self) -> u64 {
        self.0 >> HASH_BITS
    }

    /// Returns the start of the flow.
    pub fn start(self) -> Timestamp {
        let millis = i64::try_from(self.start_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX)
    }
}

impl fmt::Display for FlowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for FlowId {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<FlowId, FormatError> {
        let is_hexadecimal = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let raw = u64::from_str_radix(text, 16).ok().filter(|_| is_hexadecimal);
        raw.map(FlowId).ok_or(FormatError("a flow id of 16 hexadecimal digits"))
    }
}

impl Serialize for FlowId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FlowId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FlowId, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for FlowId {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "FlowId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9a-fA-F]{16}$" })
    }
}

/// Packet that began the flow, as the decision function takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PacketKey {
    /// Index of the ingress interface, in the boot of the record.
    pub interface: u32,
    /// VLAN id, 0 without a tag.
    pub vlan: u16,
    pub mac: MacAddr,
    pub source: IpAddr,
    pub destination: IpAddr,
    /// 0 where the protocol has no ports.
    pub source_port: u16,
    /// For ICMP, the type and the code.
    pub destination_port: u16,
    pub protocol: u8,
}

/// Client of a flow. A record of a client whose log is anonymous has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    pub mac: MacAddr,
    pub address: IpAddr,
    pub port: u16,
    /// Index of the ingress interface, and its name if it was known.
    pub interface: u32,
    pub interface_name: Option<String>,
    pub vlan: u16,
    pub device: Option<Id>,
    /// Trust class of the device.
    pub trust_class: Option<String>,
}

text_enum! {
    /// Decision on a flow.
    pub enum Decision {
        /// Its packets went on.
        Permitted = "permitted",
        /// Its packets were dropped without an answer.
        Dropped = "dropped",
        /// Its packets were answered with an error.
        Rejected = "rejected",
    }
}

impl Decision {
    /// Returns the decision of a verdict in the flow table.
    pub fn of(action: u8, mark: Mark) -> Decision {
        if action == Action::Drop as u8 {
            Decision::Dropped
        } else if action == Action::Mark as u8 && mark.is_refusal() {
            Decision::Rejected
        } else {
            Decision::Permitted
        }
    }

    pub fn is_permitted(self) -> bool {
        self == Decision::Permitted
    }
}

text_enum! {
    /// End of a flow, or of the part of it that a record is about.
    pub enum FlowEnd {
        /// The TCP connection was closed.
        Closed = "closed",
        /// The TCP connection was reset.
        Reset = "reset",
        /// No packet came for as long as the kernel waits.
        TimedOut = "timed_out",
        /// The gateway removed the flow before its time, or another program did.
        Removed = "removed",
        /// A denied flow sent no further packet.
        Silent = "silent",
        /// The flow went on; a further record has the rest.
        Continued = "continued",
        /// The daemon ended before the flow did.
        DaemonStopped = "daemon_stopped",
        /// The kernel has no such flow any more, and its report was lost.
        Unreported = "unreported",
    }
}

/// Packets and bytes of one direction, as the IP stack counts them: with IP headers, segments that were merged by the
/// interface as one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Traffic {
    pub packets: u64,
    pub bytes: u64,
}

impl Traffic {
    #[must_use]
    pub fn plus(self, other: Traffic) -> Traffic {
        Traffic {
            packets: self.packets.saturating_add(other.packets),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    /// Returns what came after an earlier reading.
    #[must_use]
    pub fn since(self, earlier: Traffic) -> Traffic {
        Traffic {
            packets: self.packets.saturating_sub(earlier.packets),
            bytes: self.bytes.saturating_sub(earlier.bytes),
        }
    }
}

/// Path of a flow from an instant on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowPath {
    /// The first path begins with the flow, the others when they were observed.
    pub at: Timestamp,
    /// Generation of the plan that decided.
    pub generation: u32,
    pub decision: Decision,
    /// [`Reason`] as a number.
    pub reason: u8,
    pub policy: Option<Id>,
    /// Hops of the policy in their order, as `vpn:wg-a`.
    pub hops: Vec<String>,
    /// Number of the leg, `None` for the default route by the main table.
    pub leg: Option<u8>,
    /// Name of the tunnel or uplink, or of the proxy; `auto` for the default route by the main table.
    pub egress: Option<String>,
}

impl FlowPath {
    /// Returns the name of the reason.
    pub fn reason_text(&self) -> Option<&'static str> {
        Reason::from_wire(self.reason).map(Reason::as_str)
    }

    /// Reports whether packets take the same path, whatever plan says so.
    pub fn is_same(&self, other: &FlowPath) -> bool {
        let FlowPath { at: _, generation: _, decision, reason, policy, hops, leg, egress } = other;
        (self.decision, self.reason, self.policy, self.leg) == (*decision, *reason, *policy, *leg)
            && self.hops == *hops
            && self.egress == *egress
    }
}

/// Record of a flow, or of a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRecord {
    pub flow_id: FlowId,
    /// Number of the part, from 0. A long flow has a record for each part.
    pub part: u32,
    /// Time of the record: the end of its part.
    pub written_at: Timestamp,
    pub client: Option<Client>,
    pub destination: IpAddr,
    pub destination_port: u16,
    pub protocol: u8,
    /// Names by which the client asked for the destination, the newest first.
    pub names: Vec<String>,
    /// Server name in the ClientHello.
    pub server_name: Option<String>,
    /// The first path and the newest ones. Never empty.
    pub paths: Vec<FlowPath>,
    /// Number of changes of the path, those that are not in `paths` included.
    pub path_changes: u32,
    pub sent: Option<Traffic>,
    pub received: Option<Traffic>,
    /// Time of the last packet that was observed.
    pub last_at: Option<Timestamp>,
    /// End of the flow; `None` while it goes on.
    pub ended_at: Option<Timestamp>,
    pub end: Option<FlowEnd>,
}

impl FlowRecord {
    /// Returns the path that was in force at the end.
    pub fn path(&self) -> Option<&FlowPath> {
        self.paths.last()
    }

    pub fn decision(&self) -> Option<Decision> {
        self.path().map(|path| path.decision)
    }

    /// Bytes of both directions that were counted.
    pub fn bytes(&self) -> Option<u64> {
        bytes_of(self.sent, self.received)
    }

    /// Returns the packet that began the flow. `None` for an anonymous client.
    pub fn packet_key(&self) -> Option<PacketKey> {
        let client = self.client.as_ref()?;
        Some(PacketKey {
            interface: client.interface,
            vlan: client.vlan,
            mac: client.mac,
            source: client.address,
            destination: self.destination,
            source_port: client.port,
            destination_port: self.destination_port,
            protocol: self.protocol,
        })
    }

    /// Adds a path, unless it is the present one. Between the first path and the newest ones, older ones give way.
    pub fn change_path(&mut self, path: FlowPath) -> bool {
        match self.paths.last() {
            Some(last) if last.is_same(&path) => return false,
            Some(_) => self.path_changes = self.path_changes.saturating_add(1),
            None => {}
        }
        if self.paths.len() >= MAX_PATHS {
            self.paths.remove(1);
        }
        self.paths.push(path);
        true
    }
}

/// Returns the bytes of both directions that were counted.
pub(super) fn bytes_of(sent: Option<Traffic>, received: Option<Traffic>) -> Option<u64> {
    let bytes = |traffic: Option<Traffic>| traffic.map(|traffic| traffic.bytes);
    match (bytes(sent), bytes(received)) {
        (None, None) => None,
        (sent, received) => Some(sent.unwrap_or(0).saturating_add(received.unwrap_or(0))),
    }
}
