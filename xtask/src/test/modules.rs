//! Suites as modules of the test targets of gateway-tests. Each module runs, and in its own suite only.

use std::fs;

use anyhow::{Context, Result};

use super::suites::{SUITES, Work};
use crate::paths;

/// Returns modules without a suite, which would look like passing tests, and suites without a module.
pub(super) fn problems(targets: &[String]) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for target in targets {
        let root = paths::tests().join(format!("{target}.rs"));
        let text = fs::read_to_string(&root).with_context(|| format!("cannot read {}", root.display()))?;
        let suites: Vec<&str> = SUITES
            .iter()
            .filter(|suite| suite.work == Work::Module(target))
            .map(|suite| suite.name)
            .collect();
        problems.extend(unmatched(target, &modules(&text), &suites));
        for suite in &suites {
            problems.extend(ambiguous(suite, &files(suite)?, &suites));
        }
    }
    for suite in SUITES {
        if let Work::Module(target) = suite.work
            && !targets.iter().any(|known| known == target)
        {
            problems
                .push(format!("gateway-tests has no test target `{target}` for the suite {}", suite.name));
        }
    }
    Ok(problems)
}

/// Returns the argument that makes a test program run the tests of a suite.
pub(super) fn filter(suite: &str) -> String {
    format!("{suite}::")
}

fn modules(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';')).collect()
}

fn unmatched(target: &str, modules: &[&str], suites: &[&str]) -> Vec<String> {
    let unknown = modules.iter().filter(|module| !suites.contains(module));
    let absent = suites.iter().filter(|suite| !modules.contains(suite));
    let unknown = unknown
        .map(|module| format!("no suite of xtask/src/test/suites.rs runs the module {module} of {target}"));
    unknown.chain(absent.map(|suite| format!("{target} has no module for the suite {suite}"))).collect()
}

/// Returns ambiguous names. Test programs filter by a part of the name, so `a::b::test` would also run with the suite
/// `b`.
fn ambiguous(suite: &str, files: &[String], suites: &[&str]) -> Vec<String> {
    let is_ambiguous = |name: &str| suites.iter().any(|other| name.ends_with(other));
    let names = files.iter().filter(|name| is_ambiguous(name));
    names
        .map(|name| format!("the module {suite}::{name} would also run with the suite of that name"))
        .collect()
}

/// Returns the names of the modules below a suite at any depth.
fn files(suite: &str) -> Result<Vec<String>> {
    let (mut names, mut folders) = (Vec::new(), vec![paths::tests().join(suite)]);
    while let Some(folder) = folders.pop() {
        if !folder.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
            }
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_has_its_suite() {
        let targets = super::super::suites::targets().unwrap();
        assert_eq!(problems(&targets.ours).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_module_without_a_suite_and_a_suite_without_a_module_are_found() {
        let modules = modules("//! Text\n\nmod a;\nmod b;\n");
        assert_eq!(modules, ["a", "b"]);
        assert_eq!(unmatched("t", &modules, &["b", "c"]).len(), 2);
        assert_eq!(unmatched("t", &modules, &["a", "b"]).len(), 0);
    }

    #[test]
    fn a_module_that_the_filter_of_another_suite_matches_is_found() {
        let files = ["backup", "objects", "mystore"].map(String::from);
        assert_eq!(ambiguous("contract", &files, &["contract", "backup", "store"]).len(), 2);
        assert_eq!(ambiguous("contract", &files, &["contract", "e2e"]).len(), 0);
    }
}
