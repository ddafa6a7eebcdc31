//! The daemon: start of a gateway from its configuration, and its clean shutdown.
//!
//! The order matters. Block traffic first, then enforce the plan, then listen. On shutdown the listeners close and the
//! plan stays in the kernel.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use gateway_ctl::clock::SteadyClock;
use gateway_ctl::configuration::Configuration;
use gateway_ctl::engine::{self, Engine, LoadingPrograms};
use gateway_ctl::os::bpf::is_plan_live;
use gateway_ctl::os::rlimit;
use gateway_ctl::os::time_sync::is_synchronised;
use gateway_ctl::panics;
use gateway_ctl::service::Services;
use gateway_ctl::services::active_alerts::ActiveAlerts;
use gateway_ctl::services::alerts::Alerts;
use gateway_ctl::services::dns::{self, DnsService};
use gateway_ctl::store::{self, Store};
use gateway_ctl::supervise::{Supervisor, TaskName};
use gateway_model::settings::bootstrap::Bootstrap;
use gateway_outbound::causes::with_causes;
use sd_notify::NotifyState;
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinError;

use crate::context::{Api, EndpointTable};
use crate::gateway::{EnforcedStore, Gateway, Open};
use crate::initialise::{self, Absence};
use crate::service_manager::notify;
use crate::tls::{self, Tls};
use crate::{config, endpoints, serve, services, wipe};

