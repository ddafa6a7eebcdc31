//! One look at a list on the web: asked for only if it changed, read and written to disk as it comes.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gateway_core::dns::lists::{List, Reader};
use gateway_core::dns::table::Key;
use gateway_core::reserved::is_reserved;
use gateway_model::Id;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, ETAG, HOST, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    LAST_MODIFIED, LOCATION, USER_AGENT,
};
use http::{HeaderMap, HeaderName, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use ipnet::IpNet;
use jiff::Timestamp;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use super::copy::{COPIES, Head};
use super::total::TotalEntries;
use super::{Limits, Subscription};
use crate::copies::Draft;
use crate::upstream::Context;

/// Longest list.
const LONGEST: u64 = 512 << 20;
const REDIRECTS: usize = 5;
/// For connections, for the head of an answer, and from one piece to the next.
const PATIENCE: Duration = Duration::from_secs(30);
/// For the whole of it.
const WHOLE: Duration = Duration::from_secs(1800);
/// Pieces on their way to whoever reads them.
const PIECES: usize = 16;

/// Why a look at a list failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the address is no http or https address")]
    Url,
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    #[error("the server did not answer in time")]
    Timeout,
    #[error("the server answered {0}")]
    Status(u16),
    #[error("the server leads from https to http, where others could change the list")]
    Downgrade,
    #[error("the server leads on and on")]
    Redirects,
    #[error("the server sends the list as {0}, which was not asked for")]
    Encoding(String),
    #[error("the list has more than 512 MiB")]
    TooLong,
    #[error("the list has more than {0} entries (dns.list_max_entries)")]
    TooManyEntries(u64),
    #[error("with it all lists together have more than {0} entries (dns.list_max_total_entries)")]
    TooManyInTotal(u64),
    #[error(
        "{0} is this host or a private address, from which no list is fetched (dns.list_private_targets)"
    )]
    PrivateTarget(IpAddr),
    #[error("nothing in the list is understood; line {0}: {1}")]
    Nothing(u64, String),
    #[error("the list is empty")]
    Empty,
    #[error("the list cannot be kept: {0}")]
    Disk(String),
}

/// Networks of this host, from which no list is fetched, and what all lists together may have.
type Bounds<'a> = (&'a [IpNet], &'a Arc<TotalEntries>);

type Fetched = Option<(Head, List)>;

