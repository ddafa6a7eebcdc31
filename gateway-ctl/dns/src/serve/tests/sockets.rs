//! Tests over loopback: workers, connections, and changes of listeners.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::dns::{Action, Cause};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::resolver::Resolver;
use crate::serve::Settings;
use crate::serve::settings::{Listen, Streams};
use crate::serve::test_doubles::*;
use crate::wire::rtype;

const LONG: Duration = Duration::from_secs(20);

fn at(address: &str) -> Listen {
    Listen { address: address.parse().expect("an address"), interface: None }
}

async fn start(settings: Settings) -> (Resolver, Arc<FakeUpstream>, SocketAddr) {
    let rules = Rules::default().rule("ads.example", Action::Block, Cause::Blocklist);
    let upstream = FakeUpstream::new();
    upstream.knows("www.example", rtype::A, vec![a("www.example", 60, [192, 0, 2, 1])]);
    let clients = FakeClients::new(client(1, 0));
    let learn = Arc::new(FakeFqdnPolicy::default());
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
    let resolver = resolver.await.expect("threads");
    let address = resolver.status().listening[0].udp.clone().expect("bound");
    (resolver, upstream, address)
}

fn settings(listen: &[&str]) -> Settings {
    Settings { listen: listen.iter().map(|text| at(text)).collect(), workers: 2, ..Settings::default() }
}

async fn send_query(socket: &UdpSocket, message: &[u8]) -> Vec<u8> {
    let mut buffer = vec![0; 2048];
    socket.send(message).await.expect("sent");
    let length = timeout(LONG, socket.recv(&mut buffer)).await.expect("an answer").expect("received");
    buffer.truncate(length);
    buffer
}

async fn client_of(server: SocketAddr) -> UdpSocket {
    let any = if server.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
    let socket = UdpSocket::bind(any).await.expect("bound");
    socket.connect(server).await.expect("connected");
    socket
}

async fn frame(stream: &mut TcpStream, message: &[u8]) {
    stream.write_u16(message.len() as u16).await.expect("written");
    stream.write_all(message).await.expect("written");
}

