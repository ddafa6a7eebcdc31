//! Key of this gateway: Ed25519, among the secrets of the store. It is in no export, backup or snapshot.

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gateway_core::federation::message::{SCHEMA, Signature, SignedSuccession};
use gateway_core::federation::rotation::{Succession, succession_bytes};
use gateway_model::State;
use gateway_model::secret::Secret;
use gateway_model::validated::PublicKey;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::store::{AuditTicket, CommitError, Error, Store};

/// Setting with the seed of the key in base64.
const KEY: &str = "internal.federation_key";

/// Declaration that the key has replaced another one, during the overlap of both.
const SUCCESSION: &str = "internal.federation_succession";

/// Key pair of this gateway.
pub(super) struct Identity {
    pair: Ed25519KeyPair,
    succession: Option<SignedSuccession>,
}

/// Reason why the key was not replaced.
#[derive(Debug, thiserror::Error)]
pub enum RotationError {
    #[error("this gateway has no key yet")]
    NoKey,
    #[error("the key was replaced already, and its overlap lasts until {0}")]
    Overlap(Timestamp),
    #[error(transparent)]
    Store(#[from] Error),
}

impl From<CommitError<RotationError>> for RotationError {
    fn from(error: CommitError<RotationError>) -> Self {
        match error {
            CommitError::Refused { error, .. } => error,
            CommitError::Store(error) => error.into(),
        }
    }
}

impl Identity {
    /// Returns the identity of a state. `None` if it has none, or if its secret cannot be opened.
    pub(super) fn of(state: &State) -> Option<Identity> {
        let secret = state.settings.secret(KEY);
        let seed = Zeroizing::new(STANDARD.decode(secret.expose()).ok()?);
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).ok()?;
        let succession = state.settings.get(SUCCESSION);
        let succession = succession.and_then(|value| SignedSuccession::deserialize(value).ok());
        Some(Identity { pair, succession })
    }

    /// Returns the identity of this gateway, which is made first if there is none. Blocks on the disk.
    pub(super) fn ensure(store: &Store) -> Result<Identity, Error> {
        if let Some(identity) = Identity::of(&store.current()) {
            return Ok(identity);
        }
        let secret = new_seed()?;
        let ticket = AuditTicket::system("create_node_key", "federation");
        let committed = store.commit(ticket, |draft| {
            // Another request may have made one meanwhile. One that cannot be opened is not replaced.
            if !draft.settings.secret(KEY).is_set() {
                draft.set_secret(KEY, secret);
            }
            Ok::<_, std::convert::Infallible>(())
        });
        match committed {
            Ok(()) => Identity::of(&store.current()).ok_or_else(|| no_key("its secret cannot be opened")),
            Err(CommitError::Store(error)) => Err(error),
            Err(CommitError::Refused { error, .. }) => match error {},
        }
    }

    /// Replaces the key. The old one signs the new one, and is forgotten. Blocks on the disk.
    pub(super) fn rotate(
        store: &Store,
        ticket: AuditTicket,
        overlap: SignedDuration,
    ) -> Result<Identity, RotationError> {
        let (secret, at) = (new_seed()?, store.clock().now());
        store.commit(ticket, |draft| {
            let old = Identity::of(draft).ok_or(RotationError::NoKey)?;
            if let Some((_, until)) = old.previous(at) {
                return Err(RotationError::Overlap(until));
            }
            draft.set_secret(KEY, secret);
            draft.unset(SUCCESSION);
            let new = Identity::of(draft).ok_or(RotationError::NoKey)?;
            let declared = Succession {
                schema: SCHEMA,
                old: old.public_key(),
                new: new.public_key(),
                at,
                until: at + overlap,
            };
            let payload = serde_json::to_string(&declared).expect("a struct with string keys");
            let bytes = succession_bytes(&payload);
            let (by_old, by_new) = (old.sign(&bytes).to_text(), new.sign(&bytes).to_text());
            draft.set(SUCCESSION, serde_json::json!(SignedSuccession { payload, by_old, by_new }));
            Ok(())
        })?;
        Identity::of(&store.current()).ok_or(RotationError::NoKey)
    }

    /// Removes the declaration of a replacement whose overlap has ended. Blocks on the disk.
    pub(super) fn end_overlap(store: &Store) -> Result<(), Error> {
        let (state, now) = (store.current(), store.clock().now());
        let is_set = state.settings.get(SUCCESSION).is_some();
        if !is_set || Identity::of(&state).is_none_or(|identity| identity.previous(now).is_some()) {
            return Ok(());
        }
        let ticket = AuditTicket::system("end_key_overlap", "federation");
        let committed = store.commit(ticket, |draft| {
            draft.unset(SUCCESSION);
            Ok::<_, std::convert::Infallible>(())
        });
        match committed {
            Ok(()) => Ok(()),
            Err(CommitError::Store(error)) => Err(error),
            Err(CommitError::Refused { error, .. }) => match error {},
        }
    }

