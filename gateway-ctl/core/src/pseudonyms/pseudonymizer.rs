//! Replacement of private values in texts, fields and keys.

use std::borrow::Cow;
use std::ops::Range;

use super::key::PseudonymKey;
use super::terms::{PrivateTerms, TermMatcher};
use super::vocabulary::Vocabulary;
use super::{classes, patterns, shapes};

/// Fields whose whole text is private, unless it is a word of the vocabulary.
const NAME_FIELDS: &[&str] = &[
    "actor",
    "alias",
    "author",
    "client_id",
    "comment",
    "common_name",
    "contact",
    "created_by",
    "description",
    "device",
    "domain",
    "domains",
    "email",
    "host",
    "host_name",
    "hostname",
    "hostnames",
    "label",
    "name",
    "names",
    "node",
    "note",
    "notes",
    "policy",
    "realm",
    "recipients",
    "scope",
    "search",
    "server_name",
    "ssid",
    "target",
    "title",
    "tunnel",
    "uplink",
    "user",
    "username",
];

/// Replaces the private values of texts and of JSON by pseudonyms.
#[derive(Debug)]
pub struct Pseudonymizer {
    key: PseudonymKey,
    vocabulary: Vocabulary,
    terms: TermMatcher,
}

/// A part of a text: as it was, or replaced.
enum Part<'a> {
    Plain(&'a str),
    Replaced(String),
}

impl Pseudonymizer {
    pub fn new(key: PseudonymKey, vocabulary: Vocabulary, terms: PrivateTerms) -> Pseudonymizer {
        Pseudonymizer { key, terms: terms.into_matcher(&vocabulary), vocabulary }
    }

    /// Replaces the private values in a line of text.
    pub fn text(&self, text: &str) -> String {
        let is_word = |word: &str| self.vocabulary.contains(word);
        let mut parts = vec![Part::Plain(text)];
        self.replace(&mut parts, |plain| {
            let found = self.terms.phrases(plain).into_iter();
            found.map(|span| (span.clone(), classes::whole(&self.key, &plain[span]))).collect()
        });
        self.replace(&mut parts, |plain| patterns::find(plain, &self.key, &is_word));
        self.replace(&mut parts, |plain| {
            let found = self.terms.words(plain).into_iter();
            found.map(|span| (span.clone(), classes::whole(&self.key, &plain[span]))).collect()
        });
        parts.into_iter().fold(String::with_capacity(text.len()), |mut all, part| {
            match part {
                Part::Plain(plain) => all.push_str(plain),
                Part::Replaced(replaced) => all.push_str(&replaced),
            }
            all
        })
    }

    /// Replaces the private values in the text of a field.
    pub fn value(&self, field: Option<&str>, text: &str) -> String {
        if text.is_empty() || self.vocabulary.contains(text) {
            return text.to_owned();
        }
        if self.terms.is_secret(text) {
            return classes::secret(&self.key, text);
        }
        let is_name = field.is_some_and(|field| NAME_FIELDS.contains(&field));
        if is_name && !shapes::is_neutral(text) { classes::whole(&self.key, text) } else { self.text(text) }
    }

    /// Replaces the private values in the key of an object. Names of fields stay.
    pub fn key<'a>(&self, key: &'a str) -> Cow<'a, str> {
        if self.vocabulary.contains(key) { Cow::Borrowed(key) } else { Cow::Owned(self.value(None, key)) }
    }

    /// Replaces what `find` returns in each plain part.
    fn replace<'a>(&self, parts: &mut Vec<Part<'a>>, find: impl Fn(&str) -> Vec<(Range<usize>, String)>) {
        let before = std::mem::take(parts);
        for part in before {
            let Part::Plain(plain) = part else {
                parts.push(part);
                continue;
            };
            let mut end = 0;
            for (span, replaced) in find(plain) {
                parts.push(Part::Plain(&plain[end..span.start]));
                parts.push(Part::Replaced(replaced));
                end = span.end;
            }
            parts.push(Part::Plain(&plain[end..]));
        }
    }
}
