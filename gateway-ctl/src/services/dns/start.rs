//! Start of the resolver on an engine that has a plan.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use arc_swap::ArcSwap;
use gateway_core::dns::domain_set::Key;
use gateway_core::dns::filter::Lists;
use gateway_dns::WallClock;
use gateway_dns::hooks::Daemon;
use gateway_dns::lists::Subscriptions;
use gateway_dns::query_log::AnswerObserver;
use gateway_dns::resolver::Resolver;
use gateway_dns::serve::kernel_cache::Dataplane;
use gateway_dns::signing::Signatures;
use gateway_dns::transfer::Secondaries;
use gateway_dns::upstream::{Context, Event, Upstreams};
use parking_lot::Mutex;

use super::clients::Table;
use super::fqdn::FqdnInstaller;
use super::inputs::{ResolverInputs, first_upstream};
use super::lan_probes::LanProbes;
use super::lists::{self, ListStore};
use super::local_answers::FilterAndZones;
use super::port_uses::PortUses;
use super::query_routes::QueryRoutes;
use super::secondary_zones::{self, SecondaryZones};
use super::{Config, DnsService, UPSTREAM_DOWN_ALERT, UpstreamSummary, settings, subject, updates};
use crate::engine::Engine;
use crate::os::bpf::{DnsSources, KernelDnsCache};
use crate::reconcile::Reason;
use crate::services::active_alerts::ActiveAlerts;
use crate::services::encrypted_storage::{EncryptedStorage, StorageContent};
use crate::services::flow_log::FlowLog;
use crate::services::hosts::HostInventory;
use crate::store::Store;
use crate::tls::Factory;

