//! Tests of DoT and DoH over loopback.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gateway_core::dns::{Action, Cause};
use hickory_proto::op::Message;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::{PrivateKeyDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::lines;
use crate::resolver::Resolver;
use crate::serve::settings::{Settings, Streams};
use crate::serve::test_doubles::*;
use crate::serve::tls::{PROTOCOLS, Tls};
use crate::wire::rtype;

const LONG: Duration = Duration::from_secs(20);

struct Fixed(TlsAcceptor);

impl Tls for Fixed {
    fn accept(
        &self,
        stream: TcpStream,
    ) -> BoxFuture<'_, io::Result<tokio_rustls::server::TlsStream<TcpStream>>> {
        self.0.accept(stream).boxed()
    }
}

struct Site {
    resolver: Resolver,
    upstream: Arc<FakeUpstream>,
    at: SocketAddr,
    roots: Arc<RootCertStore>,
}

impl Site {
    async fn new(streams: Streams) -> Site {
        let made = rcgen::generate_simple_self_signed(vec!["gateway.test".to_owned()]).unwrap();
        let certificate = made.cert.der().clone();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        config.alpn_protocols = PROTOCOLS.iter().map(|protocol| protocol.to_vec()).collect();
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let rules = Rules::default().rule("ads.example", Action::Block, Cause::Blocklist);
        let upstream = FakeUpstream::new();
        upstream.knows("www.example", rtype::A, vec![a("www.example", 60, [192, 0, 2, 1])]);
        let settings = Settings {
            secure: vec!["127.0.0.1:0".parse().unwrap()],
            streams,
            workers: 1,
            ..Settings::default()
        };
        let (clients, learn) = (FakeClients::new(client(1, 0)), Arc::new(FakeFqdnPolicy::default()));
        let resolver = Resolver::start(
            settings,
            clients,
            Arc::new(rules),
            learn,
            FakeUpstreamHandle(upstream.clone()),
            None,
            crate::hooks::Daemon {
                supervisor: Arc::new(crate::hooks::Unsupervised),
                wall: crate::WallClock::new(jiff::Timestamp::now),
            },
        );
        let resolver = resolver.await.unwrap();
        assert!(resolver.status().secure[0].1.is_err(), "nobody is answered without a certificate");
        resolver.secure(Arc::new(Fixed(TlsAcceptor::from(Arc::new(config)))));
        let at = resolver.status().secure[0].1.clone().unwrap();
        Site { resolver, upstream, at, roots: Arc::new(roots) }
    }

