//! Clients and servers that are independent of the daemon.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result};
use gateway_tests::http::{Response, exchange};
use gateway_tests::process::Process;
use gateway_tests::wait::wait_ok;
use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::{self, kx_group};
use rustls::{ClientConfig, ClientConnection, NamedGroup, RootCertStore, StreamOwned};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use serde_json::Value;

use crate::tls::SOON;

pub(super) type Stream = StreamOwned<ClientConnection, TcpStream>;

pub(super) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&address, SOON).expect("a connection");
    stream.set_read_timeout(Some(SOON)).expect("a time limit");
    stream
}

/// A client that offers only hybrid post-quantum key exchange.
pub(super) fn hybrid(authority: &Path) -> Arc<ClientConfig> {
    client(authority, vec![kx_group::X25519MLKEM768])
}

/// A client without post-quantum key exchange.
pub(super) fn classic(authority: &Path) -> Arc<ClientConfig> {
    client(authority, vec![kx_group::X25519])
}

fn client(authority: &Path, groups: Vec<&'static dyn SupportedKxGroup>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(authority).expect("the authority") {
        roots.add(certificate.expect("PEM")).expect("a certificate");
    }
    let mut provider = aws_lc_rs::default_provider();
    provider.kx_groups = groups;
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

/// Returns a session after its handshake.
pub(super) fn session(address: SocketAddr, config: &Arc<ClientConfig>) -> io::Result<Stream> {
    let name = ServerName::try_from("localhost").expect("a name");
    let connection = ClientConnection::new(config.clone(), name).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, connect(address));
    stream.conn.complete_io(&mut stream.sock)?;
    Ok(stream)
}

/// Returns the key-exchange group of a session.
pub(super) fn group(stream: &Stream) -> NamedGroup {
    stream.conn.negotiated_key_exchange_group().expect("agreed").name()
}

/// Returns the certificate that the server presented in a session.
pub(super) fn shown(stream: &Stream) -> CertificateDer<'static> {
    stream.conn.peer_certificates().expect("certificates")[0].clone().into_owned()
}

/// Sends one request below the API root.
pub(super) fn https(
    address: SocketAddr,
    config: &Arc<ClientConfig>,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<Response> {
    let stream = session(address, config).context("handshake")?;
    let body = body.map(|body| body.to_string().into_bytes());
    let path = format!("/api/v1{path}");
    exchange(stream, method, "localhost", &path, &[("Content-Type", "application/json")], body.as_deref())
}

/// Sends one request over a session that stays open. The response must have a length.
pub(super) fn keep_asking(stream: &mut Stream, path: &str) -> Result<Value> {
    write!(stream, "GET /api/v1{path} HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        answer.push(byte[0]);
    }
    let head = String::from_utf8(answer)?.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).context("a length")?;
    let mut body = vec![0; length.parse()?];
    stream.read_exact(&mut body)?;
    Ok(serde_json::from_slice(&body)?)
}

/// Runs OpenSSL's client with classic groups only, in any version: performs the handshake and exits.
pub(super) fn openssl_client(address: SocketAddr, authority: &Path, more: &[&str]) -> Output {
    Command::new("openssl")
        .args(["s_client", "-brief", "-verify_return_error", "-groups", "X25519:P-256"])
        .args(["-servername", "localhost", "-connect", &address.to_string(), "-CAfile"])
        .arg(authority)
        .args(more)
        .stdin(Stdio::null())
        .output()
        .expect("openssl is installed")
}

/// OpenSSL's server with classic groups only.
pub(super) struct OpensslServer {
    pub address: SocketAddr,
    _process: Process,
}

impl OpensslServer {
    pub(super) fn start(certificate: &Path, key: &Path, more: &[&str]) -> Self {
        // The port is free now. If another process takes it first, the server does not start and the test reports it.
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = free.local_addr().expect("an address");
        drop(free);
        let mut command = Command::new("openssl");
        command.args(["s_server", "-quiet", "-www", "-groups", "X25519:P-256"]);
        command.args(["-accept", &address.to_string(), "-cert"]).arg(certificate).arg("-key").arg(key);
        command.args(more).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process::spawn(command).expect("openssl is installed");
        wait_ok(SOON, "openssl to listen", || Ok(TcpStream::connect(address).map(drop)?)).expect("a server");
        Self { address, _process: process }
    }
}

pub(super) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
