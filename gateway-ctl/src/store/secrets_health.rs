//! Verification of the stored secrets, a few at a time: whether they can be decrypted.

use std::time::{Duration, Instant};

use gateway_model::secrets::{Scope, SecretPlace};

use super::Store;

/// Knowledge about the stored secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretsHealth {
    /// Values are sealed, and the passphrase is missing.
    pub is_locked: bool,
    /// Secrets that cannot be decrypted.
    pub unreadable: Vec<SecretPlace>,
    /// Number of secrets that were not tried yet.
    pub unknown: usize,
}

impl Store {
    /// Tries to decrypt secrets that were not tried yet, for some time. No clear text is kept. Takes CPU time.
    pub fn verify_secrets(&self, budget: Duration) -> SecretsHealth {
        let is_locked = self.secrets_status().locked;
        let mut health = SecretsHealth { is_locked, ..SecretsHealth::default() };
        if is_locked {
            return health;
        }
        let begun = Instant::now();
        // A clone shares what is known of each secret.
        self.current().as_ref().clone().visit_secrets(Scope::All, &mut |place, secret| {
            if !secret.is_verified() && begun.elapsed() < budget {
                secret.verify();
            }
            if secret.is_known_unreadable() {
                health.unreadable.push(place.clone());
            } else if !secret.is_verified() {
                health.unknown += 1;
            }
        });
        health
    }
}