    /// Returns the key before this one, and the end of the overlap. `None` after it.
    pub(super) fn previous(&self, now: Timestamp) -> Option<(PublicKey, Timestamp)> {
        let Succession { old, new, until, .. } =
            Succession::parse(&self.succession.as_ref()?.payload).ok()?;
        (new == self.public_key() && now < until).then_some((old, until))
    }

    /// Reports whether a message to this key is for this gateway.
    pub(super) fn is_own(&self, key: PublicKey, now: Timestamp) -> bool {
        key == self.public_key() || self.previous(now).is_some_and(|(previous, _)| previous == key)
    }

    /// Returns the declaration that goes with messages.
    pub(super) fn succession(&self) -> Option<SignedSuccession> {
        self.succession.clone()
    }

    pub(super) fn public_key(&self) -> PublicKey {
        let bytes = self.pair.public_key().as_ref();
        PublicKey(bytes.try_into().unwrap_or_default())
    }

    pub(super) fn sign(&self, bytes: &[u8]) -> Signature {
        Signature(self.pair.sign(bytes).as_ref().try_into().unwrap_or([0; 64]))
    }
}

/// Returns the seed of a new key in base64.
fn new_seed() -> Result<Secret, Error> {
    let mut seed = Zeroizing::new([0; 32]);
    getrandom::fill(&mut *seed).map_err(|_| no_key("the system has no random numbers"))?;
    let text = Zeroizing::new(STANDARD.encode(*seed));
    Ok(Secret::new(text.as_str()))
}

fn no_key(reason: &str) -> Error {
    Error::Damaged { what: format!("there is no key for the federation: {reason}") }
}

/// Verifies a signature in text form.
pub(super) fn is_signed_by(key: PublicKey, bytes: &[u8], signature: &str) -> bool {
    let Some(signature) = Signature::parse(signature) else { return false };
    UnparsedPublicKey::new(&ED25519, key.bytes()).verify(bytes, &signature.0).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;

    #[test]
    fn a_key_is_made_once_and_survives_a_restart_sealed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.redb");
        let store = Store::open(&path, SystemClock::shared()).unwrap();
        assert!(Identity::of(&store.current()).is_none());
        let key = Identity::ensure(&store).unwrap().public_key();
        assert_eq!(Identity::ensure(&store).unwrap().public_key(), key);
        let seed = store.current().settings.secret(KEY);
        drop(store);
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.windows(seed.expose().len()).any(|window| window == seed.expose().as_bytes()));
        let store = Store::open(&path, SystemClock::shared()).unwrap();
        assert_eq!(Identity::of(&store.current()).unwrap().public_key(), key);
    }

    #[test]
    fn signatures_are_of_one_key_and_one_text() {
        let [one, other] = [[1; 32], [2; 32]].map(|seed| {
            let pair = Ed25519KeyPair::from_seed_unchecked(&seed).unwrap();
            Identity { pair, succession: None }
        });
        let signature = one.sign(b"text").to_text();
        assert!(is_signed_by(one.public_key(), b"text", &signature));
        assert!(!is_signed_by(other.public_key(), b"text", &signature));
        assert!(!is_signed_by(one.public_key(), b"another text", &signature));
        assert!(!is_signed_by(one.public_key(), b"text", "AAAA"));
    }

    #[test]
    fn a_new_key_is_declared_by_both_and_the_old_one_ends_with_the_overlap() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store.redb"), SystemClock::shared()).unwrap();
        let ticket = || AuditTicket::system("rotate_key", "federation");
        let overlap = SignedDuration::from_secs(3600);
        assert!(matches!(Identity::rotate(&store, ticket(), overlap), Err(RotationError::NoKey)));
        let old = Identity::ensure(&store).unwrap().public_key();
        let identity = Identity::rotate(&store, ticket(), overlap).unwrap();
        let (new, now) = (identity.public_key(), store.clock().now());
        assert_ne!(new, old);
        let declared = identity.succession().unwrap();
        let bytes = succession_bytes(&declared.payload);
        assert!(is_signed_by(old, &bytes, &declared.by_old) && is_signed_by(new, &bytes, &declared.by_new));
        assert_eq!(identity.previous(now).map(|(key, _)| key), Some(old));
        assert!(identity.is_own(old, now) && identity.is_own(new, now));
        let later = now + overlap;
        assert!(!identity.is_own(old, later) && identity.previous(later).is_none());
        assert!(matches!(Identity::rotate(&store, ticket(), overlap), Err(RotationError::Overlap(_))));
        Identity::end_overlap(&store).unwrap();
        assert!(Identity::of(&store.current()).unwrap().succession().is_some(), "the overlap lasts");
        let removed =
            store.commit(ticket(), |draft| Ok::<_, std::convert::Infallible>(draft.unset(SUCCESSION)));
        assert!(removed.unwrap());
        let again = Identity::rotate(&store, ticket(), SignedDuration::ZERO).unwrap();
        assert!(!again.is_own(new, store.clock().now()));
        Identity::end_overlap(&store).unwrap();
        assert!(store.current().settings.get(SUCCESSION).is_none());
    }
}
