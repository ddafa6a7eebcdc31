//! Everything the daemon knows at one instant, published as one value.
//!
//! The API, the resolver and alerts read nothing else: state, facts, plan, the last run and the reports of services are
//! never taken at different instants.

mod live;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use gateway_core::compile::{Input, compile};
use gateway_core::facts::Facts;
use gateway_core::fqdn_match::Domains;
use gateway_core::network::Network;
use gateway_core::{Compiled, plan};
use gateway_model::State;
use gateway_model::settings::Bootstrap;
use jiff::Timestamp;
use tokio::sync::watch;

pub use live::Live;

use crate::configuration::{Configuration, InForce};
use crate::os::bpf::AttachMode;
use crate::os::transport::BridgeStates;
use crate::reconcile::{self, Compile, Status};
use crate::services::proxies::ProxyStates;
use crate::services::tunnels::TunnelStates;
use crate::store::Store;

/// One instant of the gateway. All of it is shared: a copy is cheap.
#[derive(Clone, Debug)]
pub struct World {
    pub state: Arc<State>,
    /// The configuration in force with the settings of `state`.
    pub config: Arc<Bootstrap>,
    /// What the compiler is told of `config`.
    pub network: Arc<Network>,
    pub facts: Arc<Facts>,
    /// Result of the last run of the reconcile loop.
    pub status: Arc<Status>,
    pub reports: Reports,
    /// How programs are attached; none without a kernel.
    pub attached: Option<AttachMode>,
    pub now: Timestamp,
    /// Plan of the last run.
    live: Arc<Compiled>,
    /// Plan of exactly this state and these facts, compiled when somebody asks for it.
    compiled: Arc<OnceLock<Arc<Compiled>>>,
}

/// What services last saw of what they drive.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    pub tunnels: Arc<TunnelStates>,
    pub proxies: Arc<ProxyStates>,
    /// Bridges by the id of the tunnel that each carries.
    pub transports: Arc<BridgeStates>,
}

impl World {
    fn first(state: Arc<State>, in_force: InForce, attached: Option<AttachMode>, now: Timestamp) -> World {
        let InForce { config, network } = in_force;
        World {
            state,
            config,
            network,
            facts: Arc::default(),
            status: Arc::default(),
            reports: Reports::default(),
            attached,
            now,
            live: Arc::default(),
            compiled: Arc::default(),
        }
    }

    /// Returns a world without a kernel in which nothing but a plan is known.
    pub fn of(compiled: Compiled, now: Timestamp) -> World {
        let compiled = Arc::new(OnceLock::from(Arc::new(compiled)));
        World { compiled, ..World::first(Arc::default(), InForce::default(), None, now) }
    }

    pub fn input(&self) -> Input<'_> {
        Input { state: &self.state, network: &self.network, facts: &self.facts, now: self.now }
    }

    /// Returns the plan of exactly this state and these facts.
    pub fn compiled(&self) -> &Arc<Compiled> {
        self.compiled.get_or_init(|| Arc::new(compile(&self.input())))
    }

    /// Returns the plan of the last run; without a kernel, the one that would be.
    pub fn live(&self) -> &Arc<Compiled> {
        if self.attached.is_some() { &self.live } else { self.compiled() }
    }

    /// Whether an answer made from one holds for the other, time aside.
    pub fn is_like(&self, other: &World) -> bool {
        self.state.revision == other.state.revision
            && Arc::ptr_eq(self.compiled(), other.compiled())
            && self.facts == other.facts
    }

    fn is_of(&self, state: &State, facts: &Arc<Facts>) -> bool {
        self.state.revision == state.revision && Arc::ptr_eq(&self.facts, facts)
    }

    /// Whether no end of an exception or a policy has passed since the plan was compiled.
    fn holds_at(&self, now: Timestamp) -> bool {
        let until = self.compiled.get().and_then(|compiled| compiled.plan.valid_until);
        until.is_none_or(|until| now < until)
    }
}

type ActivationHook = Box<dyn Fn(&World) + Send>;

