//! Sources: all crates come from one registry. Cargo.lock has their checksums.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use toml::Value as Toml;

use super::dependency::Dependency;

pub fn problems<'a>(
    dependencies: impl IntoIterator<Item = &'a Dependency>,
    rules: &Toml,
) -> Result<Vec<String>> {
    for rule in ["unknown-registry", "unknown-git"] {
        let is_denied = rules.get(rule).and_then(Toml::as_str) == Some("deny");
        ensure!(is_denied, "`{rule}` in deny.toml must be \"deny\"");
    }
    let dependencies: Vec<&Dependency> = dependencies.into_iter().collect();
    let mut uses = BTreeMap::<&str, usize>::new();
    for dependency in &dependencies {
        *uses.entry(&dependency.source).or_default() += 1;
    }
    let usual = uses.iter().max_by_key(|(_, uses)| **uses).map(|(source, _)| *source);
    let is_known = |dependency: &Dependency| {
        Some(&*dependency.source) == usual && dependency.source.starts_with("registry+")
    };
    let problem = |dependency: &&Dependency| {
        let Dependency { name, version, source, .. } = *dependency;
        format!("{name} {version}: from {source}")
    };
    Ok(dependencies.iter().filter(|dependency| !is_known(dependency)).map(problem).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dependencies::tests::dependency;

    #[test]
    fn crates_of_other_registries_and_of_repositories_are_refused() {
        let rules: Toml = "unknown-registry = \"deny\"\nunknown-git = \"deny\"".parse().unwrap();
        let mut all = ["a", "b", "c", "d"].map(|name| dependency(name, "1.0.0", "MIT"));
        assert_eq!(problems(&all, &rules).unwrap(), Vec::<String>::new());
        all[1].source = "git+https://git.example/b#0123".to_owned();
        all[3].source = "registry+https://other.example".to_owned();
        let want =
            ["b 1.0.0: from git+https://git.example/b#0123", "d 1.0.0: from registry+https://other.example"];
        assert_eq!(problems(&all, &rules).unwrap(), want);
        assert!(problems(&all, &"unknown-git = \"warn\"".parse().unwrap()).is_err());
    }
}
