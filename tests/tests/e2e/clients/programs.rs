//! Clients without a window: each runs to its end in the namespace of a host.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use gateway_tests::topology::{Host, server};
use gateway_tests::web_server;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Endpoint, EndpointConfig, IdleTimeout, TokioRuntime, TransportConfig};
use rustls::RootCertStore;
use tokio::runtime::Builder;

use super::Outcome::{self, Redirected, Stopped, Succeeded};
use super::fixture::{Fixture, KNOWN_ADDRESS, KNOWN_NAME, PUBLIC_ANSWER, SITE, UNKNOWN_ADDRESS};
use crate::e2e::stun;

/// Name that the gateway's upstream answers with another address than the public resolver.
const NUMBERED_NAME: &str = "n7.example";
const UPSTREAM_ANSWER: &str = "198.19.0.7";

/// Queries the public resolver over UDP, or over the transport of an option.
pub(super) fn dig(host: &Host, time: Duration, transport: Option<&str>) -> Outcome {
    let (server, time) = (format!("@{KNOWN_ADDRESS}"), format!("+time={}", time.as_secs()));
    let mut arguments = vec![server.as_str(), "+short", "+tries=1", &time, NUMBERED_NAME, "A"];
    arguments.extend(transport);
    let answer = host.namespace.run("dig", &arguments).unwrap_or_default();
    match answer.trim() {
        UPSTREAM_ANSWER => Redirected,
        answer if answer == PUBLIC_ANSWER.to_string() => Succeeded,
        // An error is an exit code or a comment, by the transport.
        _ => Stopped,
    }
}

/// Loads the page by an address that the resolver at a known address returns.
pub(super) fn curl_doh_by_address(_: &Fixture, host: &Host, time: Duration) -> Outcome {
    run_curl(host, time, &["--doh-insecure", "--doh-url", &format!("https://{KNOWN_ADDRESS}/dns-query")])
}

/// Loads the page by an address that the resolver with a known name returns.
pub(super) fn curl_doh_by_name(_: &Fixture, host: &Host, time: Duration) -> Outcome {
    let url = format!("https://{KNOWN_NAME}/dns-query");
    let resolve = format!("{KNOWN_NAME}:443:{UNKNOWN_ADDRESS}");
    run_curl(host, time, &["--doh-insecure", "--doh-url", &url, "--resolve", &resolve])
}

/// Loads the page.
pub(super) fn curl(_: &Fixture, host: &Host, time: Duration) -> Outcome {
    let resolve = format!("{SITE}:{}:{}", web_server::PORT, server(false));
    run_curl(host, time, &["--resolve", &resolve])
}

fn run_curl(host: &Host, time: Duration, options: &[&str]) -> Outcome {
    let (time, url) = (time.as_secs().to_string(), format!("https://{SITE}/"));
    let common = ["--silent", "--ipv4", "--insecure", "--max-time", &time, "--fail", &url];
    let page = host.namespace.run("curl", &[&common, options].concat()).unwrap_or_default();
    if page.contains("<title>") { Succeeded } else { Stopped }
}

/// Asks the STUN server for the visible address.
pub(super) fn stun(_: &Fixture, host: &Host, time: Duration) -> Outcome {
    if stun::succeeds(host, &stun::BINDING, time) { Succeeded } else { Stopped }
}

pub(super) fn ping(host: &Host, time: Duration, ipv6: bool) -> Outcome {
    let (time, server) = (time.as_secs().to_string(), server(ipv6).to_string());
    let echoed = host.namespace.run("ping", &["-n", "-c", "1", "-W", &time, &server]);
    if echoed.is_ok() { Succeeded } else { Stopped }
}

/// Opens a connection for HTTP/3 and waits for the first stream of the server.
pub(super) fn quic(fixture: &Fixture, host: &Host, time: Duration) -> Outcome {
    let mut roots = RootCertStore::empty();
    roots.add(fixture.certificate.der.clone()).expect("a root");
    let mut tls = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).expect("TLS 1.3")));
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(IdleTimeout::try_from(time).expect("a timeout")));
    config.transport_config(Arc::new(transport));
    let any = SocketAddr::from(([0, 0, 0, 0], 0));
    let socket = host.namespace.within(|| std::net::UdpSocket::bind(any)).expect("a socket");
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut endpoint =
            Endpoint::new(EndpointConfig::default(), None, socket, Arc::new(TokioRuntime)).expect("a client");
        endpoint.set_default_client_config(config);
        let at = SocketAddr::new(server(false), web_server::PORT);
        let Ok(connection) = endpoint.connect(at, SITE).expect("a connection").await else { return Stopped };
        if connection.accept_uni().await.is_ok() { Succeeded } else { Stopped }
    })
}
