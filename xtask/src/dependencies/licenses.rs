//! Licences: each dependency has an allowed one, by its SPDX expression.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use toml::Value as Toml;

use super::dependency::Dependency;

pub(crate) fn problems(dependencies: &[Dependency], rules: &Toml) -> Result<Vec<String>> {
    let allow = rules["allow"].as_array().context("no list `allow` in deny.toml")?;
    let allow: BTreeSet<&str> = allow.iter().filter_map(Toml::as_str).collect();
    let problem = |dependency: &Dependency| {
        let license = dependency.license.as_deref().unwrap_or("none");
        let words = words(license);
        let mut rest = &words[..];
        let is_allowed = any(&mut rest, &allow) && rest.is_empty();
        (!is_allowed).then(|| format!("{} {}: licence {license}", dependency.name, dependency.version))
    };
    Ok(dependencies.iter().filter_map(problem).collect())
}

/// Returns operators, parentheses and names. A slash is the OR of old manifests.
fn words(expression: &str) -> Vec<String> {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    spaced.split_whitespace().map(str::to_owned).collect()
}

/// Evaluates alternatives, of which one suffices. Reads each to its end.
fn any(rest: &mut &[String], allow: &BTreeSet<&str>) -> bool {
    let mut is_allowed = all(rest, allow);
    while take(rest, "OR") {
        is_allowed |= all(rest, allow);
    }
    is_allowed
}

fn all(rest: &mut &[String], allow: &BTreeSet<&str>) -> bool {
    let mut is_allowed = one(rest, allow);
    while take(rest, "AND") {
        is_allowed &= one(rest, allow);
    }
    is_allowed
}

/// Evaluates a licence or an expression in parentheses. An exception (`WITH`) permits more, so it is ignored.
fn one(rest: &mut &[String], allow: &BTreeSet<&str>) -> bool {
    if take(rest, "(") {
        let is_allowed = any(rest, allow);
        return take(rest, ")") && is_allowed;
    }
    let Some((name, after)) = rest.split_first() else { return false };
    *rest = after;
    if take(rest, "WITH") {
        *rest = rest.get(1..).unwrap_or_default();
    }
    allow.contains(name.as_str())
}

fn take(rest: &mut &[String], word: &str) -> bool {
    match rest.split_first() {
        Some((first, after)) if first == word => {
            *rest = after;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dependencies::tests::dependency;

    fn is_allowed(license: &str) -> bool {
        let rules: Toml = "allow = [\"MIT\", \"ISC\"]".parse().unwrap();
        problems(&[dependency("x", "1.0.0", license)], &rules).unwrap().is_empty()
    }

    #[test]
    fn one_alternative_suffices_and_every_part_is_needed() {
        for license in
            ["MIT", "GPL-3.0 OR MIT", "GPL-3.0/MIT", "ISC AND (GPL-3.0 OR MIT)", "MIT WITH LLVM-exception"]
        {
            assert!(is_allowed(license), "{license}");
        }
        for license in
            ["GPL-3.0", "MIT AND GPL-3.0", "GPL-3.0 OR ISC AND GPL-2.0", "MIT (", "", "(MIT", "MIT MIT"]
        {
            assert!(!is_allowed(license), "{license}");
        }
    }
}
