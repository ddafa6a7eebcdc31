//! Removal of the debug sections from the object. The kernel has no use for them, and each build of the daemon embeds the
//! object. `.BTF` and `.BTF.ext` stay: types for the kernel, source lines for the log of the verifier.

use anyhow::{Context, Result};

use super::object::number;

/// Length of the header of the file, and of the header of a section.
const HEADER: usize = 64;
/// Type of a section without content in the file.
const SHT_NOBITS: u64 = 8;
/// Relocations of `.BTF` and `.BTF.ext` are for linkers.
const REMOVED: &[&str] = &[".debug", ".rel.debug", ".rel.BTF"];

/// Returns the object with empty debug sections. They keep their headers, because symbols refer to sections by index.
pub(super) fn without_debug(object: &[u8]) -> Result<Vec<u8>> {
    strip(object).context("the object of the kernel programs is no complete ELF file of 64 bits")
}

fn strip(object: &[u8]) -> Option<Vec<u8>> {
    object.strip_prefix(b"\x7fELF\x02\x01")?;
    let headers = usize::try_from(number(object, 0x28, 8)?).ok()?;
    let (count, names) = (number(object, 0x3c, 2)?, number(object, 0x3e, 2)?);
    let header = |index: u64| object.get(headers + HEADER * usize::try_from(index).ok()?..)?.get(..HEADER);
    let content = |header: &[u8]| {
        let (start, length) = (number(header, 0x18, 8)?, number(header, 0x20, 8)?);
        object.get(usize::try_from(start).ok()?..)?.get(..usize::try_from(length).ok()?)
    };
    let names = content(header(names)?)?;
    let mut stripped = object.get(..HEADER)?.to_vec();
    let mut table = Vec::new();
    for index in 0..count {
        let mut header = header(index)?.to_vec();
        let name = names.get(usize::try_from(number(&header, 0, 4)?).ok()?..)?;
        if REMOVED.iter().any(|prefix| name.starts_with(prefix.as_bytes())) {
            // All but the name is zero, as in a header without a section.
            header[4..].fill(0);
        } else if number(&header, 4, 4)? != SHT_NOBITS {
            let alignment = usize::try_from(number(&header, 0x30, 8)?).ok()?.max(1);
            stripped.resize(stripped.len().next_multiple_of(alignment), 0);
            let start = u64::try_from(stripped.len()).ok()?;
            stripped.extend(content(&header)?);
            header[0x18..0x20].copy_from_slice(&start.to_le_bytes());
        }
        table.extend(header);
    }
    stripped.resize(stripped.len().next_multiple_of(8), 0);
    let start = u64::try_from(stripped.len()).ok()?;
    stripped[0x28..0x30].copy_from_slice(&start.to_le_bytes());
    stripped.extend(table);
    Some(stripped)
}

#[cfg(test)]
mod tests {
    //! The committed object.

    use std::fs;

    use super::super::object::sections;
    use super::*;
    use crate::paths;

    #[test]
    fn committed_object_has_no_debug_sections_and_all_others() {
        let object = fs::read(paths::bpf_object()).unwrap();
        assert!(without_debug(&object).unwrap() == object, "run `cargo xtask ebpf`");
        let sections = sections(&object).unwrap();
        assert!(sections.iter().all(|(name, content)| !name.starts_with(".debug") || content.is_empty()));
        for name in
            [".text", ".rel.text", "classifier", ".relclassifier", "maps", ".BTF", ".BTF.ext", ".symtab"]
        {
            assert!(!sections[name].is_empty(), "{name}");
        }
    }

    #[test]
    fn other_files_are_refused() {
        let object = fs::read(paths::bpf_object()).unwrap();
        assert!(without_debug(b"text").is_err());
        assert!(without_debug(&object[..object.len() / 2]).is_err());
    }
}
