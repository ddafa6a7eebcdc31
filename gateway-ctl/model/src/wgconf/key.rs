//! Keys of 32 bytes: their base64 text, and a type for the secret ones that neither prints nor lingers.

use base64::{Engine, engine::general_purpose::STANDARD};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Base64 of 32 bytes, with its padding.
const TEXT_LEN: usize = 44;

/// A secret key: private or preshared. `Debug` does not show it, dropping it erases it.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Key([u8; 32]);

/// The text is not the base64 form of exactly 32 bytes. The error does not contain the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a base64 key of 32 bytes")]
pub struct KeyError;

impl Key {
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Reads the usual base64 form.
    pub fn from_base64(text: &str) -> Result<Self, KeyError> {
        decode_key(text).map(Self)
    }

    /// The only access to the key, besides [`Key::to_base64`].
    pub const fn expose(&self) -> &[u8; 32] {
        &self.0
    }

    pub fn to_base64(&self) -> Zeroizing<String> {
        Zeroizing::new(encode_key(&self.0))
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(***)")
    }
}

/// Takes the same time wherever the keys differ.
impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).fold(0, |acc, (a, b)| acc | (a ^ b)) == 0
    }
}

impl Eq for Key {}

/// Base64 of a key, as `wg` prints it.
pub fn encode_key(key: &[u8; 32]) -> String {
    STANDARD.encode(key)
}

/// Decodes a base64 text; only the canonical form is accepted.
pub fn decode_key(text: &str) -> Result<[u8; 32], KeyError> {
    if text.len() != TEXT_LEN {
        return Err(KeyError);
    }
    // The decoder needs a buffer for its estimate, which is one byte longer than the key.
    let mut buffer = Zeroizing::new([0; 33]);
    let len = STANDARD.decode_slice(text, buffer.as_mut_slice()).map_err(|_| KeyError)?;
    buffer.get(..len).and_then(|bytes| bytes.try_into().ok()).ok_or(KeyError)
}
