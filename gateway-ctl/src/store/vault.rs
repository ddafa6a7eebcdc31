//! Secrets at rest: their sealed format, and the passphrase that seals them.
//!
//! A sealed value is `enc:` and the base64 of salt (16 bytes), nonce (12 bytes), ciphertext and tag. The cipher is
//! AES-256-GCM. PBKDF2-HMAC-SHA256 derives the key from the passphrase with 100 000 rounds and a fresh salt for each
//! value. Values are opened on first use, so a start costs no derivation.
//!
//! The passphrase is in the store and in a file beside it. Secrets are therefore protected in copies of single
//! values, exports and discarded pages, but not against a reader of the whole folder.
//!
//! Decision 0133 says why aws-lc-rs does it.

mod passphrase;
mod reencrypt;
mod stored;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::pbkdf2;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gateway_model::secret::{Open, SEALED_PREFIX};
use gateway_model::{Secret, text_enum};
use zeroize::Zeroizing;

pub(super) use passphrase::{PassphraseSearch, forget, keep, start, write};
pub(super) use reencrypt::{UnsealableSecrets, exchange_secrets, in_clear, open_all, seal_changed};
pub(super) use stored::{ReencryptReport, reseal_snapshots};

const ROUNDS: NonZeroU32 = NonZeroU32::new(100_000).expect("not zero");
const SALT: usize = 16;
const TAG: usize = 16;

text_enum! {
    /// Storage mode of secrets, by the source of their passphrase.
    pub enum SecretsMode {
        /// In clear: the passphrase was removed.
        Plain = "none",
        /// Sealed with a passphrase that was generated at the first start.
        Generated = "generated",
        /// Sealed with a passphrase set by the user.
        Own = "own",
    }
}

/// Storage mode with its vault. Mode [`SecretsMode::Plain`] has no vault.
pub(super) struct SecretStorage {
    pub mode: SecretsMode,
    pub vault: Option<Arc<Vault>>,
    /// True if a passphrase was lost: some values may never be readable again.
    pub lost: bool,
}

impl SecretStorage {
    pub(super) fn opener(&self) -> Option<Arc<dyn Open>> {
        self.vault.clone().map(|vault| vault as Arc<dyn Open>)
    }

    /// Reports whether values are sealed and the passphrase is missing.
    pub(super) fn is_locked(&self) -> bool {
        self.vault.as_ref().is_some_and(|vault| vault.passphrase.is_none())
    }
}

/// Vault that seals and opens secrets with one passphrase.
pub(super) struct Vault {
    /// `None` while the passphrase is missing: then nothing can be opened or sealed.
    passphrase: Option<Zeroizing<String>>,
    derivations: AtomicU64,
}

impl Vault {
    pub(super) fn new(passphrase: Zeroizing<String>) -> Vault {
        Vault { passphrase: Some(passphrase), derivations: AtomicU64::new(0) }
    }

    pub(super) fn locked() -> Vault {
        Vault { passphrase: None, derivations: AtomicU64::new(0) }
    }

    pub(super) fn passphrase(&self) -> Option<&str> {
        self.passphrase.as_ref().map(|text| text.as_str())
    }

    /// Returns the number of keys derived so far.
    pub(super) fn derivations(&self) -> u64 {
        self.derivations.load(Ordering::Relaxed)
    }

    /// Returns the secret in sealed form; `None` if it is unreadable or the passphrase is missing.
    pub(super) fn seal(self: &Arc<Vault>, secret: &Secret) -> Option<Secret> {
        if !secret.is_readable() {
            return None;
        }
        Some(secret.with_seal(self.seal_text(secret.expose())?, self.clone() as Arc<dyn Open>))
    }

    pub(super) fn seal_text(&self, clear: &str) -> Option<String> {
        let mut bytes = vec![0; SALT + NONCE_LEN];
        getrandom::fill(&mut bytes).expect("a booted kernel has random numbers");
        let key = self.key(&bytes[..SALT])?;
        let nonce = Nonce::try_assume_unique_for_key(&bytes[SALT..]).expect("it has the length of a nonce");
        let mut sealed = clear.as_bytes().to_vec();
        sealed.reserve_exact(TAG);
        key.seal_in_place_append_tag(nonce, Aad::empty(), &mut sealed).ok()?;
        bytes.append(&mut sealed);
        Some(format!("{SEALED_PREFIX}{}", STANDARD.encode(bytes)))
    }

    fn key(&self, salt: &[u8]) -> Option<LessSafeKey> {
        let passphrase = self.passphrase.as_ref()?;
        self.derivations.fetch_add(1, Ordering::Relaxed);
        let mut key = Zeroizing::new([0; 32]);
        let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
        pbkdf2::derive(algorithm, ROUNDS, salt, passphrase.as_bytes(), key.as_mut_slice());
        UnboundKey::new(&AES_256_GCM, key.as_slice()).ok().map(LessSafeKey::new)
    }
}

/// Reports whether a text has the whole form of a sealed value. The prefix is not enough: a password may begin like
/// one.
fn has_sealed_form(text: &str) -> bool {
    let bytes = text.strip_prefix(SEALED_PREFIX).and_then(|text| STANDARD.decode(text).ok());
    bytes.is_some_and(|bytes| bytes.len() >= SALT + NONCE_LEN + TAG)
}

impl Open for Vault {
    fn open(&self, sealed: &str) -> Option<Zeroizing<String>> {
        let mut bytes = STANDARD.decode(sealed.strip_prefix(SEALED_PREFIX)?).ok()?;
        if bytes.len() < SALT + NONCE_LEN + TAG {
            return None;
        }
        let key = self.key(&bytes[..SALT])?;
        let nonce = Nonce::try_assume_unique_for_key(&bytes[SALT..SALT + NONCE_LEN]).ok()?;
        let mut sealed = Zeroizing::new(bytes.split_off(SALT + NONCE_LEN));
        let clear = key.open_in_place(nonce, Aad::empty(), &mut sealed).ok()?;
        Some(Zeroizing::new(std::str::from_utf8(clear).ok()?.to_owned()))
    }
}

#[cfg(test)]
mod tests;
