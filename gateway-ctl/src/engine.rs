//! The engine: store, observer, programs, tunnels and the loop, wired together.
//!
//! Stopping it leaves programs, maps, routes and rules in the kernel: they go on holding the last plan.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gateway_core::compile::{Input, compile};
use gateway_core::facts::Facts;
use gateway_core::network::Network;
use gateway_core::{Compiled, plan};
use gateway_model::Id;
use gateway_model::kinds::routing_policy::Hits;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::effects::bpf::{AttachMode, Counters, Event, Programs};
use crate::effects::observe::{Observer, Seen as Changes};
use crate::effects::openvpn::OpenVpn;
use crate::effects::wireguard::{Engine as WireGuardEngine, WireGuard};
use crate::effects::{Netlink, bpf, netlink};
use crate::reconcile::{
    self, Existing, Handle, Kernel, KernelDataplane, Observe, Processes, Reason, Settings, Status, Stopped,
    Subsystems, Tunnels as TunnelBackend, base_block,
};
use crate::services::confirm;
use crate::services::events::{self, Recent};
use crate::services::tunnels::{Seen as TunnelsSeen, Tunnels};
use crate::store::Store;

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
    compiled: Arc<Mutex<Arc<Compiled>>>,
    tunnels: watch::Receiver<Arc<TunnelsSeen>>,
    recent: Recent,
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
        let (watcher, tunnels) = Tunnels::new(store.clone(), wireguard.clone(), openvpn.clone());
        let watcher = watcher.with_name_servers(config.bootstrap_servers.clone());
        let observer = Observer::new(netlink.clone())?;
        let observation = Observation { observer, lan, tunnels: tunnels.clone() };
        let kernel =
            Kernel::new(netlink, TunnelBackend::new(wireguard.clone()), Processes::new(openvpn.clone()));
        let compiled: Arc<Mutex<Arc<Compiled>>> = Arc::default();
        let lower = {
            let (store, network, compiled) = (store.clone(), config.network.clone(), compiled.clone());
            move |facts: &Facts, now: jiff::Timestamp| {
                let state = store.current();
                let result = Arc::new(compile(&Input { state: &state, network: &network, facts, now }));
                let plan = result.plan.clone();
                *compiled.lock().unwrap_or_else(PoisonError::into_inner) = result;
                reconcile::Compiled { revision: state.revision.0, plan }
            }
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
        let watching = tokio::spawn(watcher.run(handle.clone()));
        let recent = Recent::default();
        let reading = tokio::spawn(events::run(dataplane.clone(), recent.clone()));
        let confirming = tokio::spawn(confirm::run(store.clone()));
        let tasks = vec![looping, revisions, watching, reading, confirming];
        handle.run_now(Reason::Start).await?;
        Ok(Engine { config, dataplane, wireguard, openvpn, handle, compiled, tunnels, recent, tasks })
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
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn tunnels(&self) -> Arc<TunnelsSeen> {
        self.tunnels.borrow().clone()
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

    /// Packets and bytes by the number of the policy, for the policies in force.
    pub fn hits(&self) -> BTreeMap<u32, Hits> {
        let compiled = self.compiled();
        self.dataplane.with(|programs| {
            let count = |number: u32| programs.policy_counters(number).unwrap_or_default();
            let hits = |counters: Counters| Hits { packets: counters.packets, bytes: counters.bytes };
            compiled.policies.iter().map(|policy| (policy.number, hits(count(policy.number)))).collect()
        })
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
        let Engine { handle, tunnels, tasks, openvpn, .. } = self;
        openvpn.stop().await;
        drop((handle, tunnels));
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

/// Facts from the kernel and from the watched tunnels.
struct Observation {
    observer: Observer,
    lan: Vec<String>,
    tunnels: watch::Receiver<Arc<TunnelsSeen>>,
}

impl Observe for Observation {
    async fn facts(&self) -> Result<Facts, netlink::Error> {
        let mut facts = self.observer.facts(|name| self.lan.iter().any(|lan| lan == name)).await?;
        self.tunnels.borrow().enrich(&mut facts);
        Ok(facts)
    }

    fn changes(&self) -> watch::Receiver<Changes> {
        self.observer.changes()
    }
}
