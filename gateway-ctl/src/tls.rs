//! TLS of the whole daemon, in both directions. One factory makes every configuration, from the post-quantum mode in
//! force.
//!
//! Established sessions keep their negotiated parameters; every session that begins after a change of the mode obeys
//! the new mode. No ticket outlives its mode, because each change starts with empty ticket stores.
//!
//! Libraries keep configurations in pools. Client key exchanges therefore ask the factory again on completion, so a pooled
//! configuration cannot negotiate a group that the mode now forbids; the same wrapper records the negotiated group of
//! each named client. An unreadable stored mode counts as `required`. While the store itself is unreadable the default
//! applies, so that the API can report it. SSH has key exchanges of its own: `required` leaves only the hybrid one, and
//! `/pq-crypto` reports TLS only.

mod authorities;
mod certificate;
mod client;
mod error;
mod factory;
mod key_exchange;
mod mode;
mod posture;
mod self_signed;
mod server;

use std::sync::Arc;

use rustls::server::ResolvesServerCert;

pub use authorities::with_authorities;
pub use certificate::{Certificates, Origin, Status as CertificateStatus};
pub use client::Client;
pub use error::{Error, explain};
pub use factory::{ClientReport, ConfigChanges, Factory, InboundExchanges};
pub use mode::{PqMode, group_name, is_post_quantum};
pub use self_signed::CertificateNames;
pub use server::Server;

impl Factory {
    /// Returns a client for one purpose, such as `doh`. The name is shown together with its last negotiated
    /// parameters.
    pub fn client(self: &Arc<Self>, name: &'static str) -> Client {
        Client::new(self.clone(), name)
    }

    /// Returns a server with this certificate. `protocols` are its ALPN protocols in order of preference.
    pub fn server(
        self: &Arc<Self>,
        certificates: Arc<dyn ResolvesServerCert>,
        protocols: &[&[u8]],
    ) -> Server {
        Server::new(self.clone(), certificates, protocols)
    }
}

#[cfg(test)]
mod tests;
