//! Values that may be written and never read back: keys and passwords.
//!
//! A secret serialises as a boolean that is true if it is set. [`Secret::expose`] is the only access to the text.
//!
//! A text that the store read back is *sealed*. It is opened once, on demand, and keeps its sealed form, so that
//! writing the object again does not seal it again. The store knows how to seal and open.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::{Zeroize, Zeroizing};

/// Prefix of every sealed text.
pub const SEALED_PREFIX: &str = "enc:";

/// Opener of sealed texts.
pub trait Open: Send + Sync {
    /// Returns the clear text. `None` if it was not sealed with the same passphrase. Slow on purpose.
    fn open(&self, sealed: &str) -> Option<Zeroizing<String>>;
}

/// A secret text; empty means that none is set. Overwritten in memory when dropped.
///
/// In a resource it is declared as
/// `#[serde(default, rename(serialize = "has_password", deserialize = "password"))]`.
#[derive(Clone, Default)]
pub struct Secret(Option<Arc<Inner>>);

struct Inner {
    /// Text of the secret. `None` inside: the sealed form cannot be opened.
    clear: OnceLock<Option<Zeroizing<String>>>,
    sealed: Option<Sealed>,
    /// Opening it succeeded, and the text was not kept.
    verified: OnceLock<()>,
}

struct Sealed {
    text: Box<str>,
    by: Arc<dyn Open>,
}

impl Inner {
    fn clear(&self) -> Option<&str> {
        let clear = self.clear.get_or_init(|| {
            let sealed = self.sealed.as_ref()?;
            sealed.by.open(&sealed.text)
        });
        clear.as_ref().map(|text| text.as_str())
    }
}

impl Secret {
    pub fn new(text: impl Into<String>) -> Secret {
        let text = Zeroizing::new(text.into());
        if text.is_empty() {
            return Secret(None);
        }
        Secret(Some(Arc::new(Inner {
            clear: OnceLock::from(Some(text)),
            sealed: None,
            verified: OnceLock::new(),
        })))
    }

    /// Returns a secret with a sealed text, which is opened on demand.
    pub fn sealed(text: impl Into<Box<str>>, by: Arc<dyn Open>) -> Secret {
        Secret(Some(Arc::new(Inner {
            clear: OnceLock::new(),
            sealed: Some(Sealed { text: text.into(), by }),
            verified: OnceLock::new(),
        })))
    }

    /// Returns the secret with this sealed form.
    pub fn with_seal(&self, text: impl Into<Box<str>>, by: Arc<dyn Open>) -> Secret {
        let clear = OnceLock::from(Some(Zeroizing::new(self.expose().to_owned())));
        Secret(Some(Arc::new(Inner {
            clear,
            sealed: Some(Sealed { text: text.into(), by }),
            verified: OnceLock::new(),
        })))
    }

    pub fn is_set(&self) -> bool {
        self.0.is_some()
    }

    /// The text itself; empty if there is none or it cannot be opened. Opening takes milliseconds, the first time.
    /// Never hand it to a log, an error or a reply.
    pub fn expose(&self) -> &str {
        self.0.as_ref().and_then(|inner| inner.clear()).unwrap_or_default()
    }

    /// Reports whether the text is available, which may open it. A secret that is not set is readable.
    pub fn is_readable(&self) -> bool {
        self.0.as_ref().is_none_or(|inner| inner.clear().is_some())
    }

    /// Returns true if opening it was tried, so that [`Secret::expose`] returns at once. A secret that is not set is
    /// opened.
    pub fn is_opened(&self) -> bool {
        self.0.as_ref().is_none_or(|inner| inner.clear.get().is_some())
    }

    /// Reports whether it can be opened, without keeping the text. Tries it once.
    pub fn verify(&self) -> bool {
        let Some(inner) = &self.0 else { return true };
        if self.is_verified() {
            return !self.is_known_unreadable();
        }
        let opens = inner.sealed.as_ref().is_some_and(|sealed| sealed.by.open(&sealed.text).is_some());
        if opens {
            inner.verified.get_or_init(|| ());
        } else {
            inner.clear.get_or_init(|| None);
        }
        opens
    }

    /// Reports whether it is known if it can be opened.
    pub fn is_verified(&self) -> bool {
        self.is_opened() || self.0.as_ref().is_none_or(|inner| inner.verified.get().is_some())
    }