/// Publishes the world, and compiles.
pub struct Worlds {
    store: Arc<Store>,
    configuration: Configuration,
    published: watch::Sender<Arc<World>>,
    /// Of a state that is newer than the last run.
    ahead: Mutex<Option<World>>,
    domains: Arc<ArcSwap<Domains>>,
    /// What the hook was told last, and who it is.
    told: Mutex<(plan::Dataplane, Option<ActivationHook>)>,
}

impl fmt::Debug for Worlds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worlds").field("published", &self.published).finish_non_exhaustive()
    }
}

impl Worlds {
    pub fn new(store: Arc<Store>, configuration: Configuration, attached: Option<AttachMode>) -> Worlds {
        let state = store.current();
        let in_force = configuration.with(&state.settings);
        let world = World::first(state, in_force, attached, store.clock().now());
        let published = watch::channel(Arc::new(world)).0;
        let (ahead, domains, told) = Default::default();
        Worlds { store, configuration, published, ahead, domains, told }
    }

    /// The configuration file and what stored settings make of it.
    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// Returns the configuration that is in force with the newest state.
    pub fn in_force(&self) -> InForce {
        self.configuration.with(&self.store.current().settings)
    }

    /// Returns the world of the newest state. Where the last run was of an older one, its plan is compiled with the facts of
    /// that run, once for all who ask.
    pub fn now(&self) -> World {
        let (published, state, now) = (self.last(), self.store.current(), self.store.clock().now());
        if published.attached.is_some() && published.state.revision == state.revision {
            return World { now, ..World::clone(&published) };
        }
        let mut ahead = lock(&self.ahead);
        let made = ahead.take().filter(|made| made.is_of(&state, &published.facts) && made.holds_at(now));
        let compiled = made.map(|made| made.compiled).unwrap_or_default();
        let InForce { config, network } = self.configuration.with(&state.settings);
        let world = World { state, config, network, now, compiled, ..World::clone(&published) };
        *ahead = Some(world.clone());
        world
    }

    /// Returns the world as it was published last.
    pub fn last(&self) -> Arc<World> {
        self.published.borrow().clone()
    }

    /// Wakes after each publication.
    pub fn watch(&self) -> watch::Receiver<Arc<World>> {
        self.published.subscribe()
    }

    /// Is called with each plan that is another for packets, before it is live.
    pub fn on_before_activate(&self, hook: impl Fn(&World) + Send + 'static) {
        lock(&self.told).1 = Some(Box::new(hook));
    }

    /// The domains of the plan that is live or about to be.
    pub fn domains(&self) -> &Arc<ArcSwap<Domains>> {
        &self.domains
    }

    /// Publishes what services see now.
    pub fn report(&self, reports: Reports) {
        self.publish(|world| world.reports = reports);
    }

    fn publish(&self, change: impl FnOnce(&mut World)) {
        let now = self.store.clock().now();
        self.published.send_modify(|published| {
            let mut world = World { now, ..World::clone(published) };
            change(&mut world);
            *published = Arc::new(world);
        });
    }
}

impl Compile for Worlds {
    /// Tells the resolver first: what is asked and told from the plan's first instant on goes by it.
    fn compile(&self, facts: &Facts, now: Timestamp) -> reconcile::Compiled {
        let state = self.store.current();
        let InForce { config, network } = self.configuration.with(&state.settings);
        let compiled = Arc::new(compile(&Input { state: &state, network: &network, facts, now }));
        let (revision, plan) = (state.revision.0, compiled.plan.clone());
        self.publish(|world| {
            let facts = Arc::new(facts.clone());
            let (live, compiled) = (compiled.clone(), Arc::new(OnceLock::from(compiled)));
            *world = World { state, config, network, facts, now, live, compiled, ..World::clone(world) };
        });
        let mut told = lock(&self.told);
        let (last, hook) = &mut *told;
        if *last != plan.dataplane {
            if last.domains != plan.dataplane.domains {
                self.domains.store(Arc::new(Domains::new(&plan.dataplane.domains)));
            }
            last.clone_from(&plan.dataplane);
            if let Some(hook) = hook {
                hook(&self.last());
            }
        }
        reconcile::Compiled { revision, plan }
    }

    fn finished(&self, status: &Arc<Status>) {
        self.publish(|world| world.status = status.clone());
    }
}

/// What is behind these locks is whole between calls.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
