//! Named TLS clients: a configuration for libraries that connect by themselves, and a handshake for the others.

use std::sync::Arc;

use gateway_outbound::causes::with_causes;
use rustls::client::Resumption;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::error::{Error, Side, explain};
use super::factory::Factory;
use super::posture::{CachedConfig, Posture};

/// Maximum number of server sessions kept for resumption.
const TICKETS: usize = 64;

/// Client for one purpose. Clones share their tickets.
#[derive(Clone)]
pub struct Client {
    factory: Arc<Factory>,
    name: &'static str,
    /// Trusted authorities; `None`: those of the system.
    roots: Option<Arc<RootCertStore>>,
    made: Arc<CachedConfig<ClientConfig>>,
}

impl Client {
    pub(super) fn new(factory: Arc<Factory>, name: &'static str) -> Self {
        // Registers the name before its first session.
        factory.groups(name, factory.mode());
        Self { factory, name, roots: None, made: Arc::default() }
    }

    /// Trusts these authorities instead of the system's. Skips entries that are not valid certificates.
    pub fn with_authorities(mut self, authorities: Vec<CertificateDer<'static>>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(authorities);
        self.roots = Some(Arc::new(roots));
        self.made = Arc::default();
        self
    }

    /// Returns the configuration of the mode in force. Call it for each session, or when [`Factory::changes`] wakes.
    /// A configuration from an earlier mode still refuses what the current mode forbids, but offers its old groups.
    pub fn config(&self) -> Result<Arc<ClientConfig>, Error> {
        self.config_of(self.factory.posture())
    }

    fn config_of(&self, posture: Posture) -> Result<Arc<ClientConfig>, Error> {
        let mut made = self.made.lock();
        if let Some((generation, config)) = &*made
            && *generation == posture.generation
        {
            return Ok(config.clone());
        }
        let mut provider = posture.mode.provider();
        provider.kx_groups = self.factory.groups(self.name, posture.mode);
        let roots = self.roots.clone().unwrap_or_else(|| self.factory.system_roots());
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(posture.mode.versions())
            .map_err(Error::Configuration)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.resumption = Resumption::in_memory_sessions(TICKETS);
        let config = Arc::new(config);
        *made = Some((posture.generation, config.clone()));
        Ok(config)
    }

    /// Performs the handshake over an established connection. Takes as long as the peer does, so it needs a deadline.
    pub async fn connect<IO>(&self, server: ServerName<'static>, io: IO) -> Result<TlsStream<IO>, Error>
    where
        IO: AsyncRead + AsyncWrite + Unpin,
    {
        let posture = self.factory.posture();
        let connector = TlsConnector::from(self.config_of(posture)?);
        // The mode may have changed meanwhile; the stricter mode is then the reason.
        connector
            .connect(server, io)
            .await
            .map_err(|error| Error::handshake(self.factory.mode(), Side::Client, error))
    }

    /// Explains why a library that connects by itself failed, if the post-quantum mode is the reason.
    pub fn explain(&self, error: &(dyn std::error::Error + 'static)) -> Option<String> {
        explain(self.factory.mode(), error)
    }
}

impl gateway_outbound::Tls for Client {
    fn config(&self) -> Result<Arc<ClientConfig>, String> {
        Client::config(self).map_err(|error| error.to_string())
    }

    fn explain(&self, error: std::io::Error) -> String {
        // The mode may have changed meanwhile; the stricter mode is then the reason.
        with_causes(&Error::handshake(self.factory.mode(), Side::Client, error))
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("name", &self.name).finish_non_exhaustive()
    }
}
