//! Lists fetched from a server that behaves, and from one that does not.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use gateway_common::wire::Mark;
use gateway_core::dns::lists::Format;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinHandle;

use super::*;
use crate::hooks::Unsupervised;
use gateway_outbound::{Resolver, Sockets};

const KEY: Key = Key::new(11);

/// Answers each request by a function of its head.
struct Server {
    at: SocketAddr,
    task: JoinHandle<()>,
    asked: Arc<AtomicUsize>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    async fn new(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (at, asked) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
        let count = asked.clone();
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    if stream.read_exact(&mut byte).await.is_err() {
                        break;
                    }
                    head.push(byte[0]);
                }
                count.fetch_add(1, Ordering::SeqCst);
                let answer = answer(&String::from_utf8_lossy(&head).to_ascii_lowercase());
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        });
        Server { at, task, asked }
    }

    fn subscription(&self, path: &str) -> Subscription {
        let url = format!("http://{}{path}", self.at);
        let limits = Limits { private_targets: true, ..Limits::default() };
        Subscription {
            id: Id::from_u128(7),
            url,
            format: None,
            every: Duration::from_secs(3600),
            limits,
            keeps_servers: false,
        }
    }
}

fn whole(headers: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len())
}

fn context() -> Arc<Context> {
    Arc::new(Context::new(Resolver::default(), || Err("no TLS here".to_owned()), |_| {}))
}

/// Delivered lists and errors.
#[derive(Clone, Default)]
struct Recorder {
    lists: Arc<Mutex<Vec<(Id, u64)>>>,
    errors: Arc<Mutex<Vec<Error>>>,
    /// Looks that went well.
    well: Arc<Mutex<Vec<Id>>>,
}

impl Deliver for Recorder {
    fn deliver(&self, id: Id, list: List) {
        self.lists.lock().push((id, list.report.taken));
    }

    fn succeeded(&self, id: Id) {
        self.well.lock().push(id);
    }

    fn failed(&self, _: Id, error: &Error) {
        self.errors.lock().push(error.clone());
    }
}

impl Recorder {
    fn delivered(&self) -> Vec<(Id, u64)> {
        self.lists.lock().clone()
    }

    fn errors(&self) -> Vec<Error> {
        self.errors.lock().clone()
    }
}

async fn check(
    folder: &Path,
    one: &Subscription,
    before: Option<copy::ListHeader>,
) -> Result<Option<(copy::ListHeader, List)>, Error> {
    let before = before.map(|head| PreviousList { head, entries: 2, age: Duration::ZERO });
    fetch::check(&context(), folder, KEY, (one, (&[], &Arc::default())), before).await
}