impl DnsService {
    /// Starts the resolver on an engine that has a plan; [`DnsService::services`] keep it current. Its status lists the
    /// addresses that cannot be bound.
    pub async fn start(
        config: Config,
        store: Arc<Store>,
        engine: &Engine,
        tls: Arc<Factory>,
    ) -> io::Result<Arc<DnsService>> {
        let supervisor = Arc::new(engine.services().supervisor().clone());
        let key = Key::new(getrandom::u64().map_err(io::Error::other)?);
        let worlds = engine.worlds().clone();
        let inputs = Arc::new(ResolverInputs::of(worlds.now()));
        let routes = Arc::new(QueryRoutes::default());
        let client = tls.client("dns");
        let active_alerts = config.active_alerts.clone();
        let reported = move |event| report_event(&active_alerts, event);
        let hosts = engine.endpoint_names();
        let context = Context::new(hosts.clone(), client, reported);
        let (plan, choice) = (inputs.upstreams(&routes), inputs.choice());
        let reported = ArcSwap::from(UpstreamSummary::of(&plan, inputs.dns()));
        let asked = first_upstream(&plan);
        let upstreams = Arc::new(Upstreams::new(plan, context));
        let lists = Arc::new(Mutex::new(Lists::new(key)));
        let list_store = ListStore {
            lists,
            changed: Arc::default(),
            active_alerts: config.active_alerts.clone(),
            servers: Arc::default(),
            wake: engine.wake().clone(),
        };
        let client = tls.client("dns lists");
        let context = Context::new(hosts.clone(), client, |_| {});
        let folder = config.directory.join("lists");
        std::fs::create_dir_all(&folder)?;
        let context = Arc::new(context);
        let subscriptions =
            Subscriptions::new(folder, key, context.clone(), list_store.clone(), supervisor.clone());
        let copies = SecondaryZones { held: Arc::default(), changed: list_store.changed.clone() };
        let folder = config.directory.join("zones");
        std::fs::create_dir_all(&folder)?;
        let secondaries = Secondaries::new(folder, key, context, copies.clone(), supervisor.clone());
        // The disk caches are loaded before the first query.
        let wanted = lists::wanted(&inputs.world.state, inputs.dns());
        let zones_wanted = secondary_zones::wanted(&inputs.world.state, inputs.dns());
        let loading = tokio::task::spawn_blocking(move || {
            subscriptions.load(&wanted);
            secondaries.load(&zones_wanted);
            (subscriptions, secondaries)
        });
        let (subscriptions, secondaries) = loading.await.map_err(io::Error::other)?;
        subscriptions.set_own_networks(inputs.own_networks());
        subscriptions.set(&lists::wanted(&inputs.world.state, inputs.dns()));
        secondaries.set(&secondary_zones::wanted(&inputs.world.state, inputs.dns()));
        let filter = inputs.filter(&list_store.current(&inputs.world.state));
        let signatures = Signatures::default();
        let zones = inputs.zones(key, &copies, &signatures);
        let secondaries = Arc::new(secondaries);
        let book = Arc::new(FilterAndZones { filter, zones, secondaries: secondaries.clone() });
        let sources = sources(engine);
        let noted = engine.handles().get::<HostInventory>().dns_clients().clone();
        let identity = (sources.clone(), noted.clone());
        let table = Table::new(inputs.clone(), asked, routes.clone(), choice.clone(), identity);
        let table = Arc::new(table);
        let (dataplane, domains, ipv6) = (engine.dataplane(), worlds.domains().clone(), asked.is_ipv6());
        let learner = Arc::new(FqdnInstaller::new(dataplane.clone(), domains, routes.clone()));
        learner.follow(&inputs, choice, ipv6);
        let storage = engine.handles().get::<EncryptedStorage>();
        let log_folder = storage.open_folder(StorageContent::QueryLog);
        let settings = settings(log_folder.as_ref(), inputs.dns());
        let (asks, kernel_dns_cache) = (upstreams.clone(), kernel_dns_cache(engine));
        let clock = store.clock().clone();
        let daemon = Daemon { supervisor, wall: WallClock::new(move || clock.now()) };
        let resolver =
            Resolver::start(settings, table, book, learner.clone(), asks, kernel_dns_cache, daemon).await?;
        let flows = engine.handles().get::<FlowLog>();
        resolver.log().observe(AnswerObserver::new(move |answered| {
            flows.asked().note(answered.client, &answered.name, &answered.addresses);
        }));
        let names = Arc::new(DnsService {
            resolver,
            upstreams,
            config,
            storage,
            log_folder: Mutex::new(log_folder),
            list_store,
            subscriptions,
            copies,
            secondaries,
            signatures,
            reported,
            routes,
            sources,
            noted,
            learner,
            renewed: Mutex::new(inputs),
            silenced: AtomicBool::new(false),
            followed: Mutex::default(),
            port_uses: PortUses::default(),
            lan_probes: LanProbes::default(),
            store,
            worlds,
            dataplane,
            key,
            started: Instant::now(),
        });
        updates::follow_plans(&names);
        engine.services().start(updates::doh_servers(&names));
        engine.wake().wake(Reason::Facts);
        Ok(names)
    }
}

/// Returns the kernel DNS cache; without it the resolver answers all queries itself.
fn kernel_dns_cache(engine: &Engine) -> Option<Box<dyn Dataplane>> {
    match engine.dataplane().with(|programs| programs.answers()) {
        Ok(answers) => Some(Box::new(KernelDnsCache(Arc::new(answers)))),
        Err(error) => {
            tracing::warn!(%error, "kernel DNS cache is not available");
            None
        }
    }
}

/// Returns the notes of the ingress program about packets to the resolver.
fn sources(engine: &Engine) -> Option<Arc<DnsSources>> {
    match engine.dataplane().with(|programs| programs.dns_sources()) {
        Ok(sources) => Some(Arc::new(sources)),
        Err(error) => {
            tracing::warn!(%error, "DNS clients are identified by the neighbour table only");
            None
        }
    }
}

fn report_event(active_alerts: &ActiveAlerts, event: Event) {
    match event {
        Event::Down { upstream, egress, error } => {
            tracing::warn!(%upstream, %egress, error, "DNS upstream does not answer: not used");
            active_alerts.raise(UPSTREAM_DOWN_ALERT, &subject(&upstream, &egress), error);
        }
        Event::Up { upstream, egress } => {
            tracing::info!(%upstream, %egress, "DNS upstream answers again");
            active_alerts.clear(UPSTREAM_DOWN_ALERT, &subject(&upstream, &egress));
        }
    }
}
