//! Listeners of the coordinator: connections over TLS, and STUN. An address that cannot be bound is tried again.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use gateway_mesh::Coordinator;
use gateway_mesh::serve::{Admission, serve_connection, serve_stun};
use gateway_model::settings::bootstrap::MeshCoordinator;
use gateway_outbound::backoff::Backoff;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::os::mesh_sockets;
use crate::tls::Server;

const RETRY: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));
/// Pause after a failure to accept, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Function that returns the TLS server with the certificate of the gateway, or the reason why there is none.
pub type TlsServer = Arc<dyn Fn() -> BoxFuture<'static, Result<Arc<Server>, String>> + Send + Sync>;

/// State of the listeners.
#[derive(Debug, Default)]
pub(super) struct Listening(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Reason why the coordinator does not run at all.
    failure: Option<String>,
    /// Listeners with the reason why they do not serve; `None` for those that do.
    sockets: BTreeMap<String, Option<String>>,
}

impl Listening {
    /// Returns the reasons why clients are not served.
    pub(super) fn failures(&self) -> Vec<String> {
        let state = self.0.lock();
        state.failure.iter().chain(state.sockets.values().flatten()).cloned().collect()
    }

    /// Reports whether clients of the coordinator are accepted at all its addresses.
    pub(super) fn is_serving(&self) -> bool {
        let state = self.0.lock();
        state.failure.is_none() && !state.sockets.is_empty() && state.sockets.values().all(Option::is_none)
    }

    /// Notes that the coordinator does not run.
    pub(super) fn fail(&self, reason: String) {
        let mut state = self.0.lock();
        state.sockets.clear();
        if state.failure.as_ref() != Some(&reason) {
            tracing::error!(error = reason, "the coordinator of the mesh does not run");
            state.failure = Some(reason);
        }
    }

    fn clear(&self) {
        *self.0.lock() = State::default();
    }

    fn note(&self, socket: &str, failure: Option<String>) {
        self.0.lock().sockets.insert(socket.to_owned(), failure);
    }
}

/// Running listeners of a coordinator. They and their connections end with it.
pub(super) struct Serving {
    coordinator: Arc<Coordinator>,
    tasks: JoinSet<()>,
    listening: Arc<Listening>,
}

impl Serving {
    pub(super) fn start(
        coordinator: &Arc<Coordinator>,
        settings: &MeshCoordinator,
        tls: TlsServer,
        listening: &Arc<Listening>,
    ) -> Serving {
        listening.clear();
        let mut tasks = JoinSet::new();
        let admission = Arc::<Admission>::default();
        for address in mesh_sockets::addresses(settings.listen_addr) {
            let (coordinator, admission) = (coordinator.clone(), admission.clone());
            tasks.spawn(serve_tcp(address, coordinator, admission, tls.clone(), listening.clone()));
        }
        if settings.relay.enabled {
            let address = SocketAddr::new(settings.listen_addr.ip(), settings.relay.stun_port);
            for address in mesh_sockets::addresses(address) {
                tasks.spawn(serve_udp(address, listening.clone()));
            }
        }
        Serving { coordinator: coordinator.clone(), tasks, listening: listening.clone() }
    }

    pub(super) fn is_of(&self, coordinator: &Arc<Coordinator>) -> bool {
        Arc::ptr_eq(&self.coordinator, coordinator)
    }

    /// Closes all sockets.
    pub(super) async fn end(mut self) {
        self.tasks.shutdown().await;
        self.listening.clear();
    }
}

async fn serve_tcp(
    address: SocketAddr,
    coordinator: Arc<Coordinator>,
    admission: Arc<Admission>,
    tls: TlsServer,
    listening: Arc<Listening>,
) {
    let name = format!("tcp {address}");
    let mut attempt = 0;
    let (listener, server) = loop {
        let opened = match mesh_sockets::listen(address) {
            Ok(listener) => tls().await.map(|server| (listener, server)),
            Err(error) => Err(format!("cannot listen on {name}: {error}")),
        };
        match opened {
            Ok(opened) => break opened,
            Err(error) => wait(&listening, &name, error, &mut attempt).await,
        }
    };
    listening.note(&name, None);
    tracing::info!(%address, "the coordinator of the mesh accepts connections");
    accept(listener, &server, &coordinator, &admission).await;
}

async fn serve_udp(address: SocketAddr, listening: Arc<Listening>) {
    let name = format!("udp {address}");
    let mut attempt = 0;
    loop {
        let error = match mesh_sockets::datagrams(address) {
            Ok(socket) => {
                listening.note(&name, None);
                match serve_stun(&socket).await {
                    Ok(()) => return,
                    Err(error) => error,
                }
            }
            Err(error) => error,
        };
        wait(&listening, &name, format!("cannot serve STUN on {name}: {error}"), &mut attempt).await;
    }
}

/// Notes a failure, and waits for the next attempt.
async fn wait(listening: &Listening, name: &str, error: String, attempt: &mut u32) {
    tracing::warn!(error, "the coordinator of the mesh does not serve an address; retrying");
    listening.note(name, Some(error));
    *attempt = attempt.saturating_add(1);
    tokio::time::sleep(RETRY.after(*attempt)).await;
}

/// Accepts connections until it is aborted, which ends them.
async fn accept(
    listener: TcpListener,
    server: &Arc<Server>,
    coordinator: &Arc<Coordinator>,
    admission: &Arc<Admission>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((connection, from)) => {
                    let Some(admitted) = admission.admit(from.ip()) else { continue };
                    let (server, coordinator) = (server.clone(), coordinator.clone());
                    connections.spawn(async move {
                        serve_client(connection, from, &server, coordinator).await;
                        drop(admitted);
                    });
                }
                Err(error) => {
                    tracing::debug!(%error, "failed to accept a connection of the mesh");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve_client(
    connection: TcpStream,
    from: SocketAddr,
    server: &Server,
    coordinator: Arc<Coordinator>,
) {
    if let Err(error) = mesh_sockets::prepare(&connection) {
        return tracing::debug!(%error, %from, "connection of the mesh closed before it was accepted");
    }
    let accepted = tokio::time::timeout(HANDSHAKE_TIMEOUT, server.accept(connection)).await;
    match accepted {
        Ok(Ok(stream)) => serve_connection(coordinator, from.ip(), stream).await,
        Ok(Err(error)) => tracing::debug!(%error, %from, "TLS handshake of the mesh failed"),
        Err(_) => tracing::debug!(%from, "TLS handshake of the mesh took too long"),
    }
}
