//! Programs and maps left by a daemon of another ABI version. They enforce the last plan of that version until a plan
//! of this version is active. The gateway then removes them, because two active plans would contradict each other.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use aya::maps::{Array, Map, MapData};
use gateway_common::abi::ABI_VERSION;
use gateway_common::maps::{ActiveSlot, MapSpec as _};
use gateway_common::wire::SLOT_NONE;

use super::Programs;
use super::syscall::PinnedTcx;

/// Returns the folder of an ABI version below the pin folder.
pub(super) fn folder(pin_dir: &Path, version: u32) -> PathBuf {
    pin_dir.join(format!("v{version}"))
}

impl Programs {
    /// Returns the pin folders of other ABI versions.
    pub fn other_versions(&self) -> Vec<PathBuf> {
        self.root.parent().map(|pin_dir| versions(pin_dir, &self.root)).unwrap_or_default()
    }

    /// Returns the identifiers of the programs that other ABI versions have attached.
    pub(super) fn programs_of_other_versions(&self) -> BTreeSet<u32> {
        let pins = self.other_versions().into_iter().flat_map(|version| links(&version));
        pins.filter_map(|pin| PinnedTcx::open(&pin).ok()).map(|link| link.program).collect()
    }

    /// Detaches the programs of other ABI versions and removes their pins. The caller has activated a plan of this
    /// version and attached its programs.
    pub fn retire_other_versions(&self) -> io::Result<()> {
        for version in self.other_versions() {
            for pin in links(&version) {
                let link = PinnedTcx::open(&pin)?;
                if link.interface != 0 {
                    link.detach()?;
                }
                fs::remove_file(&pin)?;
            }
            fs::remove_dir_all(&version)?;
            tracing::info!(folder = %version.display(), "retired the programs of another ABI version");
        }
        Ok(())
    }
}

/// Reports whether a plan is active in the pinned maps of any ABI version, without loading any program.
///
/// Another version may use other map names. If its map cannot be read, attached programs count as an active plan.
pub fn is_plan_live(pin_dir: &Path) -> bool {
    let own = folder(pin_dir, ABI_VERSION);
    let is_enforcing = |version: &PathBuf| live_slot(version).map_or(!links(version).is_empty(), is_live);
    live_slot(&own).is_some_and(is_live) || versions(pin_dir, &own).iter().any(is_enforcing)
}

fn is_live(slot: u32) -> bool {
    slot != SLOT_NONE
}

fn live_slot(version: &Path) -> Option<u32> {
    let data = MapData::from_pin(version.join("maps").join(ActiveSlot::NAME)).ok()?;
    Array::<_, u32>::try_from(Map::Array(data)).ok()?.get(&0, 0).ok()
}

fn versions(pin_dir: &Path, except: &Path) -> Vec<PathBuf> {
    let is_version = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.strip_prefix('v'));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    entries(pin_dir).into_iter().filter(|path| path != except && is_version(path)).collect()
}

fn links(version: &Path) -> Vec<PathBuf> {
    entries(&version.join("links"))
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_other_versions_are_theirs() {
        let pins = tempfile::tempdir().unwrap();
        for name in ["v6", "v7", "v12", "vx", "other"] {
            fs::create_dir(pins.path().join(name)).unwrap();
        }
        let mut others = versions(pins.path(), &folder(pins.path(), 7));
        others.sort();
        assert_eq!(others, [pins.path().join("v12"), pins.path().join("v6")]);
    }

    #[test]
    fn another_version_with_attached_programs_counts_as_a_live_plan() {
        let pins = tempfile::tempdir().unwrap();
        assert!(!is_plan_live(pins.path()));
        let links = folder(pins.path(), ABI_VERSION + 1).join("links");
        fs::create_dir_all(&links).unwrap();
        assert!(!is_plan_live(pins.path()), "a folder alone enforces nothing");
        fs::write(links.join("gw_ingress-3"), "").unwrap();
        assert!(is_plan_live(pins.path()));
    }
}
