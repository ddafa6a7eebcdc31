//! Connections that questions share: over TCP, over TLS (RFC 7858), over HTTPS (RFC 8484), over QUIC (RFC 9250).

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gateway_model::upstream::DnsProtocol;
use gateway_outbound::Egress;
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
use super::message::Head;
use super::pipelined::Pipe;
use crate::hooks::Server;

/// For one address: the TCP connection, and what is agreed on above it.
const CONNECT: Duration = Duration::from_secs(3);
/// Sessions that may be resumed.
const TICKETS: usize = 8;

#[derive(Clone)]
pub enum Channel {
    Pipe(Pipe),
    Requests(Requests),
    Streams(Streams),
}

impl Channel {
    pub fn is_open(&self) -> bool {
        match self {
            Channel::Pipe(pipe) => pipe.is_open(),
            Channel::Requests(requests) => requests.is_open(),
            Channel::Streams(streams) => streams.is_open(),
        }
    }

    /// Whether anything was ever answered by it, where the other side may close after each answer.
    pub fn has_answered(&self) -> bool {
        match self {
            Channel::Pipe(pipe) => pipe.has_answered(),
            Channel::Requests(_) => false,
            Channel::Streams(streams) => streams.has_answered(),
        }
    }

    /// Whether both are the same connection.
    pub fn is(&self, other: &Channel) -> bool {
        match (self, other) {
            (Channel::Pipe(one), Channel::Pipe(other)) => one.is(other),
            (Channel::Requests(one), Channel::Requests(other)) => one.is(other),
            (Channel::Streams(one), Channel::Streams(other)) => one.is(other),
            _ => false,
        }
    }

    /// The message has any id; the channel gives its own.
    pub async fn ask(&self, message: Vec<u8>) -> Result<(Vec<u8>, Head), Error> {
        match self {
            Channel::Pipe(pipe) => pipe.ask(message).await,
            Channel::Requests(requests) => requests.ask(message).await,
            Channel::Streams(streams) => streams.ask(message).await,
        }
    }
}

/// The configuration last used, with sessions to resume.
#[derive(Default)]
pub struct Tickets(Mutex<Option<Configurations>>);

struct Configurations {
    given: Arc<ClientConfig>,
    own: Arc<ClientConfig>,
}

impl Tickets {
    /// The configuration in force with protocols and tickets of our own; the tickets go with the configuration.
    fn config(&self, given: Arc<ClientConfig>, protocols: &[&[u8]]) -> Arc<ClientConfig> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last.as_ref().filter(|last| Arc::ptr_eq(&last.given, &given)) {
            return last.own.clone();
        }
        let mut own = ClientConfig::clone(&given);
        own.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        own.resumption = Resumption::in_memory_sessions(TICKETS);
        // Questions are not to be replayed.
        own.enable_early_data = false;
        let own = Arc::new(own);
        *last = Some(Configurations { given, own: own.clone() });
        own
    }
}

/// A connection to one address of the server.
pub async fn open(
    context: &Context,
    server: &Server,
    path: &Egress,
    tickets: &Tickets,
    address: SocketAddr,
) -> Result<Channel, Error> {
    let opening = async {
        let connecting = || path.connect(context.sockets.as_ref(), address);
        match server.protocol {
            DnsProtocol::Udp | DnsProtocol::Tcp => Ok(Channel::Pipe(Pipe::new(connecting().await?))),
            DnsProtocol::Tls => {
                let stream = secure(context, server, tickets, &[], connecting().await?).await?;
                Ok(Channel::Pipe(Pipe::new(stream)))
            }
            DnsProtocol::Https => {
                let stream = secure(context, server, tickets, &[b"h2"], connecting().await?).await?;
                if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
                    return Err(Error::Http("the server does not speak HTTP/2".into()));
                }
                Ok(Channel::Requests(Requests::over(stream, server).await?))
            }
            DnsProtocol::Quic => {
                let config = configuration(context, tickets, &[doq::PROTOCOL])?;
                let datagrams = path.datagrams(context.sockets.as_ref(), address).await?;
                Ok(Channel::Streams(Streams::open(datagrams, config, name(server)?, address).await?))
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
    let name = ServerName::try_from(name(server)?.to_owned()).map_err(told)?;
    TlsConnector::from(config).connect(name, stream).await.map_err(told)
}

fn configuration(
    context: &Context,
    tickets: &Tickets,
    protocols: &[&[u8]],
) -> Result<Arc<ClientConfig>, Error> {
    Ok(tickets.config(context.tls.config().map_err(told)?, protocols))
}

/// The name that the server is to prove.
fn name(server: &Server) -> Result<&str, Error> {
    server.certificate.as_deref().ok_or_else(|| told("the name of the server is not known"))
}

fn told(error: impl ToString) -> Error {
    Error::Tls(error.to_string().into())
}
