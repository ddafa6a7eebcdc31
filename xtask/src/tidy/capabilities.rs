//! The list of capabilities that this version lacks: each row is used, and no other code states a missing capability in
//! its own words.

use super::source::{Source, has_word};

const LIST: &str = "gateway-ctl/model/src/capability.rs";

const PHRASES: &[&str] = &[
    "without effect",
    "no effect yet",
    "not in force yet",
    "not supported yet",
    "not supported by this version",
    "this version has no",
    "this version does not",
    "this version raises no",
];

/// Message for a name that the contract does not know either.
const UNKNOWN_NAME: &str = "this version has no such";

pub(super) fn apart(sources: &[Source]) -> Vec<String> {
    let Some(list) = sources.iter().find(|source| source.path == LIST) else {
        return vec![format!("{LIST}: is not there: has it been moved out of sight of this rule?")];
    };
    let names = names(list);
    if names.is_empty() {
        return vec![format!("{LIST}: no row was found")];
    }
    let is_code =
        |source: &&Source| source.is_rust() && !source.is_test() && source.path.starts_with("gateway-");
    let others: Vec<&Source> = sources.iter().filter(is_code).filter(|source| source.path != LIST).collect();
    let mut found = Vec::new();
    for name in names {
        let path = format!("Capability::{name}");
        if !others.iter().any(|source| source.code().any(|(_, line)| has_word(line, &path))) {
            found.push(format!("{LIST}: nobody uses `{name}`"));
        }
    }
    for source in others {
        let names_a_lack = |line: &str| {
            let line = line.to_lowercase();
            PHRASES.iter().any(|phrase| line.contains(phrase)) && !line.contains(UNKNOWN_NAME)
        };
        let lines = source.code().filter(|(_, line)| names_a_lack(line));
        found.extend(
            lines.map(|(n, _)| source.at(n, "tells what this version lacks: take it from `Capability`")),
        );
    }
    found
}

/// Returns the names of the rows: `Name: Standing, "…`.
fn names(list: &Source) -> Vec<&str> {
    let standings = ["Missing, ", "Partial, ", "InForce, "];
    let row = |line: &'_ str| standings.iter().any(|standing| line.starts_with(standing));
    list.code()
        .filter_map(|(_, line)| line.trim().split_once(": "))
        .filter(|(_, rest)| row(rest))
        .map(|(name, _)| name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    fn list() -> Source {
        source(
            LIST,
            "    Mesh: Missing, \"has no mesh\", \"the mesh layer\";\n    Vault: InForce, \"a\", \"b\";\n",
        )
    }

    #[test]
    fn an_unused_row_is_found() {
        let used = source("gateway-ctl/core/src/a.rs", "x(Capability::Mesh, Capability::Vault)\n");
        assert_eq!(apart(&[list(), used]), [""; 0]);
        let unused = source(
            "gateway-ctl/core/src/a.rs",
            "x(Capability::Mesh) // Capability::Vault\nlet y = Capability::Vaults;\n",
        );
        assert_eq!(apart(&[list(), unused]), [format!("{LIST}: nobody uses `Vault`")]);
    }

    #[test]
    fn own_words_are_found_outside_of_comments_and_tests() {
        let uses = "x(Capability::Mesh, Capability::Vault)\n";
        let own = source("gateway-api/src/a.rs", &format!("{uses}\"Stored Without effect.\"\n"));
        let wrong = "gateway-api/src/a.rs:2: tells what this version lacks: take it from `Capability`";
        assert_eq!(apart(&[list(), own]), [wrong]);
        let comment = source("gateway-api/src/a.rs", &format!("{uses}/// This version has no mesh.\n"));
        let test = source("gateway-api/src/a/tests.rs", "\"this version has no mesh\"\n");
        let unknown = source("gateway-ctl/model/src/a.rs", "\"This version has no such settings.\"\n");
        assert_eq!(apart(&[list(), comment, test, unknown]), [""; 0]);
    }

    #[test]
    fn a_list_that_is_gone_or_empty_is_found() {
        assert_eq!((apart(&[]).len(), apart(&[source(LIST, "//! Nothing.\n")]).len()), (1, 1));
    }
}
