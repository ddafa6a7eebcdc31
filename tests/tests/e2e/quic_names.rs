//! `block_doh` by the name that a QUIC client encrypts with keys of its packet.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gateway_tests::capture::Capture;
use gateway_tests::testbed::{Testbed, create};
use gateway_tests::topology::{Host, Topology, server};
use gateway_tests::traffic::ask_server;
use gateway_tests::wait::wait_for;
use quinn::{
    ClientConfig, Connection, Endpoint, EndpointConfig, IdleTimeout, ServerConfig, TokioRuntime,
    TransportConfig,
};
use rustls::RootCertStore;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::e2e::dns_policy::resolving;
use crate::e2e::flows::wait_for_flows;
use crate::e2e::{BLOCKED, SOON};

const RESOLVER: &str = "doh.opendns.com";
const SITE: &str = "www.example.com";
/// Time without an answer after which both ends give a connection up.
const SILENCE: Duration = Duration::from_secs(3);

/// Answers each stream with its bytes, and counts connections.
async fn serve(endpoint: Endpoint, arrived: Arc<AtomicUsize>) {
    while let Some(incoming) = endpoint.accept().await {
        arrived.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            let Ok(connection) = incoming.await else { return };
            while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                let Ok(bytes) = receive.read_to_end(64).await else { return };
                let _ = send.write_all(&bytes).await;
                let _ = send.finish();
            }
        });
    }
}

async fn ask(connection: &Connection) -> anyhow::Result<()> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(b"query").await?;
    send.finish()?;
    anyhow::ensure!(receive.read_to_end(64).await? == b"query");
    Ok(())
}

/// Connects to a server of this name and asks until it is silent. Returns true if it answers for so long that a block
/// would be in force.
async fn is_answered(client: &Endpoint, at: SocketAddr, name: &str) -> bool {
    let Ok(connection) = client.connect(at, name).expect("a connection").await else { return false };
    let begun = Instant::now();
    while begun.elapsed() < 2 * BLOCKED {
        if ask(&connection).await.is_err() {
            return false;
        }
    }
    true
}

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    // One packet for each datagram, so that captures have what the client sent.
    transport.enable_segmentation_offload(false);
    transport.max_idle_timeout(Some(IdleTimeout::try_from(SILENCE).expect("a timeout")));
    Arc::new(transport)
}

fn endpoint(socket: UdpSocket, config: Option<ServerConfig>) -> Endpoint {
    Endpoint::new(EndpointConfig::default(), config, socket, Arc::new(TokioRuntime)).expect("an endpoint")
}

/// A server with both names, and what its clients know of it.
struct Server {
    at: SocketAddr,
    arrived: Arc<AtomicUsize>,
    config: ClientConfig,
}

impl Server {
    fn start(network: &Topology, runtime: &Runtime) -> Server {
        let issued = rcgen::generate_simple_self_signed([RESOLVER.to_owned(), SITE.to_owned()])
            .expect("a certificate");
        let certificate = CertificateDer::from(issued.cert.der().to_vec());
        let key = PrivateKeyDer::try_from(issued.signing_key.serialize_der()).expect("a key");
        let mut config = ServerConfig::with_single_cert(vec![certificate.clone()], key).expect("a server");
        config.transport_config(transport());
        let at = SocketAddr::new(server(false), 8443);
        let socket = network.internet.within(|| UdpSocket::bind(at)).expect("a server");
        let arrived = Arc::new(AtomicUsize::new(0));
        runtime.spawn(serve(endpoint(socket, Some(config)), arrived.clone()));
        let mut roots = RootCertStore::empty();
        roots.add(certificate).expect("a root");
        let mut config = ClientConfig::with_root_certificates(Arc::new(roots)).expect("a client");
        config.transport_config(transport());
        Server { at, arrived, config }
    }

    fn client(&self, host: &Host) -> Endpoint {
        let socket = host.namespace.within(|| UdpSocket::bind("0.0.0.0:0")).expect("a socket");
        let mut client = endpoint(socket, None);
        client.set_default_client_config(self.config.clone());
        client
    }
}

/// Returns the payloads of datagrams to the server that begin with a 0-RTT packet of version 1 (RFC 9000, section 17.2.3). The
/// fixed bit may be cleared (RFC 9287).
fn early_data(capture: &Capture) -> Vec<Vec<u8>> {
    let port = 8443u16.to_be_bytes();
    let is_early = |packet: &[u8]| {
        packet.len() > 28
            && packet[0] == 0x45
            && packet[9] == 17
            && packet[22..24] == port
            && packet[28] & 0xb0 == 0x90
    };
    let packets = capture.packets().expect("captured");
    packets.iter().filter(|packet| is_early(packet)).map(|packet| packet[28..].to_vec()).collect()
}

