//! Target: pseudonyms in texts, metrics and JSON.

use gateway_core::pseudonyms::{PrivateTerms, PseudonymKey, Pseudonymizer, Vocabulary};

/// Replaces the private values of a text, of lines of metrics, and of JSON. The first line is a secret, the second one a
/// name. Checks that neither is in any output, and that JSON stays JSON.
pub fn pseudonyms(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.splitn(3, '\n');
    let (secret, name, rest) = (lines.next(), lines.next(), lines.next().unwrap_or_default());
    // A letter that no digest has, so that they cannot be in a pseudonym by chance.
    let is_usable = |term: &&str| term.chars().count() >= 6 && term.contains(['y', 'z', 'q']);
    let secret = secret.map(str::trim).filter(is_usable);
    let name = name.map(str::trim).filter(is_usable).filter(|name| name.chars().all(char::is_alphanumeric));
    let mut terms = PrivateTerms::default();
    secret.iter().for_each(|secret| terms.add_secret(secret));
    name.iter().for_each(|name| terms.add_name(name));
    let mut vocabulary = Vocabulary::default();
    vocabulary.add("name");
    let rules = Pseudonymizer::new(PseudonymKey::new(&[9; 32]), vocabulary, terms);
    // A name that is a part of a longer word stays.
    let name = name.filter(|name| !rest.contains(name));
    for private in secret.iter().chain(&name) {
        let replaced = rules.text(&format!("{rest} {private} {rest}"));
        assert!(!replaced.contains(private), "{private:?} in {replaced:?}");
    }
    rest.lines().for_each(|line| _ = rules.metrics_line(line));
    let mut copy = Vec::new();
    if rules.copy_json(rest.as_bytes(), &mut copy).is_ok() {
        serde_json::from_slice::<serde_json::Value>(&copy).expect("JSON stays JSON");
    }
}
