//! Key of the pseudonyms.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Length of a digest in a pseudonym, in hexadecimal digits.
pub(super) const DIGEST_DIGITS: usize = 10;

/// Secret key of the pseudonyms of one bundle.
#[derive(Clone)]
pub struct PseudonymKey(Hmac<Sha256>);

impl fmt::Debug for PseudonymKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PseudonymKey(secret)")
    }
}

impl PseudonymKey {
    pub fn new(bytes: &[u8; 32]) -> PseudonymKey {
        PseudonymKey(<Hmac<Sha256> as KeyInit>::new_from_slice(bytes).expect("HMAC takes keys of any length"))
    }

    /// Returns a keyed digest of a value of a class.
    pub(super) fn digest(&self, class: &str, value: &[u8]) -> [u8; 32] {
        let mut mac = self.0.clone();
        mac.update(class.as_bytes());
        mac.update(&[0]);
        mac.update(value);
        mac.finalize().into_bytes().into()
    }

    pub(super) fn digits(&self, class: &str, value: &[u8], count: usize) -> String {
        let digest = self.digest(class, value);
        let mut text: String =
            digest.iter().take(count.div_ceil(2)).map(|byte| format!("{byte:02x}")).collect();
        text.truncate(count);
        text
    }

    pub(super) fn token(&self, class: &str, value: &str) -> String {
        format!("{class}-{}", self.digits(class, value.as_bytes(), DIGEST_DIGITS))
    }
}
