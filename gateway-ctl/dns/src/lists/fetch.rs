//! One check of a list: a conditional request, with the body parsed and written to disk as it arrives.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ::http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    LAST_MODIFIED, USER_AGENT,
};
use ::http::{HeaderMap, HeaderName, Request, Response, StatusCode};
use bytes::Bytes;
use gateway_core::dns::domain_set::Key;
use gateway_core::dns::lists::{List, Reader};
use gateway_model::Id;
use gateway_outbound::http::{Body, Client, Limits as HttpLimits};
use gateway_outbound::{Dialer, Egress, Targets};
use ipnet::IpNet;
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::timeout;
use url::Url;

use super::copy::{COPIES, ListHeader};
use super::error::Error;
use super::subscription::{Limits, Subscription};
use super::total::TotalEntries;
use crate::downloads::PendingFile;
use crate::upstream::Context;

/// Longest list.
const MAX_LIST_BYTES: u64 = 512 << 20;
const MAX_REDIRECTS: usize = 5;
/// Timeout of the connection with the response header, and of each piece of the body.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of a whole download.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(1800);
/// Pieces that wait for their reader.
const PIECES: usize = 16;

/// Networks of this host, from which no list is fetched, and the limit of all lists together.
type Bounds<'a> = (&'a [IpNet], &'a Arc<TotalEntries>);

type Fetched = Option<(ListHeader, List)>;

/// List in use that a download would replace.
#[derive(Clone, Debug)]
pub(super) struct PreviousList {
    pub head: ListHeader,
    pub entries: u64,
    /// Time since the last successful check.
    pub age: Duration,
}

/// Fewest entries of a list whose loss is noticed.
const MIN_ENTRIES: u64 = 20;
/// A list with less than this part of the entries before is a document of another kind, until it has lasted.
const MAX_SHRINKAGE: u64 = 4;
const SHRUNK_TIME: Duration = Duration::from_secs(7 * 24 * 3600);

impl PreviousList {
    /// Refuses a download with a small part of the entries, such as a page that has one word that is a name.
    fn check_size(&self, taken: u64) -> Result<(), Error> {
        let is_small = self.entries >= MIN_ENTRIES && taken.saturating_mul(MAX_SHRINKAGE) < self.entries;
        match is_small && self.age < SHRUNK_TIME {
            true => Err(Error::Shrunk { before: self.entries, taken }),
            false => Ok(()),
        }
    }
}

