//! QUIC: the same as over TLS, and faults that only QUIC has.

use gateway_model::settings::groups::RotationMode;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, Incoming, RecvStream, SendStream, ServerConfig, TransportConfig, VarInt};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::encrypted::client;
use super::server::{Came, Server, answer};
use super::*;

/// Action of a server for a query.
enum ServerAction {
    Say(Vec<u8>),
    /// These bytes as they are, and the end of the stream.
    Raw(Vec<u8>),
    /// These bytes, and the stream stays open.
    Begin(Vec<u8>),
    Reset(u32),
    Nothing,
    /// Ends the connection.
    Close,
    SayAndClose(Vec<u8>),
}

type Script = fn(&Came) -> ServerAction;

/// A server with a certificate for a name.
struct Doq {
    at: SocketAddr,
    certificate: CertificateDer<'static>,
    came: Arc<Mutex<Vec<Came>>>,
    /// Of each connection, the port of the client.
    ports: Arc<Mutex<Vec<u16>>>,
    endpoint: Endpoint,
    task: JoinHandle<()>,
}

impl Doq {
    fn new(name: &str, script: Script) -> Doq {
        Doq::speaking(name, b"doq", TransportConfig::default(), script)
    }

    fn speaking(name: &str, protocol: &[u8], transport: TransportConfig, script: Script) -> Doq {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        let certificate = made.cert.der().clone();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        tls.alpn_protocols = vec![protocol.to_vec()];
        tls.max_early_data_size = u32::MAX;
        let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls).unwrap()));
        config.transport_config(Arc::new(transport));
        let endpoint = Endpoint::server(config, "127.0.0.1:0".parse().unwrap()).unwrap();
        let at = endpoint.local_addr().unwrap();
        let (came, ports) = (Arc::<Mutex<Vec<Came>>>::default(), Arc::<Mutex<Vec<u16>>>::default());
        let (accepting, asked, from) = (endpoint.clone(), came.clone(), ports.clone());
        let task = tokio::spawn(async move {
            let mut open = tokio::task::JoinSet::new();
            while let Some(incoming) = accepting.accept().await {
                open.spawn(connection(incoming, asked.clone(), from.clone(), script));
            }
        });
        Doq { at, certificate, came, ports, endpoint, task }
    }

    fn client(&self) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        client(roots)
    }

    fn bench(&self) -> Bench {
        let config = self.client();
        Bench::with(sequential(vec![upstream(DnsProtocol::Quic, self.at)]), move || Ok(config.clone()))
    }

    fn count(&self) -> usize {
        self.came.lock().len()
    }

    fn connections(&self) -> usize {
        self.ports.lock().len()
    }
}

