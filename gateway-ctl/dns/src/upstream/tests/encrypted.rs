//! TLS and HTTPS: authentication of the server, and the form of queries on the wire.

use std::convert::Infallible;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, HandshakeKind, RootCertStore, ServerConfig};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::server::{Act, Came, answer, serve};
use super::*;

/// A server with a certificate for a name, over TLS or, with `h2`, over HTTPS.
struct Secure {
    at: SocketAddr,
    certificate: CertificateDer<'static>,
    came: Arc<Mutex<Vec<Came>>>,
    /// Of each session, whether it was resumed.
    resumed: Arc<Mutex<Vec<bool>>>,
    /// Ends the connections for HTTPS.
    hang_up: Arc<Notify>,
    closed: Arc<Mutex<usize>>,
    task: JoinHandle<()>,
}

/// In place of a status: no response.
const NEVER: u16 = 0;

type Reply = fn(&Came) -> (u16, &'static str, Vec<u8>);

enum Speaks {
    Dot(fn(&Came) -> Act),
    Doh(Reply),
}

impl Secure {
    async fn new(name: &str, speaks: Speaks) -> Secure {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        let certificate = made.cert.der().clone();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        if let Speaks::Doh(_) = speaks {
            config.alpn_protocols = vec![b"h2".to_vec()];
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (came, resumed) = (Arc::<Mutex<Vec<Came>>>::default(), Arc::<Mutex<Vec<bool>>>::default());
        let (asked, sessions) = (came.clone(), resumed.clone());
        let (hang_up, closed) = (Arc::<Notify>::default(), Arc::<Mutex<usize>>::default());
        let (ending, ended) = (hang_up.clone(), closed.clone());
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let task = tokio::spawn(async move {
            let mut open = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                let Ok(stream) = acceptor.accept(stream).await else {
                    continue;
                };
                let kind = stream.get_ref().1.handshake_kind();
                sessions.lock().push(kind == Some(HandshakeKind::Resumed));
                let asked = asked.clone();
                match speaks {
                    Speaks::Dot(script) => drop(open.spawn(serve(stream, asked, Arc::new(script)))),
                    Speaks::Doh(reply) => {
                        let (ending, ended) = (ending.clone(), ended.clone());
                        open.spawn(async move {
                            tokio::select! {
                                () = requests(TokioIo::new(stream), asked, reply) => {}
                                () = ending.notified() => {}
                            }
                            *ended.lock() += 1;
                        });
                    }
                }
            }
        });
        Secure { at, certificate, came, resumed, hang_up, closed, task }
    }

    /// A client that trusts this server's certificate.
    fn client(&self) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        client(roots)
    }

    fn bench(&self, protocol: DnsProtocol) -> Bench {
        let config = self.client();
        Bench::with(sequential(vec![upstream(protocol, self.at)]), move || Ok(config.clone()))
    }

    fn count(&self) -> usize {
        self.came.lock().len()
    }

    fn resumed(&self) -> Vec<bool> {
        self.resumed.lock().clone()
    }
}

impl Drop for Secure {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(super) fn client(roots: RootCertStore) -> Arc<ClientConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

async fn requests(
    io: TokioIo<tokio_rustls::server::TlsStream<TcpStream>>,
    came: Arc<Mutex<Vec<Came>>>,
    reply: Reply,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let came = came.clone();
        async move {
            assert_eq!((request.method().as_str(), request.uri().path()), ("POST", "/dns-query"));
            assert_eq!(request.uri().host(), Some("dns.test"));
            assert_eq!(request.headers()[CONTENT_TYPE], "application/dns-message");
            let message = request.into_body().collect().await.unwrap().to_bytes().to_vec();
            let one = {
                let mut came = came.lock();
                let one = Came { over_tcp: true, number: came.len(), message };
                came.push(one.clone());
                one
            };
            let (status, kind, body) = reply(&one);
            if status == NEVER {
                std::future::pending::<()>().await;
            }
            let response = Response::builder().status(status).header(CONTENT_TYPE, kind);
            Ok::<_, Infallible>(response.body(Full::new(Bytes::from(body))).unwrap())
        }
    });
    let _ =
        hyper::server::conn::http2::Builder::new(TokioExecutor::new()).serve_connection(io, service).await;
}

