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

/// State, facts and plan of one instant: the plan is what the compiler makes of exactly this state and these facts.
#[derive(Clone, Debug, Default)]
pub struct StateView {
    pub state: Arc<State>,
    pub facts: Arc<Facts>,
    pub compiled: Arc<Compiled>,
}

type Herald = Box<dyn Fn(&Lowered<'_>) + Send>;

pub(super) struct Lowering {
    store: Arc<Store>,
    network: Network,
    /// Of the last run. State, facts and plan are published together.
    last: ArcSwap<StateView>,
    /// Of a state that is newer than the last run.
    ahead: Mutex<Arc<StateView>>,
    domains: Arc<ArcSwap<Domains>>,
    /// What was told last, and who is told.
    told: Mutex<(plan::Dataplane, Option<Herald>)>,
}

impl Lowering {
    pub fn new(store: Arc<Store>, network: Network) -> Lowering {
        let (last, ahead, domains, told) = Default::default();
        Lowering { store, network, last, ahead, domains, told }
    }

    /// Tells the resolver first: what is asked and told from the plan's first instant on goes by it.
    pub fn lower(&self, facts: &Facts, now: Timestamp) -> reconcile::Compiled {
        let state = self.store.current();
        let input = Input { state: &state, network: &self.network, facts, now };
        let compiled = Arc::new(compile(&input));
        let plan = compiled.plan.clone();
        let view =
            StateView { state: state.clone(), facts: Arc::new(facts.clone()), compiled: compiled.clone() };
        self.last.store(Arc::new(view));
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

    /// What the last run compiled.
    pub fn compiled(&self) -> Arc<Compiled> {
        self.last.load().compiled.clone()
    }

    /// Returns a view of the newest state. Where the last run was of an older one, the state is compiled here with the facts
    /// of that run, once for all who ask.
    pub fn view(&self) -> Arc<StateView> {
        let (state, last) = (self.store.current(), self.last.load_full());
        let is_of =
            |view: &StateView| view.state.revision == state.revision && Arc::ptr_eq(&view.facts, &last.facts);
        if is_of(&last) {
            return last;
        }
        let mut ahead = lock(&self.ahead);
        if !is_of(&ahead) {
            let now = self.store.clock().now();
            let input = Input { state: &state, network: &self.network, facts: &last.facts, now };
            let compiled = Arc::new(compile(&input));
            *ahead = Arc::new(StateView { state: state.clone(), facts: last.facts.clone(), compiled });
        }
        ahead.clone()
    }

    pub fn domains(&self) -> &Arc<ArcSwap<Domains>> {
        &self.domains
    }
}

/// What is behind these locks is whole between calls.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use gateway_core::facts::Link;

    use super::*;
    use crate::clock::SystemClock;
    use crate::store::AuditTicket;

    fn facts(index: u32) -> Facts {
        let mut facts = Facts::default();
        facts.links.insert("eth1".into(), Link { index, up: true, ..Link::default() });
        facts
    }

    fn create_device(store: &Store, n: u8) {
        let device =
            serde_json::json!({"name": format!("device-{n}"), "mac": format!("02:00:00:00:00:{n:02x}")});
        let kind = gateway_model::registry::kind("device").expect("a kind");
        store
            .commit(AuditTicket::system("create_device", "device"), |draft| {
                kind.create(draft, device).map(drop)
            })
            .expect("stored");
    }

    /// Readers see the plan of exactly the state and the facts beside it, while both change.
    #[test]
    fn state_facts_and_plan_are_of_one_instant() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path().join("store.redb"), SystemClock::shared()).expect("a store");
        let store = Arc::new(store);
        let network = Network { lan: vec!["eth1".into()], ..Network::default() };
        let lowering = Lowering::new(store.clone(), network.clone());
        lowering.lower(&facts(1), store.clock().now());
        let done = AtomicBool::new(false);
        let seen = std::thread::scope(|scope| {
            let read = || {
                let mut seen = 0;
                while !done.load(Ordering::Acquire) {
                    let view = lowering.view();
                    let now = store.clock().now();
                    let input = Input { state: &view.state, network: &network, facts: &view.facts, now };
                    let expected = compile(&input);
                    assert!(
                        expected.plan.dataplane == view.compiled.plan.dataplane,
                        "a plan of another state or of other facts"
                    );
                    seen += 1;
                }
                seen
            };
            let readers: Vec<_> = (0..2).map(|_| scope.spawn(read)).collect();
            for n in 1..40 {
                create_device(&store, n);
                // Before the run: the state is newer than the last plan.
                assert_eq!(lowering.view().state.revision, store.current().revision);
                lowering.lower(&facts(u32::from(n) + 1), store.clock().now());
            }
            done.store(true, Ordering::Release);
            readers.into_iter().map(|reader| reader.join().expect("a reader")).sum::<usize>()
        });
        assert!(seen > 0);
    }
}
