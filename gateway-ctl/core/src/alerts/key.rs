//! Identity of alerts.

use gateway_model::kinds::alert_rule::AlertKind;
use sha2::{Digest, Sha256};

use crate::hexadecimal::hex;

/// Identity of an alert: its kind, and its subject among those of the kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AlertKey {
    pub kind: AlertKind,
    pub subject: String,
}

impl AlertKey {
    pub fn new(kind: AlertKind, subject: impl Into<String>) -> AlertKey {
        AlertKey { kind, subject: subject.into() }
    }

    /// Returns the fingerprint: 16 hexadecimal digits of a hash, the same in all installations.
    pub fn fingerprint(&self) -> String {
        let mut hasher = Sha256::new();
        hasher.update(self.kind.as_str());
        hasher.update([0]);
        hasher.update(&self.subject);
        hex(&hasher.finalize()[..8])
    }
}