async fn read(stream: &mut TcpStream) -> Vec<u8> {
    let length = timeout(LONG, stream.read_u16()).await.expect("an answer").expect("read");
    let mut answer = vec![0; usize::from(length)];
    stream.read_exact(&mut answer).await.expect("read");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_are_answered_in_both_families_over_udp_and_tcp() {
    let (resolver, upstream, _) = start(settings(&["127.0.0.1:0", "[::1]:0"])).await;
    for listening in resolver.status().listening {
        let socket = client_of(listening.udp.clone().expect("bound")).await;
        let mut stream = TcpStream::connect(listening.tcp.expect("bound")).await.expect("connected");
        for asked in [question("www.example", rtype::A), question("ads.example", rtype::AAAA)] {
            let reply = send_query(&socket, &asked).await;
            assert_eq!(reply[..2], asked[..2]);
            frame(&mut stream, &asked).await;
            assert_eq!(read(&mut stream).await, reply);
        }
    }
    assert_eq!(upstream.times(), 1);
    resolver.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_leave_from_the_queried_address() {
    let (resolver, _, server) = start(settings(&["0.0.0.0:0"])).await;
    for host in ["127.0.0.1", "127.0.0.77"] {
        // A connected socket accepts no answer from another address, cached or not.
        let socket = client_of(SocketAddr::new(host.parse().expect("v4"), server.port())).await;
        send_query(&socket, &question("www.example", rtype::A)).await;
        send_query(&socket, &question(&format!("n{}.example", host.len()), rtype::A)).await;
    }
    resolver.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_of_a_connection_come_in_the_order_they_are_ready() {
    let (resolver, upstream, server) = start(settings(&["127.0.0.1:0"])).await;
    upstream.gate.forget_permits(usize::MAX);
    let mut stream = TcpStream::connect(server).await.expect("connected");
    let (mut slow, mut quick) = (question("www.example", rtype::A), question("ads.example", rtype::A));
    (slow[1], quick[1]) = (1, 2);
    frame(&mut stream, &slow).await;
    frame(&mut stream, &quick).await;
    assert_eq!(read(&mut stream).await[1], 2);
    upstream.gate.add_permits(1);
    assert_eq!(read(&mut stream).await[1], 1);
    resolver.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_are_closed_and_there_are_not_too_many() {
    let streams = Streams { idle: Duration::from_millis(300), per_client: 2, ..Streams::default() };
    let (resolver, _, server) = start(Settings { streams, ..settings(&["127.0.0.1:0"]) }).await;
    let mut first = TcpStream::connect(server).await.expect("connected");
    // An incomplete query does not keep the connection open.
    first.write_all(&[0]).await.expect("written");
    let mut second = TcpStream::connect(server).await.expect("connected");
    let mut third = TcpStream::connect(server).await.expect("connected");
    for stream in [&mut third, &mut first, &mut second] {
        let end = timeout(LONG, stream.read(&mut [0; 8])).await.expect("closed");
        assert!(matches!(end, Ok(0) | Err(_)));
    }
    assert_eq!(resolver.status().crowded, 1);
    resolver.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn listeners_come_and_go_and_one_that_cannot_be_bound_harms_no_other() {
    let (resolver, _, first) = start(settings(&["127.0.0.1:0"])).await;
    let socket = client_of(first).await;
    send_query(&socket, &question("www.example", rtype::A)).await;
    // An address that this host does not have.
    let status = resolver.reconfigure(settings(&["127.0.0.1:0", "127.0.0.2:0", "192.0.2.1:0"]));
    assert_eq!(status.iter().filter(|listening| listening.udp.is_ok() && listening.tcp.is_ok()).count(), 2);
    let failed = status.iter().find(|listening| listening.udp.is_err()).expect("one cannot be bound");
    assert_eq!(failed.listen, at("192.0.2.1:0"));
    assert_eq!(status.iter().find(|l| l.listen == at("127.0.0.1:0")).expect("it stays").udp, Ok(first));
    send_query(&socket, &question("www.example", rtype::A)).await;
    let second = status.iter().find(|l| l.listen == at("127.0.0.2:0")).expect("it is new").udp.clone();
    send_query(&client_of(second.expect("bound")).await, &question("www.example", rtype::A)).await;
    assert!(resolver.reconfigure(settings(&[])).is_empty());
    let deadline = tokio::time::Instant::now() + LONG;
    while TcpStream::connect(first).await.is_ok() || UdpSocket::bind(first).await.is_err() {
        assert!(tokio::time::Instant::now() < deadline, "the sockets stay open");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    resolver.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_has_said_all_still_gets_its_answers() {
    let (resolver, upstream, server) = start(settings(&["127.0.0.1:0"])).await;
    upstream.gate.forget_permits(usize::MAX);
    let mut stream = TcpStream::connect(server).await.expect("connected");
    frame(&mut stream, &question("www.example", rtype::A)).await;
    stream.shutdown().await.expect("closed one way");
    upstream.gate.add_permits(1);
    assert_eq!(read(&mut stream).await[..2], [0x12, 0x34]);
    let end = timeout(LONG, stream.read(&mut [0; 8])).await.expect("closed");
    assert_eq!(end.expect("read"), 0);
    resolver.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_affects_one_query() {
    let (resolver, _, server) = start(Settings { workers: 1, ..settings(&["127.0.0.1:0"]) }).await;
    let socket = client_of(server).await;
    for _ in 0..3 {
        socket.send(&question("panic.test", rtype::A)).await.expect("sent");
        // Queries in separate rounds: a panic loses all queries of its round.
        let asked = question("ads.example", rtype::A);
        let mut buffer = [0; 512];
        while timeout(Duration::from_millis(200), socket.recv(&mut buffer)).await.is_err() {
            socket.send(&asked).await.expect("sent");
        }
    }
    resolver.stop().await;
}