/// None if the list is what it was.
pub async fn look(
    context: &Context,
    folder: &Path,
    key: Key,
    (subscription, bounds): (&Subscription, Bounds<'_>),
    before: Option<Head>,
) -> Result<Fetched, Error> {
    let whole = fetch(context, folder, key, (subscription, bounds), before);
    timeout(context.wait(WHOLE), whole).await.unwrap_or(Err(Error::Timeout))
}

async fn fetch(
    context: &Context,
    folder: &Path,
    key: Key,
    (subscription, bounds): (&Subscription, Bounds<'_>),
    before: Option<Head>,
) -> Result<Fetched, Error> {
    let (own, total) = bounds;
    let targets = Targets { private: subscription.limits.private_targets, own };
    let mut url = Url::parse(&subscription.url).map_err(|_| Error::Url)?;
    for _ in 0..=REDIRECTS {
        let (response, _connection) = get(context, &url, &targets, before.as_ref()).await?;
        match response.status() {
            StatusCode::OK => {
                let head = Head {
                    url: subscription.url.clone(),
                    etag: text(response.headers(), &ETAG),
                    last_modified: text(response.headers(), &LAST_MODIFIED),
                    fetched: Timestamp::now(),
                };
                return receive(context, folder, key, (subscription, total), head, response).await.map(Some);
            }
            StatusCode::NOT_MODIFIED if before.is_some() => {
                COPIES.checked(folder, subscription.id).map_err(|error| Error::Disk(error.to_string()))?;
                return Ok(None);
            }
            status if status.is_redirection() => {
                let to = text(response.headers(), &LOCATION).ok_or(Error::Status(status.as_u16()))?;
                let next = url.join(&to).map_err(|_| Error::Url)?;
                if url.scheme() == "https" && next.scheme() == "http" {
                    return Err(Error::Downgrade);
                }
                url = next;
            }
            status => return Err(Error::Status(status.as_u16())),
        }
    }
    Err(Error::Redirects)
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().filter(|text| text.len() <= 4096).map(str::to_owned)
}

/// Ends with whoever asked.
struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Asks for what the address names, as it is now if it is not what it was.
async fn get(
    context: &Context,
    url: &Url,
    targets: &Targets<'_>,
    before: Option<&Head>,
) -> Result<(Response<Incoming>, Connection), Error> {
    let plain = url.username().is_empty() && url.password().is_none();
    if !matches!(url.scheme(), "http" | "https") || !plain {
        return Err(Error::Url);
    }
    let host = url.host_str().ok_or(Error::Url)?;
    let path = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
    let host_header = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let mut request = Request::get(path).header(HOST, host_header).header(ACCEPT, "*/*");
    request = request.header(ACCEPT_ENCODING, "identity").header(USER_AGENT, "gatewayd");
    if let Some(etag) = before.and_then(|head| head.etag.as_deref()) {
        request = request.header(IF_NONE_MATCH, etag);
    } else if let Some(time) = before.and_then(|head| head.last_modified.as_deref()) {
        request = request.header(IF_MODIFIED_SINCE, time);
    }
    let request = request.body(Empty::new()).map_err(|_| Error::Url)?;
    let asked = async {
        let stream = context.sockets.connect(targets.address(url).await?, 0).await.map_err(unreachable)?;
        if url.scheme() == "http" {
            return send(stream, request).await;
        }
        let config = context.tls.config().map_err(unreachable)?;
        let mut config = rustls::ClientConfig::clone(&config);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned()).map_err(|_| Error::Url)?;
        let connector = TlsConnector::from(Arc::new(config));
        send(connector.connect(name, stream).await.map_err(unreachable)?, request).await
    };
    timeout(context.wait(PATIENCE), asked).await.unwrap_or(Err(Error::Timeout))
}

fn unreachable(error: impl std::fmt::Display) -> Error {
    Error::Unreachable(error.to_string())
}

/// Addresses from which a list may be fetched.
struct Targets<'a> {
    private: bool,
    own: &'a [IpNet],
}

impl Targets<'_> {
    /// The address of a URL's server. It is checked here, after the name was resolved and for each redirect.
    async fn address(&self, url: &Url) -> Result<SocketAddr, Error> {
        let port = url.port_or_known_default().ok_or(Error::Url)?;
        let name = match url.host().ok_or(Error::Url)? {
            Host::Ipv4(address) => return self.check((address, port).into()),
            Host::Ipv6(address) => return self.check((address, port).into()),
            Host::Domain(name) => name,
        };
        let mut found = tokio::net::lookup_host((name, port)).await.map_err(unreachable)?;
        let first = found.next().ok_or_else(|| Error::Unreachable(format!("{name} has no address")))?;
        self.check(first)
    }

    fn check(&self, address: SocketAddr) -> Result<SocketAddr, Error> {
        let ip = address.ip().to_canonical();
        let private = is_reserved(ip) || self.own.iter().any(|network| network.contains(&ip));
        if private && !self.private { Err(Error::PrivateTarget(ip)) } else { Ok(address) }
    }
}

async fn send<S>(stream: S, request: Request<Empty<Bytes>>) -> Result<(Response<Incoming>, Connection), Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(unreachable)?;
    let connection = Connection(tokio::spawn(async move { drop(connection.await) }));
    let response = sender.send_request(request).await.map_err(unreachable)?;
    Ok((response, connection))
}