async fn until(what: &str, done: impl Fn() -> bool) {
    let wait = async {
        while !done() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.unwrap_or_else(|_| panic!("{what}"));
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_list_is_cached_and_downloaded_only_if_it_changed() {
    let server = Server::new(|head| match head.contains("if-none-match: \"one\"") {
        true => "HTTP/1.1 304 Not Modified\r\n\r\n".to_owned(),
        false => whole("ETag: \"one\"\r\n", "||a.example^\n||b.example^\n"),
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let one = server.subscription("/list.txt");
    let (head, list) = check(folder.path(), &one, None).await.unwrap().expect("it is new");
    assert_eq!((head.etag.as_deref(), list.report.taken, list.format), (Some("\"one\""), 2, Format::Adblock));
    assert_eq!(
        check(folder.path(), &one, Some(head.clone())).await.map(|fetched| fetched.is_none()),
        Ok(true)
    );
    assert_eq!(server.asked.load(Ordering::SeqCst), 2);
    let copy = copy::read(folder.path(), &one, KEY).unwrap().expect("a copy");
    assert_eq!((copy.head, copy.list.names), (head, list.names));
    assert_eq!(files(folder.path()), [format!("{}.list", one.id)]);
}

#[tokio::test]
async fn the_copy_is_there_at_the_start_without_the_network() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(|_| whole("", "a.example\nb.example\nc.example\n")).await;
    let one = server.subscription("/");
    check(folder.path(), &one, None).await.unwrap();
    drop(server);
    let seen = Recorder::default();
    let lists =
        Subscriptions::new(folder.path().to_owned(), KEY, context(), seen.clone(), Arc::new(Unsupervised));
    lists.load(std::slice::from_ref(&one));
    assert_eq!(seen.delivered(), [(one.id, 3)]);
    assert_eq!(lists.status(one.id, Timestamp::now()).state, Some(State::Ok));
    let elsewhere = Subscription { url: "http://lists.example/".to_owned(), ..one };
    lists.load(&[elsewhere]);
    assert_eq!(seen.delivered().len(), 1, "another address is another list");
}

#[tokio::test]
async fn an_invalid_list_does_not_replace_the_cached_one() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(|head| match head.split(' ').nth(1).unwrap_or_default() {
        "/page" => whole("", "<html><body>It works!</body></html>\n"),
        "/empty" => whole("", ""),
        "/gzip" => whole("Content-Encoding: gzip\r\n", "x"),
        "/gone" => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "/cut" => "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\na.example\n".to_owned(),
        "/huge" => "HTTP/1.1 200 OK\r\nContent-Length: 600000000\r\n\r\n".to_owned(),
        "/circle" => "HTTP/1.1 302 Found\r\nLocation: /circle\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "/file" => {
            "HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n".to_owned()
        }
        "/moved" => "HTTP/1.1 301 Moved\r\nLocation: good\r\nContent-Length: 0\r\n\r\n".to_owned(),
        _ => whole("", "good.example\n"),
    })
    .await;
    check(folder.path(), &server.subscription("/good"), None).await.unwrap();
    let before = std::fs::read(folder.path().join(&files(folder.path())[0])).unwrap();
    for path in ["/page", "/empty", "/gzip", "/gone", "/cut", "/huge", "/circle", "/file"] {
        let error = check(folder.path(), &server.subscription(path), None).await.err();
        let fits = match path {
            "/page" => error == Some(Error::Page),
            "/empty" => error == Some(Error::Empty),
            "/gzip" => error == Some(Error::Encoding("gzip".to_owned())),
            "/gone" => error == Some(Error::Status(404)),
            "/cut" => matches!(error, Some(Error::Unreachable(_))),
            "/huge" => error == Some(Error::TooLong),
            "/circle" => error == Some(Error::Redirects),
            _ => error == Some(Error::Url),
        };
        assert!(fits, "{path}: {error:?}");
        assert_eq!(files(folder.path()).len(), 1, "{path} leaves nothing");
        let after = std::fs::read(folder.path().join(&files(folder.path())[0])).unwrap();
        assert_eq!(before, after, "{path}");
    }
    let moved = check(folder.path(), &server.subscription("/moved"), None).await.unwrap();
    assert_eq!(moved.map(|(_, list)| list.report.taken), Some(1));
}

/// Documents that are no list, with their media type. Each has a line that is a name and nothing else.
const PAGES: &[(&str, &str)] = &[
    ("text/html", "<!DOCTYPE html>\n<html><body><p>\nportal.example\n</p></body></html>\n"),
    ("text/html; charset=utf-8", "\n\n  <html>\nportal.example\n</html>\n"),
    ("text/plain", "<html>\n<head><title>Sign in</title></head>\nportal.example\n</html>\n"),
    ("text/plain", "<?xml version=\"1.0\"?>\n<page>\nportal.example\n</page>\n"),
    ("text/html", "Welcome to\nportal.example\nwww.portal.example\n<a href=\"/login\">Sign in</a>\n"),
    ("application/octet-stream", "Welcome to\nportal.example\n<a href=\"/login\">Sign in</a>\n"),
    ("application/json", "{\n\"error\":\n\"sign in\",\n\"at\":\nportal.example\n}\n"),
    ("text/plain", "Please sign in at\nportal.example\nto use this network\n"),
];

#[tokio::test]
async fn page_with_a_name_on_a_line_does_not_replace_a_list() {
    let list: String = (0..5000).map(|number| format!("name{number}.example\n")).collect();
    let rules: String = (0..5000).map(|number| format!("||name{number}.example^\n")).collect();
    let records: String = (0..5000).map(|number| format!("name{number}.example CNAME .\n")).collect();
    let nets: String = (0..5000).map(|number| format!("203.0.{}.{}\n", number / 200, number % 200)).collect();
    let formats = [
        (None, list.clone()),
        (Some(Format::Domains), list.clone()),
        (Some(Format::Hosts), list.lines().map(|name| format!("0.0.0.0 {name}\n")).collect()),
        (Some(Format::Adblock), rules),
        (Some(Format::Rpz), records),
        (Some(Format::Ip), nets),
    ];
    for (format, list) in formats {
        for (kind, page) in PAGES {
            let folder = tempfile::tempdir().unwrap();
            let (turn, list) = (AtomicUsize::new(0), list.clone());
            let server = Server::new(move |_| match turn.fetch_add(1, Ordering::SeqCst) {
                0 => whole("", &list),
                _ => whole(&format!("Content-Type: {kind}\r\n"), page),
            })
            .await;
            let (seen, one) = (Recorder::default(), Subscription { format, ..server.subscription("/") });
            let folder = folder.path().to_owned();
            let lists =
                Subscriptions::new(folder.clone(), KEY, context(), seen.clone(), Arc::new(Unsupervised));
            lists.set(std::slice::from_ref(&one));
            until("the list", || seen.delivered() == [(one.id, 5000)]).await;
            until("its next look", || lists.status(one.id, Timestamp::now()).next_update.is_some()).await;
            lists.refresh(one.id);
            until("the refusal of the page", || !seen.errors().is_empty() || seen.delivered().len() > 1)
                .await;
            let status = lists.status(one.id, Timestamp::now());
            assert_eq!(seen.delivered(), [(one.id, 5000)], "{format:?} {page}");
            assert!(status.error.is_some(), "{format:?} {page}");
            assert_eq!(status.report.map(|report| report.taken), Some(5000), "{format:?} {page}");
            let copy = copy::read(&folder, &one, KEY).unwrap().expect("the last good copy");
            assert_eq!(copy.list.report.taken, 5000, "{format:?} {page}");
        }
    }
}

#[tokio::test]
async fn first_download_of_a_page_is_an_error() {
    for (kind, page) in PAGES.iter().filter(|(_, page)| page.contains(['<', '{'])) {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::new(move |_| whole(&format!("Content-Type: {kind}\r\n"), page)).await;
        let checked = check(folder.path(), &server.subscription("/"), None).await;
        assert_eq!(checked.map(|_| ()), Err(Error::Page), "{page}");
        assert_eq!(files(folder.path()), Vec::<String>::new());
    }
    // Servers call lists pages, too.
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(|_| whole("Content-Type: text/html\r\n", "# names\na.example\n")).await;
    assert!(check(folder.path(), &server.subscription("/"), None).await.is_ok());
}

#[tokio::test]
async fn list_that_stays_small_is_taken_after_a_week() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(|_| whole("", &"a.example\n".repeat(10))).await;
    let one = server.subscription("/");
    let (head, _) = check(folder.path(), &one, None).await.unwrap().expect("a list");
    let week = Duration::from_secs(7 * 24 * 3600);
    for (entries, age, taken) in [
        (41, Duration::ZERO, false),
        (41, week - Duration::from_secs(1), false),
        (41, week, true),
        (40, Duration::ZERO, true),
        (19, Duration::ZERO, true),
    ] {
        let before = PreviousList { head: head.clone(), entries, age };
        let checked =
            fetch::check(&context(), folder.path(), KEY, (&one, (&[], &Arc::default())), Some(before)).await;
        let want = if taken { Ok(10) } else { Err(Error::Shrunk { before: entries, taken: 10 }) };
        assert_eq!(checked.map(|list| list.expect("it is new").1.report.taken), want, "{entries} {age:?}");
    }
}

