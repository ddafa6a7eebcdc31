//! Announced prefixes on disk. After a restart, those that are gone have to be taken back (RFC 9096, section 3.5).

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::Ipv6Net;
use serde::{Deserialize, Serialize};

use crate::os::json_file;

/// Time for which prefixes of an earlier run are taken back: hosts may have learned them just before its end.
pub(super) const MAX_AGE: Duration = Duration::from_secs(5400);

/// Prefixes by LAN interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredPrefixes(BTreeMap<String, BTreeSet<Ipv6Net>>);

pub(super) fn path(state_dir: &Path) -> PathBuf {
    state_dir.join("ipv6-prefixes.json")
}

/// Returns the stored prefixes. A file that is missing or damaged has none.
pub(super) fn read(path: &Path) -> StoredPrefixes {
    json_file::read(path)
}

impl StoredPrefixes {
    /// Replaces the prefixes of an interface. Those of others stay: they may not be up yet.
    pub(super) fn set(&mut self, interface: &str, nets: BTreeSet<Ipv6Net>) {
        if nets.is_empty() {
            self.0.remove(interface);
        } else {
            self.0.insert(interface.to_owned(), nets);
        }
    }

    pub(super) fn of(&self, interface: &str) -> impl Iterator<Item = Ipv6Net> + use<'_> {
        self.0.get(interface).into_iter().flatten().copied()
    }

    /// Replaces the file.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        json_file::write(path, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_read_as_they_were_written_and_damage_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = path(folder.path());
        assert_eq!(read(&path), StoredPrefixes::default(), "no file");
        let nets = BTreeSet::from(["2001:db8:1::/64".parse().unwrap()]);
        let mut stored = StoredPrefixes::default();
        stored.set("lan0", nets.clone());
        stored.set("lan1", nets);
        stored.set("lan1", BTreeSet::new());
        stored.write(&path).unwrap();
        assert_eq!(read(&path), stored);
        assert_eq!((stored.of("lan0").count(), stored.of("lan1").count()), (1, 0));
        std::fs::write(&path, "{\"lan0\": [7]}").unwrap();
        assert_eq!(read(&path), StoredPrefixes::default(), "damaged");
    }
}