/// Reads the list as it comes, while a thread that may wait for the disk parses and writes it.
async fn receive(
    context: &Context,
    folder: &Path,
    key: Key,
    (subscription, total): (&Subscription, &Arc<TotalEntries>),
    head: Head,
    response: Response<Incoming>,
) -> Result<(Head, List), Error> {
    match text(response.headers(), &CONTENT_ENCODING) {
        Some(encoding) if !encoding.eq_ignore_ascii_case("identity") => {
            return Err(Error::Encoding(encoding));
        }
        _ => {}
    }
    let announced = text(response.headers(), &CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
    if announced.is_some_and(|length| length > LONGEST) {
        return Err(Error::TooLong);
    }
    let (pieces, taken) = mpsc::channel(PIECES);
    let (folder, id, format) = (folder.to_owned(), subscription.id, subscription.format);
    let (limits, total) = (subscription.limits, total.clone());
    let reading = tokio::task::spawn_blocking(move || {
        let draft = COPIES.draft(&folder, id, &head).map_err(|error| Error::Disk(error.to_string()))?;
        let reader = Reader::new(format, key);
        read(draft, reader, &Counted { id, limits, total }, taken).map(|list| (head, list))
    });
    let sent = pump(context, response.into_body(), &pieces).await;
    // Without the last word nothing is kept.
    if sent.is_ok() {
        let _ = pieces.send(None).await;
    }
    drop(pieces);
    let read = reading.await.unwrap_or_else(|error| Err(Error::Disk(error.to_string())));
    sent.and(read)
}

async fn pump(
    context: &Context,
    mut body: Incoming,
    pieces: &mpsc::Sender<Option<Bytes>>,
) -> Result<(), Error> {
    let mut length = 0u64;
    loop {
        let frame = timeout(context.wait(PATIENCE), body.frame()).await.map_err(|_| Error::Timeout)?;
        let Some(frame) = frame else { return Ok(()) };
        let Ok(piece) = frame.map_err(unreachable)?.into_data() else { continue };
        length += piece.len() as u64;
        if length > LONGEST {
            return Err(Error::TooLong);
        }
        // Whoever reads gave up: it says why.
        if pieces.send(Some(piece)).await.is_err() {
            return Ok(());
        }
    }
}

/// The bounds on the entries of a list that is being read.
struct Counted {
    id: Id,
    limits: Limits,
    total: Arc<TotalEntries>,
}

impl Counted {
    fn check(&self, taken: u64) -> Result<(), Error> {
        let Limits { max_entries, max_total_entries, .. } = self.limits;
        if taken > max_entries {
            return Err(Error::TooManyEntries(max_entries));
        }
        if taken > self.total.remaining(self.id, max_total_entries) {
            return Err(Error::TooManyInTotal(max_total_entries));
        }
        Ok(())
    }

    fn reserve(&self, taken: u64) -> Result<(), Error> {
        self.total.reserve(self.id, taken, self.limits.max_total_entries)
    }
}

fn read(
    mut draft: Draft,
    mut reader: Reader,
    counted: &Counted,
    mut taken: mpsc::Receiver<Option<Bytes>>,
) -> Result<List, Error> {
    let disk = |error: std::io::Error| Error::Disk(error.to_string());
    loop {
        match taken.blocking_recv() {
            Some(Some(piece)) => {
                draft.write(&piece).map_err(disk)?;
                reader.push(&piece);
                counted.check(reader.taken())?;
            }
            Some(None) => break,
            // It was not the end of the list.
            None => return Err(Error::Timeout),
        }
    }
    let list = reader.finish();
    counted.check(list.report.taken)?;
    if list.report.lines == 0 {
        return Err(Error::Empty);
    }
    if let (0, Some(note)) = (list.report.taken, list.report.notes.first()) {
        return Err(Error::Nothing(note.line, note.reason.to_string()));
    }
    counted.reserve(list.report.taken)?;
    draft.keep().map_err(disk)?;
    Ok(list)
}
