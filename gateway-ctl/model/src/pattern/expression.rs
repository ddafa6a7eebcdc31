//! Wildcards and regular expressions of patterns.

use regex::bytes::{Regex, RegexBuilder};

use crate::domain::{DomainName, MAX_NAME};

/// Most bytes a compiled expression may take: thousands of them must fit into memory.
const REGEX_SIZE: usize = 256 * 1024;

pub(super) fn wildcard(text: &str) -> Result<String, String> {
    let text = text.trim().trim_end_matches('.');
    if !text.contains('*') {
        return Err("A wildcard has at least one *; without one use exact or suffix.".to_owned());
    }
    if text.len() > MAX_NAME {
        return Err(format!("At most {MAX_NAME} characters."));
    }
    // Labels without a star are names of their own and may be international.
    let label = |label: &str| match label {
        label if label.contains('*') => {
            let fine = label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'*'));
            fine.then(|| label.to_ascii_lowercase())
        }
        label if label.bytes().all(|b| b.is_ascii_digit()) && !label.is_empty() => Some(label.to_owned()),
        label => DomainName::parse(label).ok().map(|name| name.to_string()),
    };
    let labels: Option<Vec<String>> = text.split('.').map(label).collect();
    labels.map(|labels| labels.join(".")).ok_or_else(|| {
        "A wildcard has letters, digits, hyphens, underscores and *, parts separated by dots.".to_owned()
    })
}

/// Names are ASCII when they are matched, so expressions are of bytes, and case does not matter.
pub(crate) fn regex(text: &str) -> Result<Regex, String> {
    let mut builder = RegexBuilder::new(text);
    builder
        .unicode(false)
        .case_insensitive(true)
        .size_limit(REGEX_SIZE)
        .dfa_size_limit(REGEX_SIZE)
        .nest_limit(32);
    builder.build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "The regular expression is too large when compiled.".to_owned(),
        error => {
            // The last line is the reason; the lines before mark the position.
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("Not a regular expression: {reason}.")
        }
    })
}

/// Reports whether a text matches this pattern, in which `*` stands for any bytes. Greedy with one backtracking point:
/// linear for one star, at worst the product of the lengths.
pub fn matches_wildcard(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, t));
            p += 1;
        } else if pattern.get(p) == Some(&text[t]) {
            p += 1;
            t += 1;
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            p = at + 1;
            t = from + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|b| *b == b'*')
}
