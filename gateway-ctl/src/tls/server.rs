//! TLS servers: the configuration of the mode in force, and a handshake with an explained error.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::{ResolvesServerCert, ServerSessionMemoryCache};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::error::{Error, FORBIDDEN, Side};
use super::factory::Factory;
use super::posture::{CachedConfig, Posture};

/// Maximum number of client sessions kept for resumption.
const TICKETS: usize = 256;

/// TLS server with its certificate.
pub struct Server {
    factory: Arc<Factory>,
    certificates: Arc<dyn ResolvesServerCert>,
    protocols: Vec<Vec<u8>>,
    made: CachedConfig<ServerConfig>,
}

impl Server {
    pub(super) fn new(
        factory: Arc<Factory>,
        certificates: Arc<dyn ResolvesServerCert>,
        protocols: &[&[u8]],
    ) -> Self {
        let protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Self { factory, certificates, protocols, made: CachedConfig::default() }
    }

    /// Returns the configuration of the mode in force, for libraries that accept by themselves. Call it for each
    /// session, or when [`Factory::changes`] wakes.
    pub fn config(&self) -> Result<Arc<ServerConfig>, Error> {
        self.config_of(self.factory.posture())
    }

    fn config_of(&self, posture: Posture) -> Result<Arc<ServerConfig>, Error> {
        let mut made = self.made.lock();
        if let Some((generation, config)) = &*made
            && *generation == posture.generation
        {
            return Ok(config.clone());
        }
        let mut config = ServerConfig::builder_with_provider(Arc::new(posture.mode.provider()))
            .with_protocol_versions(posture.mode.versions())
            .map_err(Error::Configuration)?
            .with_no_client_auth()
            .with_cert_resolver(self.certificates.clone());
        // Session state is kept on the server instead of in client-held tickets, so dropping the configuration ends
        // all sessions.
        config.session_storage = ServerSessionMemoryCache::new(TICKETS);
        config.alpn_protocols = self.protocols.clone();
        let config = Arc::new(config);
        *made = Some((posture.generation, config.clone()));
        Ok(config)
    }

    /// Performs the handshake over an established connection. Takes as long as the peer does, so it needs a deadline.
    pub async fn accept<IO>(&self, io: IO) -> Result<TlsStream<IO>, Error>
    where
        IO: AsyncRead + AsyncWrite + Unpin,
    {
        let posture = self.factory.posture();
        let acceptor = TlsAcceptor::from(self.config_of(posture)?);
        let stream = acceptor.accept(io).await.map_err(|error| {
            let error = Error::handshake(posture.mode, Side::Server, error);
            self.note(&error);
            error
        })?;
        let group = stream.get_ref().1.negotiated_key_exchange_group().map(|group| group.name());
        // The mode may have changed during the handshake.
        if group.is_some_and(|group| !self.factory.mode().allows(group)) {
            let error = Error::PostQuantum(FORBIDDEN.to_owned());
            self.note(&error);
            return Err(error);
        }
        self.factory.note_session(group);
        Ok(stream)
    }

    /// Counts refusals and logs them with decreasing frequency, so that a peer cannot fill the log.
    fn note(&self, error: &Error) {
        if error.is_post_quantum() {
            let count = self.factory.note_refusal();
            if count.is_power_of_two() {
                tracing::warn!(%error, count, "TLS sessions refused");
            }
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}
