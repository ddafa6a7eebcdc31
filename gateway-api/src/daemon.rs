//! The daemon: from a configuration to a running gateway, and back to a clean end.
//!
//! The order is the point. Block first, enforce second, listen last; on the way out the listeners go and the plan in
//! the kernel stays.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gateway_ctl::clock::SystemClock;
use gateway_ctl::effects::bpf::is_plan_live;
use gateway_ctl::effects::limits;
use gateway_ctl::effects::time_sync::is_synchronised;
use gateway_ctl::engine::{self, Engine};
use gateway_ctl::services::backup;
use gateway_ctl::services::deadman::Switch;
use gateway_ctl::services::extfilter;
use gateway_ctl::services::names::{self, Names};
use gateway_ctl::services::notices::Notices;
use gateway_ctl::store::{self, AuditTicket, CommitError, Store};
use gateway_model::settings::bootstrap::Bootstrap;
use gateway_model::{EditError, Tunnel};
use sd_notify::NotifyState;
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, watch};
use tokio::task::{JoinError, JoinSet};

use crate::context::Api;
use crate::error::chain;
use crate::gateway::{Gateway, Open};
use crate::tls::{self, Tls};
use crate::{areas, config, dispatch, live, serve, wipe};

/// How long open requests may take after the signal to end.
const GRACE: Duration = Duration::from_secs(3);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("another daemon uses the store {}", path.display())]
    AlreadyRunning { path: PathBuf },
    #[error(
        "the store {} is gone while a plan is live; the plan goes on holding. Put the store back, or remove {} to begin anew",
        store.display(), pins.display()
    )]
    StoreGone { store: PathBuf, pins: PathBuf },
    #[error("the store cannot be read, and blocking the traffic failed too")]
    Block(#[source] engine::Error),
    #[error(
        "the gateway cannot enforce anything; what was in the kernel goes on holding, and the base block stands"
    )]
    Engine(#[source] engine::Error),
    #[error("the configured tunnels cannot be stored")]
    FirstTunnels(#[source] EditError),
    #[error("the store cannot be used")]
    Unusable(#[source] store::Error),
    #[error("the store cannot be written")]
    Store(#[source] store::Error),
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
    #[error("the TLS certificate could not be prepared")]
    Certificate(#[source] JoinError),
    #[error("the table of the API is broken: {0}")]
    Table(String),
}

/// Runs until a signal ends it.
pub async fn run(file: Bootstrap) -> Result<(), Error> {
    for note in file.without_effect() {
        tracing::warn!("{note}");
    }
    let mut terminate = listen_for(SignalKind::terminate())?;
    let mut interrupt = listen_for(SignalKind::interrupt())?;
    let hangup = listen_for(SignalKind::hangup())?;
    limits::return_large_memory();
    // Each connection through a proxy takes two.
    if let Err(error) = limits::raise_open_files() {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
    // While the store cannot be read, its post-quantum mode is not known and the default stands: whoever has to repair
    // the gateway must be able to ask it what is wrong.
    let tls = Arc::new(Tls::default());
    let (gateway, config) = open(&file, &tls).await?;
    if !config.auth.enabled && !config.listen.api_addr.ip().is_loopback() {
        tracing::warn!(
            address = %config.listen.api_addr,
            "auth.enabled is false: whoever reaches this address is admin"
        );
    }
    let blocked = match &gateway {
        Gateway::Open(_) => None,
        Gateway::Blocked { reason } => Some(reason.clone()),
    };
    let mut following = JoinSet::new();
    if let Gateway::Open(open) = &gateway {
        following.spawn(tls::follow_store(tls.clone(), open.store.clone()));
        following.spawn(open.backup.clone().follow());
        following.spawn(open.extfilter.clone().follow());
        following.spawn(live::follow(Arc::new(file.clone()), open.store.clone(), open.enforcement.clone()));
    }
    let certificates = match config.tls.enabled || !config.dns.tls_listen_addrs.is_empty() {
        true => Some(tls::open(&config, &gateway).await.map_err(Error::Certificate)?),
        false => None,
    };
    if let (Gateway::Open(Open { names: Some(names), .. }), Some(certificates)) = (&gateway, &certificates) {
        names.secure(tls.serve_names(certificates.clone()));
    }
    let secure = certificates.filter(|_| config.tls.enabled).map(|certificates| tls.serve(certificates));
    let api = Api::new(areas::table(), gateway, config::api(&file, &config)).map_err(Error::Table)?;
    following.spawn(tls::follow_files(config.clone(), api.clone(), tls, hangup));
    following.spawn(wipe::follow_switch(api.clone()));
    let ended = api.clone();
    let router = dispatch::router(api);

    let address = config.listen.api_addr;
    let tcp = TcpListener::bind(address)
        .await
        .map_err(|source| Error::Listen { address: address.to_string(), source })?;
    let socket = config::socket_path(&config);
    let unix = bind_socket(&socket)
        .map_err(|source| Error::Listen { address: socket.display().to_string(), source })?;
    let (stop, stopping) = watch::channel(false);
    let scheme = if secure.is_some() { "https" } else { "http" };
    let serving = serve::Limits::default();
    let servers = [
        serve::tcp(tcp, router.clone(), secure, serving, stopping.clone()),
        serve::unix(unix, router, serving, stopping),
    ];
    let status = match &blocked {
        None => format!("enforcing, API on {scheme}://{address}"),
        Some(reason) => format!("BLOCKED, nothing is forwarded: {reason}"),
    };
    tracing::info!(%address, socket = %socket.display(), "{status}");
    notify(&[NotifyState::Ready, NotifyState::Status(&status)]);

    tokio::select! {
        _ = terminate.recv() => tracing::info!("ending on SIGTERM"),
        _ = interrupt.recv() => tracing::info!("ending on SIGINT"),
        () = wipe::ending(&ended) => tracing::warn!("ending after a wipe; everything stays blocked"),
    }
    notify(&[NotifyState::Stopping]);
    // The servers hold a receiver each until they have ended.
    let _ = stop.send(true);
    for mut server in servers {
        // Streams have no end of their own.
        if tokio::time::timeout(GRACE, &mut server).await.is_err() {
            tracing::debug!("a connection was cut");
            server.abort();
        }
    }
    following.shutdown().await;
    if let Gateway::Open(open) = &ended.gateway {
        open.enforcement.end_processes().await;
        open.extfilter.release().await;
    }
    if let Err(error) = fs::remove_file(&socket) {
        tracing::debug!(%error, "the socket was gone already");
    }
    tracing::info!("ended; the plan in the kernel goes on holding");
    Ok(())
}

fn listen_for(kind: SignalKind) -> Result<tokio::signal::unix::Signal, Error> {
    signal(kind).map_err(|source| Error::System { action: "listen for signals", source })
}

/// The store and the engine over it. A store that cannot be used blocks all traffic and is reported, not fatal.
/// With it the configuration that counts: the file and, over it, what was set at runtime.
async fn open(file: &Bootstrap, tls: &Arc<Tls>) -> Result<(Gateway, Bootstrap), Error> {
    let settings = config::engine(file);
    let store = match open_store(file) {
        Ok(store) => Arc::new(store),
        Err(Error::Unusable(error)) => {
            let reason = chain(&error);
            tracing::error!(%reason, "the store cannot be used: all traffic is blocked");
            engine::block(&settings).await.map_err(Error::Block)?;
            return Ok((Gateway::Blocked { reason }, file.clone()));
        }
        Err(error) => return Err(error),
    };
    tls.adopt(&store);
    let (config, left_out) = file.overlaid_or_less(&store.current().settings);
    for (key, why) in left_out {
        tracing::warn!(key, why, "a stored setting does not fit to the configuration file: left out");
    }
    let enforcement = Engine::start(config::engine(&config), store.clone()).await.map_err(Error::Engine)?;
    let checked = store.clone();
    tokio::task::spawn_blocking(move || checked.check_secrets());
    let deadman = Switch::new(store.clone(), is_synchronised).map_err(Error::Store)?;
    let enforcement = Arc::new(enforcement);
    // After the first plan: what it tells is steered from the beginning.
    let (given, notices) = (Arc::new(file.clone()), Notices::new(store.clock().clone()));
    let asked = names::Config {
        dns: config.dns.clone(),
        file: given.clone(),
        directory: config.state_dir.join("dns"),
        notices: notices.clone(),
    };
    let resolver = Names::start(asked, store.clone(), enforcement.clone(), tls.factory.clone()).await;
    let names = resolver.inspect_err(|error| tracing::error!(%error, "the resolver cannot be started")).ok();
    let ending = Arc::new(Notify::new());
    let backup = backup::Service::new(store.clone(), tls.factory.clone());
    let extfilter = extfilter::Service::new(store.clone(), given, &tls.factory);
    let tls = tls.clone();
    let bridge_tests = Arc::<gateway_ctl::services::bridges::Tests>::default();
    let open =
        Open { store, enforcement, names, tls, deadman, backup, bridge_tests, extfilter, notices, ending };
    Ok((Gateway::Open(open), config))
}

/// Opens the store, or makes it with the tunnels of the configuration.
pub fn open_store(config: &Bootstrap) -> Result<Store, Error> {
    let path = config::store_path(config);
    let fresh = !path.exists();
    // A first start has no plan before it. Taking this for one would let everything out.
    if fresh && is_plan_live(&config.bpf.pin_dir) {
        return Err(Error::StoreGone { store: path, pins: config.bpf.pin_dir.clone() });
    }
    let store = Store::open(&path, SystemClock::shared()).map_err(|error| match error {
        store::Error::Locked { path } => Error::AlreadyRunning { path },
        error => Error::Unusable(error),
    })?;
    if fresh {
        store_first_tunnels(&store, config)?;
    }
    Ok(store)
}

/// The tunnels of the configuration, at the first start only: from then on the store is right.
fn store_first_tunnels(store: &Store, config: &Bootstrap) -> Result<(), Error> {
    for tunnel in &config.tunnels {
        let ticket = AuditTicket::system("create_tunnel", "tunnel");
        match store.commit(ticket, |draft| draft.create::<Tunnel>(tunnel.clone())) {
            Ok(_) => {}
            Err(CommitError::Refused { error, ticket: _ }) => return Err(Error::FirstTunnels(error)),
            Err(CommitError::Store(error)) => return Err(Error::Store(error)),
        }
    }
    Ok(())
}

/// The socket for tools of this host, which need not share the daemon's network namespace. Only root may use it.
fn bind_socket(path: &Path) -> io::Result<UnixListener> {
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
        Ok(_) if UnixStream::connect(path).is_ok() => return Err(io::ErrorKind::AddrInUse.into()),
        // Left behind by a daemon that was killed.
        Ok(_) => fs::remove_file(path)?,
    }
    // Nobody else may connect between binding and the change of the mode.
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let listener = UnixListener::bind(path);
    rustix::process::umask(before);
    let listener = listener?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "the service manager could not be told");
    }
}