impl Drop for Doq {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn connection(
    incoming: Incoming,
    came: Arc<Mutex<Vec<Came>>>,
    ports: Arc<Mutex<Vec<u16>>>,
    script: Script,
) {
    let Ok(connection) = incoming.await else { return };
    ports.lock().push(connection.remote_address().port());
    while let Ok((send, recv)) = connection.accept_bi().await {
        tokio::spawn(stream(connection.clone(), send, recv, came.clone(), script));
    }
}

async fn stream(
    connection: quinn::Connection,
    mut send: SendStream,
    mut recv: RecvStream,
    came: Arc<Mutex<Vec<Came>>>,
    script: Script,
) {
    // Only a complete stream is answered.
    let Ok(message) = recv.read_to_end(65_537).await else { return };
    assert_eq!(usize::from(u16::from_be_bytes([message[0], message[1]])), message.len() - 2);
    let one = {
        let mut came = came.lock();
        let one = Came { over_tcp: false, number: came.len(), message: message[2..].to_vec() };
        came.push(one.clone());
        one
    };
    let framed = |answer: Vec<u8>| [&(answer.len() as u16).to_be_bytes(), &answer[..]].concat();
    match script(&one) {
        ServerAction::Say(answer) => send.write_all(&framed(answer)).await.unwrap(),
        ServerAction::Raw(bytes) => send.write_all(&bytes).await.unwrap(),
        ServerAction::Begin(bytes) => {
            send.write_all(&bytes).await.unwrap();
            let _ = send.stopped().await;
        }
        ServerAction::Reset(code) => send.reset(code.into()).unwrap(),
        ServerAction::Nothing => drop(send.stopped().await),
        ServerAction::Close => connection.close(VarInt::from_u32(0), b""),
        ServerAction::SayAndClose(answer) => {
            send.write_all(&framed(answer)).await.unwrap();
            send.finish().unwrap();
            let _ = send.stopped().await;
            connection.close(VarInt::from_u32(0), b"");
        }
    }
}

fn fine(came: &Came) -> ServerAction {
    ServerAction::Say(answer(&came.message, 9))
}

#[tokio::test]
async fn queries_share_a_connection_and_have_id_0_and_one_length() {
    let server = Doq::new("dns.test", fine);
    let bench = server.bench();
    let names: Vec<String> =
        (0..200).map(|number| format!("{}.example", "n".repeat(number % 40 + 1))).collect();
    let answers = futures_util::future::join_all(names.iter().map(|name| bench.send_query(name))).await;
    assert!(answers.iter().all(|reply| address(reply.as_ref().unwrap()) == "192.0.2.9"));
    assert_eq!((server.connections(), bench.seen.peers()), (1, vec![server.at]));
    let came = server.came.lock();
    assert!(came.iter().all(|came| came.message[..2] == [0, 0] && came.message.len() == 128));
    assert_eq!(bench.upstreams.status()[0].protocol, "quic");
}

#[tokio::test]
async fn an_unauthenticated_server_gets_no_query() {
    let other_name = Doq::new("other.test", fine);
    let failure = other_name.bench().send_query("www.example.com").await.unwrap_err();
    assert!(failure.to_string().contains("certificate"), "{failure}");
    let unknown = Doq::new("dns.test", fine);
    let config = other_name.client();
    let plan = sequential(vec![upstream(DnsProtocol::Quic, unknown.at)]);
    let failure =
        Bench::with(plan, move || Ok(config.clone())).send_query("www.example.com").await.unwrap_err();
    assert!(failure.to_string().contains("certificate"), "{failure}");
    assert_eq!((other_name.count(), unknown.count()), (0, 0));
}

#[tokio::test]
async fn a_quic_server_with_another_alpn_gets_no_query() {
    let server = Doq::speaking("dns.test", b"h3", TransportConfig::default(), fine);
    let failure = server.bench().send_query("www.example.com").await.unwrap_err();
    assert!(failure.to_string().starts_with("TLS: "), "{failure}");
    assert_eq!((server.count(), server.connections()), (0, 0));
}

#[tokio::test]
async fn a_closed_port_is_detected_at_once() {
    let closed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = Doq::new("dns.test", fine);
    let config = server.client();
    let plan = sequential(vec![upstream(DnsProtocol::Quic, closed)]);
    let bench = Bench::with(plan, move || Ok(config.clone()));
    let failure = bench.send_query("www.example.com").await.unwrap_err();
    assert!(matches!(failure, Failure::Failed(_)), "a deadline would tell less: {failure}");
}

#[tokio::test]
async fn a_connection_that_the_server_closes_is_made_again() {
    // Each connection has one reply; the next query is refused.
    let server = Doq::new("dns.test", |came| match came.number % 2 {
        0 => fine(came),
        _ => ServerAction::Close,
    });
    let bench = server.bench();
    for asked in 1..4 {
        assert_eq!(address(&bench.send_query("www.example.com").await.unwrap()), "192.0.2.9");
        assert_eq!(server.connections(), asked);
    }
    let ports = server.ports.lock().clone();
    assert!(ports[0] != ports[1] && ports[1] != ports[2], "each connection has a port of its own: {ports:?}");
    let status = &bench.upstreams.status()[0];
    assert_eq!((status.ok, status.failures), (true, 0));
}

#[tokio::test]
async fn a_server_that_closes_after_each_answer_answers_everybody() {
    let server = Doq::new("dns.test", |came| ServerAction::SayAndClose(answer(&came.message, 9)));
    let bench = server.bench();
    let names: Vec<String> = (0..4).map(|number| format!("n{number}.example")).collect();
    for answers in [1, 4] {
        let answers =
            futures_util::future::join_all(names[..answers].iter().map(|name| bench.send_query(name))).await;
        assert!(answers.iter().all(|reply| address(reply.as_ref().unwrap()) == "192.0.2.9"));
    }
}

#[tokio::test]
async fn a_server_that_forgot_the_connection_is_connected_to_again() {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(VarInt::from_u32(200).into()));
    let server = Doq::speaking("dns.test", b"doq", transport, fine);
    let bench = server.bench();
    bench.send_query("www.example.com").await.unwrap();
    let open = server.endpoint.clone();
    until("the connection is forgotten", || open.open_connections() == 0).await;
    assert_eq!(address(&bench.send_query("www.example.com").await.unwrap()), "192.0.2.9");
    assert_eq!((server.connections(), bench.upstreams.status()[0].failures), (2, 0));
}

