//! Room in the kernel's neighbour tables, which all network namespaces share.

use std::io;
use std::path::Path;

/// The tables of both families.
const FOLDERS: [&str; 2] = ["/proc/sys/net/ipv4/neigh/default", "/proc/sys/net/ipv6/neigh/default"];
/// Entries that are never removed early, that may be exceeded for five seconds, and that are the maximum (arp(7)). The
/// kernel's defaults are an eighth of them.
const THRESHOLDS: [(&str, u32); 3] = [("gc_thresh3", 8192), ("gc_thresh2", 4096), ("gc_thresh1", 1024)];

/// Raises lower thresholds. Only the first network namespace has them; elsewhere nothing is done.
pub(crate) fn raise() -> io::Result<()> {
    FOLDERS.iter().try_for_each(|folder| raise_in(Path::new(folder)))
}

fn raise_in(folder: &Path) -> io::Result<()> {
    for (name, wanted) in THRESHOLDS {
        let path = folder.join(name);
        let have = match std::fs::read_to_string(&path) {
            Ok(text) => text.trim().parse::<u32>().map_err(io::Error::other)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if have < wanted {
            std::fs::write(&path, wanted.to_string())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_thresholds_are_raised_and_higher_ones_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, value) in [("gc_thresh1", "128\n"), ("gc_thresh2", "512\n"), ("gc_thresh3", "65536\n")] {
            std::fs::write(folder.path().join(name), value).expect("a file");
        }
        raise_in(folder.path()).expect("raised");
        let have =
            THRESHOLDS.map(|(name, _)| std::fs::read_to_string(folder.path().join(name)).expect("a file"));
        assert_eq!(have, ["65536\n", "4096", "1024"]);
        raise_in(&folder.path().join("missing")).expect("nothing to raise");
    }
}
