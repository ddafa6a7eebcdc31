//! Words that the project gave up for the field's terms, the first words of doc comments, and names of types.
//!
//! `docs/src/glossary.md` defines the words that stay. Strings are not looked at: names on the wire and texts of the
//! specification stay as they are.
//!
//! Readers of Cilium, unbound or Tailscale had to decode words of the project. A rewrite without a check would not
//! last. The check knows words, not sentences.

use std::collections::BTreeMap;

use super::source::Source;

/// Words that are neither a word of an identifier nor in a comment.
const RETIRED: &[&str] = &[
    "anew",
    "barrage",
    "crowd",
    "deeds",
    "herald",
    "hurried",
    "hurry",
    "judge",
    "judged",
    "judgement",
    "lately",
    "lesson",
    "moment",
    "moments",
    "nobody",
    "nudge",
    "patience",
    "picture",
    "repeater",
    "resting",
    "seam",
    "shelf",
    "slop",
    "somebody",
    "stranded",
    "told",
    "unlearned",
    "whoever",
    "whom",
    "witness",
];

/// Phrases that are not in a comment.
const PHRASES: &[&str] =
    &["by which way", "default way", "far end", "in words for people", "of ours", "way out"];

/// Words that begin no doc comment: it begins with a noun phrase or a verb in the third person.
const QUESTIONS: &[&str] = &[
    "By which", "How", "So long", "What", "When", "Where", "Whether", "Which", "Who", "Whom", "Whose", "Why",
];

/// Names that no type has: a participle, a pronoun or a function word says nothing without its path.
const BARE: &[&str] = &[
    "Asked", "Because", "By", "Does", "Given", "Held", "Judged", "Known", "Landed", "Learned", "Looked",
    "Made", "Met", "Only", "Says", "Seen", "Told", "What", "Whom",
];

/// Debts of the packages that are not rewritten yet: rule, package and number of violations, one a line. Numbers may
/// only fall.
const DEBTS: &str = include_str!("vocabulary_debts.txt");

/// Reports retired words in packages with more of them than their debt.
pub(super) fn retired_words(sources: &[Source]) -> Vec<String> {
    let uses = |source: &Source| {
        let lines =
            source.lines().flat_map(|(n, line)| words_of(line).into_iter().map(move |word| (n, word)));
        lines.map(|(n, word)| source.at(n, &format!("`{word}` is retired"))).collect()
    };
    beyond_debt("words", sources, DEBTS, uses)
}

/// Reports doc comments that begin with a question word.
pub(super) fn first_words(sources: &[Source]) -> Vec<String> {
    beyond_debt("comments", sources, DEBTS, question_comments)
}

fn question_comments(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_inside = false;
    for (n, line) in source.lines() {
        let text = line.trim_start();
        let text = text.strip_prefix("///").or_else(|| text.strip_prefix("//!"));
        let begins = !std::mem::replace(&mut is_inside, text.is_some());
        let Some(text) = text.filter(|_| begins).map(str::trim_start) else { continue };
        if let Some(word) = QUESTIONS.iter().find(|word| begins_with(text, word)) {
            found.push(source.at(n, &format!("a doc comment begins with `{word}`")));
        }
    }
    found
}

/// Returns the violations of packages that have more of them than their debt for the rule.
fn beyond_debt(
    rule: &str,
    sources: &[Source],
    debts: &str,
    find: impl Fn(&Source) -> Vec<String>,
) -> Vec<String> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in rust(sources) {
        found.entry(package(&source.path)).or_default().extend(find(source));
    }
    let mut violations = Vec::new();
    for (package, uses) in found {
        let prefix = format!("{rule} {package} ");
        let debt = debts.lines().find_map(|line| line.strip_prefix(&prefix)?.parse().ok()).unwrap_or(0);
        if uses.len() > debt {
            violations
                .push(format!("{package}: {} violations, {debt} are allowed. The first are:", uses.len()));
            violations.extend(uses.into_iter().take(20));
        }
    }
    violations
}

