//! Advisories of RustSec, if a local copy of its database exists. No download occurs: a check needs no network.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use semver::VersionReq;
use toml::Value as Toml;

use super::dependency::{Dependency, reasoned};

/// Returns the path of cargo-audit's copy, or of a clone in the same folder.
pub fn database() -> Option<PathBuf> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&env::var_os("HOME")?).join(".cargo")))?;
    Some(home.join("advisory-db")).filter(|folder| folder.join("crates").is_dir())
}

pub fn problems(dependencies: &[Dependency], database: &Path, rules: &Toml) -> Result<Vec<String>> {
    let ignored = reasoned(&rules["ignore"], "id")?;
    let mut problems = Vec::new();
    for dependency in dependencies {
        let folder = database.join("crates").join(&dependency.name);
        if !folder.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let advisory =
                Advisory::parse(&text).with_context(|| format!("cannot read {}", path.display()))?;
            if advisory.concerns(dependency) && !ignored.contains(&advisory.id.as_str()) {
                problems.push(format!("{} {}: {}", dependency.name, dependency.version, advisory.id));
            }
        }
    }
    Ok(problems)
}

#[derive(Debug)]
struct Advisory {
    id: String,
    is_withdrawn: bool,
    /// Unaffected versions.
    safe: Vec<VersionReq>,
}

impl Advisory {
    /// Reads the TOML block at the beginning of an advisory.
    fn parse(text: &str) -> Result<Advisory> {
        let block = text.split_once("```toml").and_then(|(_, rest)| rest.split_once("```"));
        let (block, _) = block.context("no block of TOML")?;
        let advisory: Toml = block.parse().context("the block is not TOML")?;
        let head = advisory.get("advisory").context("no table [advisory]")?;
        let id = head.get("id").and_then(Toml::as_str).context("no id")?.to_owned();
        let mut safe = Vec::new();
        for list in ["patched", "unaffected"] {
            let versions = advisory.get("versions").and_then(|versions| versions.get(list));
            for version in versions.and_then(Toml::as_array).into_iter().flatten().filter_map(Toml::as_str) {
                safe.push(version.parse().with_context(|| format!("`{version}` is no version"))?);
            }
        }
        // An advisory without versions affects all of them: an unmaintained crate, for example.
        Ok(Advisory { id, is_withdrawn: head.get("withdrawn").is_some(), safe })
    }

    fn concerns(&self, dependency: &Dependency) -> bool {
        !self.is_withdrawn && !self.safe.iter().any(|versions| versions.matches(&dependency.version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dependencies::tests::dependency;

    const TEXT: &str = "```toml\n[advisory]\nid = \"RUSTSEC-2026-0001\"\npackage = \"a\"\n\
        [versions]\npatched = [\">= 1.2.3\", \"^0.9.4\"]\nunaffected = [\"< 0.3.0\"]\n```\n# Title\n";

    #[test]
    fn versions_between_the_first_bad_and_the_first_good_one_are_concerned() {
        let advisory = Advisory::parse(TEXT).unwrap();
        let concerned = |version| advisory.concerns(&dependency("a", version, "MIT"));
        assert!(concerned("0.3.0") && concerned("0.9.3") && concerned("1.2.2"));
        assert!(!concerned("0.2.9") && !concerned("0.9.5") && !concerned("1.2.3"));
    }

    #[test]
    fn an_advisory_that_was_withdrawn_concerns_nothing() {
        let advisory =
            Advisory::parse(&TEXT.replace("[versions]", "withdrawn = \"2026-01-01\"\n[versions]")).unwrap();
        assert!(!advisory.concerns(&dependency("a", "0.3.0", "MIT")));
    }

    #[test]
    fn a_database_is_searched_by_crate_and_its_rows_can_be_ignored() {
        let folder = env::temp_dir().join(format!("advisories-{}", std::process::id()));
        fs::create_dir_all(folder.join("crates/a")).unwrap();
        fs::write(folder.join("crates/a/RUSTSEC-2026-0001.md"), TEXT).unwrap();
        let all = [dependency("a", "1.0.0", "MIT"), dependency("b", "1.0.0", "MIT")];
        let found = |rules: &str| problems(&all, &folder, &rules.parse().unwrap()).unwrap();
        let (all_found, none) =
            (found("ignore = []"), found("ignore = [{ id = \"RUSTSEC-2026-0001\", reason = \"x\" }]"));
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(all_found, ["a 1.0.0: RUSTSEC-2026-0001"]);
        assert_eq!(none.len(), 0);
    }
}
