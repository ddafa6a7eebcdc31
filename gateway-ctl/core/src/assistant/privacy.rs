//! Names and secrets in what a model reads. Secrets are removed; names may be replaced by pseudonyms, which the answer
//! gets back.

use std::collections::BTreeMap;

use crate::pseudonyms::Pseudonymizer;

/// Minimum length of a secret that is looked for, in bytes.
const MIN_SECRET_LENGTH: usize = 4;
/// Text in place of a secret.
const REMOVED: &str = "(secret)";

/// Rules of one request.
#[derive(Debug, Default)]
pub struct PromptPrivacy {
    secrets: Vec<String>,
    pseudonymizer: Option<Pseudonymizer>,
    /// Original of each pseudonym that was given out.
    originals: BTreeMap<String, String>,
}

impl PromptPrivacy {
    /// Returns the rules. Without a pseudonymizer, only secrets are removed.
    pub fn new(secrets: Vec<String>, pseudonymizer: Option<Pseudonymizer>) -> PromptPrivacy {
        let mut secrets: Vec<String> =
            secrets.into_iter().filter(|secret| secret.len() >= MIN_SECRET_LENGTH).collect();
        // One that contains another goes first.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        PromptPrivacy { secrets, pseudonymizer, originals: BTreeMap::new() }
    }

    /// Makes the pseudonym of a name known, so that an answer may have it.
    pub fn know(&mut self, name: &str) {
        if let Some(pseudonymizer) = &self.pseudonymizer {
            let pseudonym = pseudonymizer.text(name);
            if pseudonym != name {
                self.originals.insert(pseudonym, name.to_owned());
            }
        }
    }

    /// Returns a text as the model may read it.
    pub fn hide(&mut self, text: &str) -> String {
        let mut plain = text.to_owned();
        for secret in &self.secrets {
            if plain.contains(secret.as_str()) {
                plain = plain.replace(secret.as_str(), REMOVED);
            }
        }
        let is_part = |letter: char| letter.is_alphanumeric() || ".:-_@/".contains(letter);
        let words: Vec<String> = plain
            .split(|letter| !is_part(letter))
            .map(|word| word.trim_matches(['.', ':', '/']).to_owned())
            .filter(|word| !word.is_empty())
            .collect();
        words.iter().for_each(|word| self.know(word));
        match &self.pseudonymizer {
            Some(pseudonymizer) => pseudonymizer.text(&plain),
            None => plain,
        }
    }

    /// Puts the originals back into a text of the model.
    pub fn restore(&self, text: &str) -> String {
        // A pseudonym that contains another goes first.
        let mut known: Vec<(&String, &String)> = self.originals.iter().collect();
        known.sort_by_key(|(pseudonym, _)| std::cmp::Reverse(pseudonym.len()));
        known.into_iter().fold(text.to_owned(), |text, (pseudonym, original)| {
            if text.contains(pseudonym.as_str()) { text.replace(pseudonym.as_str(), original) } else { text }
        })
    }
}
