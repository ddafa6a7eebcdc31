//! A coordinator in the process of the tests, with TLS, on sockets of a namespace.

use std::fs;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use gateway_mesh::serve::{Admission, serve_connection, serve_stun};
use gateway_mesh::wire::{DerpMap, DerpNode, DerpRegion};
use gateway_mesh::{
    AuthKeyTerms, Change, Clock, Coordinator, KeyPair, Ledger, LedgerError, Lifetimes, Member, MeshProfile,
    Roster, Settings,
};
use jiff::{SignedDuration, Timestamp};
use rustls::ServerConfig;
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

use super::HUB;
use crate::certificate::ServerCertificate;
use crate::netns::Namespace;
use crate::wait::wait_until;

const PORT: u16 = 8443;
const STUN_PORT: u16 = 3478;
const REGION: u32 = 999;
/// Time for a client to join, or to learn something.
const SOON: Duration = Duration::from_secs(30);

/// Part that survives the coordinator: the roster as it was stored.
#[derive(Debug, Default)]
struct MemoryLedger(Mutex<Roster>);

impl Ledger for MemoryLedger {
    fn store(&self, roster: &Roster, _: &Change) -> Result<(), LedgerError> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = roster.clone();
        Ok(())
    }
}

/// A coordinator that can end and begin again.
pub struct MeshServer {
    certificate: ServerCertificate,
    identity: KeyPair,
    relay: KeyPair,
    ledger: Arc<MemoryLedger>,
    lifetimes: Lifetimes,
    running: Option<Running>,
}

struct Running {
    runtime: Runtime,
    coordinator: Arc<Coordinator>,
}

impl MeshServer {
    /// Starts a coordinator without nodes. Ephemeral nodes stay for `ephemeral` after their connection.
    pub fn start(hub: &Namespace, ephemeral: SignedDuration) -> Result<Self> {
        let mut server = Self {
            certificate: ServerCertificate::issue(&[HUB])?,
            identity: KeyPair::random()?,
            relay: KeyPair::random()?,
            ledger: Arc::default(),
            lifetimes: Lifetimes { ephemeral, ..Lifetimes::default() },
            running: None,
        };
        server.start_again(hub)?;
        Ok(server)
    }

    /// Ends the coordinator without a farewell: all its connections break.
    pub fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            running.runtime.shutdown_timeout(Duration::from_secs(5));
        }
    }

    /// Starts the coordinator with what the last one stored.
    pub fn start_again(&mut self, hub: &Namespace) -> Result<()> {
        self.kill();
        let settings = Settings {
            identity: self.identity.clone(),
            relay: self.relay.clone(),
            profile: MeshProfile {
                domain: "mesh.test".to_owned(),
                owner: "gateway".to_owned(),
                derp_map: derp_map()?,
            },
            lifetimes: self.lifetimes,
            verify_clients: true,
        };
        let roster = self.ledger.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let clock: Clock = Arc::new(Timestamp::now);
        let coordinator = Coordinator::new(settings, roster, self.ledger.clone(), clock);
        let (listener, socket) = hub.within(|| -> Result<_> {
            Ok((TcpListener::bind((HUB, PORT))?, UdpSocket::bind((HUB, STUN_PORT))?))
        })?;
        listener.set_nonblocking(true)?;
        socket.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let acceptor = TlsAcceptor::from(Arc::new(self.tls()?));
        runtime.spawn(accept(listener, acceptor, Arc::clone(&coordinator)));
        runtime.spawn(async move {
            let socket = tokio::net::UdpSocket::from_std(socket)?;
            serve_stun(&socket).await
        });
        self.running = Some(Running { runtime, coordinator });
        Ok(())
    }

    fn tls(&self) -> Result<ServerConfig> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let key = PrivateKeyDer::from_pem_slice(&fs::read(self.certificate.key_file())?)?;
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        Ok(builder.with_no_client_auth().with_single_cert(vec![self.certificate.der.clone()], key)?)
    }

    pub fn port(&self) -> u16 {
        PORT
    }

    /// The certificate that clients have to trust.
    pub fn authority(&self) -> std::path::PathBuf {
        self.certificate.file()
    }

    /// The coordinator that runs.
    pub fn coordinator(&self) -> &Arc<Coordinator> {
        let running = self.running.as_ref();
        &running.expect("the coordinator runs").coordinator
    }

    /// Creates a pre-auth key.
    pub fn key(&self, reusable: bool, ephemeral: bool, lifetime: SignedDuration) -> Result<String> {
        let expires = Timestamp::now().checked_add(lifetime)?;
        let terms = AuthKeyTerms { reusable, ephemeral, expires, tags: Vec::new(), usage_limit: 0 };
        self.coordinator().create_key(terms)?.context("room for a key")
    }

    /// The node of this name, if there is one.
    pub fn member(&self, name: &str) -> Option<Member> {
        self.coordinator().members().into_iter().find(|member| member.node.name == name)
    }

    /// Waits until a node reads its stream of maps. Returns its address.
    pub fn wait_for(&self, name: &str) -> Result<IpAddr> {
        let connected = || self.member(name).filter(|member| member.presence.stream.is_some());
        let member = wait_until(SOON, &format!("{name} to join the mesh"), connected)?;
        Ok(member.node.addresses[0])
    }
}

impl Drop for MeshServer {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, coordinator: Arc<Coordinator>) -> Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let admission = Arc::<Admission>::default();
    loop {
        let (socket, from) = listener.accept().await?;
        let (acceptor, coordinator) = (acceptor.clone(), Arc::clone(&coordinator));
        let Some(admitted) = admission.admit(from.ip()) else { continue };
        tokio::spawn(async move {
            if let Ok(socket) = acceptor.accept(socket).await {
                serve_connection(coordinator, from.ip(), socket).await;
            }
            drop(admitted);
        });
    }
}

fn derp_map() -> Result<DerpMap> {
    let address: SocketAddr = format!("{HUB}:{PORT}").parse()?;
    let node = DerpNode {
        name: "hub".to_owned(),
        region_id: REGION,
        host_name: HUB.to_owned(),
        cert_name: String::new(),
        ipv4: Some(address.ip()),
        derp_port: PORT,
        stun_port: STUN_PORT.into(),
    };
    let region = DerpRegion {
        region_id: REGION,
        region_code: "hub".to_owned(),
        region_name: "hub".to_owned(),
        nodes: vec![node],
    };
    Ok(DerpMap { regions: [(REGION, region)].into(), omit_default_regions: true })
}