#[tokio::test]
async fn a_connection_that_brings_nothing_is_given_up() {
    let server = Doq::new("dns.test", |came| match came.number {
        0 => ServerAction::Nothing,
        _ => fine(came),
    });
    let config = server.client();
    let plan = sequential(vec![upstream(DnsProtocol::Quic, server.at)]);
    let bench = Bench::make(plan, move || Ok(config.clone()), Arc::default(), 1);
    // The second try may come over the same connection, or over the next.
    assert_eq!(address(&bench.send_query("www.example.com").await.unwrap()), "192.0.2.9");
}

#[tokio::test]
async fn malformed_replies_are_reported_and_end_the_connection() {
    let cases: [(Script, &str); 6] = [
        (|came| ServerAction::Say(came.message.clone()), "malformed reply"),
        (|_| ServerAction::Raw(vec![0]), "malformed reply"),
        (|_| ServerAction::Raw(vec![0, 40, 0, 0]), "malformed reply"),
        (
            |came| {
                let mut message = answer(&came.message, 9);
                message[1] = 7;
                ServerAction::Say(message)
            },
            "malformed reply",
        ),
        (
            |came| {
                let mut message = answer(&came.message, 9);
                message[11] = 1;
                message.extend_from_slice(b"\0\0\x29\x04\xd0\0\0\0\0\0\x06\0\x0b\0\x02\0\x64");
                ServerAction::Say(message)
            },
            "malformed reply",
        ),
        (|_| ServerAction::Reset(5), "QUIC: the server gave up on the question, code 5"),
    ];
    for (number, (script, want)) in cases.into_iter().enumerate() {
        let server = Doq::new("dns.test", script);
        let bench = server.bench();
        let failure = bench.send_query("www.example.com").await.unwrap_err();
        assert_eq!(failure.to_string(), want, "{number}");
        bench.send_query("www.example.com").await.unwrap_err();
        let stays = want.starts_with("QUIC");
        assert_eq!(server.connections(), if stays { 1 } else { 2 }, "{number}");
    }
}

