//! Key of the storage among the secrets of the gateway, by which it opens at start.

use std::convert::Infallible;

use gateway_model::Secret;
use gateway_model::settings::keys::ENCRYPTED_STORAGE_KEY;
use zeroize::Zeroizing;

use crate::store::{AuditTicket, CommitError, Error, Store};

/// Random bytes of a key.
const KEY_BYTES: usize = 32;

/// Returns the stored key, if there is one that can be opened.
pub(super) fn read(store: &Store) -> Option<Secret> {
    let key = store.current().settings.secret(ENCRYPTED_STORAGE_KEY);
    (key.is_set() && key.is_readable()).then_some(key)
}

/// Returns a random key, as a line of hexadecimal digits.
pub(super) fn random() -> std::io::Result<Secret> {
    let mut bytes = Zeroizing::new([0; KEY_BYTES]);
    getrandom::fill(&mut *bytes).map_err(std::io::Error::other)?;
    let mut text = Zeroizing::new(String::with_capacity(2 * KEY_BYTES));
    for byte in bytes.iter() {
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from_digit(nibble.into(), 16).unwrap_or('0'));
        }
    }
    Ok(Secret::new(text.as_str()))
}

/// Stores a key, or removes it.
pub(super) fn write(store: &Store, key: Option<Secret>) -> Result<(), Error> {
    let action = if key.is_some() { "create_encrypted_storage_key" } else { "delete_encrypted_storage_key" };
    let committed = store.commit(AuditTicket::system(action, "encrypted_storage"), |draft| {
        draft.set_secret(ENCRYPTED_STORAGE_KEY, key.unwrap_or_default());
        Ok::<_, Infallible>(())
    });
    match committed {
        Ok(()) => Ok(()),
        Err(CommitError::Store(error)) => Err(error),
        Err(CommitError::Refused { error, .. }) => match error {},
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_random_lines_of_digits() {
        let (first, second) = (random().expect("a key"), random().expect("a key"));
        assert_eq!(first.expose().len(), 2 * KEY_BYTES);
        assert!(first.expose().bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_ne!(first.expose(), second.expose());
    }
}
