//! Loader of the object over pinned maps: the first load creates and pins them, later loads adopt them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use aya::programs::SchedClassifier;
use aya::{Ebpf, EbpfLoader};
use gateway_common::abi::ABI_VERSION;
use gateway_common::leg_selection::FIRST_TUNNEL;
use gateway_common::maps::NAMES;
use gateway_core::fqdn_cache::FqdnCache;
use rustix::net::{AddressFamily, SocketType};

use super::maps::{Entries, Maps};
use super::pins::{MapIds, map_ids};
use super::{Error, OBJECT, mount_bpffs, versions};

/// The loaded programs and their maps.
pub struct Programs {
    pub(super) ebpf: Ebpf,
    pub maps: Maps,
    /// DNS-learned IP addresses, the input of FQDN policies.
    pub(super) learned: FqdnCache,
    pub(super) links: PathBuf,
    pub(super) root: PathBuf,
    pub(super) map_ids: MapIds,
}

pub(super) const INGRESS: &str = "gw_ingress";
pub(super) const GUARD: &str = "gw_guard";
pub(super) const WAN_INGRESS: &str = "gw_wan_ingress";
pub(super) const ANSWER: &str = "gw_dns_reply";

impl Programs {
    /// Loads the programs. Maps are pinned below `pin_dir` in a folder of their ABI version.
    pub fn load(pin_dir: &Path) -> Result<Programs, Error> {
        mount_bpffs(pin_dir)?;
        let root = versions::folder(pin_dir, ABI_VERSION);
        let (maps_dir, links) = (root.join("maps"), root.join("links"));
        make_folder(&maps_dir)?;
        make_folder(&links)?;
        let mut loader = EbpfLoader::new();
        for name in NAMES {
            loader.map_pin_path(name, maps_dir.join(name));
        }
        let mut ebpf = loader.load(OBJECT).map_err(|e| Error::Load(Box::new(e)))?;
        for name in [INGRESS, GUARD, WAN_INGRESS, ANSWER] {
            program(&mut ebpf, name)?.load().map_err(|e| Error::Program { name, source: Box::new(e) })?;
        }
        let maps = Maps::take(&mut ebpf)?;
        let mut programs =
            Programs { ebpf, maps, learned: FqdnCache::default(), links, root, map_ids: map_ids(&maps_dir) };
        programs.restore_learned()?;
        Ok(programs)
    }

    /// Returns the leg numbers of the uplinks of the active plan, by interface.
    pub fn uplinks(&self) -> Result<BTreeMap<String, u8>, Error> {
        let asking = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None);
        let asking = asking.map_err(|error| Error::Uplinks(error.into()))?;
        let mut uplinks = BTreeMap::new();
        for (index, leg) in self.maps.egress_legs.read()? {
            let Some(number) = u8::try_from(leg).ok().filter(|number| *number < FIRST_TUNNEL) else {
                continue;
            };
            // An interface that is gone has no name.
            if let Ok(name) = rustix::net::netdevice::index_to_name(&asking, index) {
                uplinks.insert(name, number);
            }
        }
        Ok(uplinks)
    }

    /// Returns a program by name, for test runs.
    pub fn program(&mut self, name: &'static str) -> Result<&mut SchedClassifier, Error> {
        program(&mut self.ebpf, name)
    }
}

pub(super) fn make_folder(path: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(path).map_err(|source| Error::PinDirectory { path: path.to_owned(), source })
}

fn program<'a>(ebpf: &'a mut Ebpf, name: &'static str) -> Result<&'a mut SchedClassifier, Error> {
    let program =
        ebpf.program_mut(name).ok_or_else(|| Error::Missing { what: "program", name: name.to_owned() })?;
    program.try_into().map_err(|e| Error::Program { name, source: Box::new(e) })
}
