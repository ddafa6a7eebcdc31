//! TLS configurations of outgoing connections, from the daemon's single factory.

use std::io;
use std::sync::Arc;

use rustls::ClientConfig;

/// Source of the current TLS configuration for new sessions. Callers set the ALPN protocols.
pub trait Tls: Send + Sync + 'static {
    fn config(&self) -> Result<Arc<ClientConfig>, String>;

    /// Returns the reason of a failed handshake.
    fn explain(&self, error: io::Error) -> String {
        error.to_string()
    }
}

impl<F> Tls for F
where
    F: Fn() -> Result<Arc<ClientConfig>, String> + Send + Sync + 'static,
{
    fn config(&self) -> Result<Arc<ClientConfig>, String> {
        self()
    }
}
