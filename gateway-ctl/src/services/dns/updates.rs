//! Updates of the resolver: from the engine before a plan goes live, from the store, from downloaded lists and
//! transferred zones, and by time.
//!
//! A write of filter rules, lists, rewrites or zones builds the filters within the request, under the lock of the task
//! here, because a user expects queries to follow a rule as soon as its write is answered.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::facts::Facts;
use gateway_model::{Revision, State};
use tokio::time::MissedTickBehavior;

use super::inputs::ResolverInputs;
use super::{AppliedInputs, DnsService, lan_probe, lists, metrics, secondary_zones};
use crate::service::Service;
use crate::supervise::blocking;

/// Pause that merges a burst of changes into one update.
const DEBOUNCE: Duration = Duration::from_millis(30);
/// Interval between two sweeps of the DNS-learned IPs in the dataplane, which keep only valid entries.
const SWEEP: Duration = Duration::from_secs(4);
/// Interval between two checks of DNSSEC signatures. Zones are signed again days before their signatures expire.
const RESIGN: Duration = Duration::from_secs(60);

impl DnsService {
    /// Returns the services that keep the resolver current, for the list of services.
    pub fn services(self: &Arc<Self>) -> Vec<Service> {
        // A task that died may have lost a list or a zone, so its restart rebuilds everything.
        let mut again = false;
        let (measured, erased) = (self.clone(), self.clone());
        vec![
            Service::new("dns_updates", self, move |names| {
                changes(names, std::mem::replace(&mut again, true))
            })
            .measures(move |registry| metrics::register(registry, &measured))
            .erases(move |level| {
                let names = erased.clone();
                blocking(move || names.wipe(level))
            }),
            Service::new("dns_log_folder", self, follow_storage),
            Service::new("dns_signatures", self, signatures),
            Service::new("dns_fqdn_sweep", self, sweep_fqdn_entries),
            self.report(),
            lan_probe::service(self),
        ]
    }
}

/// Takes over a plan before it goes live, so that no query leaves through an egress that its packets no longer use.
pub(super) fn follow_plans(service: &Arc<DnsService>) {
    let names = Arc::downgrade(service);
    service.worlds.on_before_activate(move |world| {
        if let Some(names) = names.upgrade() {
            names.renew(|| Arc::new(ResolverInputs::of(world.clone())), None);
        }
    });
}

/// Returns the service that adds the public resolvers of feeds to the facts of the engine.
pub(super) fn doh_servers(service: &Arc<DnsService>) -> Service {
    let names = Arc::downgrade(service);
    Service::idle("doh_servers").contributes(move |facts| {
        if let Some(names) = names.upgrade() {
            names.add_doh_servers(facts);
        }
    })
}

/// Moves the query log with its folder.
async fn follow_storage(names: Arc<DnsService>) {
    let mut changes = names.storage.watch();
    loop {
        let moved = names.clone();
        blocking(move || moved.move_log()).await;
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// Follows the store, the plan, the lists and the secondary zones.
async fn changes(names: Arc<DnsService>, mut again: bool) {
    let (mut revisions, mut published) = (names.store.watch(), names.worlds.watch());
    let (mut run, mut names_of_leases);
    loop {
        // The first update needs no change: the state may have changed between the start and here.
        revisions.mark_unchanged();
        {
            let world = published.borrow_and_update();
            (run, names_of_leases) = (world.status.run, world.reports.leased_names.clone());
        }
        let updated = names.clone();
        let work = move || updated.take_over(again);
        again = false;
        blocking(work).await;
        tokio::select! {
            changed = revisions.changed() => if changed.is_err() { return },
            changed = published.wait_for(|world| {
                world.status.run != run || !Arc::ptr_eq(&world.reports.leased_names, &names_of_leases)
            }) => if changed.is_err() { return },
            () = names.list_store.changed.notified() => again = true,
        }
        tokio::time::sleep(DEBOUNCE).await;
    }
}

impl DnsService {
    /// Adds the public resolvers of feeds to the facts.
    fn add_doh_servers(&self, facts: &mut Facts) {
        let now = self.store.clock().now();
        let updated = |id| self.subscriptions.status(id, now).last_updated;
        let servers = self.list_store.servers(&self.store.current(), updated);
        facts.doh_servers = Arc::new(servers);
    }

    /// Takes over the stored filters, lists, rewrites and zones unless the resolver has them already. Returns when
    /// answers use them. Blocks while filters are built.
    pub fn catch_up(&self) {
        let wanted = dns_revision(&self.store.current());
        let current = self.followed.lock().as_ref().is_some_and(|followed| followed.dns >= wanted);
        if !current {
            self.take_over(false);
        }
    }

    /// Takes over the store and the plan. With `again`, builds filters and zones even if neither has changed.
    fn take_over(&self, again: bool) {
        // The lock is held to the end, so that an older state never replaces a newer one.
        let mut followed = self.followed.lock();
        let inputs = ResolverInputs::of(self.worlds.now());
        self.subscriptions.set_own_networks(inputs.own_networks());
        let (state, facts) = (&inputs.world.state, &inputs.world.facts);
        // Lists are large and host names are many; most runs change neither.
        let known = followed.as_ref().is_some_and(|followed| {
            followed.revision == state.revision
                && followed.facts.neighbours == facts.neighbours
                && followed.facts.addresses == facts.addresses
                && names_in_mesh(&followed.facts) == names_in_mesh(facts)
                && Arc::ptr_eq(&followed.leased_names, &inputs.world.reports.leased_names)
        });
        let local_answers = (again || !known).then(|| {
            let wanted = lists::wanted(state, inputs.dns());
            self.subscriptions.set(&wanted);
            self.list_store.keep(&wanted);
            self.secondaries.set(&secondary_zones::wanted(state, inputs.dns()));
            self.local_answers(&inputs)
        });
        self.renew(|| Arc::new(ResolverInputs::of(self.worlds.now())), local_answers);
        *followed = Some(AppliedInputs {
            revision: state.revision,
            dns: dns_revision(state),
            facts: facts.clone(),
            leased_names: inputs.world.reports.leased_names.clone(),
        });
    }
}

/// Returns the nodes of the mesh by name.
fn names_in_mesh(facts: &Facts) -> Option<&BTreeMap<String, BTreeSet<IpAddr>>> {
    facts.mesh.as_ref().map(|mesh| &mesh.names)
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

/// Signs zones again before their signatures expire.
async fn signatures(names: Arc<DnsService>) {
    loop {
        tokio::time::sleep(RESIGN).await;
        if names.signatures.are_due(names.store.clock().now()) {
            names.list_store.changed.notify_one();
        }
    }
}

async fn sweep_fqdn_entries(names: Arc<DnsService>) {
    let mut ticks = tokio::time::interval(SWEEP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let dataplane = names.dataplane.clone();
        let swept = blocking(move || dataplane.with(|programs| programs.sweep_learned())).await;
        if let Err(error) = swept {
            tracing::warn!(%error, "failed to update FQDN policy entries");
        }
    }
}