/// Reports types that are a bare participle, pronoun or function word.
pub(super) fn bare_types(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in rust(sources) {
        for (n, line) in source.code() {
            let mut words =
                line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
            let is_item = words.by_ref().any(|word| ["struct", "enum", "trait", "type"].contains(&word));
            if let Some(name) = words.next().filter(|name| is_item && BARE.contains(name)) {
                found.push(source.at(n, &format!("`{name}` is no noun")));
            }
        }
    }
    found
}

fn rust(sources: &[Source]) -> impl Iterator<Item = &Source> {
    sources.iter().filter(|source| source.is_rust() && !source.path.ends_with("tidy/vocabulary.rs"))
}

/// Returns the package of a file: its path down to `src` or `tests`.
fn package(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    let end = parts.iter().position(|part| *part == "src" || *part == "tests").unwrap_or(0).max(1);
    parts[..end.min(parts.len())].join("/")
}

fn begins_with(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
}

/// Returns the retired words of a line, outside of strings.
fn words_of(line: &str) -> Vec<&'static str> {
    let (code, comment) = line.split_once("//").unwrap_or((line, ""));
    let code: String = code.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    let mut words = Vec::new();
    split_words(&code, &mut words);
    split_words(comment, &mut words);
    let mut found: Vec<&'static str> =
        words.iter().filter_map(|word| RETIRED.iter().find(|retired| *retired == word)).copied().collect();
    let comment = comment.to_lowercase();
    found.extend(PHRASES.iter().filter(|phrase| comment.contains(**phrase)));
    found
}

/// Splits a text into the lower-case words of its identifiers: `toldAt_once` has three.
fn split_words(text: &str, words: &mut Vec<String>) {
    let mut word = String::new();
    let mut was_lower = false;
    for c in text.chars().chain([' ']) {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lower) {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
        }
        was_lower = c.is_lowercase();
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> [Source; 1] {
        [Source { path: "gateway-new/src/lib.rs".to_owned(), text: text.to_owned() }]
    }

    #[test]
    fn retired_words_are_found_in_identifiers_and_comments() {
        assert_eq!(words_of("let was_told = Shelf::of(\"told\"); // for whom"), ["told", "shelf", "whom"]);
        assert_eq!(words_of("const PATIENCE: u8 = 1; // a mark of ours"), ["patience", "of ours"]);
        assert!(words_of("let untold = momentum; // \"plan\"").is_empty());
        assert_eq!(retired_words(&source("fn told() {}\n")).len(), 2);
    }

    #[test]
    fn a_debt_allows_as_many_violations() {
        let find = |_: &Source| vec!["one".to_owned(), "two".to_owned()];
        let found = |debts| beyond_debt("words", &source(""), debts, find);
        assert!(found("words gateway-new 2\n").is_empty());
        assert_eq!(found("words gateway-new 1\n").len(), 3);
        assert_eq!(found("comments gateway-new 2\n").len(), 3);
    }

    #[test]
    fn only_the_first_line_of_a_doc_comment_counts() {
        assert_eq!(first_words(&source("/// What a plan has.\nfn a() {}\n")).len(), 2);
        assert!(first_words(&source("/// Header of a plan.\n/// What follows.\nfn a() {}\n")).is_empty());
        assert!(first_words(&source("/// Header.\n///\n/// When it ends.\nfn a() {}\n")).is_empty());
        assert!(first_words(&source("/// Whatever.\nfn a() {}\n")).is_empty());
    }

    #[test]
    fn bare_types_are_found() {
        assert_eq!(bare_types(&source("pub struct Told {\n")).len(), 1);
        assert_eq!(bare_types(&source("type Seen<'a> = u8;\n")).len(), 1);
        assert!(bare_types(&source("pub struct ToldOnce; struct Plan { only: u8 }\n")).is_empty());
    }

    #[test]
    fn a_package_is_the_path_down_to_its_sources() {
        assert_eq!(package("gateway-ctl/core/src/dns.rs"), "gateway-ctl/core");
        assert_eq!(package("tests/tests/e2e.rs"), "tests");
        assert_eq!(package("gateway-ctl/build.rs"), "gateway-ctl");
    }
}
