//! Post-quantum modes, and the key exchange groups that each of them offers.

use std::fmt;

use gateway_model::decode;
use rustls::crypto::aws_lc_rs::{self, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::{NamedGroup, SupportedProtocolVersion, version};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

static TLS13_ONLY: &[&SupportedProtocolVersion] = &[&version::TLS13];

/// Key exchanges that TLS sessions may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PqMode {
    /// Default preferences of the TLS library.
    #[default]
    Default,
    /// Post-quantum first; classic peers are still accepted.
    Preferred,
    /// Post-quantum only, which implies TLS 1.3; the handshake with a classic peer fails.
    Required,
}

impl PqMode {
    /// Key of the setting that holds the mode.
    pub const KEY: &'static str = "pq_crypto_mode";

    pub const fn as_str(self) -> &'static str {
        match self {
            PqMode::Default => "default",
            PqMode::Preferred => "preferred",
            PqMode::Required => "required",
        }
    }

    /// Parses the stored setting. An unreadable value means the strictest mode: a guess must not weaken the security.
    pub fn of_setting(stored: Option<&serde_json::Value>) -> PqMode {
        let Some(stored) = stored else { return PqMode::Default };
        decode::from_value(stored).unwrap_or_else(|error| {
            tracing::error!(%error, "failed to read setting {}: allowing only post-quantum sessions", PqMode::KEY);
            PqMode::Required
        })
    }

    /// Returns the key exchange groups in order of preference.
    pub(super) fn groups(self) -> Vec<&'static dyn SupportedKxGroup> {
        match self {
            PqMode::Default => aws_lc_rs::default_provider().kx_groups,
            PqMode::Preferred => vec![
                kx_group::X25519MLKEM768,
                kx_group::SECP256R1MLKEM768,
                kx_group::X25519,
                kx_group::SECP256R1,
                kx_group::SECP384R1,
            ],
            PqMode::Required => vec![kx_group::X25519MLKEM768, kx_group::SECP256R1MLKEM768],
        }
    }

    /// Returns the allowed protocol versions. TLS 1.2 has no post-quantum key exchange.
    pub(super) fn versions(self) -> &'static [&'static SupportedProtocolVersion] {
        match self {
            PqMode::Default | PqMode::Preferred => rustls::ALL_VERSIONS,
            PqMode::Required => TLS13_ONLY,
        }
    }

    pub(super) fn provider(self) -> CryptoProvider {
        let mut provider = aws_lc_rs::default_provider();
        provider.kx_groups = self.groups();
        if self == PqMode::Required {
            provider.cipher_suites.retain(|suite| suite.tls13().is_some());
        }
        provider
    }

    /// Reports whether a session with this key exchange group may begin.
    pub(super) fn allows(self, group: NamedGroup) -> bool {
        self != PqMode::Required || is_post_quantum(group)
    }

    /// Returns the names of the offered groups, the preferred one first.
    pub fn curves(self) -> Vec<String> {
        self.groups().iter().map(|group| group_name(group.name())).collect()
    }

    /// Returns the names of all groups that any mode may use.
    pub fn supported() -> Vec<String> {
        PqMode::Preferred.curves()
    }
}

impl fmt::Display for PqMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

pub fn is_post_quantum(group: NamedGroup) -> bool {
    matches!(
        group,
        NamedGroup::X25519MLKEM768
            | NamedGroup::secp256r1MLKEM768
            | NamedGroup::MLKEM512
            | NamedGroup::MLKEM768
            | NamedGroup::MLKEM1024
    )
}

/// Returns the name of a group as in the IANA TLS registry.
pub fn group_name(group: NamedGroup) -> String {
    match group {
        NamedGroup::secp256r1MLKEM768 => "SecP256r1MLKEM768".to_owned(),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_modes_offer_what_they_say() {
        let post_quantum = |mode: PqMode| -> Vec<bool> {
            mode.groups().iter().map(|group| is_post_quantum(group.name())).collect()
        };
        assert_eq!(post_quantum(PqMode::Required), [true, true]);
        assert_eq!(post_quantum(PqMode::Preferred), [true, true, false, false, false]);
        assert!(post_quantum(PqMode::Default).contains(&false), "classic peers must not be lost");
        assert_eq!(PqMode::Required.curves(), ["X25519MLKEM768", "SecP256r1MLKEM768"]);
        assert!(PqMode::Default.curves().iter().all(|curve| PqMode::supported().contains(curve)));
    }

    #[test]
    fn a_setting_that_cannot_be_read_means_the_strictest() {
        assert_eq!(PqMode::of_setting(None), PqMode::Default);
        assert_eq!(PqMode::of_setting(Some(&json!("preferred"))), PqMode::Preferred);
        for odd in [json!("Preferred"), json!("hybrid"), json!(1), json!(null)] {
            assert_eq!(PqMode::of_setting(Some(&odd)), PqMode::Required, "{odd}");
        }
    }
}
