//! The engine: store, observer, programs, tunnels and the loop, wired together.
//!
//! Stopping it leaves programs, maps, routes and rules in the kernel: they go on holding the last plan.

mod attachments;
mod boot_time;
mod lowering;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use gateway_core::Compiled;
use gateway_core::compile::attachments;
use gateway_core::dns::Name;
use gateway_core::domains::Domains;
use gateway_core::facts::Facts;
use gateway_core::learned::Key;
use gateway_core::network::Network;
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
use crate::panics::{self, Panics};
use crate::reconcile::{
    self, Existing, Handle, Kernel, KernelDataplane, Observe, Processes, Proxies as ProxyBackend, Reason,
    Settings, Status, Stopped, Subsystems, Transports as TransportBackend, Tunnels as TunnelBackend,
    base_block,
};
use crate::services::confirm;
use crate::services::endings;
use crate::services::events::{self, Recent};
use crate::services::moved_flows;
use crate::services::proxies::{Proxies, Seen as ProxiesSeen};
use crate::services::stranded;
use crate::services::tunnels::{Seen as TunnelsSeen, Tunnels};
use crate::services::turns::{self, Turns};
use crate::store::Store;
use crate::supervise::Supervisor;

use boot_time::BootTime;
use lowering::Lowering;
pub use lowering::{Lowered, StateView};

/// Shortest time between two runs that panics cause.
const PANIC_WAKE_INTERVAL: Duration = Duration::from_secs(1);

