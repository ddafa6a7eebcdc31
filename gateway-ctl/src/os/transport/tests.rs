//! A tunnel over each kind of bridge, with remote ends that break.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

use super::*;

const SOON: Duration = Duration::from_secs(10);

/// Returns a bridge without a fwmark on its packets, which needs no privilege.
fn target(near: &str, address: SocketAddr, kind: TransportKind) -> TransportTarget {
    TransportTarget {
        bridge_id: "b".into(),
        kind,
        near: near.parse().unwrap(),
        address: Some(address),
        mark: None,
    }
}

async fn wait_until(transports: &Transports, connected: bool) -> Connection {
    let mut seen = transports.states();
    let fits = |seen: &Arc<BridgeStates>| seen.get("t").is_some_and(|one| one.connected == connected);
    let now = tokio::time::timeout(SOON, seen.wait_for(fits)).await.expect("in time").expect("a sender");
    now["t"].clone()
}

/// Returns a local socket that sends to the bridge.
async fn local(near: &str) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(near.parse::<SocketAddr>().unwrap()).await.unwrap();
    socket
}

/// Returns a socket like that of WireGuard, known to the bridge.
async fn tunnel(near: &str, transports: &Transports) -> UdpSocket {
    let socket = local(near).await;
    transports.set_device_port("t", socket.local_addr().unwrap().port());
    socket
}

async fn expect(socket: &UdpSocket, content: &[u8]) {
    let mut buffer = [0; 2000];
    let length = tokio::time::timeout(SOON, socket.recv(&mut buffer)).await.expect("in time").unwrap();
    assert_eq!(&buffer[..length], content);
}

async fn accept(listener: &TcpListener) -> TcpStream {
    tokio::time::timeout(SOON, listener.accept()).await.expect("in time").unwrap().0
}

#[tokio::test]
async fn datagrams_cross_a_stream_and_the_stream_comes_back() {
    let near = "127.71.1.1:4703";
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let transports = Transports::default();
    transports.put("t", target(near, at, TransportKind::Udp2Tcp)).unwrap();
    let ours = tunnel(near, &transports).await;
    for round in 1..=2 {
        let mut far = accept(&listener).await;
        assert_eq!(wait_until(&transports, true).await.connects, round);
        ours.send(b"hello").await.unwrap();
        let mut framed = [0; 7];
        far.read_exact(&mut framed).await.unwrap();
        assert_eq!(&framed, b"\0\x05hello");
        far.write_all(b"\0\x03abc\0\x01d").await.unwrap();
        expect(&ours, b"abc").await;
        expect(&ours, b"d").await;
        drop(far);
        let broken = wait_until(&transports, false).await;
        assert!(!broken.reason.is_empty());
        // A datagram sent meanwhile is outdated and is not kept.
        ours.send(b"lost").await.unwrap();
    }
    transports.remove("t").await;
    assert!(transports.states().borrow().is_empty());
    UdpSocket::bind(near).await.expect("the address is free again");
}

#[tokio::test]
async fn local_process_does_not_take_the_path_of_the_tunnel() {
    let near = "127.71.1.5:4703";
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let transports = Transports::default();
    transports.put("t", target(near, listener.local_addr().unwrap(), TransportKind::Udp2Tcp)).unwrap();
    let mut far = accept(&listener).await;
    wait_until(&transports, true).await;
    // Before the device is known, and afterwards.
    let stranger = local(near).await;
    stranger.send(b"forged").await.unwrap();
    let ours = local(near).await;
    ours.send(b"first").await.unwrap();
    transports.set_device_port("t", ours.local_addr().unwrap().port());
    let mut framed = [0; 7];
    far.read_exact(&mut framed).await.unwrap();
    assert_eq!(&framed, b"\0\x05first", "only the device is heard, and what it sent early is not lost");
    for _ in 0..3 {
        stranger.send(b"forged").await.unwrap();
    }
    ours.send(b"again").await.unwrap();
    far.read_exact(&mut framed).await.unwrap();
    assert_eq!(&framed, b"\0\x05again");
    far.write_all(b"\0\x03yes").await.unwrap();
    expect(&ours, b"yes").await;
    assert!(stranger.try_recv(&mut [0; 10]).is_err(), "nothing comes back to it");
}

#[tokio::test]
async fn a_changed_egress_reconnects_at_once() {
    let near = "127.71.1.2:4703";
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let transports = Transports::default();
    let at = listener.local_addr().unwrap();
    transports.put("t", target(near, at, TransportKind::Udp2Tcp)).unwrap();
    let mut first = accept(&listener).await;
    wait_until(&transports, true).await;
    transports.renew(Some(Mark(7)));
    transports.renew(None);
    let _second = accept(&listener).await;
    assert_eq!(first.read(&mut [0; 1]).await.unwrap(), 0, "the first one was closed");
}

#[tokio::test]
async fn datagrams_cross_a_proxy_to_the_peer_only() {
    let near = "127.71.1.3:4703";
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let transports = Transports::default();
    let to = "198.51.100.7:51820".to_owned();
    transports.put("t", target(near, listener.local_addr().unwrap(), TransportKind::Socks5 { to })).unwrap();
    let mut control = accept(&listener).await;
    let relay = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    control.read_exact(&mut [0; 3]).await.unwrap();
    control.write_all(&[5, 0]).await.unwrap();
    control.read_exact(&mut [0; 10]).await.unwrap();
    let [high, low] = relay.local_addr().unwrap().port().to_be_bytes();
    control.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, high, low]).await.unwrap();
    wait_until(&transports, true).await;
    let ours = tunnel(near, &transports).await;
    ours.send(b"hello").await.unwrap();
    let mut buffer = [0; 100];
    let (length, from) = relay.recv_from(&mut buffer).await.unwrap();
    let header = [0, 0, 0, 1, 198, 51, 100, 7, 0xca, 0x6c];
    assert_eq!(&buffer[..length], [&header[..], b"hello"].concat());
    let stranger = [0, 0, 0, 1, 198, 51, 100, 8, 0xca, 0x6c];
    relay.send_to(&[&stranger[..], b"no"].concat(), from).await.unwrap();
    relay.send_to(&[&header[..], b"yes"].concat(), from).await.unwrap();
    expect(&ours, b"yes").await;
    drop(control);
    assert_eq!(wait_until(&transports, false).await.reason, "the proxy ended the association");
}

#[tokio::test]
async fn a_probe_tells_each_step() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let steps = probe(&target("127.71.1.4:4703", at, TransportKind::Udp2Tcp)).await;
    assert!(matches!(steps[..], [("connect", Ok(_))]), "{steps:?}");
    drop(listener);
    let steps = probe(&target("127.71.1.4:4703", at, TransportKind::Udp2Tcp)).await;
    assert!(matches!(steps[..], [("connect", Err(ConnectError::Connect(_)))]), "{steps:?}");
    let nowhere = TransportTarget { address: None, ..target("127.71.1.4:4703", at, TransportKind::Udp2Tcp) };
    assert!(matches!(probe(&nowhere).await[..], [("resolve", Err(ConnectError::NoAddress))]));
}
