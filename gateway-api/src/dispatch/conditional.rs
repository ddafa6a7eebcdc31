//! Entity tags: `If-Match` for changes, `If-None-Match` for polling (RFC 9110, section 13).
//!
//! The tag of a stored object is its revision. If the response also shows observed values, a dot and their digest
//! follow, so that a poller notices changes of them. A precondition compares only the revision.

use http::header::{HeaderMap, HeaderName};

use crate::error::ApiError;

/// Returns a header as text. One that is not text is an error, not a missing header.
pub(crate) fn header(headers: &HeaderMap, name: &HeaderName) -> Result<Option<String>, ApiError> {
    match headers.get(name) {
        None => Ok(None),
        Some(value) => match value.to_str() {
            Ok(text) => Ok(Some(text.to_owned())),
            Err(_) => Err(ApiError::invalid_parameter(name.as_str(), format!("{name} is not text."))),
        },
    }
}

/// Reports whether the list of tags contains this tag (quotes included). Weak tags match.
pub(crate) fn names_tag(list: &str, tag: &str) -> bool {
    tags(list).any(|known| known == "*" || known == tag)
}

/// Reports whether the precondition `list` is true for an object at `revision`.
pub(crate) fn matches_revision(list: &str, revision: &str) -> bool {
    tags(list).any(|known| {
        let bare = known.trim_matches('"');
        known == "*" || bare.split('.').next() == Some(revision)
    })
}

/// Returns the revision in the first tag of the list.
pub(crate) fn first_revision(list: &str) -> Option<u64> {
    tags(list).next()?.trim_matches('"').split('.').next()?.parse().ok()
}

fn tags(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(|tag| tag.trim()).map(|tag| tag.strip_prefix("W/").unwrap_or(tag))
}

/// Returns a weak tag for a response without a revision.
pub(crate) fn weak_tag(digest: &str) -> String {
    format!("W/\"{digest}\"")
}

/// Returns a short digest that distinguishes two responses of one daemon.
pub(crate) fn digest(bytes: &[u8]) -> String {
    format!("{:016x}", rapidhash::v3::rapidhash_v3(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_precondition_compares_the_revision_only() {
        assert!(matches_revision("\"7\"", "7"));
        assert!(matches_revision("\"7.0123abcd\"", "7"));
        assert!(matches_revision("\"6\", W/\"7\"", "7"));
        assert!(matches_revision("*", "7"));
        assert!(!matches_revision("\"70\"", "7"));
        assert!(!matches_revision("", "7"));
    }

    #[test]
    fn a_poller_sees_observed_values_change() {
        assert!(names_tag("\"7.a\"", "\"7.a\""));
        assert!(!names_tag("\"7.a\"", "\"7.b\""));
    }
}