fn fine(came: &Came) -> Act {
    Act::Say(answer(&came.message, 1))
}

fn found(came: &Came) -> (u16, &'static str, Vec<u8>) {
    (200, "application/dns-message", answer(&came.message, 2))
}

#[tokio::test]
async fn queries_over_tls_share_a_connection_and_have_one_length() {
    let server = Secure::new("dns.test", Speaks::Dot(fine)).await;
    let bench = server.bench(DnsProtocol::Tls);
    let names: Vec<String> = (0..20).map(|number| format!("{}.example", "n".repeat(number + 1))).collect();
    let answers = futures_util::future::join_all(names.iter().map(|name| bench.send_query(name))).await;
    assert!(answers.iter().all(|reply| address(reply.as_ref().unwrap()) == "192.0.2.1"));
    assert_eq!(server.resumed(), [false]);
    assert!(server.came.lock().iter().all(|came| came.message.len() == 128));
    assert_eq!(bench.upstreams.status()[0].protocol, "tls");
}

#[tokio::test]
async fn queries_over_https_share_a_connection_and_have_id_0() {
    let server = Secure::new("dns.test", Speaks::Doh(found)).await;
    let bench = server.bench(DnsProtocol::Https);
    let names: Vec<String> = (0..20).map(|number| format!("n{number}.example")).collect();
    let answers = futures_util::future::join_all(names.iter().map(|name| bench.send_query(name))).await;
    assert!(answers.iter().all(|reply| address(reply.as_ref().unwrap()) == "192.0.2.2"));
    assert_eq!((server.resumed(), bench.seen.peers()), (vec![false], vec![server.at]));
    let came = server.came.lock();
    assert!(came.iter().all(|came| came.message[..2] == [0, 0] && came.message.len() == 128));
}

#[tokio::test]
async fn an_unauthenticated_server_gets_no_query() {
    for protocol in [DnsProtocol::Tls, DnsProtocol::Https] {
        let speaks = || match protocol {
            DnsProtocol::Tls => Speaks::Dot(fine),
            _ => Speaks::Doh(found),
        };
        let other_name = Secure::new("other.test", speaks()).await;
        let failure = other_name.bench(protocol).send_query("www.example.com").await.unwrap_err();
        assert!(failure.to_string().contains("certificate"), "{failure}");
        let unknown = Secure::new("dns.test", speaks()).await;
        let config = other_name.client();
        let plan = sequential(vec![upstream(protocol, unknown.at)]);
        let failure =
            Bench::with(plan, move || Ok(config.clone())).send_query("www.example.com").await.unwrap_err();
        assert!(failure.to_string().contains("certificate"), "{failure}");
        assert_eq!((other_name.count(), unknown.count()), (0, 0));
    }
}

#[tokio::test]
async fn sessions_are_resumed_only_by_the_same_route() {
    // One query for each connection.
    let script = |came: &Came| if came.number.is_multiple_of(2) { fine(came) } else { Act::Close };
    let server = Secure::new("dns.test", Speaks::Dot(script)).await;
    let bench = server.bench(DnsProtocol::Tls);
    for _ in 0..3 {
        assert_eq!(address(&bench.send_query("www.example.com").await.unwrap()), "192.0.2.1");
    }
    assert_eq!(server.resumed(), [false, true, true]);
    bench.ask_by(marked([7]), "www.example.com").await.ok();
    assert!(!server.resumed()[3], "a ticket would tie the ways together");
}

#[tokio::test]
async fn sessions_that_begin_obey_the_configuration_in_force() {
    let script = |came: &Came| if came.number.is_multiple_of(2) { fine(came) } else { Act::Close };
    let server = Secure::new("dns.test", Speaks::Dot(script)).await;
    let inner = Arc::new(Mutex::new(server.client()));
    let outer = inner.clone();
    let plan = sequential(vec![upstream(DnsProtocol::Tls, server.at)]);
    let bench = Bench::with(plan, move || Ok(inner.lock().clone()));
    bench.send_query("www.example.com").await.unwrap();
    *outer.lock() = server.client();
    bench.send_query("www.example.com").await.unwrap();
    assert_eq!(server.resumed(), [false, false], "tickets go with the configuration");
    *outer.lock() = client(RootCertStore::empty());
    let failure = bench.send_query("www.example.com").await.unwrap_err();
    assert!(failure.to_string().starts_with("TLS: "), "{failure}");
}

