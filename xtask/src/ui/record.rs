//! Records of what was done: checksums of the sources of the dashboard and of the built files.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{paths, process};

/// Inputs of the build outside its folder.
const OF_BUILD: &[&str] = &["gateway-api/openapi.json"];
/// Further inputs of the checks.
const OF_CHECKS: &[&str] = &["deny.toml"];

/// File that the build generates among the sources.
const GENERATED: &str = "ui/src/api/schema.d.ts";

pub(super) struct Record {
    name: &'static str,
    others: &'static [&'static str],
}

impl Record {
    /// Returns the record of the last build.
    pub(super) fn built() -> Self {
        Self { name: "built.sha256", others: &[] }
    }

    /// Returns the record of the last build whose checks and tests passed.
    pub(super) fn verified() -> Self {
        Self { name: "verified.sha256", others: OF_CHECKS }
    }

    /// Reports whether the recorded sources and results are the current ones.
    pub(super) fn confirms(&self) -> Result<bool> {
        let Ok(recorded) = fs::read_to_string(self.path()) else { return Ok(false) };
        Ok(recorded == self.text(&self.sources()?)?)
    }

    /// Returns the checksums of the current sources.
    pub(super) fn sources(&self) -> Result<String> {
        let mut files = match paths::root().join(".git").exists() {
            true => tracked()?,
            false => unpacked()?,
        };
        files.extend(OF_BUILD.iter().chain(self.others).map(PathBuf::from));
        sums(files.into_iter().filter(|file| !is_result(file)).collect())
    }

    /// Records these sources with the current results.
    pub(super) fn write(&self, sources: &str) -> Result<()> {
        let path = self.path();
        fs::create_dir_all(paths::ui_records()).context("cannot make the folder of the records")?;
        fs::write(&path, self.text(sources)?).with_context(|| format!("cannot write {}", path.display()))
    }

    fn path(&self) -> PathBuf {
        paths::ui_records().join(self.name)
    }

    fn text(&self, sources: &str) -> Result<String> {
        let mut results = vec![PathBuf::from(GENERATED)];
        if paths::ui_dist().is_dir() {
            collect(Path::new("ui/dist"), &mut results)?;
        }
        Ok(format!("# Sources\n{sources}# Results\n{}", sums(results)?))
    }
}

/// Returns the files of the dashboard that git tracks or would add.
fn tracked() -> Result<Vec<PathBuf>> {
    let mut list = Command::new("git");
    // Root may list the files of another user: it runs their code anyway.
    list.current_dir(paths::root()).args(["-c", "safe.directory=*", "ls-files", "-z"]);
    list.args(["--cached", "--others", "--exclude-standard", "--", "ui"]);
    let listed = process::output(&mut list).context("the sources of the dashboard")?;
    Ok(listed.split('\0').filter(|file| !file.is_empty()).map(PathBuf::from).collect())
}

/// Returns the files of the dashboard in an unpacked archive.
fn unpacked() -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let ui = paths::ui();
    for entry in fs::read_dir(&ui).with_context(|| format!("cannot read {}", ui.display()))? {
        let entry = entry?;
        let path = Path::new("ui").join(entry.file_name());
        match entry.path().is_dir() {
            true if path.ends_with("node_modules") || path.ends_with("dist") => {}
            true => collect(&path, &mut files)?,
            false => files.push(path),
        }
    }
    Ok(files)
}

fn is_result(file: &Path) -> bool {
    file == Path::new(GENERATED) || file.starts_with("ui/dist")
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let whole = paths::root().join(folder);
    for entry in fs::read_dir(&whole).with_context(|| format!("cannot read {}", whole.display()))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        match entry.path().is_dir() {
            true => collect(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}

/// Returns a line for each of the files that exists. `sha256sum --check` in the root of the repository reads them, too.
fn sums(mut files: Vec<PathBuf>) -> Result<String> {
    let root = paths::root();
    files.retain(|file| root.join(file).is_file());
    files.sort();
    files.dedup();
    if files.is_empty() {
        return Ok(String::new());
    }
    process::output(Command::new("sha256sum").current_dir(&root).arg("--").args(&files))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_no_sources() {
        assert!(is_result(Path::new("ui/dist/assets/x.js")) && is_result(Path::new(GENERATED)));
        assert!(!is_result(Path::new("ui/distant.ts")) && !is_result(Path::new("ui/src/api/client.ts")));
    }

    #[test]
    fn the_description_of_the_api_and_the_rules_are_sources() {
        let sums = Record::verified().sources().unwrap();
        assert!(sums.contains("  gateway-api/openapi.json\n") && sums.contains("  deny.toml\n"));
        assert!(!Record::built().sources().unwrap().contains("deny.toml"));
        assert_eq!(super::sums(vec!["no/such/file".into()]).unwrap(), "");
    }
}