/// What the engine is told at start.
#[derive(Clone, Debug)]
pub struct Config {
    pub pin_dir: PathBuf,
    /// For sockets of the processes that are run for tunnels.
    pub runtime_dir: PathBuf,
    pub network: Network,
    /// Resolve the endpoints of tunnels and proxies; none: the host's own resolver does, where it may.
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
    /// Packets of flows that have no record.
    pub unrecorded: Counters,
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
    supervisor: Supervisor,
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
        store.renew_reserve();
        if let Err(error) = store.end_overdue() {
            tracing::error!(%error, "failed to record what has ended");
        }
        let opening = store.clone();
        drop(tokio::task::spawn_blocking(move || opening.open_tunnel_secrets()));
        let supervisor = Supervisor::new(store.clock().clone());
        let netlink = Netlink::open()?;
        let programs = Programs::load(&config.pin_dir)?;
        let dataplane = KernelDataplane::new(programs);
        let wireguard = Arc::new(WireGuard::new().await);
        let endpoint_names = gateway_outbound::Resolver::new(&config.bootstrap_servers);
        let openvpn = OpenVpn::new(config.runtime_dir.join("openvpn"));
        let openvpn =
            Arc::new(openvpn.with_endpoint_names(endpoint_names.clone()).with_supervisor(supervisor.clone()));
        let transports = Arc::new(Transports::new(supervisor.clone()));
        let devices = (wireguard.clone(), openvpn.clone(), transports.clone());
        let (watcher, tunnels) = Tunnels::new(store.clone(), devices);
        let watcher = watcher.with_endpoint_names(endpoint_names.clone());
        let relay = Arc::new(Relay::new(supervisor.clone()));
        let (proxy_watcher, proxies) = Proxies::new(store.clone(), relay.clone(), endpoint_names);
        let observer = Observer::supervised(netlink.clone(), &supervisor)?;
        let observation = Observation {
            boot_time: BootTime::new(store.clock().clone()),
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
        let looping = supervisor.watch("reconcile_loop", looping);
        let revisions = {
            let (store, handle) = (store.clone(), handle.clone());
            supervisor.restart("store_changes", move || wake_on_change(store.watch(), handle.clone()))
        };
        let connections = {
            let (transports, handle) = (transports.clone(), handle.clone());
            supervisor
                .restart("bridge_changes", move || wake_on_connections(transports.seen(), handle.clone()))
        };
        let panicked = {
            let handle = handle.clone();
            supervisor.restart("panic_wake", move || wake_on_panic(panics::watch(), handle.clone()))
        };
        let attachments = {
            let (dataplane, handle) = (dataplane.clone(), handle.clone());
            supervisor.restart("attachments", move || attachments::watch(dataplane.clone(), handle.clone()))
        };
        let watching = supervisor.vital("tunnel_watcher", watcher.run(handle.clone()));
        let probing = supervisor.vital("proxy_watcher", proxy_watcher.run(handle.clone()));
        let recent = Recent::default();
        let reading = {
            let (dataplane, recent) = (dataplane.clone(), recent.clone());
            supervisor.restart("dataplane_events", move || events::run(dataplane.clone(), recent.clone()))
        };
        let confirming = {
            let store = store.clone();
            supervisor.restart("commit_confirm", move || confirm::run(store.clone()))
        };
        let ending = {
            let store = store.clone();
            supervisor.restart("exception_ends", move || endings::run(store.clone()))
        };
        let turns = Turns::default();
        let (numbers, counting) = (handle.compiled(), turns.clone());
        let reminding = {
            let (dataplane, handle) = (dataplane.clone(), handle.clone());
            supervisor.restart("orphaned_flows", move || stranded::run(dataplane.clone(), handle.clone()))
        };
        let moving = {
            let (handle, network) = (handle.clone(), config.network.clone());
            supervisor.restart("moved_flows", move || moved_flows::run(handle.clone(), network.clone()))
        };
        let sampling = {
            let dataplane = dataplane.clone();
            supervisor.restart("flow_rates", move || {
                turns::run(dataplane.clone(), numbers.clone(), counting.clone())
            })
        };
        let tasks = vec![
            looping,
            revisions,
            connections,
            panicked,
            attachments,
            watching,
            probing,
            reading,
            confirming,
            ending,
            sampling,
            reminding,
            moving,
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
            supervisor,
        })
    }

    /// The tasks of the engine, and how they are.
    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// Time since the reconcile loop was last seen to go on.
    pub fn loop_idle_time(&self) -> Duration {
        self.handle.idle_time()
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

    /// State, facts and plan of one instant, of the newest state.
    pub fn view(&self) -> Arc<StateView> {
        self.lowering.view()
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
        self.dataplane.with(|programs| programs.flow_reader())?.flows_by_leg(seconds)
    }

    /// How many new flows a minute drew a leg, by the number of the policy.
    pub fn turns_per_minute(&self) -> BTreeMap<u32, f64> {
        self.turns.per_minute()
    }

    pub fn counted(&self) -> Result<Counted, bpf::Error> {
        self.dataplane.with(|programs| {
            let reasons = programs.reason_counters()?;
            let verdicts = reasons.into_iter().map(|(reason, c)| (reason.as_str().to_owned(), c)).collect();
            Ok(Counted { verdicts, unrecorded: programs.unrecorded()?, prevented: programs.prevented()? })
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
    let facts = match Netlink::open().and_then(Observer::new) {
        Ok(observer) => observer.facts(|_| false).await,
        Err(error) => Err(error),
    };
    let facts = facts.unwrap_or_else(|error| {
        tracing::error!(%error, "cannot list the interfaces: only configured ones are guarded");
        Facts::default()
    });
    let uplinks = config.network.uplinks.iter().map(|uplink| uplink.interface.as_str()).collect();
    let attach = attachments(&config.network, &facts, &uplinks);
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

/// Has the loop read at once what a panic took away. A panic of the loop's own work must not make it spin.
async fn wake_on_panic(mut panics: watch::Receiver<Panics>, handle: Handle) {
    while panics.changed().await.is_ok() {
        handle.wake(Reason::Facts);
        tokio::time::sleep(PANIC_WAKE_INTERVAL).await;
    }
}

/// Facts from the kernel and from the watched tunnels.
struct Observation {
    boot_time: BootTime,
    observer: Observer,
    lan: Vec<String>,
    tunnels: watch::Receiver<Arc<TunnelsSeen>>,
    proxies: watch::Receiver<Arc<ProxiesSeen>>,
    transports: Arc<Transports>,
}

impl Observe for Observation {
    async fn facts(&self) -> Result<Facts, netlink::Error> {
        let mut facts = self.observer.facts(|name| self.lan.iter().any(|lan| lan == name)).await?;
        facts.booted_at = self.boot_time.nanoseconds();
        self.tunnels.borrow().enrich(&mut facts);
        self.proxies.borrow().enrich(&mut facts);
        self.transports.enrich(&mut facts);
        Ok(facts)
    }

    fn changes(&self) -> watch::Receiver<Changes> {
        self.observer.changes()
    }
}
