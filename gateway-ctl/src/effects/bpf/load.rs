//! Loading the object over pinned maps: the first load creates and pins them, later ones adopt them.

use std::path::{Path, PathBuf};

use aya::maps::{Array, Map, MapData};
use aya::programs::SchedClassifier;
use aya::{Ebpf, EbpfLoader};
use gateway_common::abi::ABI_VERSION;
use gateway_common::maps::{Live, MapSpec as _, NAMES};
use gateway_common::wire::SLOT_RESTING;
use gateway_core::learned::Learned;

use super::maps::Maps;
use super::{Error, OBJECT, mount_bpffs};

/// The loaded programs and their maps.
pub struct Programs {
    pub(super) ebpf: Ebpf,
    pub maps: Maps,
    /// What clients were told, by which policies for domains go.
    pub(super) learned: Learned,
    pub(super) links: PathBuf,
    root: PathBuf,
}

pub(super) const INGRESS: &str = "gw_ingress";
pub(super) const GUARD: &str = "gw_guard";
pub(super) const ANSWER: &str = "gw_answer";

impl Programs {
    /// Loads the programs; maps live below `pin_dir` in a folder of their ABI version.
    pub fn load(pin_dir: &Path) -> Result<Programs, Error> {
        mount_bpffs(pin_dir)?;
        let root = pin_dir.join(format!("v{ABI_VERSION}"));
        let (maps_dir, links) = (root.join("maps"), root.join("links"));
        for path in [&maps_dir, &links] {
            std::fs::create_dir_all(path)
                .map_err(|source| Error::PinDirectory { path: path.clone(), source })?;
        }
        let mut loader = EbpfLoader::new();
        for name in NAMES {
            loader.map_pin_path(name, maps_dir.join(name));
        }
        let mut ebpf = loader.load(OBJECT).map_err(|e| Error::Load(Box::new(e)))?;
        for name in [INGRESS, GUARD, ANSWER] {
            program(&mut ebpf, name)?.load().map_err(|e| Error::Program { name, source: Box::new(e) })?;
        }
        let maps = Maps::take(&mut ebpf)?;
        let mut programs = Programs { ebpf, maps, learned: Learned::default(), links, root };
        programs.restore_learned()?;
        Ok(programs)
    }

    /// A program by name, for test runs.
    pub fn program(&mut self, name: &'static str) -> Result<&mut SchedClassifier, Error> {
        program(&mut self.ebpf, name)
    }

    /// Pin folders of other ABI versions: what they hold still enforces an older plan.
    pub fn other_versions(&self) -> Vec<PathBuf> {
        let Some(parent) = self.root.parent() else { return Vec::new() };
        let Ok(entries) = std::fs::read_dir(parent) else { return Vec::new() };
        entries.flatten().map(|entry| entry.path()).filter(|path| *path != self.root).collect()
    }
}

/// Whether a plan is live in pinned maps, without loading anything.
pub fn is_plan_live(pin_dir: &Path) -> bool {
    let pin = pin_dir.join(format!("v{ABI_VERSION}")).join("maps").join(Live::NAME);
    let Ok(data) = MapData::from_pin(pin) else { return false };
    let Ok(live) = Array::<_, u32>::try_from(Map::Array(data)) else { return false };
    live.get(&0, 0).is_ok_and(|slot| slot != SLOT_RESTING)
}

fn program<'a>(ebpf: &'a mut Ebpf, name: &'static str) -> Result<&'a mut SchedClassifier, Error> {
    let program =
        ebpf.program_mut(name).ok_or_else(|| Error::Missing { what: "program", name: name.to_owned() })?;
    program.try_into().map_err(|e| Error::Program { name, source: Box::new(e) })
}
