//! Destinations of secrets.
//!
//! A stored secret is sent to the destination that it was stored for, and to no other: who may change an address, but may not
//! read the secret, would otherwise have it sent to himself. So a change of the destination drops the stored secrets that
//! go there, unless the same input has them again.
//!
//! Decision 0153 says why.

use std::collections::BTreeMap;

use crate::problem::Warning;
use crate::secret::Secret;

/// Destination of secrets: the fields that name it, with their values.
pub(crate) type Destination = BTreeMap<&'static str, String>;

/// Drops a stored secret whose destination has changed. Returns a warning that names both.
pub(crate) fn drop_if_elsewhere(
    path: &str,
    secret: &mut Secret,
    before: &Destination,
    after: &Destination,
) -> Option<Warning> {
    if !secret.is_set() || before == after {
        return None;
    }
    let fields: Vec<&str> = before
        .keys()
        .chain(after.keys())
        .filter(|field| before.get(*field) != after.get(*field))
        .copied()
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect();
    *secret = Secret::default();
    let message = format!(
        "Dropped: it was stored for another destination ({} changed). Send it again if it is for this one.",
        fields.join(", ")
    );
    Some(Warning::new(path, message))
}

#[cfg(test)]
mod tests;
