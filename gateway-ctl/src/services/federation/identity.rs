//! Key of this gateway: Ed25519, among the secrets of the store. It is in no export, backup or snapshot.

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gateway_core::federation::message::Signature;
use gateway_model::State;
use gateway_model::secret::Secret;
use gateway_model::validated::PublicKey;
use zeroize::Zeroizing;

use crate::store::{AuditTicket, CommitError, Error, Store};

/// Setting with the seed of the key in base64.
const KEY: &str = "internal.federation_key";

/// Key pair of this gateway.
pub(super) struct Identity(Ed25519KeyPair);

impl Identity {
    /// Returns the identity of a state. `None` if it has none, or if its secret cannot be opened.
    pub(super) fn of(state: &State) -> Option<Identity> {
        let secret = state.settings.secret(KEY);
        let seed = Zeroizing::new(STANDARD.decode(secret.expose()).ok()?);
        Ed25519KeyPair::from_seed_unchecked(&seed).ok().map(Identity)
    }

    /// Returns the identity of this gateway, which is made first if there is none. Blocks on the disk.
    pub(super) fn ensure(store: &Store) -> Result<Identity, Error> {
        if let Some(identity) = Identity::of(&store.current()) {
            return Ok(identity);
        }
        let mut seed = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *seed).map_err(|_| no_key("the system has no random numbers"))?;
        let text = Zeroizing::new(STANDARD.encode(*seed));
        let secret = Secret::new(text.as_str());
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

    pub(super) fn public_key(&self) -> PublicKey {
        let bytes = self.0.public_key().as_ref();
        PublicKey(bytes.try_into().unwrap_or_default())
    }

    pub(super) fn sign(&self, bytes: &[u8]) -> Signature {
        Signature(self.0.sign(bytes).as_ref().try_into().unwrap_or([0; 64]))
    }
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
        let [one, other] =
            [[1; 32], [2; 32]].map(|seed| Identity(Ed25519KeyPair::from_seed_unchecked(&seed).unwrap()));
        let signature = one.sign(b"text").to_text();
        assert!(is_signed_by(one.public_key(), b"text", &signature));
        assert!(!is_signed_by(other.public_key(), b"text", &signature));
        assert!(!is_signed_by(one.public_key(), b"another text", &signature));
        assert!(!is_signed_by(one.public_key(), b"text", "AAAA"));
    }
}
