//! Import cycles: files of a crate that import names from each other, directly or through others.
//!
//! The existing cycles are listed in `circles.txt`, one paragraph each: lines `# reason`, and the files. A line with a
//! slash at its end stands for the files in that folder. The list may only shrink.

mod imports;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};

use super::source::Source;
use imports::{Crate, Path};

const KNOWN: &str = include_str!("circles.txt");

/// Each file with the files that it imports names from, and one of those names.
type Graph = BTreeMap<String, BTreeMap<String, String>>;

pub(super) fn circles(sources: &[Source]) -> Vec<String> {
    check_graph(&graph(sources), KNOWN)
}

fn graph(sources: &[Source]) -> Graph {
    let mut crates: BTreeMap<&str, (Crate, BTreeMap<Path, &str>)> = BTreeMap::new();
    let has_library: BTreeSet<&str> =
        sources.iter().filter_map(|source| source.path.strip_suffix("/src/lib.rs")).collect();
    for source in sources.iter().filter(|source| source.is_rust() && !source.is_test()) {
        let Some((folder, file)) = source.path.split_once("/src/") else { continue };
        if file == "main.rs" && has_library.contains(folder) {
            continue;
        }
        let module: Path = match file {
            "lib.rs" | "main.rs" => Path::new(),
            _ => file.trim_end_matches(".rs").split('/').map(str::to_owned).collect(),
        };
        let (modules, paths) = crates.entry(folder).or_default();
        modules.add(module.clone(), &source.text);
        paths.insert(module, &source.path);
    }
    let mut graph = Graph::new();
    for (modules, paths) in crates.values() {
        for module in modules.modules() {
            let imports = modules.imports(module).into_iter();
            let imports = imports.map(|(from, name)| (paths[&from].to_owned(), name)).collect();
            graph.insert(paths[module].to_owned(), imports);
        }
    }
    graph
}

/// A cycle of the list.
struct KnownCircle<'a> {
    files: Vec<&'a str>,
    has_reason: bool,
}

impl<'a> KnownCircle<'a> {
    fn read(paragraph: &'a str) -> Self {
        let (reasons, files): (Vec<&str>, Vec<&str>) =
            paragraph.lines().filter(|line| !line.is_empty()).partition(|line| line.starts_with('#'));
        Self { files, has_reason: !reasons.is_empty() }
    }

    fn lists(&self, file: &str) -> bool {
        self.files.iter().any(|line| is_listed(line, file))
    }

    fn count(&self, circle: &BTreeSet<&str>) -> usize {
        circle.iter().filter(|file| self.lists(file)).count()
    }
}

fn is_listed(line: &str, file: &str) -> bool {
    line == file || (line.ends_with('/') && file.starts_with(line))
}

/// Compares the cycles of a graph with the list of known ones.
fn check_graph(graph: &Graph, known: &str) -> Vec<String> {
    let known: Vec<KnownCircle<'_>> =
        known.split("\n\n").map(KnownCircle::read).filter(|circle| !circle.files.is_empty()).collect();
    let found = components(graph);
    let mut violations = Vec::new();
    for circle in &found {
        let most = known.iter().max_by_key(|listed| listed.count(circle));
        let new = circle.iter().find(|file| most.is_none_or(|listed| !listed.lists(file)));
        violations.extend(new.map(|file| format!("a new circle: {}", shortest(graph, file))));
    }
    let tied: BTreeSet<&str> = found.into_iter().flatten().collect();
    for KnownCircle { files, has_reason } in known {
        let untied = files.iter().filter(|line| !tied.iter().any(|file| is_listed(line, file)));
        violations
            .extend(untied.map(|line| format!("{line} is in no circle any more: take it off circles.txt")));
        if !has_reason {
            violations.push(format!("circles.txt has no reason for the circle of {}", files.join(", ")));
        }
    }
    violations
}

/// Returns the sets of files that all reach each other.
fn components(graph: &Graph) -> Vec<BTreeSet<&str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|file| (file.as_str(), ways(graph, file).into_keys().collect())).collect();
    let mut found: Vec<BTreeSet<&str>> = Vec::new();
    for (file, reach) in &reached {
        if reach.contains(file) && !found.iter().any(|circle| circle.contains(file)) {
            found.push(reach.iter().filter(|other| reached[*other].contains(file)).copied().collect());
        }
    }
    found
}

/// Returns all files that a file reaches by imports, each with its predecessor on a shortest path.
fn ways<'a>(graph: &'a Graph, from: &'a str) -> BTreeMap<&'a str, &'a str> {
    let mut before = BTreeMap::new();
    let mut next = std::collections::VecDeque::from([from]);
    while let Some(file) = next.pop_front() {
        for other in graph.get(file).into_iter().flat_map(BTreeMap::keys) {
            if !before.contains_key(other.as_str()) {
                before.insert(other.as_str(), file);
                next.push_back(other);
            }
        }
    }
    before
}

