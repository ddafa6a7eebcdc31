//! Features of dependencies: builds with and without tests select the same ones, so that they share their artifacts.

use std::collections::BTreeSet;

use anyhow::Result;

use crate::process;

/// Returns every package that tests build with other features.
pub(super) fn differences() -> Result<Vec<String>> {
    Ok(only_in_tests(&tree("normal,build")?, &tree("normal,build,dev")?))
}

/// Returns the packages of the workspace's graph over these kinds of edges, one a line, with the features of each.
fn tree(edges: &str) -> Result<String> {
    let mut command = process::cargo();
    command.args(["tree", "--locked", "--workspace", "--prefix", "none", "--format", "{p} [{f}]"]);
    process::output(command.args(["--edges", edges]))
}

fn only_in_tests(without: &str, with: &str) -> Vec<String> {
    let lines =
        |text| -> BTreeSet<&str> { str::lines(text).map(|line| line.trim_end_matches(" (*)")).collect() };
    let (without, with) = (lines(without), lines(with));
    let changed = without.difference(&with).filter_map(|line| line.split(" [").next());
    changed
        .map(|package| format!("{package}: tests turn on features of it that tests/Cargo.toml does not"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_of_tests_is_found_and_a_package_of_tests_is_none() {
        let without = "tokio v1 [net]\nmio v1 [os]\nmio v1 [os] (*)\n";
        assert_eq!(only_in_tests(without, "tokio v1 [net,test-util]\nmio v1 [os]\ns3s v1 []\n").len(), 1);
        assert_eq!(only_in_tests(without, "tokio v1 [net]\nmio v1 [os]\ns3s v1 []\n").len(), 0);
    }
}
