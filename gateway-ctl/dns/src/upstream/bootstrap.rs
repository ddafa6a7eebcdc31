//! Addresses of upstreams configured by name. The bootstrap resolvers find them over the path of the upstream.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use gateway_core::dns::Name;
use gateway_outbound::Egress;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

use super::context::Context;
use super::error::Error;
use super::message::{self, QueryEncoding, UpstreamQuery};
use super::pipelined::PipelinedConnection;
use super::udp::{self, Outcome};
use crate::hooks::{Server, ServerAddress};
use crate::wire::rtype;

const MIN_TTL: Duration = Duration::from_secs(60);
const MAX_TTL: Duration = Duration::from_secs(86_400);
/// Delay before a retry while an old address is in use.
const RETRY: Duration = Duration::from_secs(10);
/// Timeout of one attempt at one resolver.
const TIMEOUT: Duration = Duration::from_millis(1500);

#[derive(Debug)]
pub(crate) struct Addresses {
    given: Option<SocketAddr>,
    name: Option<(Name, u16)>,
    resolvers: Vec<SocketAddr>,
    known: Mutex<ResolvedAddrs>,
    /// Lock held during a lookup.
    looking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct ResolvedAddrs {
    addresses: Vec<SocketAddr>,
    until: Option<Instant>,
}

impl Addresses {
    pub(crate) fn of(server: &Server) -> Addresses {
        let resolvers = server.bootstrap.iter().map(|address| SocketAddr::new(*address, 53)).collect();
        let (given, name) = match &server.place {
            ServerAddress::Address(address) => (Some(*address), None),
            ServerAddress::Name(name, port) => (None, Some((name.clone(), *port))),
        };
        Addresses { given, name, resolvers, known: Mutex::default(), looking: tokio::sync::Mutex::default() }
    }

    /// Returns at least one address, in the order in which to try them.
    pub(crate) async fn find(&self, context: &Context, path: &Egress) -> Result<Vec<SocketAddr>, Error> {
        if let Some(address) = self.given {
            return Ok(vec![address]);
        }
        if let Some(fresh) = self.fresh() {
            return Ok(fresh);
        }
        let _looking = self.looking.lock().await;
        if let Some(fresh) = self.fresh() {
            return Ok(fresh);
        }
        let found = self.lookup(context, path).await;
        let mut known = self.known.lock();
        match found {
            Ok((addresses, life)) => {
                *known = ResolvedAddrs { addresses: addresses.clone(), until: Some(Instant::now() + life) };
                Ok(addresses)
            }
            Err(error) if known.addresses.is_empty() => Err(error),
            Err(_) => {
                known.until = Some(Instant::now() + RETRY);
                Ok(known.addresses.clone())
            }
        }
    }

    /// Moves the address to the end after a failure, so that others are tried first.
    pub(crate) fn failed(&self, address: SocketAddr) {
        let mut known = self.known.lock();
        if let Some(at) = known.addresses.iter().position(|other| *other == address) {
            known.addresses[at..].rotate_left(1);
        }
    }

    fn fresh(&self) -> Option<Vec<SocketAddr>> {
        let known = self.known.lock();
        known.until.filter(|until| *until > Instant::now())?;
        Some(known.addresses.clone()).filter(|addresses| !addresses.is_empty())
    }

    async fn lookup(&self, context: &Context, path: &Egress) -> Result<(Vec<SocketAddr>, Duration), Error> {
        let Some((name, port)) = &self.name else {
            return Err(Error::Address("it has no name".into()));
        };
        let mut error = Error::Address("no bootstrap resolver is set".into());
        for resolver in &self.resolvers {
            let both = async {
                let four = send_query(context, path, *resolver, name, rtype::A);
                let six = send_query(context, path, *resolver, name, rtype::AAAA);
                tokio::join!(four, six)
            };
            // One address family is enough.
            let (four, six) = both.await;
            let reply = four.as_ref().err().or(six.as_ref().err()).cloned();
            let mut found: Vec<(IpAddr, u32)> = four.unwrap_or_default();
            found.extend(six.unwrap_or_default());
            if let Some(life) = found.iter().map(|(_, ttl)| *ttl).min() {
                let life = Duration::from_secs(life.into()).clamp(MIN_TTL, MAX_TTL);
                let addresses = found.into_iter().map(|(address, _)| SocketAddr::new(address, *port));
                return Ok((addresses.collect(), life));
            }
            let why =
                reply.map_or_else(|| format!("{resolver} knows no address of {name}"), |e| e.to_string());
            error = Error::Address(why.into());
        }
        Err(error)
    }
}

/// Queries one resolver, twice at most: a datagram may be lost.
async fn send_query(
    context: &Context,
    path: &Egress,
    resolver: SocketAddr,
    name: &Name,
    qtype: u16,
) -> Result<Vec<(IpAddr, u32)>, Error> {
    let asked = UpstreamQuery {
        name: name.clone(),
        qtype,
        recursion: true,
        dnssec_ok: false,
        checking_disabled: false,
    };
    for _ in 0..2 {
        if let Ok(outcome) = timeout(context.wait(TIMEOUT), exchange(context, path, resolver, &asked)).await {
            let message = outcome?;
            let (found, life) = message::addresses(&message, qtype).ok_or(Error::Broken)?;
            return Ok(found.into_iter().map(|address| (address, life)).collect());
        }
    }
    Err(Error::Timeout)
}

/// Sends one unencrypted query: there is no server to encrypt to yet. UDP is not used through a proxy.
async fn exchange(
    context: &Context,
    path: &Egress,
    resolver: SocketAddr,
    query: &UpstreamQuery,
) -> Result<Vec<u8>, Error> {
    if path.proxy.is_none() {
        match udp::exchange(context, path.mark, resolver, query, true, true).await? {
            Outcome::Answer(message, head) if !head.truncated => return Ok(message),
            Outcome::Answer(..) | Outcome::OtherCase => {}
        }
    }
    let stream = path.connect(context.sockets.as_ref(), resolver).await?;
    let form = QueryEncoding { edns: true, ..QueryEncoding::default() };
    let (message, _) = PipelinedConnection::new(stream).send_query(query.message(&form)).await?;
    Ok(message)
}