/// Describes a shortest cycle through a file.
fn shortest(graph: &Graph, file: &str) -> String {
    let before = ways(graph, file);
    let mut text = file.to_owned();
    let mut at = file;
    while let Some(other) = before.get(at) {
        text = format!("{other} -({})-> {text}", graph[*other][at]);
        if *other == file {
            break;
        }
        at = other;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], known: &str) -> Vec<String> {
        let source =
            |(path, text): &(&str, &str)| Source { path: (*path).to_owned(), text: (*text).to_owned() };
        check_graph(&graph(&files.iter().map(source).collect::<Vec<_>>()), known)
    }

    const TIED: [(&str, &str); 4] = [
        ("x/src/lib.rs", "mod a;\nmod b;\nmod c;\n"),
        ("x/src/a.rs", "use crate::b::B;\npub struct A;"),
        ("x/src/b.rs", "use super::c::C;\npub struct B;"),
        ("x/src/c.rs", "pub struct C(crate::a::A);"),
    ];

    #[test]
    fn a_circle_is_reported_with_the_names_that_tie_it() {
        let found = check(&TIED, "");
        assert_eq!(found, ["a new circle: x/src/a.rs -(B)-> x/src/b.rs -(C)-> x/src/c.rs -(A)-> x/src/a.rs"]);
    }

    #[test]
    fn a_circle_that_is_known_may_stay_and_not_grow() {
        assert!(check(&TIED, "# why\nx/src/a.rs\nx/src/b.rs\nx/src/c.rs\n").is_empty());
        assert_eq!(check(&TIED, "# why\nx/src/a.rs\nx/src/b.rs\n").len(), 1);
    }

    #[test]
    fn two_known_circles_may_not_become_one() {
        assert_eq!(check(&TIED, "# why\nx/src/a.rs\nx/src/b.rs\n\n# why\nx/src/c.rs\n").len(), 1);
    }

    #[test]
    fn a_circle_that_is_gone_leaves_the_list() {
        let known = "# why\nx/src/a.rs\nx/src/b.rs\n";
        assert_eq!(check(&TIED[..3], known).len(), 2);
    }

    #[test]
    fn a_parent_and_its_child_are_a_circle_if_both_take_names() {
        let child = ("x/src/a/child.rs", "use super::A;\npub fn run(_: A) {}");
        assert!(
            check(&[("x/src/a.rs", "mod child;\npub use child::run;\npub struct A;"), child], "").is_empty()
        );
        let user = ("x/src/a.rs", "mod child;\npub struct A;\npub fn f() { child::run(A); }");
        assert_eq!(check(&[("x/src/lib.rs", "mod a;"), user, child], "").len(), 1);
    }

    #[test]
    fn re_exports_tie_a_circle() {
        let facade = ("x/src/a.rs", "pub mod child;\npub use child::run;\nuse crate::b::B;\npub struct A;");
        let child = ("x/src/a/child.rs", "pub fn run() {}");
        let direct = ("x/src/b.rs", "use crate::a::child::run;\npub struct B;");
        assert!(check(&[("x/src/lib.rs", "mod a;\nmod b;"), facade, child, direct], "").is_empty());
        let through = ("x/src/b.rs", "use crate::a::run;\npub struct B;");
        let found = check(&[("x/src/lib.rs", "mod a;\nmod b;"), facade, child, through], "");
        assert_eq!(found, ["a new circle: x/src/a.rs -(B)-> x/src/b.rs -(run)-> x/src/a.rs"]);
    }

    #[test]
    fn a_folder_stands_for_its_files() {
        let in_folder =
            TIED.map(|(path, text)| (path.replace("/a.rs", "/c/a.rs"), text.replace("a::A", "c::a::A")));
        let mut files: Vec<(&str, &str)> =
            in_folder.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        files[0].1 = "mod b;\nmod c;\n";
        assert!(check(&files, "# why\nx/src/c/\nx/src/b.rs\nx/src/c.rs\n").is_empty());
        assert_eq!(check(&files, "# why\nx/src/c/\nx/src/b.rs\n").len(), 1);
        assert_eq!(check(&files, "# why\nx/src/c/\nx/src/b.rs\nx/src/c.rs\nx/src/d/\n").len(), 1);
    }

    #[test]
    fn a_circle_without_a_reason_is_found() {
        let files = "x/src/a.rs\nx/src/b.rs\nx/src/c.rs\n";
        let found = check(&TIED, files);
        assert_eq!(found, ["circles.txt has no reason for the circle of x/src/a.rs, x/src/b.rs, x/src/c.rs"]);
    }
}