#[tokio::test]
async fn malformed_replies_over_https_are_reported() {
    let cases: [(Reply, &str); 4] = [
        (|_| (503, "text/plain", b"busy".to_vec()), "HTTP: status 503"),
        (|came| (200, "text/html", answer(&came.message, 66)), "HTTP: the answer is no DNS message"),
        (|came| (200, "application/dns-message", came.message.clone()), "malformed reply"),
        (|_| (200, "application/dns-message", vec![0; 70_000]), "HTTP: length limit exceeded"),
    ];
    for (reply, want) in cases {
        let server = Secure::new("dns.test", Speaks::Doh(reply)).await;
        let failure = server.bench(DnsProtocol::Https).send_query("www.example.com").await.unwrap_err();
        assert_eq!(failure.to_string(), want);
    }
}

#[tokio::test]
async fn a_server_that_speaks_no_http_2_is_reported() {
    let server = Secure::new("dns.test", Speaks::Dot(fine)).await;
    let failure = server.bench(DnsProtocol::Https).send_query("www.example.com").await.unwrap_err();
    assert_eq!(failure.to_string(), "HTTP: the server does not speak HTTP/2");
}

#[tokio::test]
async fn a_connection_over_https_that_the_server_ended_is_made_again() {
    let server = Secure::new("dns.test", Speaks::Doh(found)).await;
    let bench = server.bench(DnsProtocol::Https);
    for sessions in 1..4 {
        bench.send_query("www.example.com").await.unwrap();
        assert_eq!(server.resumed().len(), sessions);
        server.hang_up.notify_waiters();
        let closing = server.closed.clone();
        until("the connection is closed", || *closing.lock() == sessions).await;
    }
}

#[tokio::test]
async fn a_connection_over_https_that_brings_nothing_is_given_up() {
    let server = Secure::new(
        "dns.test",
        Speaks::Doh(|came| match came.number {
            0..3 => (NEVER, "", Vec::new()),
            _ => found(came),
        }),
    )
    .await;
    let config = server.client();
    let plan = sequential(vec![upstream(DnsProtocol::Https, server.at)]);
    let bench = Bench::make(plan, move || Ok(config.clone()), Arc::default(), 1);
    let _ = bench.send_query("www.example.com").await;
    assert_eq!(address(&bench.send_query("www.example.com").await.unwrap()), "192.0.2.2");
    assert!(server.resumed().len() > 1, "the first one stands, and brings nothing");
}

/// TLS as the daemon has it: it knows why a handshake fails.
struct Explaining(Arc<ClientConfig>);

impl Tls for Explaining {
    fn config(&self) -> Result<Arc<ClientConfig>, String> {
        Ok(self.0.clone())
    }

    fn explain(&self, error: std::io::Error) -> String {
        format!("the mode is the reason ({error})")
    }
}

#[tokio::test]
async fn a_refused_handshake_is_explained_by_the_source_of_the_configuration() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            // Unread bytes would reset the connection.
            let mut hello = vec![0; 4096];
            let _ = stream.read(&mut hello).await;
            // A fatal alert, handshake_failure (RFC 8446, section 6).
            let _ = stream.write_all(&[21, 3, 3, 0, 2, 2, 40]).await;
            let _ = stream.read(&mut hello).await;
        }
    });
    for protocol in [DnsProtocol::Tls, DnsProtocol::Https] {
        let bench =
            Bench::with(sequential(vec![upstream(protocol, at)]), Explaining(client(RootCertStore::empty())));
        let failure = bench.send_query("www.example.com").await.unwrap_err().to_string();
        assert!(failure.contains("the mode is the reason"), "{protocol}: {failure}");
        assert!(failure.contains("HandshakeFailure"), "{protocol}: {failure}");
    }
    serving.abort();
}