#[tokio::test]
async fn lists_are_updated_until_they_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let turn = AtomicUsize::new(0);
    let server = Server::new(move |_| match turn.fetch_add(1, Ordering::SeqCst) {
        0 => whole("", "a.example\n"),
        1 => "HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n".to_owned(),
        _ => whole("ETag: \"two\"\r\n", "a.example\nb.example\n"),
    })
    .await;
    let (seen, one) = (Recorder::default(), server.subscription("/"));
    let lists =
        Subscriptions::new(folder.path().to_owned(), KEY, context(), seen.clone(), Arc::new(Unsupervised));
    lists.set(std::slice::from_ref(&one));
    until("the first look", || seen.delivered() == [(one.id, 1)]).await;
    until("its next look is known", || lists.status(one.id, Timestamp::now()).next_update.is_some()).await;
    assert!(lists.refresh(one.id) && !lists.refresh(Id::NIL));
    until("the failure", || seen.errors() == [Error::Status(500)]).await;
    let status = lists.status(one.id, Timestamp::now());
    assert_eq!(status.error.as_deref(), Some("the server answered 500"));
    assert_eq!(
        (status.state, status.report.map(|report| report.taken)),
        (Some(State::Ok), Some(1)),
        "the copy counts"
    );
    let later = Timestamp::now() + jiff::SignedDuration::from_hours(2);
    assert_eq!(lists.status(one.id, later).state, Some(State::Stale));
    lists.refresh(one.id);
    until("the second list", || seen.delivered().len() == 2).await;
    let status = lists.status(one.id, Timestamp::now());
    assert_eq!((status.error, status.etag.as_deref()), (None, Some("\"two\"")));
    assert_eq!(*seen.well.lock(), [one.id; 2]);
    lists.set(&[]);
    assert_eq!(files(folder.path()), Vec::<String>::new());
    assert_eq!(lists.status(one.id, Timestamp::now()), Status::default());
}

