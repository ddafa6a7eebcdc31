//! The engine: store, observer, programs, tunnels and the loop, wired together.
//!
//! Stopping it leaves programs, maps, routes and rules in the kernel: they go on holding the last plan.

mod lowering;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use gateway_core::dns::Name;
use gateway_core::domains::Domains;
use gateway_core::facts::Facts;
use gateway_core::learned::Key;
use gateway_core::network::Network;
use gateway_core::{Compiled, plan};
use gateway_model::Id;
use gateway_model::kinds::routing_policy::Hits;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::effects::bpf::{AttachMode, Counters, Event, Programs};
use crate::effects::observe::{Observer, Seen as Changes};
use crate::effects::openvpn::OpenVpn;
use crate::effects::proxy::{Relay, RelayStatus};
use crate::effects::transport::{Seen as TransportsSeen, Transports};
use crate::effects::wireguard::{Engine as WireGuardEngine, WireGuard};
use crate::effects::{Netlink, bpf, netlink};
use crate::reconcile::{
    self, Existing, Handle, Kernel, KernelDataplane, Observe, Processes, Proxies as ProxyBackend, Reason,
    Settings, Status, Stopped, Subsystems, Transports as TransportBackend, Tunnels as TunnelBackend,
    base_block,
};
use crate::services::confirm;
use crate::services::events::{self, Recent};
use crate::services::proxies::{Proxies, Seen as ProxiesSeen};
use crate::services::stranded;
use crate::services::tunnels::{Seen as TunnelsSeen, Tunnels};
use crate::services::turns::{self, Turns};
use crate::store::Store;

pub use lowering::Lowered;
use lowering::Lowering;

