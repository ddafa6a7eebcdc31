//! From what is stored and seen to the plan that is about to be live, and who is told of it before it is.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use gateway_core::compile::{Input, compile};
use gateway_core::domains::Domains;
use gateway_core::facts::Facts;
use gateway_core::network::Network;
use gateway_core::{Compiled, plan};
use gateway_model::State;
use jiff::Timestamp;

use crate::reconcile;
use crate::store::Store;

/// What a plan was made from.
pub struct Lowered<'a> {
    pub state: &'a Arc<State>,
    pub facts: &'a Facts,
    pub compiled: &'a Arc<Compiled>,
    pub now: Timestamp,
}

type Herald = Box<dyn Fn(&Lowered<'_>) + Send>;

pub(super) struct Lowering {
    store: Arc<Store>,
    network: Network,
    compiled: Mutex<Arc<Compiled>>,
    domains: Arc<ArcSwap<Domains>>,
    /// What was told last, and who is told.
    told: Mutex<(plan::Dataplane, Option<Herald>)>,
}

impl Lowering {
    pub fn new(store: Arc<Store>, network: Network) -> Lowering {
        let (compiled, domains, told) = Default::default();
        Lowering { store, network, compiled, domains, told }
    }

    /// Tells the resolver first: what is asked and told from the plan's first instant on goes by it.
    pub fn lower(&self, facts: &Facts, now: Timestamp) -> reconcile::Compiled {
        let state = self.store.current();
        let input = Input { state: &state, network: &self.network, facts, now };
        let compiled = Arc::new(compile(&input));
        let plan = compiled.plan.clone();
        *lock(&self.compiled) = compiled.clone();
        let mut told = lock(&self.told);
        let (last, herald) = &mut *told;
        if *last != plan.dataplane {
            if last.domains != plan.dataplane.domains {
                self.domains.store(Arc::new(Domains::new(&plan.dataplane.domains)));
            }
            last.clone_from(&plan.dataplane);
            if let Some(herald) = herald {
                herald(&Lowered { state: &state, facts, compiled: &compiled, now });
            }
        }
        reconcile::Compiled { revision: state.revision.0, plan }
    }

    /// Is called with each plan that is another for packets, before it is live.
    pub fn set_herald(&self, herald: impl Fn(&Lowered<'_>) + Send + 'static) {
        lock(&self.told).1 = Some(Box::new(herald));
    }

    pub fn compiled(&self) -> Arc<Compiled> {
        lock(&self.compiled).clone()
    }

    pub fn domains(&self) -> &Arc<ArcSwap<Domains>> {
        &self.domains
    }
}

/// What is behind these locks is whole between calls.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
