//! Conversion of the secrets of a state into another form, and inspection of stored rows.

use gateway_model::secrets::{Scope, SecretPlace};
use gateway_model::{Secret, State};

use super::SecretStorage;
use crate::parallel::in_parallel;
use crate::store::error::Error;

/// Locations of secrets that cannot be read or cannot be sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnsealableSecrets(pub Vec<SecretPlace>);

/// Replaces the secrets that `wants` selects. Replaces none if `make` fails for one of them.
pub(crate) fn exchange_secrets(
    draft: &mut State,
    scope: Scope,
    wants: impl Fn(&Secret) -> bool,
    make: impl Fn(&Secret) -> Option<Secret> + Sync,
) -> Result<usize, UnsealableSecrets> {
    let mut found = Vec::new();
    draft.visit_secrets(scope, &mut |location, secret| {
        if wants(secret) {
            found.push((location.clone(), secret.clone()));
        }
    });
    let made = in_parallel(&found, |(_, secret)| make(secret));
    let failed = found.iter().zip(&made).filter(|(_, made)| made.is_none());
    let failed: Vec<SecretPlace> = failed.map(|((location, _), _)| location.clone()).collect();
    if !failed.is_empty() {
        return Err(UnsealableSecrets(failed));
    }
    let total = made.len();
    let mut made = made.into_iter().flatten();
    draft.visit_secrets(scope, &mut |_, secret| {
        if wants(secret)
            && let Some(exchanged) = made.next()
        {
            *secret = exchanged;
        }
    });
    Ok(total)
}

/// Converts the secrets written by the draft into the form in which the store keeps them.
pub(crate) fn seal_changed(draft: &mut State, sealing: &SecretStorage) -> Result<(), Error> {
    let done = match (&sealing.vault, sealing.opener()) {
        (Some(vault), Some(by)) => exchange_secrets(
            draft,
            Scope::Changed,
            |secret| !secret.is_sealed_by(&by),
            |secret| vault.seal(secret),
        ),
        _ => exchange_secrets(draft, Scope::Changed, |secret| secret.sealed_text().is_some(), in_clear),
    };
    match done {
        Ok(_) => Ok(()),
        Err(UnsealableSecrets(_)) if sealing.is_locked() => Err(Error::SecretsLocked),
        Err(UnsealableSecrets(places)) => Err(Error::SecretsUnreadable { places }),
    }
}

/// Opens all secrets. Returns the number of unreadable ones.
pub(crate) fn open_all(secrets: &[Secret]) -> usize {
    in_parallel(secrets, |secret| secret.is_readable()).into_iter().filter(|readable| !readable).count()
}

/// Returns the secret in clear.
pub(crate) fn in_clear(secret: &Secret) -> Option<Secret> {
    secret.is_readable().then(|| Secret::new(secret.expose()))
}
