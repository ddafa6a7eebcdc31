//! Consistent snapshot of the daemon's knowledge, published as one value.
//!
//! The API, the resolver and alerts read nothing else. State, facts, plan, the last run and the reports of services
//! therefore always belong to the same instant.
//!
//! Decision 0075 says why.

pub mod live;
pub mod reports;

use std::fmt;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use gateway_core::compile::{Input, compile};
use gateway_core::facts::Facts;
use gateway_core::fqdn_match::Domains;
use gateway_core::network::Network;
use gateway_core::plan_history::PlanInputs;
use gateway_core::shared::Shared;
use gateway_core::{Compiled, plan};
use gateway_model::State;
use gateway_model::settings::Bootstrap;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;

pub use live::Live;
pub use reports::Reports;

use crate::configuration::{Configuration, EffectiveConfiguration};
use crate::os::bpf::AttachMode;
use crate::reconcile::{self, Compile, Status};
use crate::store::Store;

/// Snapshot of the gateway. All parts are shared, so a copy is cheap.
#[derive(Clone, Debug)]
pub struct World {
    pub state: Arc<State>,
    /// Configuration in force with the settings of `state`.
    pub config: Arc<Bootstrap>,
    /// Part of `config` that the compiler uses.
    pub network: Arc<Network>,
    pub facts: Arc<Facts>,
    /// Result of the last run of the reconcile loop.
    pub status: Arc<Status>,
    pub reports: Reports,
    /// Attachment mode of the programs; `None` without a kernel.
    pub attached: Option<AttachMode>,
    pub now: Timestamp,
    /// Plan of the last run.
    live: Arc<Compiled>,
    /// Time at which it was compiled.
    compiled_at: Timestamp,
    /// Plan of exactly this state and these facts, compiled on first use.
    compiled: Arc<OnceLock<Arc<Compiled>>>,
}

impl World {
    fn first(
        state: Arc<State>,
        in_force: EffectiveConfiguration,
        attached: Option<AttachMode>,
        now: Timestamp,
    ) -> World {
        let EffectiveConfiguration { config, network } = in_force;
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
            compiled_at: now,
            compiled: Arc::default(),
        }
    }

    /// Returns a world without a kernel, of which only the plan is known.
    pub fn of(compiled: Compiled, now: Timestamp) -> World {
        let compiled = Arc::new(OnceLock::from(Arc::new(compiled)));
        World { compiled, ..World::first(Arc::default(), EffectiveConfiguration::default(), None, now) }
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

    /// Returns the inputs of the plan of the last run. To be called on a published world.
    pub fn plan_inputs(&self) -> PlanInputs {
        let World { state, network, facts, compiled_at, .. } = self;
        let (state, network, facts) = (state.clone(), network.clone(), facts.clone());
        PlanInputs { state, network, facts, compiled_at: *compiled_at }
    }

    /// Reports whether an answer for one world is valid for the other, apart from the time.
    pub fn is_like(&self, other: &World) -> bool {
        self.state.revision == other.state.revision
            && Arc::ptr_eq(self.compiled(), other.compiled())
            && self.facts == other.facts
    }

    fn is_of(&self, state: &State, facts: &Arc<Facts>) -> bool {
        self.state.revision == state.revision && Arc::ptr_eq(&self.facts, facts)
    }

    /// Reports whether no exception or policy has ended since the plan was compiled.
    fn holds_at(&self, now: Timestamp) -> bool {
        let until = self.compiled.get().and_then(|compiled| compiled.plan.valid_until);
        until.is_none_or(|until| now < until)
    }
}

type ActivationHook = Box<dyn Fn(&World) + Send>;

/// Publisher of the world, and compiler of its plans.
pub struct Worlds {
    store: Arc<Store>,
    configuration: Configuration,
    published: watch::Sender<Arc<World>>,
    /// World of a state that is newer than the last run.
    ahead: Mutex<Option<World>>,
    domains: Arc<ArcSwap<Domains>>,
    /// Last plan passed to the hook, and the hook.
    reported: Mutex<(Shared<plan::Dataplane>, Option<ActivationHook>)>,
}

impl fmt::Debug for Worlds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worlds").field("published", &self.published).finish_non_exhaustive()
    }
}

impl Worlds {
    pub fn new(store: Arc<Store>, configuration: Configuration, attached: Option<AttachMode>) -> Worlds {
        let state = store.current();
        let in_force = configuration.with(&state);
        let world = World::first(state, in_force, attached, store.clock().now());
        let published = watch::channel(Arc::new(world)).0;
        let (ahead, domains, reported) = Default::default();
        Worlds { store, configuration, published, ahead, domains, reported }
    }

    /// Returns the configuration file together with the stored settings.
    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// Returns the configuration that is in force with the newest state.
    pub fn in_force(&self) -> EffectiveConfiguration {
        self.configuration.with(&self.store.current())
    }

    /// Returns the world of the newest state. If the last run used an older state, the function compiles the plan
    /// with the facts of that run, once for all callers.
    pub fn now(&self) -> World {
        let (published, state, now) = (self.last(), self.store.current(), self.store.clock().now());
        if published.attached.is_some() && published.state.revision == state.revision {
            return World { now, ..World::clone(&published) };
        }
        let mut ahead = self.ahead.lock();
        let made = ahead.take().filter(|made| made.is_of(&state, &published.facts) && made.holds_at(now));
        let compiled = made.map(|made| made.compiled).unwrap_or_default();
        let EffectiveConfiguration { config, network } = self.configuration.with(&state);
        let world = World { state, config, network, now, compiled, ..World::clone(&published) };
        *ahead = Some(world.clone());
        world
    }

    /// Returns the revision of the newest state.
    pub fn revision(&self) -> u64 {
        self.store.current().revision.0
    }

    /// Returns the time by the clock of the store.
    pub fn time(&self) -> Timestamp {
        self.store.clock().now()
    }

    /// Returns the last published world.
    pub fn last(&self) -> Arc<World> {
        self.published.borrow().clone()
    }

    /// Returns a receiver that wakes after each publication.
    pub fn watch(&self) -> watch::Receiver<Arc<World>> {
        self.published.subscribe()
    }

    /// Registers the hook that is called before a plan with a changed dataplane goes live.
    pub fn on_before_activate(&self, hook: impl Fn(&World) + Send + 'static) {
        self.reported.lock().1 = Some(Box::new(hook));
    }

    /// Returns the domains of the plan that is live or about to go live.
    pub fn domains(&self) -> &Arc<ArcSwap<Domains>> {
        &self.domains
    }

    /// Publishes a new report of a service.
    pub fn report(&self, change: impl FnOnce(&mut Reports)) {
        self.publish(|world| change(&mut world.reports));
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
    /// Compiles a plan. Calls the hook before the plan goes live, so that the resolver uses it from the plan's first
    /// instant on.
    fn compile(&self, facts: &Facts, now: Timestamp) -> reconcile::Compiled {
        let state = self.store.current();
        let EffectiveConfiguration { config, network } = self.configuration.with(&state);
        let compiled = Arc::new(compile(&Input { state: &state, network: &network, facts, now }));
        let (revision, plan) = (state.revision.0, compiled.plan.clone());
        self.publish(|world| {
            let facts = Arc::new(facts.clone());
            let (live, compiled) = (compiled.clone(), Arc::new(OnceLock::from(compiled)));
            *world = World {
                state,
                config,
                network,
                facts,
                now,
                live,
                compiled_at: now,
                compiled,
                ..World::clone(world)
            };
        });
        let mut reported = self.reported.lock();
        let (last, hook) = &mut *reported;
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

#[cfg(test)]
mod tests;
