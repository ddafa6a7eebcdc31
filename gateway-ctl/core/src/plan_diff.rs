//! Changes of the dataplane by a change of the state: two compiled plans, compared line by line as they are rendered.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::compile::Compiled;
use crate::render::{Render, render};

/// Lines that are listed of each part; more are counted.
const LISTED: usize = 100;

/// The difference between two plans.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanDiff {
    pub changed: bool,
    /// Hashes of the plans, as `/render` shows them. Keys of tunnels are no part of them.
    pub from: String,
    pub to: String,
    /// By part of the rendered plan: a map by its name in the kernel, `rules`, `routes`, `tunnels` and so on. Parts
    /// that are the same are left out.
    pub parts: BTreeMap<String, PartDiff>,
}

/// Added and removed lines in a part of the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PartDiff {
    /// The first hundred lines of each.
    pub added: Vec<String>,
    pub removed: Vec<String>,
    pub added_count: usize,
    pub removed_count: usize,
}

/// Compares the present plan with the new one.
pub fn plan_diff(before: &Compiled, after: &Compiled) -> PlanDiff {
    let (from, to) = (render(before, 0), render(after, 0));
    let parts = difference(&lines(&from), &lines(&to));
    PlanDiff { changed: !parts.is_empty(), from: from.hash, to: to.hash, parts }
}

type Lines = BTreeMap<String, Vec<String>>;

fn difference(from: &Lines, to: &Lines) -> BTreeMap<String, PartDiff> {
    let names: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
    let part = |name: &String| {
        let (had, has) = (from.get(name), to.get(name));
        let missing = |these: Option<&Vec<String>>, those: Option<&Vec<String>>| -> Vec<String> {
            let those: BTreeSet<&String> = those.into_iter().flatten().collect();
            these.into_iter().flatten().filter(|line| !those.contains(line)).cloned().collect()
        };
        let (mut added, mut removed) = (missing(has, had), missing(had, has));
        let (added_count, removed_count) = (added.len(), removed.len());
        added.truncate(LISTED);
        removed.truncate(LISTED);
        let diff = PartDiff { added, removed, added_count, removed_count };
        (added_count + removed_count > 0).then(|| (name.clone(), diff))
    };
    names.into_iter().filter_map(part).collect()
}

fn lines(plan: &Render) -> Lines {
    // Complete on purpose: a part that is added to the rendering has to be added here.
    let Render {
        generation: _,
        hash: _,
        backend: _,
        maps,
        rules,
        routes,
        excludes,
        dns_bindings,
        wireguard,
        openvpn,
        addresses,
        sysctls,
    } = plan;
    let mut lines: Lines =
        maps.iter().map(|(name, view)| ((*name).to_owned(), view.entries.clone())).collect();
    lines.insert("rules".into(), rules.clone());
    lines.insert("routes".into(), routes.clone());
    lines.insert("excludes".into(), excludes.iter().map(json).collect());
    lines.insert("dns_bindings".into(), dns_bindings.clone());
    let tunnels = wireguard.iter().map(|(name, view)| format!("{name} {}", json(view)));
    let over_openvpn = openvpn.iter().map(|(name, view)| format!("{name} {}", json(view)));
    lines.insert("tunnels".into(), tunnels.chain(over_openvpn).collect());
    lines.insert("addresses".into(), addresses.clone());
    lines.insert("sysctls".into(), sysctls.iter().map(|(name, value)| format!("{name} = {value}")).collect());
    lines
}

fn json(view: &impl Serialize) -> String {
    serde_json::to_string(view).expect("text keys and plain values")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(lines: &[&str]) -> Lines {
        BTreeMap::from([("rules".to_owned(), lines.iter().map(|line| (*line).to_owned()).collect())])
    }

    #[test]
    fn lines_that_come_and_go_are_listed_and_those_that_stay_are_not() {
        let parts = difference(&part(&["a", "b"]), &part(&["b", "c"]));
        let rules = &parts["rules"];
        assert_eq!((&rules.added, &rules.removed), (&vec!["c".to_owned()], &vec!["a".to_owned()]));
        assert!(difference(&part(&["a"]), &part(&["a"])).is_empty());
        assert!(!plan_diff(&Compiled::default(), &Compiled::default()).changed);
    }

    #[test]
    fn long_lists_are_counted_and_cut() {
        let many: Vec<String> = (0..LISTED + 5).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let parts = difference(&part(&[]), &part(&many));
        assert_eq!((parts["rules"].added.len(), parts["rules"].added_count), (LISTED, LISTED + 5));
    }
}
