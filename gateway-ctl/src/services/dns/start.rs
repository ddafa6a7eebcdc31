//! Start of the resolver over an engine that has a plan.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use gateway_core::dns::domain_set::Key;
use gateway_core::dns::filter::Lists;
use gateway_dns::WallClock;
use gateway_dns::hooks::Daemon;
use gateway_dns::lists::Subscriptions;
use gateway_dns::resolver::Resolver;
use gateway_dns::serve::kernel_cache::Dataplane;
use gateway_dns::signing::Signatures;
use gateway_dns::transfer::Secondaries;
use gateway_dns::upstream::{Context, Event, Upstreams};

use crate::engine::Engine;
use crate::os::bpf::Shortcut;
use crate::services::active_alerts::Notices;
use crate::store::Store;
use crate::tls::Factory;
use dns::clients::Table;
use dns::fqdn::Learner;
use dns::inputs::{Picture, first_upstream};
use dns::lists::{self, Shelf};
use dns::local_answers::Pages;
use dns::query_routes::QueryRoutes;
use dns::secondary_zones::{self, Copies};
use dns::{Config, DOWN, Names, Told, settings, subject, updates};

impl Names {
    /// Starts it over an engine that has a plan. Addresses that cannot be bound stand in its status.
    pub async fn start(
        config: Config,
        store: Arc<Store>,
        engine: Arc<Engine>,
        tls: Arc<Factory>,
    ) -> io::Result<Arc<Names>> {
        let supervisor = Arc::new(engine.services().supervisor().clone());
        let key = Key::new(getrandom::u64().map_err(io::Error::other)?);
        let worlds = engine.worlds().clone();
        let picture = Arc::new(Picture::of(worlds.now()));
        let ways = Arc::new(QueryRoutes::default());
        let client = tls.client("dns");
        let notices = config.notices.clone();
        let told = move |event| tell(&notices, event);
        let hosts = engine.endpoint_names();
        let context =
            Context::new(hosts.clone(), move || client.config().map_err(|error| error.to_string()), told);
        let (plan, choice) = (picture.upstreams(&ways), picture.choice());
        let told = ArcSwap::from(Told::of(&plan, picture.dns()));
        let asked = first_upstream(&plan);
        let upstreams = Arc::new(Upstreams::new(plan, context));
        let lists = Arc::new(Mutex::new(Lists::new(key)));
        let shelf = Shelf { lists, changed: Arc::default(), notices: config.notices.clone() };
        let client = tls.client("dns lists");
        let context =
            Context::new(hosts.clone(), move || client.config().map_err(|error| error.to_string()), |_| {});
        let folder = config.directory.join("lists");
        std::fs::create_dir_all(&folder)?;
        let context = Arc::new(context);
        let subscriptions =
            Subscriptions::new(folder, key, context.clone(), shelf.clone(), supervisor.clone());
        let copies = Copies { held: Arc::default(), changed: shelf.changed.clone() };
        let folder = config.directory.join("zones");
        std::fs::create_dir_all(&folder)?;
        let secondaries = Secondaries::new(folder, key, context, copies.clone(), supervisor.clone());
        // Their copies are there before the first question.
        let wanted = lists::wanted(&picture.world.state, picture.dns());
        let zones_wanted = secondary_zones::wanted(&picture.world.state, picture.dns());
        let loading = tokio::task::spawn_blocking(move || {
            subscriptions.load(&wanted);
            secondaries.load(&zones_wanted);
            (subscriptions, secondaries)
        });
        let (subscriptions, secondaries) = loading.await.map_err(io::Error::other)?;
        subscriptions.set_own_networks(picture.own_networks());
        subscriptions.set(&lists::wanted(&picture.world.state, picture.dns()));
        secondaries.set(&secondary_zones::wanted(&picture.world.state, picture.dns()));
        let filter = picture.filter(&shelf.current(&picture.world.state));
        let signatures = Signatures::default();
        let zones = picture.zones(key, &copies, &signatures);
        let secondaries = Arc::new(secondaries);
        let filtering = picture.dns().filtering_enabled;
        let book = Arc::new(Pages::new(filter, zones, secondaries.clone(), filtering));
        let table = Arc::new(Table::new(picture.clone(), asked, ways.clone(), choice.clone()));
        let (dataplane, domains, ipv6) = (engine.dataplane(), worlds.domains().clone(), asked.is_ipv6());
        let learner = Arc::new(Learner::new(dataplane, domains, ways.clone()));
        learner.follow(&picture, choice, ipv6);
        let settings = settings(&config.directory, picture.dns());
        let (asks, shortcut) = (upstreams.clone(), shortcut(&engine));
        let clock = store.clock().clone();
        let daemon = Daemon { supervisor, wall: WallClock::new(move || clock.now()) };
        let resolver =
            Resolver::start(settings, table, book, learner.clone(), asks, shortcut, daemon).await?;
        let names = Arc::new(Names {
            resolver,
            upstreams,
            config,
            shelf,
            subscriptions,
            copies,
            secondaries,
            signatures,
            told,
            ways,
            learner,
            renewed: Mutex::new(picture),
            silenced: AtomicBool::new(false),
            followed: Mutex::default(),
            store: store.clone(),
            worlds,
            key,
            following: Mutex::default(),
        });
        let following = updates::all(&names, store, engine);
        *names.following.lock().unwrap_or_else(PoisonError::into_inner) = following;
        Ok(names)
    }
}

/// Without it the resolver answers everything itself.
fn shortcut(engine: &Engine) -> Option<Box<dyn Dataplane>> {
    match engine.dataplane().with(|programs| programs.answers()) {
        Ok(answers) => Some(Box::new(Shortcut(Arc::new(answers)))),
        Err(error) => {
            tracing::warn!(%error, "the dataplane does not repeat answers");
            None
        }
    }
}

fn tell(notices: &Notices, event: Event) {
    match event {
        Event::Down { upstream, egress, error } => {
            tracing::warn!(%upstream, %egress, error, "a DNS upstream does not answer and is left out");
            notices.raise(DOWN, &subject(&upstream, &egress), error);
        }
        Event::Up { upstream, egress } => {
            tracing::info!(%upstream, %egress, "a DNS upstream answers again");
            notices.clear(DOWN, &subject(&upstream, &egress));
        }
    }
}
