//! Connections that queries share: over TCP, over TLS (RFC 7858), over HTTPS (RFC 8484), over QUIC (RFC 9250).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use gateway_model::upstream::DnsProtocol;
use gateway_outbound::Egress;
use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls::client::Resumption;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::context::Context;
use super::doh::Requests;
use super::doq::{self, Streams};
use super::error::Error;
use super::message::ReplyHeader;
use super::pipelined::PipelinedConnection;
use crate::hooks::Server;

/// Time limit for one address: the TCP connection and the handshakes above it.
const CONNECT: Duration = Duration::from_secs(3);
/// Number of TLS sessions kept for resumption.
const TICKETS: usize = 8;

#[derive(Clone)]
pub(super) enum Connection {
    Pipelined(PipelinedConnection),
    Requests(Requests),
    Streams(Streams),
}

impl Connection {
    pub(super) fn is_open(&self) -> bool {
        match self {
            Connection::Pipelined(pipe) => pipe.is_open(),
            Connection::Requests(requests) => requests.is_open(),
            Connection::Streams(streams) => streams.is_open(),
        }
    }

    /// Reports whether the connection ever returned an answer, where the remote end may close after each answer.
    pub(super) fn has_answered(&self) -> bool {
        match self {
            Connection::Pipelined(pipe) => pipe.has_answered(),
            Connection::Requests(_) => false,
            Connection::Streams(streams) => streams.has_answered(),
        }
    }

    /// Reports whether both are the same connection.
    pub(super) fn is(&self, other: &Connection) -> bool {
        match (self, other) {
            (Connection::Pipelined(one), Connection::Pipelined(other)) => one.is(other),
            (Connection::Requests(one), Connection::Requests(other)) => one.is(other),
            (Connection::Streams(one), Connection::Streams(other)) => one.is(other),
            _ => false,
        }
    }

    /// Sends a query and returns the answer. The message may have any ID; the connection sets its own.
    pub(super) async fn send_query(&self, message: Vec<u8>) -> Result<(Vec<u8>, ReplyHeader), Error> {
        match self {
            Connection::Pipelined(pipe) => pipe.send_query(message).await,
            Connection::Requests(requests) => requests.send_query(message).await,
            Connection::Streams(streams) => streams.send_query(message).await,
        }
    }
}

/// TLS configuration last used, with sessions to resume.
#[derive(Default)]
pub(super) struct Tickets(Mutex<Option<Configurations>>);

struct Configurations {
    given: Arc<ClientConfig>,
    own: Arc<ClientConfig>,
}

impl Tickets {
    /// Returns the current configuration with its own protocols and tickets. A new configuration discards the tickets.
    fn config(&self, given: Arc<ClientConfig>, protocols: &[&[u8]]) -> Arc<ClientConfig> {
        let mut last = self.0.lock();
        if let Some(last) = last.as_ref().filter(|last| Arc::ptr_eq(&last.given, &given)) {
            return last.own.clone();
        }
        let mut own = ClientConfig::clone(&given);
        own.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        own.resumption = Resumption::in_memory_sessions(TICKETS);
        // Early data could be replayed.
        own.enable_early_data = false;
        let own = Arc::new(own);
        *last = Some(Configurations { given, own: own.clone() });
        own
    }
}

/// Opens a connection to one address of the server.
pub(super) async fn open(
    context: &Context,
    server: &Server,
    path: &Egress,
    tickets: &Tickets,
    address: SocketAddr,
) -> Result<Connection, Error> {
    let opening = async {
        let connecting = || path.connect(context.sockets.as_ref(), address);
        match server.protocol {
            DnsProtocol::Udp | DnsProtocol::Tcp => {
                Ok(Connection::Pipelined(PipelinedConnection::new(connecting().await?)))
            }
            DnsProtocol::Tls => {
                let stream = secure(context, server, tickets, &[], connecting().await?).await?;
                Ok(Connection::Pipelined(PipelinedConnection::new(stream)))
            }
            DnsProtocol::Https => {
                let stream = secure(context, server, tickets, &[b"h2"], connecting().await?).await?;
                if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
                    return Err(Error::Http("the server does not speak HTTP/2".into()));
                }
                Ok(Connection::Requests(Requests::over(stream, server).await?))
            }
            DnsProtocol::Quic => {
                let config = configuration(context, tickets, &[doq::PROTOCOL])?;
                let datagrams = path.datagrams(context.sockets.as_ref(), address).await?;
                let tls = (context.tls.as_ref(), config);
                Ok(Connection::Streams(Streams::open(datagrams, tls, name(server)?, address).await?))
            }
        }
    };
    timeout(context.wait(CONNECT), opening).await.unwrap_or(Err(Error::Timeout))
}

async fn secure(
    context: &Context,
    server: &Server,
    tickets: &Tickets,
    protocols: &[&[u8]],
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, Error> {
    let config = configuration(context, tickets, protocols)?;
    let name = ServerName::try_from(name(server)?.to_owned()).map_err(reply)?;
    let handshake = TlsConnector::from(config).connect(name, stream).await;
    handshake.map_err(|error| Error::Tls(context.tls.explain(error).into()))
}

fn configuration(
    context: &Context,
    tickets: &Tickets,
    protocols: &[&[u8]],
) -> Result<Arc<ClientConfig>, Error> {
    Ok(tickets.config(context.tls.config().map_err(reply)?, protocols))
}

/// Returns the name that the certificate of the server must prove.
fn name(server: &Server) -> Result<&str, Error> {
    server.certificate.as_deref().ok_or_else(|| reply("the name of the server is not known"))
}

fn reply(error: impl ToString) -> Error {
    Error::Tls(error.to_string().into())
}