/// `None` if the list has not changed.
pub(super) async fn check(
    context: &Context,
    folder: &Path,
    key: Key,
    (subscription, bounds): (&Subscription, Bounds<'_>),
    before: Option<PreviousList>,
) -> Result<Fetched, Error> {
    let whole = fetch(context, folder, key, (subscription, bounds), before);
    timeout(context.wait(DOWNLOAD_TIMEOUT), whole).await.unwrap_or(Err(Error::Timeout))
}

async fn fetch(
    context: &Context,
    folder: &Path,
    key: Key,
    (subscription, bounds): (&Subscription, Bounds<'_>),
    before: Option<PreviousList>,
) -> Result<Fetched, Error> {
    let (own, total) = bounds;
    let step = context.wait(STEP_TIMEOUT);
    let dialer = Dialer {
        sockets: context.sockets.as_ref(),
        names: &context.names,
        egress: &Egress::DEFAULT,
        targets: if subscription.limits.private_targets { Targets::Any } else { Targets::Public { own } },
        timeout: step,
    };
    let limits = HttpLimits {
        tls_timeout: step,
        head_timeout: step,
        piece_timeout: step,
        body_bytes: MAX_LIST_BYTES,
        redirects: MAX_REDIRECTS,
    };
    let client = Client { dialer, tls: context.tls.as_ref(), limits };
    let response =
        client.send(request(&subscription.url, before.as_ref().map(|before| &before.head))?).await?;
    match response.status() {
        StatusCode::OK => {
            let head = ListHeader {
                url: subscription.url.clone(),
                etag: text(response.headers(), &ETAG),
                last_modified: text(response.headers(), &LAST_MODIFIED),
                #[expect(clippy::disallowed_methods, reason = "age of copies on disk")]
                fetched: Timestamp::now(),
            };
            receive(folder, key, (subscription, total), (head, before), response).await.map(Some)
        }
        StatusCode::NOT_MODIFIED if before.is_some() => {
            COPIES.checked(folder, subscription.id).map_err(|error| Error::Disk(error.to_string()))?;
            Ok(None)
        }
        status => Err(Error::Status(status.as_u16())),
    }
}

/// Requests a list unless it has not changed.
fn request(url: &str, before: Option<&ListHeader>) -> Result<Request<Bytes>, Error> {
    let url = Url::parse(url).map_err(|_| Error::Url)?;
    let mut request = Request::get(url.as_str()).header(ACCEPT, "*/*");
    request = request.header(ACCEPT_ENCODING, "identity").header(USER_AGENT, "gatewayd");
    if let Some(etag) = before.and_then(|head| head.etag.as_deref()) {
        request = request.header(IF_NONE_MATCH, etag);
    } else if let Some(time) = before.and_then(|head| head.last_modified.as_deref()) {
        request = request.header(IF_MODIFIED_SINCE, time);
    }
    request.body(Bytes::new()).map_err(|_| Error::Url)
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().filter(|text| text.len() <= 4096).map(str::to_owned)
}

/// Reads the list as it comes, while a thread that may wait for the disk parses and writes it.
async fn receive(
    folder: &Path,
    key: Key,
    (subscription, total): (&Subscription, &Arc<TotalEntries>),
    (head, before): (ListHeader, Option<PreviousList>),
    response: Response<Body>,
) -> Result<(ListHeader, List), Error> {
    let as_page = text(response.headers(), &CONTENT_TYPE).is_some_and(|kind| is_page(&kind));
    match text(response.headers(), &CONTENT_ENCODING) {
        Some(encoding) if !encoding.eq_ignore_ascii_case("identity") => {
            return Err(Error::Encoding(encoding));
        }
        _ => {}
    }
    let (pieces, taken) = mpsc::channel(PIECES);
    let (folder, id, format) = (folder.to_owned(), subscription.id, subscription.format);
    let (limits, total, keeps_servers) = (subscription.limits, total.clone(), subscription.keeps_servers);
    let reading = tokio::task::spawn_blocking(move || {
        let draft = COPIES.draft(&folder, id, &head).map_err(|error| Error::Disk(error.to_string()))?;
        let reader = Reader::new(format, key).keeping_servers(keeps_servers);
        let counter = EntryCounter { id, limits, total, as_page, before };
        read(draft, reader, &counter, taken).map(|list| (head, list))
    });
    let sent = pump(response.into_body(), &pieces).await;
    // Without the end of the body, nothing is stored.
    if sent.is_ok() {
        let _ = pieces.send(None).await;
    }
    drop(pieces);
    let read = reading.await.unwrap_or_else(|error| Err(Error::Disk(error.to_string())));
    sent.and(read)
}

async fn pump(mut body: Body, pieces: &mpsc::Sender<Option<Bytes>>) -> Result<(), Error> {
    while let Some(piece) = body.piece().await? {
        // The reader stopped: it has the error.
        if pieces.send(Some(piece)).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// The bounds on the entries of a list that is being read.
struct EntryCounter {
    id: Id,
    limits: Limits,
    total: Arc<TotalEntries>,
    /// The server calls the document a page.
    as_page: bool,
    before: Option<PreviousList>,
}

/// Reports whether a media type is that of pages.
fn is_page(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    ["text/html", "application/xhtml+xml"].iter().any(|page| kind.eq_ignore_ascii_case(page))
}

impl EntryCounter {
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
    mut draft: PendingFile,
    mut reader: Reader,
    counted: &EntryCounter,
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
    if list.report.page.is_page(list.report.taken, counted.as_page) {
        return Err(Error::Page);
    }
    if let (0, Some(note)) = (list.report.taken, list.report.notes.first()) {
        return Err(Error::Nothing(note.line, note.reason.to_string()));
    }
    if let Some(before) = &counted.before {
        before.check_size(list.report.taken)?;
    }
    counted.reserve(list.report.taken)?;
    draft.keep().map_err(disk)?;
    Ok(list)
}