#[test]
fn early_data_arrives_while_the_name_of_the_server_is_read() {
    let (testbed, _upstream) = resolving();
    let network = &testbed.network;
    let runtime = Runtime::new().expect("a runtime");
    let _entered = runtime.enter();
    let class = json!({"name": "no resolvers", "block_doh": true});
    let class = create(testbed.api(), "/privacy-classes", &class).expect("a class");
    let laptop = testbed.device(&network.laptop).expect("a device");
    let mut device = testbed.api().get(&format!("/devices/{laptop}")).expect("the device").clone();
    device["privacy_class"] = json!(class);
    testbed.api().put(&format!("/devices/{laptop}"), &device).expect("stored");
    testbed.api().act("/enforce/reconcile").expect("reconciled");
    let server = Server::start(network, &runtime);
    let first = server.client(&network.laptop);
    // The client gets a ticket for the next connections.
    runtime.block_on(async {
        let connection = first.connect(server.at, SITE).expect("a connection").await.expect("connected");
        ask(&connection).await.expect("answered");
    });
    let sent = Capture::open(&network.laptop.namespace, "eth0").expect("a capture");
    let arrived = Capture::open(&network.internet, "up0").expect("a capture");
    for round in 0..5 {
        let client = server.client(&network.laptop);
        runtime.block_on(async {
            let connecting = client.connect(server.at, SITE).expect("a connection");
            let (connection, accepted) = connecting.into_0rtt().unwrap_or_else(|_| panic!("no ticket"));
            let mut stream = connection.open_uni().await.expect("a stream");
            stream.write_all(&[7; 6000]).await.expect("written");
            stream.finish().expect("finished");
            assert!(accepted.await, "the server takes early data");
            ask(&connection).await.expect("answered");
        });
        let mut sent = early_data(&sent);
        assert!(sent.len() >= 3, "{} datagrams of early data", sent.len());
        sent.sort();
        let mut there = Vec::new();
        wait_for(SOON, &format!("the early data of round {round}"), || {
            there.extend(early_data(&arrived));
            there.sort();
            there == sent
        })
        .expect("sent on");
    }
}

#[test]
fn the_flow_log_has_the_name_that_a_client_encrypts() {
    let testbed = Testbed::start().expect("a testbed");
    let network = &testbed.network;
    let runtime = Runtime::new().expect("a runtime");
    let _entered = runtime.enter();
    let service = Server::start(network, &runtime);
    let laptop = testbed.device(&network.laptop).expect("a device");
    testbed.api().put("/settings/flow_log.server_names", &json!({"value": true})).expect("set");
    testbed.api().act("/enforce/reconcile").expect("reconciled");
    let client = service.client(&network.laptop);
    runtime.block_on(async {
        let connection = client.connect(service.at, SITE).expect("a connection").await.expect("connected");
        ask(&connection).await.expect("answered");
    });
    let query = format!("device={laptop}&protocol=udp&port={}", service.at.port());
    let found =
        wait_for_flows(&testbed, &query, |found| found.iter().any(|flow| flow["server_name"] == SITE));
    assert_eq!(found.len(), 1, "{found:#?}");
}

#[test]
fn a_resolver_is_blocked_by_its_name_in_quic() {
    let (mut testbed, _upstream) = resolving();
    let network = &testbed.network;
    let runtime = Runtime::new().expect("a runtime");
    let _entered = runtime.enter();
    let service = Server::start(network, &runtime);
    let arrived = service.arrived.clone();
    let is_answered =
        |host: &Host, name: &str| runtime.block_on(is_answered(&service.client(host), service.at, name));

    let class = json!({"name": "no resolvers", "block_doh": true});
    let class = create(testbed.api(), "/privacy-classes", &class).expect("a class");
    let laptop = testbed.device(&network.laptop).expect("a device");
    testbed.device(&network.tv).expect("a device");
    assert!(is_answered(&network.laptop, RESOLVER), "before the block");
    let mut device = testbed.api().get(&format!("/devices/{laptop}")).expect("the device").clone();
    device["privacy_class"] = json!(class);
    testbed.api().put(&format!("/devices/{laptop}"), &device).expect("stored");
    testbed.api().act("/enforce/reconcile").expect("reconciled");

    let before = arrived.load(Ordering::Relaxed);
    assert!(!is_answered(&network.laptop, RESOLVER), "the resolver answers");
    assert_eq!(arrived.load(Ordering::Relaxed), before, "a packet of the handshake reached the resolver");
    assert!(is_answered(&network.laptop, SITE), "another server");
    assert!(is_answered(&network.tv, RESOLVER), "another device");
    wait_for(SOON, "the block to be counted", || {
        let monitor = testbed.api().get("/privacy/leak-monitor").expect("the monitor");
        let counted = monitor["counters"].as_array().expect("counters");
        counted.iter().filter_map(|policy| policy["doh_hits"].as_u64()).sum::<u64>() > 0
    })
    .expect("counted");

    // Without the daemon no name is known, so no connection begins that could be one to a resolver.
    testbed.daemon.kill9().expect("killed");
    let network = &testbed.network;
    let before = arrived.load(Ordering::Relaxed);
    assert!(!is_answered(&network.laptop, SITE), "a connection without the daemon");
    assert_eq!(arrived.load(Ordering::Relaxed), before);
    assert!(is_answered(&network.tv, SITE), "of a device without the block");
    assert!(ask_server(&network.laptop, server(false)).seen().is_some(), "TCP");
}
