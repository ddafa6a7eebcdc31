//! State of a capture, and its packets as the API shows them.

use gateway_core::evaluate::CapturedDecision;
use gateway_dissect::Protocol;
use gateway_model::Id;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::presets::CapturePresetName;
use crate::os::capture::Direction;

/// State of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CaptureState {
    Running,
    /// Complete: by the number of packets, the time or the size.
    Done,
    /// Stopped by a user.
    Stopped,
    Error,
}

/// Cause of a capture's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CaptureEnd {
    Count,
    Duration,
    /// The file has reached 64 MiB.
    Size,
    Stopped,
    Error,
}

impl CaptureEnd {
    pub const ALL: [CaptureEnd; 5] =
        [CaptureEnd::Count, CaptureEnd::Duration, CaptureEnd::Size, CaptureEnd::Stopped, CaptureEnd::Error];

    pub fn as_str(self) -> &'static str {
        match self {
            CaptureEnd::Count => "count",
            CaptureEnd::Duration => "duration",
            CaptureEnd::Size => "size",
            CaptureEnd::Stopped => "stopped",
            CaptureEnd::Error => "error",
        }
    }
}

/// A capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureSession {
    pub id: Id,
    pub state: CaptureState,
    /// Interface as it was requested: a name, `lan` or `any`.
    pub interface: String,
    /// Interfaces that are captured.
    pub interfaces: Vec<String>,
    /// Filter in force, with that of the preset; empty without one.
    pub filter: String,
    pub preset: Option<CapturePresetName>,
    /// Number of packets after which it ends.
    pub count: u64,
    /// Seconds after which it ends.
    pub duration_sec: u64,
    /// Maximum number of bytes of a packet.
    pub snaplen: u32,
    pub promiscuous: bool,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    /// Cause of the end; null while it runs.
    pub end: Option<CaptureEnd>,
    /// Captured packets.
    pub packets: u64,
    /// Their length on the wire.
    pub bytes: u64,
    /// Packets that passed the filter and were lost, because they came faster than they were read.
    pub dropped: u64,
    /// Packets of the API itself, which are left out. Known at the end.
    pub left_out: u64,
    /// Interfaces that XDP has left, so that the capture is complete.
    pub without_xdp: Vec<String>,
    pub created_by: String,
    /// Cause of the state `error`.
    pub error: Option<String>,
}

/// Summary of a captured packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapturedPacket {
    /// Number of the packet in the capture, from 1 on.
    pub no: u64,
    pub time: Timestamp,
    pub interface: String,
    /// `in` for packets that arrive at the gateway, `out` for those that leave it.
    pub direction: Direction,
    /// Source: the IP address of the innermost packet, else the MAC address.
    pub src: String,
    pub dst: String,
    pub src_port: Option<u16>,
    pub dst_port: Option<u16>,
    /// Innermost known protocol.
    pub proto: Protocol,
    pub vlan: Option<u16>,
    /// Length on the wire.
    pub length: u32,
    pub info: String,
    /// Name of the device that sent or receives it on a LAN.
    pub device: Option<String>,
    /// Decision of the gateway, for packets that come from a LAN.
    pub decision: Option<CapturedDecision>,
    /// Uplink or tunnel of the interface, for packets on one.
    pub leg: Option<String>,
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns a capture in this state, without packets.
    pub(in super::super) fn session(state: CaptureState) -> CaptureSession {
        CaptureSession {
            id: Id::from_u128(1),
            state,
            interface: "eth1".to_owned(),
            interfaces: vec!["eth1".to_owned()],
            filter: String::new(),
            preset: None,
            count: 100,
            duration_sec: 60,
            snaplen: 96,
            promiscuous: false,
            started_at: Timestamp::UNIX_EPOCH,
            ended_at: None,
            end: None,
            packets: 0,
            bytes: 0,
            dropped: 0,
            left_out: 0,
            without_xdp: Vec::new(),
            created_by: "admin".to_owned(),
            error: None,
        }
    }

    #[test]
    fn causes_have_the_words_of_the_api() {
        for end in CaptureEnd::ALL {
            assert_eq!(serde_json::to_value(end).expect("JSON"), end.as_str());
        }
    }
}