/// What the engine is told at start.
#[derive(Clone, Debug)]
pub struct Config {
    pub pin_dir: PathBuf,
    /// For sockets of the processes that are run for tunnels.
    pub runtime_dir: PathBuf,
    pub network: Network,
    /// Resolve the endpoints of tunnels; none: the host's own resolver does.
    pub bootstrap_servers: Vec<std::net::IpAddr>,
    /// None: no periodic look at the kernel.
    pub interval: Option<Duration>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot open the connection to the kernel's network configuration")]
    Netlink(#[from] netlink::Error),
    #[error("cannot prepare the dataplane")]
    Dataplane(#[from] bpf::Error),
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// What the programs have counted since they were first loaded.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// By reason.
    pub verdicts: BTreeMap<String, Counters>,
    /// Leaks that the guard prevented, by interface index.
    pub prevented: BTreeMap<u32, Counters>,
}

/// The running engine.
pub struct Engine {
    config: Config,
    dataplane: KernelDataplane,
    wireguard: Arc<WireGuard>,
    openvpn: Arc<OpenVpn>,
    handle: Handle,
    lowering: Arc<Lowering>,
    tunnels: watch::Receiver<Arc<TunnelsSeen>>,
    relay: Arc<Relay>,
    proxies: watch::Receiver<Arc<ProxiesSeen>>,
    transports: Arc<Transports>,
    recent: Recent,
    turns: Turns,
    tasks: Vec<JoinHandle<()>>,
}

impl Engine {
    /// Starts, and returns when the first plan is in the kernel, or when it is known why it is not.
    pub async fn start(config: Config, store: Arc<Store>) -> Result<Engine, Error> {
        let lan = config.network.lan.clone();
        let blocked = base_block(&lan, Existing::Keep).await;
        if !blocked.is_ok() {
            tracing::error!(failed = ?blocked.failed, "the base block does not stand");
        }
        // Before the first plan: what was not confirmed in time must not come into force once more.
        if let Err(error) = store.revert_overdue() {
            tracing::error!(%error, "a change that was not confirmed cannot be taken back");
        }
        let opening = store.clone();
        drop(tokio::task::spawn_blocking(move || opening.open_tunnel_secrets()));
        let netlink = Netlink::open()?;
        let programs = Programs::load(&config.pin_dir)?;
        let dataplane = KernelDataplane::new(programs);
        let wireguard = Arc::new(WireGuard::new().await);
        let openvpn = Arc::new(OpenVpn::new(config.runtime_dir.join("openvpn")));
        let transports = Arc::new(Transports::default());
        let devices = (wireguard.clone(), openvpn.clone(), transports.clone());
        let (watcher, tunnels) = Tunnels::new(store.clone(), devices);
        let watcher = watcher.with_name_servers(config.bootstrap_servers.clone());
        let relay = Arc::new(Relay::default());
        let (proxy_watcher, proxies) = Proxies::new(store.clone(), relay.clone());
        let observer = Observer::new(netlink.clone())?;
        let observation = Observation {
            observer,
            lan,
            tunnels: tunnels.clone(),
            proxies: proxies.clone(),
            transports: transports.clone(),
        };
        let backends = (
            TunnelBackend::new(wireguard.clone()),
            Processes::new(openvpn.clone()),
            ProxyBackend::new(relay.clone()),
            TransportBackend::new(transports.clone()),
        );
        let kernel = Kernel::new(netlink, backends);
        let lowering = Arc::new(Lowering::new(store.clone(), config.network.clone()));
        let lower = {
            let lowering = lowering.clone();
            move |facts: &Facts, now: jiff::Timestamp| lowering.lower(facts, now)
        };
        let clock = store.clock().clone();
        let (handle, looping) = reconcile::start(
            Subsystems::new(kernel, dataplane.clone()),
            observation,
            lower,
            move || clock.now(),
            Settings { interval: config.interval },
        );
        let revisions = tokio::spawn(wake_on_change(store.watch(), handle.clone()));
        let connections = tokio::spawn(wake_on_connections(transports.seen(), handle.clone()));
        let watching = tokio::spawn(watcher.run(handle.clone()));
        let probing = tokio::spawn(proxy_watcher.run(handle.clone()));
        let recent = Recent::default();
        let reading = tokio::spawn(events::run(dataplane.clone(), recent.clone()));
        let confirming = tokio::spawn(confirm::run(store.clone()));
        let turns = Turns::default();
        let (numbers, counting) = (handle.compiled(), turns.clone());
        let reminding = tokio::spawn(stranded::run(dataplane.clone(), handle.clone()));
        let sampling = tokio::spawn(turns::run(dataplane.clone(), numbers, counting));
        let tasks = vec![
            looping,
            revisions,
            connections,
            watching,
            probing,
            reading,
            confirming,
            sampling,
            reminding,
        ];
        handle.run_now(Reason::Start).await?;
        Ok(Engine {
            config,
            dataplane,
            wireguard,
            openvpn,
            handle,
            lowering,
            tunnels,
            relay,
            proxies,
            transports,
            recent,
            turns,
            tasks,
        })
    }

    /// Runs the loop now and tells what came of it.
    pub async fn reconcile(&self, reason: Reason) -> Result<Arc<Status>, Stopped> {
        self.handle.run_now(reason).await
    }

    /// How often to look at the kernel without a reason.
    pub fn set_interval(&self, interval: Option<Duration>) {
        self.handle.set_interval(interval);
    }

    pub fn status(&self) -> watch::Receiver<Arc<Status>> {
        self.handle.status()
    }

    pub fn facts(&self) -> Arc<Facts> {
        self.handle.facts().borrow().clone()
    }

    pub fn network(&self) -> &Network {
        &self.config.network
    }

    /// What the last run compiled.
    pub fn compiled(&self) -> Arc<Compiled> {
        self.lowering.compiled()
    }

    /// The domains of the plan that is live or about to be.
    pub fn domains(&self) -> Arc<ArcSwap<Domains>> {
        self.lowering.domains().clone()
    }

    /// Is called with each plan that is another for packets, before it is live.
    pub fn before_live(&self, herald: impl Fn(&Lowered<'_>) + Send + 'static) {
        self.lowering.set_herald(herald);
    }

    /// Names by which a client was told an address.
    pub fn known_as(&self, key: &Key) -> Vec<Name> {
        self.dataplane.with(|programs| programs.known_as(key))
    }

    pub fn dataplane(&self) -> KernelDataplane {
        self.dataplane.clone()
    }

    pub fn tunnels(&self) -> Arc<TunnelsSeen> {
        self.tunnels.borrow().clone()
    }

    pub fn proxies(&self) -> Arc<ProxiesSeen> {
        self.proxies.borrow().clone()
    }

    /// What goes through the proxies now.
    pub fn relayed(&self) -> RelayStatus {
        self.relay.status()
    }

    /// Transport bridges as they are, by the id of the tunnel that each carries.
    pub fn transports(&self) -> Arc<TransportsSeen> {
        self.transports.seen().borrow().clone()
    }

    /// How the programs are attached.
    pub fn attach_mode(&self) -> AttachMode {
        AttachMode::of_this_kernel()
    }

    pub fn wireguard_engine(&self) -> WireGuardEngine {
        self.wireguard.engine()
    }

    /// Generation of the plan that is live in the kernel; 0 at rest.
    pub fn generation(&self) -> Result<u32, bpf::Error> {
        self.dataplane.with(|programs| programs.generation())
    }

    /// What was counted for a policy, by its number.
    pub fn hits(&self, number: u32) -> Hits {
        let counters = self.dataplane.with(|programs| programs.policy_counters(number));
        let Counters { packets, bytes } = counters.unwrap_or_default();
        Hits { packets, bytes }
    }

    /// Flows with a packet in the last so many seconds, by the number of their policy and their leg.
    pub fn flows_by_leg(&self, seconds: u32) -> Result<BTreeMap<(u32, u8), u64>, bpf::Error> {
        self.dataplane.with(|programs| programs.flows_by_leg(seconds))
    }

    /// How many new flows a minute drew a leg, by the number of the policy.
    pub fn turns_per_minute(&self) -> BTreeMap<u32, f64> {
        self.turns.per_minute()
    }

    pub fn counted(&self) -> Result<Counted, bpf::Error> {
        self.dataplane.with(|programs| {
            let reasons = programs.reason_counters()?;
            let verdicts = reasons.into_iter().map(|(reason, c)| (reason.as_str().to_owned(), c)).collect();
            Ok(Counted { verdicts, prevented: programs.prevented()? })
        })
    }

    /// Sampled verdicts and prevented leaks, newest last.
    pub fn events(&self) -> Vec<Event> {
        self.recent.list()
    }

    /// Blocks everything and stays so: the loop ends, the programs rest, and the base block stands.
    pub async fn block(&self) -> Result<(), Error> {
        for task in &self.tasks {
            task.abort();
        }
        self.openvpn.stop().await;
        block(&self.config).await
    }

    /// Ends the processes that were started for tunnels, for good.
    pub async fn end_processes(&self) {
        self.openvpn.stop().await;
    }

    /// A tunnel that waits before it tries again tries now.
    pub fn hurry(&self, tunnel: Id) {
        self.openvpn.hurry(&tunnel.to_string());
    }

    /// Ends the loop, the watchers and the processes of tunnels; what is in the kernel stays.
    pub async fn stop(self) {
        let Engine { handle, tunnels, proxies, tasks, openvpn, .. } = self;
        openvpn.stop().await;
        drop((handle, tunnels, proxies));
        for task in tasks {
            task.abort();
            // Aborted or done: both are the end.
            let _ = task.await;
        }
    }
}

/// The resting state, for early boot: everything from the LAN is blocked until a daemon has a plan.
/// A plan that is live already goes on.
pub async fn guard(config: &Config) -> Result<(), Error> {
    let blocked = base_block(&config.network.lan, Existing::Keep).await;
    let mut attach: BTreeMap<String, plan::Attachment> = BTreeMap::new();
    attach.extend(config.network.uplinks.iter().map(|up| (up.interface.clone(), plan::Attachment::Guard)));
    attach.extend(config.network.lan.iter().map(|name| (name.clone(), plan::Attachment::Ingress)));
    let attached = Programs::load(&config.pin_dir)?.attach(&attach);
    for (interface, error) in &attached.failed {
        tracing::error!(%interface, %error, "cannot attach");
    }
    for failure in &blocked.failed {
        tracing::error!(resource = %failure.resource, error = %failure.error, "the base block does not stand");
    }
    Ok(())
}

/// Blocks everything now, whatever plan is live: for a store that cannot be read.
pub async fn block(config: &Config) -> Result<(), Error> {
    let blocked = base_block(&config.network.lan, Existing::Replace).await;
    for failure in &blocked.failed {
        tracing::error!(resource = %failure.resource, error = %failure.error, "the base block does not stand");
    }
    guard(config).await?;
    Ok(Programs::load(&config.pin_dir)?.rest()?)
}

async fn wake_on_change(mut revisions: watch::Receiver<u64>, handle: Handle) {
    while revisions.changed().await.is_ok() {
        handle.wake(Reason::Revision);
    }
}

async fn wake_on_connections(mut seen: watch::Receiver<Arc<TransportsSeen>>, handle: Handle) {
    while seen.changed().await.is_ok() {
        handle.wake(Reason::Facts);
    }
}

/// Facts from the kernel and from the watched tunnels.
struct Observation {
    observer: Observer,
    lan: Vec<String>,
    tunnels: watch::Receiver<Arc<TunnelsSeen>>,
    proxies: watch::Receiver<Arc<ProxiesSeen>>,
    transports: Arc<Transports>,
}

impl Observe for Observation {
    async fn facts(&self) -> Result<Facts, netlink::Error> {
        let mut facts = self.observer.facts(|name| self.lan.iter().any(|lan| lan == name)).await?;
        self.tunnels.borrow().enrich(&mut facts);
        self.proxies.borrow().enrich(&mut facts);
        self.transports.enrich(&mut facts);
        Ok(facts)
    }

    fn changes(&self) -> watch::Receiver<Changes> {
        self.observer.changes()
    }
}
