//! API keys: `gw_<prefix>_<secret>`, and the keys of the configuration, which may be any text.
//!
//! The prefix identifies a key to humans and finds the stored object. The secret has 192 random bits, so a plain
//! SHA-256 is a sufficient hash. Digests are compared in constant time.

use gateway_core::hexadecimal::hex;
use gateway_model::settings::bootstrap;
use gateway_model::{Role, Secret};
use http::header::{self, HeaderMap};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::error::ApiError;

const MARK: &str = "gw_";

/// New key. Its text is shown once and not stored.
pub struct NewApiKey {
    pub prefix: String,
    pub text: Secret,
    pub hash: Secret,
}

pub fn generate() -> Result<NewApiKey, ApiError> {
    let mut random = [0; 28];
    getrandom::fill(&mut random).map_err(|error| ApiError::internal(&error))?;
    let (prefix, secret) = random.split_at(4);
    let prefix = hex(prefix);
    let text = Secret::new(format!("{MARK}{prefix}_{}", hex(secret)));
    Ok(NewApiKey { prefix, hash: hash(text.expose()), text })
}

/// Returns the stored form of a key.
pub fn hash(text: &str) -> Secret {
    Secret::new(hex(&digest(text)))
}

/// Returns the prefix of a key in the format of generated keys.
pub fn prefix(text: &str) -> Option<&str> {
    text.strip_prefix(MARK)?.split_once('_').map(|(prefix, _)| prefix)
}

/// Reports whether the key has this hash.
pub fn fits(text: &str, hash: &Secret) -> bool {
    hex(&digest(text)).as_bytes().ct_eq(hash.expose().as_bytes()).into()
}

/// Returns the token of `Authorization: Bearer`. Other schemes are ignored.
pub fn from_headers(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    // A scheme without a token counts as an invalid key.
    let (scheme, key) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

/// API key of the configuration.
#[derive(Clone, Debug)]
pub struct ConfiguredKey {
    pub name: String,
    pub role: Role,
    digest: [u8; 32],
}

impl ConfiguredKey {
    pub fn all(keys: &[bootstrap::ApiKey]) -> Vec<ConfiguredKey> {
        let one = |(position, key): (usize, &bootstrap::ApiKey)| {
            let name = match key.name.trim() {
                "" => format!("auth.api_keys[{position}]"),
                name => name.to_owned(),
            };
            ConfiguredKey { name, role: key.role, digest: digest(key.key.expose()) }
        };
        keys.iter().enumerate().map(one).collect()
    }

    /// Returns the index of the key with this text. Compares all keys, so that the time does not depend on the match.
    pub fn find(keys: &[ConfiguredKey], text: &str) -> Option<usize> {
        let given = digest(text);
        let mut found = None;
        for (position, key) in keys.iter().enumerate() {
            if bool::from(key.digest.ct_eq(&given)) {
                found = Some(position);
            }
        }
        found
    }
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_key_fits_its_hash_and_shows_its_prefix() {
        let (one, two) = (generate().expect("a key"), generate().expect("a key"));
        assert_eq!(prefix(one.text.expose()), Some(one.prefix.as_str()));
        assert_eq!(one.text.expose().len(), "gw_01234567_".len() + 48);
        assert!(fits(one.text.expose(), &one.hash) && !fits(two.text.expose(), &one.hash));
        assert!(!fits("", &Secret::default()) && !fits(one.text.expose(), &Secret::default()));
        assert!(!one.hash.expose().contains(&one.text.expose()[12..]), "the hash is not the key");
    }

    #[test]
    fn the_bearer_is_read_and_nothing_else() {
        let mut headers = HeaderMap::new();
        let mut read = |text: &str| {
            headers.insert(header::AUTHORIZATION, HeaderValue::from_str(text).expect("text"));
            from_headers(&headers).map(str::to_owned)
        };
        assert_eq!(read("Bearer abc").as_deref(), Some("abc"));
        assert_eq!(read("bearer  abc ").as_deref(), Some("abc"));
        assert_eq!(read("Basic YTpi"), None);
        assert_eq!(read("Bearer").as_deref(), Some(""));
        assert_eq!(read("Negotiate"), None);
    }

    #[test]
    fn configured_keys_are_found_by_their_text() {
        let key = |name: &str, text: &str, role| bootstrap::ApiKey {
            name: name.to_owned(),
            key: Secret::new(text),
            role,
        };
        let keys = ConfiguredKey::all(&[
            key("backup", "first-key-0123456789", Role::Viewer),
            key("", "second-key-0123456789", Role::Admin),
        ]);
        assert_eq!(ConfiguredKey::find(&keys, "second-key-0123456789"), Some(1));
        assert_eq!(ConfiguredKey::find(&keys, "second-key-012345678"), None);
        assert_eq!((keys[0].name.as_str(), keys[1].name.as_str()), ("backup", "auth.api_keys[1]"));
        assert!(!format!("{keys:?}").contains("first-key"));
    }
}