/// Poll interval for a store while there is none. It appears with a late mount, a restored file, or `gatewayd init`.
const STORE_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Time that open requests get to finish after the signal to stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("another daemon uses the store {}", path.display())]
    AlreadyRunning { path: PathBuf },
    #[error(
        "the store {} is gone while a plan is live; the plan stays in force. Restore the store, or remove {} to start without a plan",
        store.display(), pins.display()
    )]
    StoreGone { store: PathBuf, pins: PathBuf },
    #[error("the store cannot be read, and blocking the traffic failed too")]
    Block(#[source] engine::Error),
    #[error(
        "cannot enforce policies; the kernel state stays in force, and the default-deny rules are installed"
    )]
    Engine(#[source] engine::Error),
    #[error("{reason}")]
    NoStore { absence: Absence, reason: String },
    #[error("the store cannot be used")]
    Unusable(#[source] store::Error),
    #[error("the store cannot be written")]
    Store(#[source] store::Error),
    #[error("{name} died; the kernel state stays active")]
    Died { name: TaskName },
    #[error("cannot listen on {address}")]
    Listen {
        address: String,
        #[source]
        source: io::Error,
    },
    #[error("cannot {action}")]
    System {
        action: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("cannot prepare the TLS certificate")]
    Certificate(#[source] JoinError),
    #[error("the endpoint table is invalid: {0}")]
    Table(String),
}

/// Runs the daemon until a signal stops it.
pub async fn run(file: Bootstrap) -> Result<(), Error> {
    for note in file.without_effect() {
        tracing::warn!("{note}");
    }
    let mut terminate = listen_for(SignalKind::terminate())?;
    let mut interrupt = listen_for(SignalKind::interrupt())?;
    let hangup = listen_for(SignalKind::hangup())?;
    panics::install_hook();
    rlimit::return_large_memory();
    // Each connection through a proxy uses two file descriptors.
    if let Err(error) = rlimit::raise_open_files() {
        tracing::warn!(%error, "failed to raise the limit of open files");
    }
    // Until the store is read, its post-quantum mode is unknown and the default applies. An administrator who repairs
    // the gateway must be able to query its status.
    let tls = Arc::new(Tls::default());
    // It takes as long as the store, and depends on nothing.
    let endpoints = tokio::task::spawn_blocking(|| EndpointTable::new(endpoints::table()));
    let (gateway, config) = open(file, &tls).await?;
    if !config.auth.enabled && !config.listen.api_addr.ip().is_loopback() {
        tracing::warn!(
            address = %config.listen.api_addr,
            "auth.enabled is false: every client of this address is admin"
        );
    }
    let blocked = match &gateway {
        Gateway::Open(_) => None,
        Gateway::Blocked { reason, .. } => Some(reason.clone()),
    };
    let services = match &gateway {
        Gateway::Open(open) => open.services.clone(),
        Gateway::Blocked { .. } => Services::new(Supervisor::new(SteadyClock::shared())),
    };
    let certificates = match config.tls.enabled || !config.dns.tls_listen_addrs.is_empty() {
        true => Some(tls::open(&config, &gateway.facts()).await.map_err(Error::Certificate)?),
        false => None,
    };
    if let (Gateway::Open(Open { names: Some(names), .. }), Some(certificates)) = (&gateway, &certificates) {
        names.secure(tls.serve_names(certificates.clone()));
    }
    let secure = certificates.filter(|_| config.tls.enabled).map(|certificates| tls.serve(certificates));
    let endpoints =
        endpoints.await.map_err(|error| Error::Table(error.to_string()))?.map_err(Error::Table)?;
    let api = Api::over(endpoints, gateway, config::api(&config));
    services.start_all(services::list(&api, tls, hangup));
    let ended = api.clone();
    let handler: Arc<dyn serve::RequestHandler> = api;

    let address = config.listen.api_addr;
    let socket = config::socket_path(&config);
    let unix = bind_socket(&socket)
        .map_err(|source| Error::Listen { address: socket.display().to_string(), source })?;
    let (stop, stopping) = watch::channel(false);
    let scheme = if secure.is_some() { "https" } else { "http" };
    let serving = serve::Limits::default();
    let noted = services.supervisor().clone();
    let note = move |failure| noted.note("api_listener", failure);
    let servers = [
        serve::tcp_at(address, handler.clone(), secure, serving, stopping.clone(), note),
        serve::unix(unix, handler, serving, stopping),
    ];
    let mut servers = servers;
    let status = match &blocked {
        None => format!("enforcing, API on {scheme}://{address}"),
        Some(reason) => format!("BLOCKED, nothing is forwarded: {reason}"),
    };
    tracing::info!(%address, socket = %socket.display(), "{status}");
    notify(&[NotifyState::Ready, NotifyState::Status(&status)]);

    let mut died = None;
    tokio::select! {
        name = services.supervisor().dead() => died = Some(name),
        () = first_ended(&mut servers) => died = Some("api_server".into()),
        () = store_is_ahead(&ended.gateway) => died = Some("store".into()),
        _ = terminate.recv() => tracing::info!("ending on SIGTERM"),
        _ = interrupt.recv() => tracing::info!("ending on SIGINT"),
        () = store_appears(&ended.gateway) => {
            tracing::info!("ending: a store exists now, the next start uses it");
        }
        () = wipe::ending(&ended) => tracing::warn!("ending after a wipe; everything stays blocked"),
    }
    notify(&[NotifyState::Stopping]);
    // Each server holds a receiver until it has ended.
    let _ = stop.send(true);
    for mut server in servers {
        // Streams do not end by themselves.
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, &mut server).await.is_err() {
            tracing::debug!("closed a connection");
            server.abort();
        }
    }
    services.end().await;
    if let Gateway::Open(open) = &ended.gateway {
        open.enforcement.end().await;
    }
    if let Err(error) = fs::remove_file(&socket) {
        tracing::debug!(%error, "API socket was already removed");
    }
    if let Some(name) = died {
        return Err(Error::Died { name });
    }
    tracing::info!("ended; the plan stays active in the kernel");
    Ok(())
}

/// Returns when a listener has ended although none was asked to stop.
async fn first_ended(servers: &mut [serve::Serving]) {
    std::future::poll_fn(|cx| {
        let ended = servers.iter_mut().any(|server| Pin::new(server).poll(cx).is_ready());
        if ended { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Returns when the file of the store contains a change that was reported as failed.
async fn store_is_ahead(gateway: &Gateway) {
    let Gateway::Open(open) = gateway else { return std::future::pending().await };
    while !open.store.is_ahead() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

fn listen_for(kind: SignalKind) -> Result<tokio::signal::unix::Signal, Error> {
    signal(kind).map_err(|source| Error::System { action: "listen for signals", source })
}

/// Opens the store and the engine over it, and returns them with the configuration in force. A store that cannot be
/// used is not fatal: the gateway blocks all traffic and reports the cause.
async fn open(file: Bootstrap, tls: &Arc<Tls>) -> Result<(Gateway, Arc<Bootstrap>), Error> {
    let programs = LoadingPrograms::begin(&file);
    let (reason, cause) = match open_store(&file) {
        Ok(store) => return open_over(file, tls, Arc::new(store), programs).await,
        Err(Error::Unusable(error)) => (with_causes(&error), "store_unusable"),
        Err(Error::NoStore { absence, reason }) => (reason, absence.as_str()),
        Err(error) => return Err(error),
    };
    tracing::error!(%reason, cause, "no usable store: all traffic is blocked");
    engine::block(&file, programs).await.map_err(Error::Block)?;
    let file = Arc::new(file);
    Ok((Gateway::Blocked { reason, cause, file: file.clone() }, file))
}

/// Starts the engine and the services over an open store.
async fn open_over(
    file: Bootstrap,
    tls: &Arc<Tls>,
    store: Arc<Store>,
    programs: LoadingPrograms,
) -> Result<(Gateway, Arc<Bootstrap>), Error> {
    tls.adopt(&store);
    let state = store.current();
    let configuration = Configuration::new(file, state.settings.clone());
    let active_alerts = ActiveAlerts::new(store.clock().clone());
    // Before any service reports: the conditions of the last run are restored.
    let alerts = Alerts::open(store.clone(), active_alerts.clone()).map_err(Error::Store)?;
    let engine = Engine::start(configuration.clone(), store.clone(), active_alerts.clone(), programs);
    let enforcement = engine.await.map_err(Error::Engine)?;
    let checked = store.clone();
    tokio::task::spawn_blocking(move || checked.check_secrets());
    let enforcement = Arc::new(enforcement);
    let config = configuration.with(&state).config;
    let enforced = EnforcedStore {
        worlds: enforcement.worlds().clone(),
        enforcement: enforcement.clone(),
        handles: enforcement.handles().clone(),
        services: Services::new(enforcement.services().supervisor().clone()),
        active_alerts: active_alerts.clone(),
        alerts,
        endpoint_names: enforcement.endpoint_names().clone(),
    };
    let open = Open::over(store.clone(), enforced, tls.clone(), is_synchronised);
    let mut open = open.map_err(Error::Store)?;
    // After the first plan is active, so that the traffic of the resolver follows it from the start.
    let asked = dns::Config { directory: config.state_dir.join("dns"), active_alerts };
    let resolver = DnsService::start(asked, store.clone(), &enforcement, tls.factory.clone()).await;
    open.names =
        resolver.inspect_err(|error| tracing::error!(%error, "failed to start the DNS resolver")).ok();
    Ok((Gateway::Open(open), config))
}

/// Opens the store of an initialised gateway. A store from before the marker existed proves that it was initialised.
pub fn open_store(config: &Bootstrap) -> Result<Store, Error> {
    let path = config::store_path(config);
    if let Some(absence) = initialise::absence(config) {
        // Blocking would remove the plan that protects all devices until the store is back.
        if is_plan_live(&config.bpf.pin_dir) {
            return Err(Error::StoreGone { store: path, pins: config.bpf.pin_dir.clone() });
        }
        return Err(Error::NoStore { absence, reason: absence.reason(config) });
    }
    let store = Store::open_existing(&path, SteadyClock::shared()).map_err(|error| match error {
        store::Error::Locked { path } => Error::AlreadyRunning { path },
        error => Error::Unusable(error),
    })?;
    match initialise::mark(config) {
        Ok(false) => {}
        Ok(true) => tracing::info!("recorded that this gateway is initialised"),
        Err(error) => {
            let error = with_causes(&error);
            tracing::error!(error, "failed to write the marker: a lost store would look like a first start");
        }
    }
    Ok(store)
}

/// Returns when a store has appeared at a path that had none.
async fn store_appears(gateway: &Gateway) {
    let file = match gateway {
        Gateway::Blocked { cause, file, .. } if *cause != "store_unusable" => file,
        _ => return std::future::pending().await,
    };
    loop {
        tokio::time::sleep(STORE_POLL_INTERVAL).await;
        if initialise::absence(file).is_none() {
            return;
        }
    }
}

/// Binds the socket for tools on this host, which need not share the network namespace of the daemon. Only root may use
/// it.
fn bind_socket(path: &Path) -> io::Result<UnixListener> {
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
        Ok(_) if UnixStream::connect(path).is_ok() => return Err(io::ErrorKind::AddrInUse.into()),
        // A killed daemon left the socket behind.
        Ok(_) => fs::remove_file(path)?,
    }
    // No other user may connect between binding and the change of the mode.
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(path);
    rustix::process::umask(before);
    let listener = listener?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}
