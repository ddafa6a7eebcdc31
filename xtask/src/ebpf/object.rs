//! Comparison of two builds of the kernel programs.
//!
//! Every build gives the same loaded content: code, maps, types, relocations. Mangled function names differ, because
//! cargo puts the folder of gateway-common into them. They occur in string tables only.

use std::collections::BTreeMap;

/// Tables of mangled names.
const NAMES: &[&str] = &[".strtab"];

/// Returns true if both are objects that load as the same programs.
pub(super) fn is_same(one: &[u8], other: &[u8]) -> bool {
    match (loaded(one), loaded(other)) {
        (Some(one), Some(other)) => !one.is_empty() && one == other,
        _ => false,
    }
}

/// Returns the sections by name, without the tables of names.
fn loaded(object: &[u8]) -> Option<BTreeMap<String, &[u8]>> {
    let mut sections = sections(object)?;
    sections.retain(|name, _| !NAMES.contains(&name.as_str()));
    Some(sections)
}

/// Returns the sections by name. `None` if this is no little-endian 64-bit ELF file.
pub(super) fn sections(object: &[u8]) -> Option<BTreeMap<String, &[u8]>> {
    object.strip_prefix(b"\x7fELF\x02\x01")?;
    let at = usize::try_from(number(object, 0x28, 8)?).ok()?;
    let (count, names) = (number(object, 0x3c, 2)?, number(object, 0x3e, 2)?);
    let header = |index: u64| object.get(at + 64 * usize::try_from(index).ok()?..);
    let content = |header: &[u8]| {
        let (start, length) = (number(header, 0x18, 8)?, number(header, 0x20, 8)?);
        object.get(usize::try_from(start).ok()?..)?.get(..usize::try_from(length).ok()?)
    };
    let names = content(header(names)?)?;
    let mut sections = BTreeMap::new();
    for index in 0..count {
        let header = header(index)?;
        let name = names.get(usize::try_from(number(header, 0, 4)?).ok()?..)?;
        let name = String::from_utf8(name.split(|byte| *byte == 0).next()?.to_vec()).ok()?;
        sections.insert(name, content(header)?);
    }
    Some(sections)
}

/// Returns a little-endian number of the object.
pub(super) fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.get(..length)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::paths;

    /// Returns the committed programs with a changed byte in a section.
    fn changed(object: &[u8], section: &[u8]) -> Vec<u8> {
        let offset = section.as_ptr() as usize - object.as_ptr() as usize;
        let mut copy = object.to_vec();
        copy[offset + section.len() / 2] ^= 1;
        copy
    }

    #[test]
    fn a_change_of_any_loaded_section_is_found() {
        let object = fs::read(paths::bpf_object()).unwrap();
        let sections = loaded(&object).unwrap();
        for name in [".text", "classifier", "maps", ".BTF", ".BTF.ext", ".rel.text"] {
            assert!(!is_same(&object, &changed(&object, sections[name])), "{name}");
        }
        assert!(is_same(&object, &object.clone()));
    }

    #[test]
    fn names_of_functions_make_no_difference_and_other_files_are_never_the_same() {
        let object = fs::read(paths::bpf_object()).unwrap();
        let mangled = object.windows(4).position(|bytes| bytes == b"_RNv").expect("a mangled name");
        let mut renamed = object.clone();
        renamed[mangled + 1] = b'Q';
        assert!(is_same(&object, &renamed));
        assert!(!is_same(b"text", b"text"));
        assert!(!is_same(&object[..object.len() / 2], &object[..object.len() / 2]));
    }
}