    /// Reports whether an attempt to open it failed.
    pub fn is_known_unreadable(&self) -> bool {
        self.0.as_ref().is_some_and(|inner| matches!(inner.clear.get(), Some(None)))
    }

    /// The sealed form, if it has one.
    pub fn sealed_text(&self) -> Option<&str> {
        Some(&self.0.as_ref()?.sealed.as_ref()?.text)
    }

    /// Reports whether this opener produced the sealed form.
    pub fn is_sealed_by(&self, by: &Arc<dyn Open>) -> bool {
        let sealed = self.0.as_ref().and_then(|inner| inner.sealed.as_ref());
        sealed.is_some_and(|sealed| std::ptr::addr_eq(Arc::as_ptr(&sealed.by), Arc::as_ptr(by)))
    }

    /// Returns the text for the store: the sealed form if there is one, else the clear text.
    pub fn stored_text(&self) -> &str {
        self.sealed_text().unwrap_or_else(|| self.expose())
    }

    /// Returns the text that an input keeps of the object that it replaces, for `carry_over`. It opens no secret, and
    /// keeps one that cannot be opened. `Secret::resume` restores it.
    pub fn kept(&self) -> &str {
        self.stored_text()
    }

    /// Replaces a kept value by that of `before` after an input was decoded. Returns true if it did.
    pub(crate) fn resume(&mut self, before: &Secret) -> bool {
        let kept = match (&self.0, &before.0) {
            (Some(new), Some(old)) => match (&new.sealed, new.clear.get(), &old.sealed) {
                (None, Some(Some(text)), Some(sealed)) => text.as_str() == &*sealed.text,
                _ => false,
            },
            _ => false,
        };
        if kept || (self.is_set() && self.clear_is_known_equal(before)) {
            *self = before.clone();
            return true;
        }
        false
    }

    /// Equality as far as it is known without opening.
    fn clear_is_known_equal(&self, other: &Secret) -> bool {
        let known =
            |secret: &Secret| secret.0.as_ref().and_then(|inner| inner.clear.get().cloned().flatten());
        matches!((known(self), known(other)), (Some(one), Some(two)) if *one == *two)
    }

    /// Returns a secret from the store: sealed if the text looks sealed.
    pub fn adopt(&mut self, by: &Arc<dyn Open>) {
        let looks_sealed = |inner: &Arc<Inner>| {
            inner.sealed.is_none() && inner.clear().is_some_and(|text| text.starts_with(SEALED_PREFIX))
        };
        if self.0.as_ref().is_some_and(looks_sealed) {
            *self = Secret::sealed(self.expose(), by.clone());
        }
    }

    /// The 32 bytes of a key in base64, as WireGuard writes them.
    pub fn key(&self) -> Option<Zeroizing<[u8; 32]>> {
        let mut bytes = STANDARD.decode(self.expose().trim()).ok()?;
        let key = <[u8; 32]>::try_from(bytes.as_slice()).ok().map(Zeroizing::new);
        bytes.zeroize();
        key
    }

    /// Reports whether both are the same value, without a comparison of the texts.
    pub fn is_same(&self, other: &Secret) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(one), Some(two)) => Arc::ptr_eq(one, two),
            _ => false,
        }
    }
}

/// By the text. Secrets that cannot be opened equal those with the same sealed form only.
impl PartialEq for Secret {
    fn eq(&self, other: &Secret) -> bool {
        let (Some(one), Some(two)) = (&self.0, &other.0) else {
            return self.0.is_none() == other.0.is_none();
        };
        if Arc::ptr_eq(one, two) {
            return true;
        }
        if let (Some(one), Some(two)) = (self.sealed_text(), other.sealed_text())
            && one == two
        {
            return true;
        }
        matches!((one.clear(), two.clear()), (Some(one), Some(two)) if one == two)
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_set() { "Secret(set)" } else { "Secret(unset)" })
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(self.is_set())
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
        Ok(Secret::new(Option::<String>::deserialize(deserializer)?.unwrap_or_default()))
    }
}

