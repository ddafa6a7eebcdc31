//! Errors that clients get for blocked packets, so that they fall back before their own timeouts.

use std::io::{ErrorKind, Read as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;

use gateway_tests::testbed::Testbed;
use gateway_tests::topology::server;
use gateway_tests::traffic::{Answer, TcpFlow};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use rustls_pki_types::ServerName;
use serde_json::{Value, json};

use crate::e2e::dns_policy::resolving;
use crate::e2e::{FAMILIES, SOON};

/// Sets blocks of all hosts.
fn block(testbed: &Testbed, blocks: Value) {
    let all = json!({"value": {"all": blocks}});
    testbed.api().put("/settings/privacy.blocks", &all).expect("stored");
    testbed.api().act("/enforce/reconcile").expect("reconciled");
}

/// Browsers use connected sockets for HTTP/3. Linux reports ICMP errors to them if the communication is
/// administratively prohibited, but not if the host or the network is unreachable.
#[test]
fn connected_datagram_sockets_learn_of_a_block() {
    let (testbed, _upstream) = resolving();
    block(&testbed, json!({"block_quic": true}));
    for ipv6 in FAMILIES {
        let any: SocketAddr = if ipv6 { ([0u16; 8], 0).into() } else { ([0, 0, 0, 0], 0).into() };
        let socket = testbed.network.laptop.namespace.within(|| UdpSocket::bind(any)).expect("a socket");
        socket.connect((server(ipv6), 443)).expect("connected");
        socket.set_read_timeout(Some(SOON)).expect("a timeout");
        socket.send(b"x").expect("sent");
        let error = socket.recv(&mut [0; 64]).expect_err("an error").kind();
        assert_ne!(error, ErrorKind::WouldBlock, "no error before the timeout, IPv6: {ipv6}");
    }
}

/// Linux reports no ICMP error to an established connection, so its program waits for its own timeout.
#[test]
fn open_connections_end_when_their_block_begins() {
    let (testbed, _upstream) = resolving();
    let mut flow = TcpFlow::open(&testbed.network.laptop, server(true)).expect("a connection");
    assert!(flow.ask(SOON).seen().is_some(), "before the block");
    block(&testbed, json!({"block_ipv6": true}));
    let answer = flow.ask(SOON);
    assert!(matches!(answer, Answer::Rejected { .. }), "{answer}");
}

#[test]
fn connections_end_that_show_the_name_of_a_resolver() {
    let (testbed, _upstream) = resolving();
    let network = &testbed.network;
    block(&testbed, json!({"block_doh": true}));
    let at = SocketAddr::new(server(false), 443);
    let _listener = network.internet.within(|| TcpListener::bind(at)).expect("a server");
    let mut stream =
        network.laptop.namespace.within(|| TcpStream::connect_timeout(&at, SOON)).expect("a connection");
    let config = ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    let name = ServerName::try_from("doh.opendns.com").expect("a name");
    let mut client = ClientConnection::new(Arc::new(config), name).expect("a client");
    client.write_tls(&mut stream).expect("sent");
    stream.set_read_timeout(Some(SOON)).expect("a timeout");
    let error = stream.read(&mut [0; 64]).expect_err("an error").kind();
    assert_eq!(error, ErrorKind::ConnectionReset);
}