#[tokio::test]
async fn a_list_that_never_came_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(|_| String::new()).await;
    let (seen, one) = (Recorder::default(), server.subscription("/"));
    let lists =
        Subscriptions::new(folder.path().to_owned(), KEY, context(), seen.clone(), Arc::new(Unsupervised));
    lists.set(std::slice::from_ref(&one));
    until("the failure", || !seen.errors().is_empty()).await;
    assert_eq!(lists.status(one.id, Timestamp::now()).state, Some(State::Error));
}

#[tokio::test]
async fn a_list_with_too_many_entries_leaves_the_copy_before() {
    let folder = tempfile::tempdir().unwrap();
    let entries = Arc::new(AtomicUsize::new(3));
    let served = entries.clone();
    let server = Server::new(move |_| {
        let lines = (0..served.load(Ordering::SeqCst)).map(|n| format!("n{n}.example\n"));
        whole("", &lines.collect::<String>())
    })
    .await;
    let mut one = server.subscription("/list");
    one.limits.max_entries = 3;
    let (_, list) = check(folder.path(), &one, None).await.unwrap().expect("a list");
    assert_eq!(list.report.taken, 3);
    entries.store(100_000, Ordering::SeqCst);
    assert_eq!(check(folder.path(), &one, None).await.unwrap_err(), Error::TooManyEntries(3));
    let copy = copy::read(folder.path(), &one, KEY).unwrap().expect("the copy before");
    assert_eq!(copy.list.report.taken, 3);
    one.limits.max_entries = 2;
    assert!(copy::read(folder.path(), &one, KEY).is_err(), "the bound was lowered");
}

