//! Private texts of one gateway, and where they occur in other texts.

use std::collections::BTreeSet;
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};

use super::shapes;
use super::vocabulary::Vocabulary;

/// Minimum length of a text that is looked for in others, in characters. A secret is looked for inside of words, too.
const MIN_NAME_LENGTH: usize = 2;
const MIN_SECRET_LENGTH: usize = 4;

/// Texts that people, hosts and peers chose.
#[derive(Debug, Default)]
pub struct PrivateTerms {
    names: BTreeSet<String>,
    secrets: BTreeSet<String>,
}

impl PrivateTerms {
    /// Adds a text of the configuration or of an observation.
    pub fn add_name(&mut self, text: &str) {
        let text = text.trim();
        if text.chars().count() >= MIN_NAME_LENGTH && !shapes::covers(text) {
            self.names.insert(text.to_owned());
        }
    }

    pub fn add_secret(&mut self, text: &str) {
        let text = text.trim();
        if !text.is_empty() {
            self.secrets.insert(text.to_owned());
        }
    }

    pub(super) fn into_matcher(self, vocabulary: &Vocabulary) -> TermMatcher {
        let PrivateTerms { mut names, secrets } = self;
        names.retain(|name| !vocabulary.contains(name));
        let is_word = |name: &String| name.chars().all(|sign| sign.is_alphanumeric() || "-_".contains(sign));
        let (words, phrases): (Vec<String>, Vec<String>) = names.into_iter().partition(is_word);
        let long = secrets.iter().filter(|secret| secret.chars().count() >= MIN_SECRET_LENGTH);
        let forms: BTreeSet<String> = long.flat_map(|secret| forms(secret)).collect();
        // Secrets are the last patterns.
        let phrase_count = phrases.len();
        TermMatcher {
            words: build(words),
            phrases: build(phrases.into_iter().chain(forms)),
            phrase_count,
            secrets,
        }
    }
}

/// Returns the forms in which a secret may stand in a text: itself, as a string of JSON, and in a URL.
fn forms(secret: &str) -> [String; 3] {
    let quoted = format!("{secret:?}");
    let encoded = secret.bytes().map(|byte| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    });
    [secret.to_owned(), quoted[1..quoted.len() - 1].to_owned(), encoded.collect()]
}

/// Returns the automaton of some patterns. `None` if there are too many for one.
fn build(patterns: impl IntoIterator<Item = String>) -> Option<AhoCorasick> {
    AhoCorasick::builder().match_kind(MatchKind::Standard).ascii_case_insensitive(true).build(patterns).ok()
}

/// Finds private terms in texts.
#[derive(Debug)]
pub(super) struct TermMatcher {
    words: Option<AhoCorasick>,
    /// Names with signs that no word has, then secrets.
    phrases: Option<AhoCorasick>,
    phrase_count: usize,
    secrets: BTreeSet<String>,
}

impl TermMatcher {
    pub(super) fn is_secret(&self, text: &str) -> bool {
        self.secrets.contains(text.trim())
    }

    /// Returns where names of several words, and secrets, are in a text.
    pub(super) fn phrases(&self, text: &str) -> Vec<Range<usize>> {
        let is_secret = |pattern: usize| pattern >= self.phrase_count;
        self.phrases.as_ref().map(|automaton| occurrences(automaton, text, is_secret)).unwrap_or_default()
    }

    /// Returns where names of one word are in a text.
    pub(super) fn words(&self, text: &str) -> Vec<Range<usize>> {
        self.words.as_ref().map(|automaton| occurrences(automaton, text, |_| false)).unwrap_or_default()
    }
}

/// Returns the spans of all matches, joined where they overlap. Those `anywhere` count inside of words as well.
fn occurrences(automaton: &AhoCorasick, text: &str, anywhere: impl Fn(usize) -> bool) -> Vec<Range<usize>> {
    let mut spans: Vec<Range<usize>> = automaton
        .find_overlapping_iter(text)
        .filter(|found| anywhere(found.pattern().as_usize()) || is_apart(text, found.range()))
        .map(|found| found.range())
        .collect();
    spans.sort_by_key(|span| (span.start, span.end));
    let mut joined: Vec<Range<usize>> = Vec::with_capacity(spans.len());
    for span in spans {
        match joined.last_mut() {
            Some(last) if span.start < last.end => last.end = last.end.max(span.end),
            _ => joined.push(span),
        }
    }
    joined
}

/// Reports whether a span is no part of a longer word.
fn is_apart(text: &str, span: Range<usize>) -> bool {
    let is_inside = |outer: Option<char>, inner: Option<char>| {
        outer.is_some_and(char::is_alphanumeric) && inner.is_some_and(char::is_alphanumeric)
    };
    let found = &text[span.clone()];
    let starts_inside = is_inside(text[..span.start].chars().next_back(), found.chars().next());
    let ends_inside = is_inside(text[span.end..].chars().next(), found.chars().next_back());
    !starts_inside && !ends_inside
}