#[tokio::test]
async fn an_answer_need_not_wait_for_the_end_of_its_stream() {
    let server = Doq::new("dns.test", |came| {
        let answer = answer(&came.message, 9);
        ServerAction::Begin([&(answer.len() as u16).to_be_bytes(), &answer[..]].concat())
    });
    let bench = server.bench();
    // More than the streams that a server has open at once: unwanted streams are stopped.
    for _ in 0..150 {
        assert_eq!(address(&bench.send_query("www.example.com").await.unwrap()), "192.0.2.9");
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn slow_query_does_not_block_others() {
    let server = Doq::new("dns.test", |came| match came.message[13] {
        b's' => ServerAction::Nothing,
        _ => fine(came),
    });
    let bench = server.bench();
    let slow = bench.send_query("slow.example");
    let quick = async {
        for _ in 0..5 {
            bench.send_query("quick.example").await.unwrap();
        }
    };
    tokio::select! {
        _ = slow => panic!("nobody answers that"),
        () = quick => {}
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn routes_share_neither_socket_nor_session() {
    let server = Doq::new("dns.test", fine);
    let bench = server.bench();
    for _ in 0..2 {
        bench.ask_by(marked([0x61, 0x62]), "www.example.com").await.unwrap();
        bench.ask_by(marked([0x61, 0x62]), "www.example.com").await.unwrap();
        bench.send_query("www.example.com").await.unwrap();
    }
    assert_eq!(bench.seen.marks(), [0x61, 0x62, 0]);
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn a_blocked_route_or_missing_tls_opens_no_socket() {
    let server = Doq::new("dns.test", fine);
    let bench = server.bench();
    let blocked = bench.ask_by(QueryEgress::Blocked("the tunnel is down".into()), "www.example.com").await;
    assert!(matches!(blocked, Err(Failure::Blocked(_))));
    assert_eq!(bench.seen.peers(), []);
    let failure = Bench::new(sequential(vec![upstream(DnsProtocol::Quic, server.at)]))
        .send_query("www.example.com")
        .await
        .unwrap_err();
    assert_eq!(failure.to_string(), "TLS: no TLS here");
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn a_silent_upstream_is_replaced_by_another() {
    let silent = Doq::new("dns.test", |_| ServerAction::Nothing);
    let other = Server::new(|came: &Came| super::server::Act::Say(came.address(3))).await;
    let config = silent.client();
    let plan = plan(RotationMode::Sequential, vec![upstream(DnsProtocol::Quic, silent.at), udp(other.at)]);
    let bench = Bench::make(plan, move || Ok(config.clone()), Arc::default(), 1);
    for _ in 0..4 {
        assert_eq!(address(&bench.send_query("www.example.com").await.unwrap()), "192.0.2.3");
    }
    let events = bench.events.clone();
    until("it counts as dead", || !events.lock().is_empty()).await;
    assert!(
        matches!(&events.lock()[0], Event::Down { upstream, .. } if **upstream == *silent.at.to_string())
    );
}

/// A proxy that relays datagrams to one server and reports their destinations. Ends its relays on request.
async fn proxy(
    to: SocketAddr,
    refuses: bool,
    heads: Arc<Mutex<Vec<Vec<u8>>>>,
) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let mut open = tokio::task::JoinSet::new();
        while let Ok((mut control, _)) = listener.accept().await {
            let heads = heads.clone();
            open.spawn(async move {
                let mut hello = [0; 3];
                control.read_exact(&mut hello).await.unwrap();
                control.write_all(&[5, 0]).await.unwrap();
                let mut request = [0; 10];
                control.read_exact(&mut request).await.unwrap();
                assert_eq!(request, [5, 3, 0, 1, 0, 0, 0, 0, 0, 0]);
                if refuses {
                    control.write_all(&[5, 7, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
                    return;
                }
                let relay = UdpSocket::bind("127.0.0.1:0").await.unwrap();
                let port = relay.local_addr().unwrap().port().to_be_bytes();
                // Its own address is left out.
                control.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, port[0], port[1]]).await.unwrap();
                let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
                server.connect(to).await.unwrap();
                let (mut out, mut back, mut peer) = ([0; 2048], [0; 2048], None);
                loop {
                    tokio::select! {
                        Ok((length, from)) = relay.recv_from(&mut out) => {
                            peer = Some(from);
                            heads.lock().push(out[..10].to_vec());
                            server.send(&out[10..length]).await.unwrap();
                        }
                        Ok(length) = server.recv(&mut back) => {
                            // Under another name than queried: the content is validated by itself.
                            let wrapped = [b"\0\0\0\x03\x03a.b\x03\x55", &back[..length]].concat();
                            relay.send_to(&wrapped, peer.unwrap()).await.unwrap();
                        }
                        _ = control.read_u8() => return,
                    }
                }
            });
        }
    });
    (at, task)
}

#[tokio::test]
async fn through_a_proxy_everything_goes_to_the_proxy_and_ends_with_it() {
    let server = Doq::new("dns.test", fine);
    let heads = Arc::<Mutex<Vec<Vec<u8>>>>::default();
    let (proxy, task) = proxy(server.at, false, heads.clone()).await;
    let far: SocketAddr = "192.0.2.53:853".parse().unwrap();
    let config = server.client();
    let bench = Bench::with(sequential(vec![upstream(DnsProtocol::Quic, far)]), move || Ok(config.clone()));
    let route = || QueryEgress::Proxy { server: proxy, mark: Mark(0x70), user: None };
    for _ in 0..5 {
        assert_eq!(address(&bench.ask_by(route(), "www.example.com").await.unwrap()), "192.0.2.9");
    }
    assert_eq!(server.connections(), 1);
    let to_proxy = bench.seen.sockets.lock().clone();
    assert_eq!(to_proxy.len(), 2);
    assert!(
        to_proxy.iter().all(|(to, mark)| to.ip() == proxy.ip() && *mark == Some(Mark(0x70))),
        "{to_proxy:?}"
    );
    assert!(heads.lock().iter().all(|head| *head == [0, 0, 0, 1, 192, 0, 2, 53, 3, 0x55]));
    task.abort();
    let failure = bench.ask_by(route(), "www.example.com").await.unwrap_err();
    assert!(failure.to_string().starts_with("the proxy: "), "{failure}");
}

#[tokio::test]
async fn a_proxy_without_datagrams_counts_as_failing_and_nothing_goes_past_it() {
    let server = Doq::new("dns.test", fine);
    let (proxy, _task) = proxy(server.at, true, Arc::default()).await;
    let bench = server.bench();
    let route = || QueryEgress::Proxy { server: proxy, mark: Mark(0x71), user: None };
    for _ in 0..3 {
        let failure = bench.ask_by(route(), "www.example.com").await.unwrap_err();
        assert_eq!(failure.to_string(), "SOCKS5 proxy refused: it does not know this command");
    }
    assert!(bench.seen.peers().iter().all(|to| *to == proxy));
    assert_eq!(server.count(), 0);
    assert!(!bench.upstreams.status()[0].ok);
}
