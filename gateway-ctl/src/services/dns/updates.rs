//! Updates of the resolver: from the engine before a plan goes live, from the store, from downloaded lists and
//! transferred zones, and by time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use gateway_model::{Revision, State};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use super::inputs::ResolverInputs;
use super::{DnsService, Followed, lists, secondary_zones};
use crate::engine::Engine;
use crate::store::Store;
use crate::supervise::blocking;
use crate::world::Worlds;

/// Pause that merges a burst of changes into one update.
const DEBOUNCE: Duration = Duration::from_millis(30);
/// Interval between two sweeps of the DNS-learned IPs in the dataplane, which keep only valid entries.
const SWEEP: Duration = Duration::from_secs(4);
/// Interval between two checks of DNSSEC signatures. Zones are signed again days before their signatures expire.
const RESIGN: Duration = Duration::from_secs(60);

/// Starts the tasks that follow all sources of changes. Each task ends with the resolver.
pub fn all(names: &Arc<DnsService>, store: Arc<Store>, engine: Arc<Engine>) -> Vec<JoinHandle<()>> {
    let worlds = engine.worlds().clone();
    plans(names, &worlds);
    let supervisor = engine.services().supervisor().clone();
    // A task that died may have lost a list or a zone, so its restart rebuilds everything.
    let mut again = false;
    let updates = {
        let (names, store) = (Arc::downgrade(names), store.clone());
        move || changes(names.clone(), store.clone(), worlds.clone(), std::mem::replace(&mut again, true))
    };
    let (signing, sweeping) = (Arc::downgrade(names), Arc::downgrade(names));
    vec![
        supervisor.restart_until_done("dns_updates", updates),
        supervisor.restart_until_done("dns_signatures", move || signatures(signing.clone(), store.clone())),
        supervisor.restart_until_done("dns_fqdn_sweep", move || learned(sweeping.clone(), engine.clone())),
    ]
}

/// Takes over a plan before it goes live, so that no query leaves through an egress that its packets no longer use.
fn plans(names: &Arc<DnsService>, worlds: &Worlds) {
    let names = Arc::downgrade(names);
    worlds.on_before_activate(move |world| {
        if let Some(names) = names.upgrade() {
            names.renew(|| Arc::new(ResolverInputs::of(world.clone())), None);
        }
    });
}

/// Follows the store and the plan until the resolver is gone.
async fn changes(names: Weak<DnsService>, store: Arc<Store>, worlds: Arc<Worlds>, mut again: bool) {
    let (mut revisions, mut published) = (store.watch(), worlds.watch());
    let mut run;
    let Some(list_changes) = names.upgrade().map(|names| names.list_store.changed.clone()) else { return };
    loop {
        // The first update needs no change: the state may have changed between the start and here.
        revisions.mark_unchanged();
        run = published.borrow_and_update().status.run;
        let Some(names) = names.upgrade() else { return };
        let work = move || names.take_over(again);
        again = false;
        blocking(work).await;
        tokio::select! {
            changed = revisions.changed() => if changed.is_err() { return },
            changed = published.wait_for(|world| world.status.run != run) => if changed.is_err() { return },
            () = list_changes.notified() => again = true,
        }
        tokio::time::sleep(DEBOUNCE).await;
    }
}

impl DnsService {
    /// Takes over the stored filters, lists, rewrites and zones unless the resolver has them already. Returns when
    /// answers use them. Blocks while filters are built.
    pub fn catch_up(&self) {
        let wanted = dns_revision(&self.store.current());
        let current = lock(&self.followed).as_ref().is_some_and(|followed| followed.dns >= wanted);
        if !current {
            self.take_over(false);
        }
    }

    /// Takes over the store and the plan. With `again`, builds filters and zones even if neither has changed.
    fn take_over(&self, again: bool) {
        // The lock is held to the end, so that an older state never replaces a newer one.
        let mut followed = lock(&self.followed);
        let inputs = ResolverInputs::of(self.worlds.now());
        self.subscriptions.set_own_networks(inputs.own_networks());
        let (state, facts) = (&inputs.world.state, &inputs.world.facts);
        // Lists are large and host names are many; most runs change neither.
        let known = followed.as_ref().is_some_and(|followed| {
            followed.revision == state.revision && followed.facts.neighbours == facts.neighbours
        });
        let local_answers = (again || !known).then(|| {
            let wanted = lists::wanted(state, inputs.dns());
            self.subscriptions.set(&wanted);
            self.list_store.keep(&wanted);
            self.secondaries.set(&secondary_zones::wanted(state, inputs.dns()));
            self.local_answers(&inputs)
        });
        self.renew(|| Arc::new(ResolverInputs::of(self.worlds.now())), local_answers);
        *followed =
            Some(Followed { revision: state.revision, dns: dns_revision(state), facts: facts.clone() });
    }
}

/// Returns the revision of the last change of the inputs of local answers.
fn dns_revision(state: &State) -> Revision {
    let tables = [
        state.dns_filter_rules.revision(),
        state.dns_allowlist.revision(),
        state.dns_blocklist.revision(),
        state.dns_rewrites.revision(),
        state.dns_zones.revision(),
        state.dns_records.revision(),
        state.dns_forwarders.revision(),
        state.dns_presets.revision(),
        state.threat_feeds.revision(),
        state.settings.revision(),
    ];
    tables.into_iter().max().unwrap_or_default()
}

/// Locks a mutex; a panic between two statements leaves its value consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Signs zones again before their signatures expire.
async fn signatures(names: Weak<DnsService>, store: Arc<Store>) {
    loop {
        tokio::time::sleep(RESIGN).await;
        let Some(names) = names.upgrade() else { return };
        if names.signatures.are_due(store.clock().now()) {
            names.list_store.changed.notify_one();
        }
    }
}

async fn learned(names: Weak<DnsService>, engine: Arc<Engine>) {
    let mut ticks = tokio::time::interval(SWEEP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if names.strong_count() == 0 {
            return;
        }
        let dataplane = engine.dataplane();
        let swept = blocking(move || dataplane.with(|programs| programs.sweep_learned())).await;
        if let Err(error) = swept {
            tracing::warn!(%error, "failed to update FQDN policy entries");
        }
    }
}
