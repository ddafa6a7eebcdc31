//! Table of contents of the book. Its last part, on the design, is generated from the existing files.

use std::collections::BTreeSet;

use super::document::Document;
use super::links::{BOOK, resolve};

pub(super) const SUMMARY: &str = "docs/src/SUMMARY.md";

/// Heading of the part that [`renewed`] writes.
const PART: &str = "# Design";
const KNOWN_LIMITS: &str = "docs/src/known-limits.md";
const INDEX: &str = "docs/src/decisions/README.md";
const DECISIONS: &str = "docs/src/decisions/";

/// Returns the table of contents with the design pages sorted by name.
pub(super) fn renewed(summary: &str, documents: &[Document]) -> String {
    let kept = summary.find(&format!("\n{PART}\n")).map_or(summary, |at| &summary[..at]);
    let mut lines = vec![kept.trim_end().to_owned(), String::new(), PART.to_owned(), String::new()];
    let beginning = lines.len();
    let entry = |document: &Document| {
        let heading = document.text.lines().find_map(|line| line.strip_prefix("# "));
        let path = document.path.trim_start_matches(BOOK);
        format!("- [{}]({path})", heading.unwrap_or(path).trim())
    };
    for path in [KNOWN_LIMITS, INDEX] {
        lines.extend(documents.iter().filter(|document| document.path == path).map(entry));
    }
    let mut decisions: Vec<_> = documents.iter().filter(|d| d.path.starts_with(DECISIONS)).collect();
    decisions.retain(|decision| decision.path != INDEX);
    decisions.sort_by_key(|decision| &decision.path);
    lines.extend(decisions.into_iter().map(|decision| format!("  {}", entry(decision))));
    if lines.len() == beginning {
        return format!("{}\n", kept.trim_end());
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Returns the pages that are missing in the table of contents, or are in it twice.
pub(super) fn check(documents: &[Document]) -> Vec<String> {
    let Some(summary) = documents.iter().find(|document| document.path == SUMMARY) else {
        return vec![format!("there is no {SUMMARY}")];
    };
    if summary.text != renewed(&summary.text, documents) {
        return vec![format!("{SUMMARY}: the part on the design is out of date: cargo xtask book --update")];
    }
    let mut listed = BTreeSet::new();
    let mut problems = Vec::new();
    for link in summary.links() {
        let target = resolve(SUMMARY, &link.target);
        if let Some(target) = target
            && !listed.insert(target.clone())
        {
            problems.push(summary.at(link.line, &format!("{target} is listed twice")));
        }
    }
    let pages = documents.iter().map(|document| &document.path);
    let pages = pages.filter(|path| path.starts_with(BOOK) && *path != SUMMARY);
    problems
        .extend(pages.filter(|path| !listed.contains(*path)).map(|path| format!("{path}: not in {SUMMARY}")));
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(path: &str, text: &str) -> Document {
        Document { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn the_summary_names_every_page_once() {
        let summary = document(SUMMARY, "- [A](a.md)\n- [A again](a.md)\n");
        let found = check(&[summary, document("docs/src/a.md", ""), document("docs/src/b.md", "")]);
        assert_eq!(
            found,
            [
                "docs/src/SUMMARY.md:2: docs/src/a.md is listed twice",
                "docs/src/b.md: not in docs/src/SUMMARY.md"
            ]
        );
    }

    #[test]
    fn the_part_on_the_design_follows_the_files() {
        let pages = [
            document("docs/src/decisions/0002-b.md", "# 0002 Second\n"),
            document("docs/src/decisions/0001-a.md", "# 0001 First\n"),
            document("docs/src/decisions/README.md", "# Decisions\n"),
            document("docs/src/known-limits.md", "# Known limits\n"),
            document("docs/src/other.md", "# Other\n"),
        ];
        let wanted = "- [A](a.md)\n\n# Design\n\n- [Known limits](known-limits.md)\n- [Decisions](decisions/README.md)\n  \
                      - [0001 First](decisions/0001-a.md)\n  - [0002 Second](decisions/0002-b.md)\n";
        assert_eq!(renewed("- [A](a.md)\n", &pages), wanted);
        assert_eq!(renewed(wanted, &pages), wanted);
        assert_eq!(renewed(wanted, &[]), "- [A](a.md)\n");
        let outdated = document(SUMMARY, "- [O](other.md)\n");
        let found = check(&[outdated, document("docs/src/known-limits.md", "# Known limits\n")]);
        assert!(found[0].contains("cargo xtask book --update"), "{found:?}");
    }
}