    async fn connect(&self, protocols: &[&[u8]]) -> io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.roots.clone())
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let stream = TcpStream::connect(self.at).await?;
        let name = ServerName::try_from("gateway.test").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }

    async fn http(&self) -> SendRequest<Full<Bytes>> {
        let stream = self.connect(&[b"h2"]).await.unwrap();
        let (sender, connection) =
            Builder::new(TokioExecutor::new()).handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        sender
    }

    async fn log(&self, name: &str) -> &'static str {
        let log = self.resolver.log();
        let deadline = tokio::time::Instant::now() + LONG;
        loop {
            let domain = Some(crate::query_log::DomainFilter::Contains(name.to_owned()));
            let filter = crate::query_log::Filter { domain, ..Default::default() };
            if let Some(record) = log.read(&filter, None, 10).rows.first() {
                return match record.transport {
                    crate::serve::Transport::Tls => "dot",
                    crate::serve::Transport::Https => "doh",
                    _ => "plain",
                };
            }
            assert!(tokio::time::Instant::now() < deadline, "it is not logged");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

async fn frame<S: tokio::io::AsyncWrite + Unpin>(stream: &mut S, message: &[u8]) {
    stream.write_all(&[&(message.len() as u16).to_be_bytes(), message].concat()).await.unwrap();
    stream.flush().await.unwrap();
}

async fn read<S: tokio::io::AsyncRead + Unpin>(stream: &mut S) -> Vec<u8> {
    let reading = async {
        let length = stream.read_u16().await.unwrap();
        let mut message = vec![0; usize::from(length)];
        stream.read_exact(&mut message).await.unwrap();
        message
    };
    timeout(LONG, reading).await.expect("an answer")
}

/// Returns a query with empty padding and keepalive options, to which the server replies with the same options.
fn asking(name: &str) -> Vec<u8> {
    let mut message = question(name, rtype::A);
    let length = message.len();
    message[length - 1] = 8;
    message.extend_from_slice(&[0, 12, 0, 0, 0, 11, 0, 0]);
    message
}

fn request(method: &str, target: &str, kind: &str, body: &[u8]) -> Request<Full<Bytes>> {
    Request::builder()
        .method(method)
        .uri(format!("https://gateway.test{target}"))
        .header("content-type", kind)
        .body(Full::new(Bytes::copy_from_slice(body)))
        .unwrap()
}

async fn send(
    sender: &SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> Response<hyper::body::Incoming> {
    let mut sender = sender.clone();
    timeout(LONG, sender.send_request(request)).await.expect("a response").unwrap()
}

const TYPE: &str = "application/dns-message";

#[tokio::test(flavor = "multi_thread")]
async fn queries_over_tls_are_answered_out_of_order_and_padded() {
    let site = Site::new(Streams::default()).await;
    site.upstream.gate.forget_permits(usize::MAX);
    for protocols in [&[b"dot".as_slice()][..], &[]] {
        let mut stream = site.connect(protocols).await.unwrap();
        let (mut slow, mut quick) = (asking(&format!("n{}.example", protocols.len())), asking("ads.example"));
        (slow[1], quick[1]) = (1, 2);
        frame(&mut stream, &slow).await;
        frame(&mut stream, &quick).await;
        let first = read(&mut stream).await;
        assert_eq!((first[1], first.len() % 468), (2, 0));
        assert_eq!(lines(&Message::from_vec(&first).unwrap()).len(), 1, "blocked, as for everybody");
        site.upstream.gate.add_permits(1);
        let second = read(&mut stream).await;
        assert_eq!((second[1], second.len() % 468), (1, 0));
    }
    assert_eq!(site.log("ads.example").await, "dot");
    site.resolver.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_answered_by_either_method() {
    let site = Site::new(Streams::default()).await;
    let sender = site.http().await;
    let message = asking("www.example");
    let query = format!("/dns-query?dns={}", URL_SAFE_NO_PAD.encode(&message));
    for request in [request("POST", "/dns-query", TYPE, &message), request("GET", &query, TYPE, b"")] {
        let response = send(&sender, request).await;
        assert_eq!(
            (response.status().as_u16(), &response.headers()["content-type"]),
            (200, &TYPE.parse().unwrap())
        );
        let life = response.headers()["cache-control"].to_str().unwrap().to_owned();
        let left: u64 = life.strip_prefix("private, max-age=").unwrap().parse().unwrap();
        assert!((50..=60).contains(&left), "{life}");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!((&body[..2], body.len() % 468), (&message[..2], 0));
        assert!(!body.windows(4).any(|bytes| bytes == [0, 11, 0, 2]), "no keepalive within HTTP");
        assert_eq!(lines(&Message::from_vec(&body).unwrap()).len(), 1);
    }
    assert_eq!(site.log("www.example").await, "doh");
    site.resolver.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_requests_share_a_connection_and_none_waits_for_another() {
    let site = Site::new(Streams::default()).await;
    site.upstream.gate.forget_permits(usize::MAX);
    let sender = site.http().await;
    let slow = tokio::spawn({
        let sender = sender.clone();
        async move { send(&sender, request("POST", "/dns-query", TYPE, &asking("slow.example"))).await.status() }
    });
    for _ in 0..200 {
        let response = send(&sender, request("POST", "/dns-query", TYPE, &asking("ads.example"))).await;
        assert_eq!(response.status(), 200);
    }
    assert!(!slow.is_finished());
    site.upstream.gate.add_permits(1);
    assert_eq!(timeout(LONG, slow).await.unwrap().unwrap(), 200);
    assert_eq!(site.resolver.status().connections, 1);
    site.resolver.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_a_query_are_refused() {
    let site = Site::new(Streams::default()).await;
    let sender = site.http().await;
    let message = asking("www.example");
    let mut answer = message.clone();
    answer[2] |= 0x80;
    let cases = [
        (request("POST", "/", TYPE, &message), 404),
        (request("POST", "/dns-query/x", TYPE, &message), 404),
        (request("PUT", "/dns-query", TYPE, &message), 405),
        (request("POST", "/dns-query", "text/html", &message), 415),
        (request("POST", "/dns-query", TYPE, &vec![0; 70_000]), 413),
        (request("POST", "/dns-query", TYPE, b""), 400),
        (request("POST", "/dns-query", TYPE, &answer), 400),
        (request("GET", "/dns-query", TYPE, b""), 400),
        (request("GET", "/dns-query?dns=%20", TYPE, b""), 400),
    ];
    for (request, status) in cases {
        let reply = format!("{} {}", request.method(), request.uri());
        assert_eq!(send(&sender, request).await.status().as_u16(), status, "{reply}");
    }
    // The connection still works after all errors.
    assert_eq!(send(&sender, request("POST", "/dns-query", TYPE, &message)).await.status(), 200);
    site.resolver.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_protocols_are_not_spoken_and_idle_connections_end() {
    let streams = Streams { idle: Duration::from_millis(300), ..Streams::default() };
    let site = Site::new(streams).await;
    assert!(site.connect(&[b"http/1.1"]).await.is_err());
    let sender = site.http().await;
    send(&sender, request("POST", "/dns-query", TYPE, &asking("www.example"))).await;
    let mut idle = site.connect(&[b"dot"]).await.unwrap();
    // Client that sends nothing, not even a TLS handshake.
    let mut mute = TcpStream::connect(site.at).await.unwrap();
    assert_eq!(timeout(LONG, idle.read(&mut [0; 8])).await.expect("closed").unwrap_or(0), 0);
    assert_eq!(timeout(LONG, mute.read(&mut [0; 8])).await.expect("closed").unwrap_or(0), 0);
    let deadline = tokio::time::Instant::now() + LONG;
    while !sender.is_closed() || site.resolver.status().connections > 0 {
        assert!(tokio::time::Instant::now() < deadline, "connections stay open");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let settings = Settings { secure: Vec::new(), ..Settings::clone(&site.resolver.settings()) };
    site.resolver.reconfigure(settings);
    while TcpStream::connect(site.at).await.is_ok() {
        assert!(tokio::time::Instant::now() < deadline, "the listener stays open");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    site.resolver.stop().await;
}
