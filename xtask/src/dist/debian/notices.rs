//! Licences of the code of others in the package: crates in the programs, packages in the dashboard. Most licences
//! require that their text and the names of the authors are passed on.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{
    metadata::{Metadata, list, text as field},
    paths, ui,
};

/// Packages whose programs are packed.
const PROGRAMS: [&str; 2] = ["gateway-api", "gateway-cli"];
const KERNEL_PROGRAMS: [&str; 1] = ["gateway-ebpf"];

/// Beginnings of the names of files with licences and authors, in capitals.
const NOTICES: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

/// A package of others with its folder.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    name: String,
    license: String,
    folder: PathBuf,
}

/// Returns the list of all packages with their licences, and each text once with the packages that have it.
pub(super) fn text() -> Result<String> {
    let mut crates = crates(&Metadata::for_linux()?, &PROGRAMS)?;
    crates.extend(self::crates(&Metadata::of_ebpf_dependencies()?, &KERNEL_PROGRAMS)?);
    let dashboard = dashboard()?;
    let mut text = "Code of others in this package, with its licences.\n".to_owned();
    let mut notices: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (title, parts) in [("gatewayd and gateway-ctl", &crates), ("The dashboard", &dashboard)] {
        ensure!(!parts.is_empty(), "no packages of others were found for: {title}");
        write!(text, "\n{title}\n\n")?;
        for part in parts {
            writeln!(text, "  {} ({})", part.name, part.license)?;
            for notice in notices_in(&part.folder)? {
                notices.entry(notice).or_default().insert(&part.name);
            }
        }
    }
    for (notice, names) in notices {
        let names: Vec<&str> = names.into_iter().collect();
        write!(text, "\n{}\n{}\n\n{notice}\n", "=".repeat(72), names.join(", "))?;
    }
    Ok(text)
}

/// Returns the crates that are linked into the programs of these packages.
fn crates(metadata: &Metadata, packages: &[&str]) -> Result<BTreeSet<Part>> {
    let nodes: BTreeMap<&str, &Value> =
        metadata.nodes().iter().map(|node| (field(&node["id"]), node)).collect();
    let packed = metadata.packages().iter().filter(|package| packages.contains(&field(&package["name"])));
    let mut open: Vec<&str> = packed.map(|package| field(&package["id"])).collect();
    let mut linked: BTreeSet<&str> = open.iter().copied().collect();
    while let Some(id) = open.pop() {
        let node = nodes.get(id).with_context(|| format!("cargo names no dependencies of {id}"))?;
        for dependency in list(&node["deps"]) {
            let is_linked = list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
            let id = field(&dependency["pkg"]);
            if is_linked && linked.insert(id) {
                open.push(id);
            }
        }
    }
    let is_foreign =
        |package: &&Value| package["source"].is_string() && linked.contains(field(&package["id"]));
    let part = |package: &Value| {
        let manifest = Path::new(field(&package["manifest_path"]));
        Ok(Part {
            name: format!("{} {}", field(&package["name"]), field(&package["version"])),
            license: field(&package["license"]).to_owned(),
            folder: manifest.parent().context("a manifest lies in a folder")?.to_owned(),
        })
    };
    metadata.packages().iter().filter(is_foreign).map(part).collect()
}

/// Returns the packages that are bundled into the dashboard.
fn dashboard() -> Result<BTreeSet<Part>> {
    let part = |(path, dependency): (String, crate::dependencies::Dependency)| {
        let folder = paths::ui().join(path);
        ensure!(folder.is_dir(), "{} is missing: run `cargo xtask ui`", folder.display());
        Ok(Part {
            name: format!("{} {}", dependency.name, dependency.version),
            license: dependency.license.unwrap_or_default(),
            folder,
        })
    };
    ui::bundled_packages()?.into_iter().map(part).collect()
}

/// Returns the texts of the files with licences and authors in a folder.
fn notices_in(folder: &Path) -> Result<Vec<String>> {
    let mut notices = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_file() && NOTICES.iter().any(|beginning| name.starts_with(beginning)) {
            let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            // Copies differ in the ends of their lines.
            let text = String::from_utf8_lossy(&text);
            let lines: Vec<&str> = text.trim().lines().map(str::trim_end).collect();
            notices.push(lines.join("\n"));
        }
    }
    Ok(notices)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linked_crates_are_listed_and_tools_are_not() {
        let crates = crates(&Metadata::for_linux().unwrap(), &PROGRAMS).unwrap();
        let has = |name: &str| crates.iter().any(|part| part.name.starts_with(name));
        assert!(has("rustls ") && has("boringtun ") && has("unicode-width "));
        assert!(!has("cc ") && !has("tempfile ") && !has("gateway-api "), "build and test tools");
        let rustls = crates.iter().find(|part| part.name.starts_with("rustls ")).unwrap();
        assert!(notices_in(&rustls.folder).unwrap().iter().any(|text| text.contains("Permission is hereby")));
        let kernel = self::crates(&Metadata::of_ebpf_dependencies().unwrap(), &KERNEL_PROGRAMS).unwrap();
        assert!(kernel.iter().any(|part| part.name.starts_with("aya-ebpf ")));
    }
}
