//! Duplicate versions of one crate: all but one are in the list, with the reason.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use semver::{Version, VersionReq};
use toml::Value as Toml;

use super::dependency::{Dependency, reasoned};

pub fn problems(dependencies: &[Dependency], rules: &Toml) -> Result<Vec<String>> {
    let skipped: Vec<(&str, VersionReq)> =
        reasoned(&rules["skip"], "crate")?.into_iter().map(parse).collect::<Result<_>>()?;
    let is_skipped = |name: &str, version: &Version| {
        skipped.iter().any(|(skipped, versions)| *skipped == name && versions.matches(version))
    };
    let mut versions: BTreeMap<&str, Vec<&Version>> = BTreeMap::new();
    for dependency in dependencies {
        versions.entry(&dependency.name).or_default().push(&dependency.version);
    }
    let mut problems = Vec::new();
    for (name, versions) in &versions {
        let left: Vec<String> =
            versions.iter().filter(|version| !is_skipped(name, version)).map(|v| v.to_string()).collect();
        if left.len() > 1 {
            problems.push(format!("{name} is there more than once: {}", left.join(", ")));
        }
    }
    for (name, requirement) in &skipped {
        let all = versions.get(name).map_or(&[][..], Vec::as_slice);
        if all.len() < 2 || !all.iter().any(|version| requirement.matches(version)) {
            problems.push(format!("{name}@{requirement} in deny.toml is no second version any more"));
        }
    }
    Ok(problems)
}

/// Parses `name@0.5`: every version that is compatible with it.
fn parse(spec: &str) -> Result<(&str, VersionReq)> {
    let (name, version) =
        spec.split_once('@').with_context(|| format!("no version in `{spec}` of deny.toml"))?;
    Ok((name, version.parse().with_context(|| format!("`{version}` in deny.toml is no version"))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dependencies::tests::dependency;

    #[test]
    fn a_second_version_needs_a_row_and_a_row_needs_a_second_version() {
        let rules: Toml = "skip = [{ crate = \"a@0.1\", reason = \"b\" }]".parse().unwrap();
        let with = |versions: &[(&str, &str)]| {
            let all: Vec<_> =
                versions.iter().map(|(name, version)| dependency(name, version, "MIT")).collect();
            problems(&all, &rules).unwrap()
        };
        assert!(with(&[("a", "0.1.7"), ("a", "0.2.0"), ("b", "1.0.0")]).is_empty());
        assert_eq!(with(&[("a", "0.1.7"), ("a", "0.2.0"), ("a", "0.3.0")]).len(), 1);
        assert_eq!(with(&[("a", "0.2.0"), ("b", "1.0.0")]).len(), 1);
        assert_eq!(with(&[("a", "0.1.7")]).len(), 1);
    }
}
