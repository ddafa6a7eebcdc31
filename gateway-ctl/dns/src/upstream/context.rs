//! What asking takes from the rest of the gateway: sockets, TLS, and somebody who wants to know.

use std::sync::Arc;

use rustls::ClientConfig;

use super::path::Sockets;

/// Gives the configuration in force for TLS sessions that begin. The protocols above TLS are set here.
pub trait Tls: Send + Sync + 'static {
    fn config(&self) -> Result<Arc<ClientConfig>, String>;
}

impl<F> Tls for F
where
    F: Fn() -> Result<Arc<ClientConfig>, String> + Send + Sync + 'static,
{
    fn config(&self) -> Result<Arc<ClientConfig>, String> {
        self()
    }
}

/// What is worth an alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An upstream has failed too often and is left out.
    Down { upstream: Arc<str>, egress: Arc<str>, error: String },
    /// It answers again.
    Up { upstream: Arc<str>, egress: Arc<str> },
}

pub struct Context {
    pub sockets: Box<dyn Sockets>,
    pub tls: Box<dyn Tls>,
    /// Called from within the asking: it must not wait.
    pub tell: Box<dyn Fn(Event) + Send + Sync>,
}
