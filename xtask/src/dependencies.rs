//! Rules for dependencies by `deny.toml`: licences, duplicate versions, advisories of RustSec.

mod advisories;
mod dependency;
mod duplicates;
pub mod licenses;
mod sources;

use std::fs;

use anyhow::{Context, Result, ensure};
use toml::Value as Toml;

use crate::{
    metadata::{Metadata, text},
    paths,
};

pub use dependency::Dependency;

/// Fails with a line for each dependency that breaks a rule.
pub fn check() -> Result<()> {
    let rules = rules()?;
    let own = dependencies(&Metadata::for_linux()?)?;
    let mut problems = problems(&own, &rules)?;
    match advisories::database() {
        Some(folder) => problems.extend(advisories::problems(&own, &folder, &rules["advisories"])?),
        None => println!(
            "advisories were not read: there is no database of RustSec in CARGO_HOME/advisory-db\n    \
             (clone advisory-db of RustSec there)"
        ),
    }
    ensure!(problems.is_empty(), "dependencies break rules of deny.toml:\n    {}", problems.join("\n    "));
    Ok(())
}

/// Returns the content of `deny.toml`.
pub fn rules() -> Result<Toml> {
    let path = paths::root().join("deny.toml");
    let rules = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    rules.parse().with_context(|| format!("{} is not TOML", path.display()))
}

/// Returns violations that the crates themselves show: licences, including those of the kernel programs, and versions.
fn problems(own: &[Dependency], rules: &Toml) -> Result<Vec<String>> {
    let ebpf = dependencies(&Metadata::of_ebpf_dependencies()?)?;
    ensure!(!own.is_empty() && !ebpf.is_empty(), "cargo names no dependencies");
    let mut problems = licenses::problems(own, &rules["licenses"])?;
    problems.extend(licenses::problems(&ebpf, &rules["licenses"])?);
    problems.extend(duplicates::problems(own, &rules["bans"])?);
    problems.extend(sources::problems(own.iter().chain(&ebpf), &rules["sources"])?);
    problems.sort();
    problems.dedup();
    Ok(problems)
}

fn dependencies(metadata: &Metadata) -> Result<Vec<Dependency>> {
    let is_used = |id: &str| metadata.nodes().iter().any(|node| text(&node["id"]) == id);
    let packages = metadata.packages().iter().filter(|p| p["source"].is_string() && is_used(text(&p["id"])));
    let dependency = |package: &serde_json::Value| {
        let (name, version) = (text(&package["name"]), text(&package["version"]));
        Ok(Dependency {
            name: name.to_owned(),
            version: version.parse().with_context(|| format!("{name} {version} is no version"))?,
            license: package["license"].as_str().map(str::to_owned),
            source: text(&package["source"]).to_owned(),
        })
    };
    packages.map(dependency).collect()
}

#[cfg(test)]
mod tests {
    use super::dependency::reasoned;
    use super::*;

    pub fn dependency(name: &str, version: &str, license: &str) -> Dependency {
        Dependency {
            name: name.to_owned(),
            version: version.parse().unwrap(),
            license: Some(license.to_owned()),
            source: "registry+https://index.example".to_owned(),
        }
    }

    #[test]
    fn the_dependencies_keep_the_rules() {
        let own = dependencies(&Metadata::for_linux().unwrap()).unwrap();
        assert_eq!(problems(&own, &rules().unwrap()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_row_without_a_reason_is_an_error() {
        let rules: Toml = "a = [{ crate = \"x\", reason = \"y\" }]\nb = [{ crate = \"x\" }]".parse().unwrap();
        assert_eq!(reasoned(&rules["a"], "crate").unwrap(), ["x"]);
        assert!(reasoned(&rules["b"], "crate").is_err());
    }
}
