//! States of the tunnels.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use gateway_core::facts::{Facts, TunnelFact};
use gateway_model::Id;
use gateway_model::kinds::tunnel_health::{PeerLive, TunnelLive};

use crate::os::wireguard::CoverStatus;

/// States of the tunnels at the last poll.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TunnelStates {
    pub tunnels: BTreeMap<Id, TunnelLive>,
    pub peers: BTreeMap<(Id, [u8; 32]), PeerLive>,
    /// Cover traffic of WireGuard tunnels.
    pub cover: BTreeMap<Id, Cover>,
    pub(crate) facts: BTreeMap<String, TunnelFact>,
    pub(crate) endpoints: BTreeMap<String, SocketAddr>,
}

impl TunnelStates {
    /// Adds the known state of the tunnels to facts.
    pub fn enrich(&self, facts: &mut Facts) {
        facts.tunnels.clone_from(&self.facts);
        facts.endpoints.clone_from(&self.endpoints);
    }
}

/// Cover traffic of a WireGuard tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cover {
    /// The kernel implementation of WireGuard, which has no cover traffic.
    OfTheKernel,
    /// The tunnel has no device.
    NoDevice,
    Here(CoverStatus),
}

impl Cover {
    pub fn status(&self) -> Option<CoverStatus> {
        match self {
            Cover::Here(status) => Some(*status),
            Cover::OfTheKernel | Cover::NoDevice => None,
        }
    }
}
