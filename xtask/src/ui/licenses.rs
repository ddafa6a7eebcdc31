//! Licences of the packages whose code is part of the dashboard, by the rules for crates.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use toml::Value as Toml;

use crate::{
    dependencies::{Dependency, licenses},
    metadata::text,
    paths,
};

/// Returns the violations of the packages that a lockfile (version 2 or 3) names, without those for development only.
pub(super) fn problems(lockfile: &Value, rules: &Toml) -> Result<Vec<String>> {
    let shipped: Vec<Dependency> = shipped(lockfile)?.into_iter().map(|(_, dependency)| dependency).collect();
    licenses::problems(&shipped, rules)
}

/// Returns the packages without those for development only, each with its folder below `ui`.
pub(super) fn shipped(lockfile: &Value) -> Result<Vec<(String, Dependency)>> {
    let packages = lockfile["packages"].as_object().context("ui/package-lock.json has no packages")?;
    let is_shipped = |path: &str, package: &Value| !path.is_empty() && package["dev"] != true;
    let shipped = packages
        .iter()
        .filter(|(path, package)| is_shipped(path, package))
        .map(|(path, package)| Ok((path.clone(), dependency(path, package)?)))
        .collect::<Result<Vec<_>>>()?;
    ensure!(!shipped.is_empty(), "ui/package-lock.json names no packages of the dashboard");
    Ok(shipped)
}

fn dependency(path: &str, package: &Value) -> Result<Dependency> {
    let name = path.rsplit_once("node_modules/").map_or(path, |(_, name)| name);
    let version = text(&package["version"]);
    Ok(Dependency {
        name: name.to_owned(),
        version: version.parse().with_context(|| format!("{name} {version:?} is no version"))?,
        license: package["license"].as_str().map(str::to_owned).or_else(|| installed(path)),
    })
}

/// Returns the licence that the installed package names. Old lockfiles have none.
fn installed(path: &str) -> Option<String> {
    let manifest = fs::read_to_string(paths::ui().join(path).join("package.json")).ok()?;
    let manifest: Value = serde_json::from_str(&manifest).ok()?;
    let license = &manifest["license"];
    license.as_str().or_else(|| license["type"].as_str()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn packages_of_the_dashboard_need_an_allowed_licence_and_tools_do_not() {
        let rules: Toml = "allow = [\"MIT\"]".parse().unwrap();
        let lockfile = json!({"packages": {
            "": {"name": "gateway-ui", "license": "GPL-3.0"},
            "node_modules/a": {"version": "1.0.0", "license": "MIT"},
            "node_modules/a/node_modules/@x/b": {"version": "2.0.0-rc.1", "license": "GPL-3.0"},
            "node_modules/c": {"version": "1.2.3"},
            "node_modules/tool": {"version": "3.0.0", "license": "MPL-2.0", "dev": true},
            "node_modules/optional": {"version": "3.0.0", "license": "(MIT OR GPL-3.0)", "devOptional": true},
        }});
        let wrong = ["@x/b 2.0.0-rc.1: licence GPL-3.0", "c 1.2.3: licence none"];
        assert_eq!(problems(&lockfile, &rules).unwrap(), wrong);
        assert!(problems(&json!({"packages": {}}), &rules).is_err());
        assert!(problems(&json!({}), &rules).is_err());
    }
}