#[tokio::test]
async fn lists_with_too_many_entries_together_leave_the_copies_before() {
    let folder = tempfile::tempdir().unwrap();
    let entries = Arc::new(AtomicUsize::new(3));
    let served = entries.clone();
    let server = Server::new(move |_| {
        let lines = (0..served.load(Ordering::SeqCst)).map(|n| format!("n{n}.example\n"));
        whole("", &lines.collect::<String>())
    })
    .await;
    let limits = Limits { max_total_entries: 6, ..server.subscription("/").limits };
    let [one, two, three] =
        [1, 2, 3].map(|id| Subscription { id: Id::from_u128(id), limits, ..server.subscription("/list") });
    let seen = Recorder::default();
    let lists =
        Subscriptions::new(folder.path().to_owned(), KEY, context(), seen.clone(), Arc::new(Unsupervised));
    lists.set(&[one.clone(), two.clone()]);
    until("two lists that fit", || seen.delivered().len() == 2).await;
    lists.set(&[one.clone(), two.clone(), three.clone()]);
    until("the third to be refused", || seen.errors() == [Error::TooManyInTotal(6)]).await;
    let error = lists.status(three.id, Timestamp::now()).error.expect("an error");
    assert!(error.contains("6 entries (dns.list_max_total_entries)"), "{error}");
    // A list that grows beyond the limit is refused as well, and the cached one stays.
    entries.store(4, Ordering::SeqCst);
    lists.refresh(one.id);
    until("the larger list to be refused", || seen.errors().len() == 2).await;
    let status = lists.status(one.id, Timestamp::now());
    assert_eq!((status.state, status.report.map(|report| report.taken)), (Some(State::Ok), Some(3)));
    assert_eq!(copy::read(folder.path(), &one, KEY).unwrap().expect("a copy").list.report.taken, 3);
    // A list that goes makes room.
    entries.store(3, Ordering::SeqCst);
    lists.set(&[two.clone(), three.clone()]);
    lists.refresh(three.id);
    until("the third to be taken", || seen.delivered().contains(&(three.id, 3))).await;
    // At the next start with a lower limit, cached lists beyond it are not loaded.
    let less = |one: &Subscription| Subscription {
        limits: Limits { max_total_entries: 5, ..limits },
        ..one.clone()
    };
    let seen = Recorder::default();
    let lists =
        Subscriptions::new(folder.path().to_owned(), KEY, context(), seen.clone(), Arc::new(Unsupervised));
    lists.load(&[less(&two), less(&three)]);
    assert_eq!(seen.delivered(), [(two.id, 3)]);
}

#[tokio::test]
async fn no_list_is_fetched_from_this_host_or_a_private_network() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(|_| whole("", "a.example\n")).await;
    let refused = async |url: String, own: &[IpNet]| {
        let one = Subscription { url, limits: Limits::default(), ..server.subscription("/") };
        fetch::check(&context(), folder.path(), KEY, (&one, (own, &Arc::default())), None).await.unwrap_err()
    };
    let port = server.at.port();
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "192.168.10.20",
        "10.0.0.1",
        "169.254.169.254",
    ] {
        let error = refused(format!("http://{host}:{port}/list"), &[]).await;
        assert!(matches!(error, Error::PrivateTarget(_)), "{host}: {error}");
    }
    // A public address may be this host's own, too.
    let own = ["198.51.100.7/32".parse().unwrap(), "2001:db8:1::/64".parse().unwrap()];
    for host in ["198.51.100.7", "[2001:db8:1::5]"] {
        let error = refused(format!("http://{host}:{port}/list"), &own).await;
        assert!(matches!(error, Error::PrivateTarget(_)), "{host}: {error}");
    }
    assert_eq!(server.asked.load(Ordering::SeqCst), 0, "no request was sent");
}

/// Sockets that lead everywhere to one server.
struct Redirected(SocketAddr);

impl Sockets for Redirected {
    fn datagrams(&self, _: SocketAddr, _: Option<Mark>) -> std::io::Result<UdpSocket> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn connect(&self, _: SocketAddr, _: Option<Mark>) -> BoxFuture<'static, std::io::Result<TcpStream>> {
        Box::pin(TcpStream::connect(self.0))
    }
}

#[tokio::test]
async fn a_redirect_to_a_private_address_is_refused() {
    let inner = Server::new(|_| whole("", "a.example\n")).await;
    let to = format!("Location: http://{}/list\r\n", inner.at);
    let outer = Server::new(move |_| format!("HTTP/1.1 302 Found\r\nContent-Length: 0\r\n{to}\r\n")).await;
    let folder = tempfile::tempdir().unwrap();
    let mut one = outer.subscription("/");
    one.limits = Limits::default();
    let mut context = Context::new(Resolver::default(), || Err("no TLS here".to_owned()), |_| {});
    context.sockets = Box::new(Redirected(outer.at));
    one.url = "http://198.51.100.7/list".to_owned();
    let error =
        fetch::check(&context, folder.path(), KEY, (&one, (&[], &Arc::default())), None).await.unwrap_err();
    assert_eq!(error, Error::PrivateTarget([127, 0, 0, 1].into()));
    assert_eq!((outer.asked.load(Ordering::SeqCst), inner.asked.load(Ordering::SeqCst)), (1, 0));
}
