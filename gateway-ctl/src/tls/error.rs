//! Errors of TLS handshakes. The messages name the post-quantum mode if it is the reason.

use std::io;

use rustls::{AlertDescription, PeerIncompatible, PeerMisbehaved};

use super::mode::PqMode;

/// Message for a key exchange that the mode forbids, where the library has no error for it.
pub(super) const FORBIDDEN: &str =
    "post-quantum mode is `required`, and the peer chose a classic key exchange";

const NEEDS: &str = "X25519MLKEM768 or SecP256r1MLKEM768, over TLS 1.3";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot create a TLS configuration")]
    Configuration(#[source] rustls::Error),
    /// The peer supports no session that the mode allows.
    #[error("{0}")]
    PostQuantum(String),
    #[error("the TLS handshake failed")]
    Handshake(#[from] io::Error),
}

/// Role of the gateway in a failed handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

impl Error {
    pub(super) fn handshake(mode: PqMode, side: Side, error: io::Error) -> Error {
        match tls_error(&error).and_then(|error| post_quantum_reason(mode, side, error)) {
            Some(reason) => Error::PostQuantum(reason),
            None => Error::Handshake(error),
        }
    }

    pub fn is_post_quantum(&self) -> bool {
        matches!(self, Error::PostQuantum(_))
    }
}

/// Explains the failure of a client with one of the factory's configurations, if the post-quantum mode is the reason.
/// Searches all errors that the client wrapped.
pub fn explain(mode: PqMode, error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        let found = match error.downcast_ref::<io::Error>() {
            Some(error) => tls_error(error),
            None => error.downcast_ref::<rustls::Error>(),
        };
        if let Some(reason) = found.and_then(|error| post_quantum_reason(mode, Side::Client, error)) {
            return Some(reason);
        }
        next = error.source();
    }
    None
}

fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    let inner: &(dyn std::error::Error + 'static) = error.get_ref()?;
    // Upper layers may wrap the error once more.
    inner.downcast_ref::<rustls::Error>().or_else(|| inner.downcast_ref::<io::Error>().and_then(tls_error))
}

fn post_quantum_reason(mode: PqMode, side: Side, error: &rustls::Error) -> Option<String> {
    if let rustls::Error::General(text) = error
        && text == FORBIDDEN
    {
        return Some(format!("{FORBIDDEN}; it would have to take {NEEDS}"));
    }
    if mode != PqMode::Required {
        return None;
    }
    let certain = format!(
        "post-quantum mode is `required`, and the peer offers no post-quantum key exchange ({NEEDS})"
    );
    match (side, error) {
        (
            Side::Server,
            rustls::Error::PeerIncompatible(
                PeerIncompatible::NoKxGroupsInCommon
                | PeerIncompatible::KeyShareExtensionRequired
                | PeerIncompatible::NamedGroupsExtensionRequired
                | PeerIncompatible::NoCipherSuitesInCommon
                | PeerIncompatible::SupportedVersionsExtensionRequired
                | PeerIncompatible::ServerDoesNotSupportTls12Or13
                | PeerIncompatible::Tls12NotOfferedOrEnabled,
            ),
        )
        | (
            Side::Client,
            rustls::Error::PeerIncompatible(
                PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
                | PeerIncompatible::ServerDoesNotSupportTls12Or13,
            )
            | rustls::Error::PeerMisbehaved(
                PeerMisbehaved::IllegalHelloRetryRequestWithUnofferedNamedGroup
                | PeerMisbehaved::WrongGroupForKeyShare,
            )
            | rustls::Error::AlertReceived(AlertDescription::ProtocolVersion),
        ) => Some(certain),
        // Servers send this alert when no common parameters are left. Its other meanings are not worth a mention.
        (
            Side::Client,
            rustls::Error::AlertReceived(
                AlertDescription::HandshakeFailure | AlertDescription::InsufficientSecurity,
            ),
        ) => Some(format!(
            "post-quantum mode is `required`, and the peer refused every key exchange that is left ({NEEDS})"
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_found_inside_of_other_errors() {
        let alert = rustls::Error::AlertReceived(AlertDescription::HandshakeFailure);
        let wrapped = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, alert));
        assert!(explain(PqMode::Required, &wrapped).is_some_and(|why| why.contains("`required`")));
        assert_eq!(explain(PqMode::Preferred, &wrapped), None);
        let other = io::Error::other("no route");
        assert_eq!(explain(PqMode::Required, &other), None);
    }

    #[test]
    fn other_failures_are_not_blamed_on_the_mode() {
        let expired = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
        let error = io::Error::new(io::ErrorKind::InvalidData, expired);
        assert!(!Error::handshake(PqMode::Required, Side::Client, error).is_post_quantum());
    }
}
