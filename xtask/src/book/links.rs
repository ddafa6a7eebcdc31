//! Links between the documents of the repository.

use std::collections::{BTreeMap, BTreeSet};

use super::document::Document;

/// Folder of the pages of the book.
pub(super) const BOOK: &str = "docs/src/";

/// Returns the relative links without a target. `files` are all files of the repository.
pub(super) fn check(documents: &[Document], files: &BTreeSet<String>) -> Vec<String> {
    let anchors: BTreeMap<&str, BTreeSet<String>> =
        documents.iter().map(|document| (document.path.as_str(), document.anchors())).collect();
    let mut problems = Vec::new();
    for document in documents {
        for link in document.links().iter().filter(|link| is_relative(&link.target)) {
            let (path, anchor) = link.target.split_once('#').unwrap_or((&link.target, ""));
            if let Some(problem) = broken(document, path, anchor, files, &anchors) {
                problems.push(document.at(link.line, &problem));
            }
        }
    }
    problems
}

fn is_relative(target: &str) -> bool {
    !target.contains("://") && !target.starts_with("mailto:")
}

fn broken(
    document: &Document,
    path: &str,
    anchor: &str,
    files: &BTreeSet<String>,
    anchors: &BTreeMap<&str, BTreeSet<String>>,
) -> Option<String> {
    let Some(target) = resolve(&document.path, path) else {
        return Some(format!("{path} is outside of the repository"));
    };
    let folder = format!("{target}/");
    if !files.contains(&target) && !files.iter().any(|file| file.starts_with(&folder)) {
        return Some(format!("there is no {target}"));
    }
    if document.path.starts_with(BOOK) && !target.starts_with(BOOK) {
        return Some(format!("{target} is not a page of the book, so the built book has no such file"));
    }
    let known = anchors.get(target.as_str()).is_some_and(|known| known.contains(anchor));
    (!anchor.is_empty() && !known).then(|| format!("{target} has no heading #{anchor}"))
}

/// Returns the path of a link's target. An empty path is the document itself.
pub(super) fn resolve(from: &str, path: &str) -> Option<String> {
    if path.is_empty() {
        return Some(from.to_owned());
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(path: &str, text: &str) -> Document {
        Document { path: path.to_owned(), text: text.to_owned() }
    }

    fn problems(path: &str, text: &str) -> Vec<String> {
        let documents = [document(path, text), document("docs/src/other.md", "# Other page\n")];
        let files = ["docs/src/a.md", "docs/src/other.md", "README.md", "tests/list.txt"];
        check(&documents, &files.map(str::to_owned).into())
    }

    #[test]
    fn a_link_to_a_page_a_file_a_folder_or_the_web_is_fine() {
        let text =
            "[a](docs/src/other.md#other-page) [b](tests/list.txt) [c](tests) [d](https://example.com/x#y)";
        assert_eq!(problems("README.md", text), Vec::<String>::new());
        assert_eq!(problems("docs/src/a.md", "# Top\n[up](#top) [o](other.md)"), Vec::<String>::new());
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        assert_eq!(problems("README.md", "\n[a](docs/gone.md)"), ["README.md:2: there is no docs/gone.md"]);
        assert_eq!(
            problems("docs/src/a.md", "[a](other.md#gone)"),
            ["docs/src/a.md:1: docs/src/other.md has no heading #gone"]
        );
        assert_eq!(problems("README.md", "[a](../x)"), ["README.md:1: ../x is outside of the repository"]);
        assert_eq!(problems("README.md", "[a](#gone)"), ["README.md:1: README.md has no heading #gone"]);
    }

    #[test]
    fn a_link_out_of_the_book_is_found() {
        let found = problems("docs/src/a.md", "[a](../../tests/list.txt)");
        assert!(found[0].contains("not a page of the book"), "{found:?}");
    }
}
