//! Pins of the maps. Any process that may write below the pin folder can remove them. The programs keep using the
//! maps.

use std::path::PathBuf;

use aya::maps::{MapData, MapInfo};
use gateway_common::maps::NAMES;

use super::programs::{MapIds, Programs};
use super::{Error, make_folder, mount_bpffs};

pub(super) fn map_ids(maps: &std::path::Path) -> MapIds {
    let id = |name: &&'static str| Some((*name, MapInfo::from_pin(maps.join(name)).ok()?.id()));
    NAMES.iter().filter_map(id).collect()
}

impl Programs {
    /// Returns the maps of this run that are not pinned.
    pub fn unpinned_maps(&self) -> Vec<&'static str> {
        let maps = self.maps_folder();
        self.map_ids.iter().map(|(name, _)| *name).filter(|name| !maps.join(name).exists()).collect()
    }

    /// Restores missing pins, so that the next run adopts the maps. [`attach`](Self::attach) attaches the programs
    /// again.
    pub fn restore_pins(&self) -> Result<(), Error> {
        let maps = self.maps_folder();
        if !maps.exists() || !self.links.exists() {
            mount_bpffs(&self.root)?;
            make_folder(&maps)?;
            make_folder(&self.links)?;
        }
        for (name, id) in &self.map_ids {
            let pin = maps.join(name);
            if pin.exists() {
                continue;
            }
            let failed = |source| Error::Map { operation: "pin", map: name, source: Box::new(source) };
            let map = MapData::from_id(*id).map_err(failed)?;
            map.pin(&pin).map_err(|error| failed(std::io::Error::other(error).into()))?;
        }
        Ok(())
    }

    fn maps_folder(&self) -> PathBuf {
        self.root.join("maps")
    }
}
