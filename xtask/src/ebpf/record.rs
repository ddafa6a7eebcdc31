//! The record beside the kernel programs: a checksum of each input file and of the programs themselves.
//!
//! `sha256sum --check` in the root of the repository reads it as well.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{paths, process, setup};

const INPUTS: &[&str] = &[
    "gateway-common/Cargo.toml",
    "gateway-common/src",
    "gateway-ebpf/.cargo/config.toml",
    "gateway-ebpf/Cargo.lock",
    "gateway-ebpf/Cargo.toml",
    "gateway-ebpf/build.rs",
    "gateway-ebpf/object/gateway.bpf.o",
    "gateway-ebpf/src",
];

/// Fields that gateway-common inherits from the workspace.
const INHERITED: &[&str] = &["edition", "zerocopy"];

/// Prefix of the lines about the compiler. Another compiler makes no other record.
const BUILT_BY: &str = "# Built by ";

/// Returns the record of the current files, built by the compiler with this `identity` (`rustc -vV`).
pub(super) fn text(identity: &str) -> Result<String> {
    let root = paths::root();
    let mut files = Vec::new();
    for input in INPUTS {
        collect(&root, Path::new(input), &mut files)?;
    }
    files.sort();
    let sums = process::output(Command::new("sha256sum").current_dir(&root).arg("--").args(&files))?;
    let mut text = "# Written by `cargo xtask ebpf`, compared by `cargo xtask tidy`.\n".to_owned();
    for line in identity.lines().filter(|line| line.starts_with("rustc ") || line.starts_with("LLVM ")) {
        text.push_str(&format!("{BUILT_BY}{line}\n"));
    }
    for (tool, version) in setup::BPF_TOOLS {
        text.push_str(&format!("# {tool} {version}\n"));
    }
    for line in inherited(&fs::read_to_string(root.join("Cargo.toml")).context("cannot read Cargo.toml")?) {
        text.push_str(&format!("# {line}\n"));
    }
    Ok(text + &sums)
}

fn collect(root: &Path, path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let whole = root.join(path);
    if !whole.is_dir() {
        files.push(path.to_path_buf());
        return Ok(());
    }
    for entry in fs::read_dir(&whole).with_context(|| format!("cannot read {}", whole.display()))? {
        collect(root, &path.join(entry?.file_name()), files)?;
    }
    Ok(())
}

fn inherited(manifest: &str) -> Vec<&str> {
    let name = |line: &str| line.split_once('=').map(|(name, _)| name.trim().to_owned()).unwrap_or_default();
    manifest.lines().filter(|line| INHERITED.contains(&name(line).as_str())).collect()
}

/// Returns the lines that only one of the two has: a file by its name, any other line unchanged.
pub(super) fn differences(recorded: &str, found: &str) -> Vec<String> {
    let (recorded, found) = (compared(recorded), compared(found));
    let name = |line: &&str| line.split_once("  ").map_or(*line, |(_, file)| file).to_owned();
    recorded.symmetric_difference(&found).map(name).collect::<BTreeSet<_>>().into_iter().collect()
}

fn compared(text: &str) -> BTreeSet<&str> {
    text.lines().filter(|line| !line.starts_with(BUILT_BY)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_a_new_and_a_missing_file_are_named_once() {
        let recorded = "# LLVM 22\n1  a.rs\n2  b.rs\n3  c.rs\n";
        let found = "# LLVM 22\n1  a.rs\n9  b.rs\n4  d.rs\n";
        assert_eq!(differences(recorded, found), ["b.rs", "c.rs", "d.rs"]);
    }

    #[test]
    fn another_compiler_is_no_difference_and_another_linker_is_one() {
        let recorded = "# Built by rustc 1\n# bpf-linker 1\n1  a.rs\n";
        assert_eq!(differences(recorded, "# Built by rustc 2\n# bpf-linker 1\n1  a.rs\n").len(), 0);
        assert_eq!(differences(recorded, "# bpf-linker 2\n1  a.rs\n"), ["# bpf-linker 1", "# bpf-linker 2"]);
    }

    #[test]
    fn inherited_settings_of_the_workspace_are_recorded() {
        let manifest = "[workspace.package]\nedition = \"2024\"\nzerocopy = \"1\"\nzerocopy-derive = \"1\"\n";
        assert_eq!(inherited(manifest), ["edition = \"2024\"", "zerocopy = \"1\""]);
    }

    #[test]
    fn the_sources_are_inputs() {
        let text = text("rustc 1.0 (x)\nbinary: rustc\nLLVM version: 22\n").unwrap();
        for part in ["  gateway-common/src/verdict.rs", "  gateway-ebpf/src/main.rs", "# Built by rustc 1.0"]
        {
            assert!(text.contains(part), "{part}");
        }
        assert!(!text.contains("binary"));
    }
}
