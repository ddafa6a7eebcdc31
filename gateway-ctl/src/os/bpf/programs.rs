//! The loaded programs and their maps.

use std::collections::BTreeMap;
use std::path::PathBuf;

use aya::Ebpf;
use aya::programs::SchedClassifier;
use gateway_core::fqdn_cache::FqdnCache;
use gateway_core::indexes::LegId;
use rustix::net::{AddressFamily, SocketType};

use super::Error;
use super::fast_path::FastPath;
use super::fast_traffic::FastTraffic;
use super::maps::{Entries, Maps};
use super::tables::Written;
use super::xdp::Xdp;

/// The loaded programs and their maps.
pub struct Programs {
    pub(super) ebpf: Ebpf,
    pub maps: Maps,
    pub fast_path: FastPath,
    /// Packets and bytes of the entries of the fast path.
    pub fast_traffic: FastTraffic,
    pub xdp: Xdp,
    /// DNS-learned IP addresses, the input of FQDN policies.
    pub(super) learned: FqdnCache,
    pub(super) links: PathBuf,
    pub(super) root: PathBuf,
    pub(super) map_ids: MapIds,
    pub(super) written: Written,
    /// Generation that the next plan has at least.
    pub(super) lowest_generation: u32,
}

pub(super) const INGRESS: &str = "gw_ingress";
pub(super) const LAN_EGRESS: &str = "gw_lan_egress";
pub(super) const GUARD: &str = "gw_guard";
pub(super) const WAN_INGRESS: &str = "gw_wan_ingress";
pub(super) const ANSWER: &str = "gw_dns_reply";
pub(super) const FILTER: [&str; 3] = ["gw_dns_read", "gw_dns_lookup", "gw_dns_block"];
pub(super) const INJECT: &str = "gw_inject";
pub(super) const TAP: &str = "gw_tap";
pub(super) const HOST_TAP: &str = "gw_host_tap";

/// Identifiers of the pinned maps. They identify the maps when the pins are gone.
pub(super) type MapIds = Vec<(&'static str, u32)>;

impl Programs {
    /// Returns the leg numbers of the uplinks of the active plan, by interface.
    pub fn uplinks(&self) -> Result<BTreeMap<String, LegId>, Error> {
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None);
        let socket = socket.map_err(|error| Error::Uplinks(error.into()))?;
        let mut uplinks = BTreeMap::new();
        for (index, leg) in self.maps.egress_legs.read()? {
            let Some(number) = u8::try_from(leg).ok().and_then(LegId::new).filter(|leg| !leg.is_tunnel())
            else {
                continue;
            };
            // An interface that is gone has no name.
            if let Ok(name) = rustix::net::netdevice::index_to_name(&socket, index) {
                uplinks.insert(name, number);
            }
        }
        Ok(uplinks)
    }

    /// Returns a program by name, for test runs.
    pub fn program(&mut self, name: &'static str) -> Result<&mut SchedClassifier, Error> {
        find_program(&mut self.ebpf, name)
    }
}

/// Returns a program of the object by name.
pub(super) fn find_program<'a>(
    ebpf: &'a mut Ebpf,
    name: &'static str,
) -> Result<&'a mut SchedClassifier, Error> {
    let program =
        ebpf.program_mut(name).ok_or_else(|| Error::Missing { what: "program", name: name.to_owned() })?;
    program.try_into().map_err(|e| Error::Program { name, source: Box::new(e) })
}