impl JsonSchema for Secret {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        if generator.contract().is_serialize() {
            json_schema!({ "type": "boolean", "readOnly": true, "description": "Whether the secret is set; it is never shown." })
        } else {
            json_schema!({ "type": ["string", "null"], "writeOnly": true, "description": "Kept when left out, cleared by null." })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_debug_nor_json_shows_a_secret() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret:?}"), "Secret(set)");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "true");
        assert_eq!(secret.expose(), "hunter2");
        assert_eq!(serde_json::from_str::<Secret>("null").unwrap(), Secret::default());
    }

    #[test]
    fn a_key_is_32_bytes_of_base64() {
        assert_eq!(*Secret::new("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE=").key().unwrap(), {
            let mut key = [0; 32];
            key[31] = 1;
            key
        });
        assert!(Secret::new("AAAA").key().is_none());
        assert!(Secret::new("not base64").key().is_none());
    }

    /// Seals by turning the text around, and counts.
    #[derive(Default)]
    struct Mirror(std::sync::atomic::AtomicUsize);

    impl Open for Mirror {
        fn open(&self, sealed: &str) -> Option<Zeroizing<String>> {
            self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let text: String = sealed.strip_prefix(SEALED_PREFIX)?.chars().rev().collect();
            (text != "tsol").then(|| Zeroizing::new(text))
        }
    }

    fn opened(mirror: &Mirror) -> usize {
        mirror.0.load(std::sync::atomic::Ordering::SeqCst)
    }

    #[test]
    fn a_sealed_secret_is_opened_once_and_only_when_needed() {
        let mirror = Arc::new(Mirror::default());
        let by: Arc<dyn Open> = mirror.clone();
        let mut secret = Secret::new("enc:2retnuh");
        secret.adopt(&by);
        let copy = secret.clone();
        assert!(secret.is_set() && secret.is_sealed_by(&by) && secret == copy);
        assert_eq!((secret.stored_text(), secret.kept(), opened(&mirror)), ("enc:2retnuh", "enc:2retnuh", 0));
        assert_eq!((secret.expose(), copy.expose(), opened(&mirror)), ("hunter2", "hunter2", 1));
        assert_eq!(secret, Secret::new("hunter2"));
        assert_ne!(secret, Secret::new("enc:2retnuh"));
        assert_eq!(secret.sealed_text(), Some("enc:2retnuh"));
    }

    #[test]
    fn verified_secret_is_tried_once_and_its_text_is_not_kept() {
        let mirror = Arc::new(Mirror::default());
        for (sealed, opens) in [("enc:2retnuh", true), ("enc:lost", false)] {
            let secret = Secret::sealed(sealed, mirror.clone());
            let before = opened(&mirror);
            assert!(!secret.is_verified());
            assert_eq!((secret.verify(), secret.clone().verify()), (opens, opens));
            assert_eq!(opened(&mirror), before + 1);
            assert_eq!((secret.is_verified(), secret.is_known_unreadable()), (true, !opens));
            assert_eq!(secret.is_opened(), !opens);
        }
        let plain = Secret::new("hunter2");
        assert!(plain.is_verified() && plain.verify() && Secret::default().verify());
    }

    #[test]
    fn an_unreadable_secret_is_set_and_shows_nothing() {
        let by: Arc<dyn Open> = Arc::new(Mirror::default());
        let secret = Secret::sealed("enc:lost", by.clone());
        assert!(!secret.is_known_unreadable());
        assert_eq!((secret.expose(), secret.is_set(), secret.is_readable()), ("", true, false));
        assert!(secret.is_known_unreadable() && secret.key().is_none());
        assert_eq!(secret, Secret::sealed("enc:lost", by.clone()));
        assert_ne!(secret, Secret::sealed("enc:tsol2", by));
        assert_ne!(secret, Secret::default());
    }

    #[test]
    fn a_kept_secret_is_resumed() {
        let mirror = Arc::new(Mirror::default());
        let before = Secret::sealed("enc:2retnuh", mirror.clone());
        let mut kept = Secret::new(before.kept());
        assert!(kept.resume(&before) && kept.is_same(&before));
        let mut other = Secret::new("another");
        assert!(!other.resume(&before) && other.expose() == "another");
        assert_eq!(opened(&mirror), 0);
        let clear = Secret::new("x");
        let mut again = Secret::new(clear.kept());
        assert!(again.resume(&clear) && again.is_same(&clear));
        assert!(!Secret::default().resume(&Secret::default()));
    }
}
