//! Access to the API by uplinks, as the plan has it.
//!
//! Decision 0160 says why.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// Access to the API by uplinks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WanAccess {
    /// TCP port of the API.
    pub port: u16,
    /// Interfaces of the uplinks.
    pub interfaces: Vec<String>,
    /// Networks of the clients. Empty: any.
    pub clients: Vec<IpNet>,
}
