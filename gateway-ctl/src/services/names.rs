//! The resolver in its place: what it answers comes from the store, who asks and by which way from the plan at work.
//!
//! It is rebuilt from these whenever they change, and never stops answering meanwhile.

mod book;
mod choice;
mod clients;
mod learn;
mod lists;
mod secondaries;
mod ways;

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use gateway_core::compile::{Compiled, Input};
use gateway_core::dns::filter::{Filter, Lists, Options as FilterOptions};
use gateway_core::dns::table::Key;
use gateway_core::dns::zones::{Host, Options as ZoneOptions, Zones};
use gateway_core::facts::Facts;
use gateway_core::network::Network;
use gateway_dns::lists::{Status as ListStatus, Subscriptions};
use gateway_dns::resolver::Resolver;
use gateway_dns::serve::Settings;
use gateway_dns::serve::repeat::Dataplane;
use gateway_dns::serve::settings::Listen;
use gateway_dns::signing::Signatures;
use gateway_dns::transfer::{Secondaries, Status as CopyStatus};
use gateway_dns::upstream::{Context, Event, Given, Place, Plan, UpstreamStatus, Upstreams};
use gateway_model::domain::DomainName;
use gateway_model::kinds::alert_rule::AlertKind;
use gateway_model::settings::bootstrap::{Bootstrap, Dns, DnsBackend};
use gateway_model::settings::groups::{DhcpConfig, DnsRotation, ExtFilterConfig};
use gateway_model::{Id, State};
use jiff::tz::TimeZone;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::effects::bpf::Shortcut;
use crate::engine::Engine;
use crate::services::notices::Notices;
use crate::store::Store;
use crate::tls::{Factory, Server};

use book::Pages;
use choice::Choice;
use clients::Table;
use learn::Learner;
use lists::Shelf;
use secondaries::Copies;
use ways::Ways;

/// Changes that come in a row are taken together.
const PAUSE: Duration = Duration::from_millis(30);
/// How often what was learned is brought to what still holds.
const SWEEP: Duration = Duration::from_secs(4);
/// How often signatures are looked at; they are made anew days before they end.
const RESIGN: Duration = Duration::from_secs(60);
/// TTL of names of machines.
const HOST_TTL: u32 = 60;

/// What the resolver is told at start.
#[derive(Clone, Debug)]
pub struct Config {
    pub dns: Dns,
    /// Says together with the store whether the external filter is used.
    pub file: Arc<Bootstrap>,
    /// For the query log and for copies of lists.
    pub directory: PathBuf,
    /// Told of upstreams and lists that fail.
    pub notices: Notices,
}

/// The running resolver.
pub struct Names {
    pub resolver: Resolver,
    upstreams: Arc<Upstreams>,
    config: Config,
    shelf: Shelf,
    subscriptions: Subscriptions,
    copies: Copies,
    secondaries: Arc<Secondaries>,
    signatures: Signatures,
    told: ArcSwap<Told>,
    ways: Arc<Ways>,
    learner: Arc<Learner>,
    renewing: Mutex<()>,
    key: Key,
}

/// What is told of the upstreams as they are given.
struct Told {
    problems: Vec<String>,
    validates: bool,
    backend: DnsBackend,
}

impl Told {
    fn of(plan: &Plan, backend: DnsBackend) -> Arc<Told> {
        let for_all = plan.groups.iter().find(|group| group.domain.as_ref().is_root());
        let here = backend == DnsBackend::Integrated;
        Arc::new(Told {
            problems: plan.problems.clone(),
            validates: here && for_all.is_some_and(|group| group.dnssec),
            backend,
        })
    }
}

/// What an answer is made from, at one instant.
struct Picture {
    state: Arc<State>,
    compiled: Arc<Compiled>,
    facts: Arc<Facts>,
    network: Network,
}

impl Picture {
    fn of(store: &Store, engine: &Engine) -> Picture {
        Picture {
            state: store.current(),
            compiled: engine.compiled(),
            facts: engine.facts(),
            network: engine.network().clone(),
        }
    }

    fn input(&self, now: jiff::Timestamp) -> Input<'_> {
        Input { state: &self.state, network: &self.network, facts: &self.facts, now }
    }
}

impl Names {
    /// Starts it over an engine that has a plan. Addresses that cannot be bound stand in its status.
    pub async fn start(
        config: Config,
        store: Arc<Store>,
        engine: Arc<Engine>,
        tls: Arc<Factory>,
    ) -> io::Result<Arc<Names>> {
        let key = Key::new(getrandom::u64().map_err(io::Error::other)?);
        let picture = Arc::new(Picture::of(&store, &engine));
        let ways = Arc::new(Ways::default());
        let client = tls.client("dns");
        let notices = config.notices.clone();
        let told = move |event| tell(&notices, event);
        let context = Context::new(move || client.config().map_err(|error| error.to_string()), told);
        let now = store.clock().now();
        let plan = upstreams(&config, &picture, &ways, now);
        let (backend, choice) = choice(&config, &picture);
        let told = ArcSwap::from(Told::of(&plan, backend));
        let asked = first_upstream(&plan);
        let upstreams = Arc::new(Upstreams::new(plan, context));
        let lists = Arc::new(Mutex::new(Lists::new(key)));
        let shelf = Shelf { lists, changed: Arc::default(), notices: config.notices.clone() };
        let client = tls.client("dns lists");
        let context = Context::new(move || client.config().map_err(|error| error.to_string()), |_| {});
        let folder = config.directory.join("lists");
        std::fs::create_dir_all(&folder)?;
        let context = Arc::new(context);
        let subscriptions = Subscriptions::new(folder, key, context.clone(), shelf.clone());
        let copies = Copies { held: Arc::default(), changed: shelf.changed.clone() };
        let folder = config.directory.join("zones");
        std::fs::create_dir_all(&folder)?;
        let secondaries = Secondaries::new(folder, key, context, copies.clone());
        // Their copies are there before the first question.
        let wanted = lists::wanted(&picture.state);
        let zones_wanted = secondaries::wanted(&picture.state, &config.dns);
        let loading = tokio::task::spawn_blocking(move || {
            subscriptions.load(&wanted);
            secondaries.load(&zones_wanted);
            (subscriptions, secondaries)
        });
        let (subscriptions, secondaries) = loading.await.map_err(io::Error::other)?;
        subscriptions.set(&lists::wanted(&picture.state));
        secondaries.set(&secondaries::wanted(&picture.state, &config.dns));
        let filter = Arc::new(Filter::new(&picture.state, &shelf.current(&picture.state), options()));
        let signatures = Signatures::default();
        let zones = zones(&picture, key, &copies, &signatures, now);
        let secondaries = Arc::new(secondaries);
        let filtering = config.dns.filtering_enabled;
        let book = Arc::new(Pages::new(filter, zones, secondaries.clone(), filtering));
        let table = Arc::new(Table::new(picture.clone(), now, asked, ways.clone(), choice.clone()));
        let (dataplane, domains, ipv6) = (engine.dataplane(), engine.domains(), asked.is_ipv6());
        let learner = Arc::new(Learner::new(dataplane, domains, ways.clone()));
        learner.follow(&picture, now, choice, ipv6);
        let settings = settings(&config);
        let (asks, shortcut) = (upstreams.clone(), shortcut(&engine));
        let resolver = Resolver::start(settings, table, book, learner.clone(), asks, shortcut).await?;
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
            renewing: Mutex::default(),
            key,
        });
        herald(&names, &engine);
        tokio::spawn(follow(Arc::downgrade(&names), store.clone(), engine.clone()));
        tokio::spawn(resign(Arc::downgrade(&names), store));
        tokio::spawn(sweep(Arc::downgrade(&names), engine));
        Ok(names)
    }

    /// Answers over TLS and HTTPS as well, where the configuration says. The server offers
    /// [`gateway_dns::serve::secure::PROTOCOLS`].
    pub fn secure(&self, server: Arc<Server>) {
        self.resolver.secure(server);
    }

    /// Answers nobody any more.
    pub fn silence(&self) {
        let settings = Settings::clone(&self.resolver.settings());
        self.resolver.reconfigure(Settings { listen: Vec::new(), secure: Vec::new(), ..settings });
    }

    /// How each upstream is, by each way that is in use.
    pub fn upstreams(&self) -> Vec<UpstreamStatus> {
        self.upstreams.status()
    }

    /// Upstreams that cannot be asked as they are given.
    pub fn problems(&self) -> Vec<String> {
        self.told.load().problems.clone()
    }

    /// Answers of those that are asked for all names are validated.
    pub fn validates(&self) -> bool {
        self.told.load().validates
    }

    /// Who is asked for names that no forwarder is set for.
    pub fn backend(&self) -> DnsBackend {
        self.told.load().backend
    }

    pub fn config(&self) -> &Dns {
        &self.config.dns
    }

    /// How a list on the web stands.
    pub fn list(&self, id: Id, now: jiff::Timestamp) -> ListStatus {
        self.subscriptions.status(id, now)
    }

    /// How the copy of a zone stands.
    pub fn copy(&self, zone: Id) -> CopyStatus {
        self.secondaries.status(zone)
    }

    /// Takes over who asks, and by which ways. The picture is taken when no other is taken over: none comes after a newer.
    fn renew(&self, picture: impl FnOnce() -> Arc<Picture>, now: jiff::Timestamp) -> Arc<Picture> {
        let _alone = self.renewing.lock().unwrap_or_else(PoisonError::into_inner);
        let picture = picture();
        let plan = upstreams(&self.config, &picture, &self.ways, now);
        let asked = first_upstream(&plan);
        let (backend, choice) = choice(&self.config, &picture);
        self.told.store(Told::of(&plan, backend));
        self.upstreams.replace(plan);
        self.config.notices.keep(DOWN, |subject| {
            self.upstreams.status().iter().any(|one| !one.ok && subject_of(one) == subject)
        });
        self.learner.follow(&picture, now, choice.clone(), asked.is_ipv6());
        let table = Table::new(picture.clone(), now, asked, self.ways.clone(), choice);
        self.resolver.set_clients(Arc::new(table));
        picture
    }

    /// Takes over what is stored.
    fn reread(&self, picture: &Picture, now: jiff::Timestamp) {
        let lists = self.shelf.current(&picture.state);
        let filter = Arc::new(Filter::new(&picture.state, &lists, options()));
        let zones = zones(picture, self.key, &self.copies, &self.signatures, now);
        let filtering = self.config.dns.filtering_enabled;
        let pages = Pages::new(filter, zones, self.secondaries.clone(), filtering);
        self.resolver.set_book(Arc::new(pages));
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

/// A plan is taken over before it is live: no question leaves by a way that its packets no longer take.
fn herald(names: &Arc<Names>, engine: &Engine) {
    let (names, network) = (Arc::downgrade(names), engine.network().clone());
    engine.before_live(move |lowered| {
        let Some(names) = names.upgrade() else { return };
        let picture = || {
            let (state, compiled) = (lowered.state.clone(), lowered.compiled.clone());
            Arc::new(Picture {
                state,
                compiled,
                facts: Arc::new(lowered.facts.clone()),
                network: network.clone(),
            })
        };
        names.renew(picture, lowered.now);
    });
}

/// Follows the store and the plan until the resolver is gone.
async fn follow(names: std::sync::Weak<Names>, store: Arc<Store>, engine: Arc<Engine>) {
    let (mut revisions, mut runs) = (store.watch(), engine.status());
    let Some(shelved) = names.upgrade().map(|names| names.shelf.changed.clone()) else { return };
    let mut seen = None;
    loop {
        // First without a reason: something may have changed between the start and here.
        revisions.mark_unchanged();
        runs.mark_unchanged();
        let Some(names) = names.upgrade() else { return };
        let now = store.clock().now();
        let known = (store.current().revision, engine.facts().neighbours.clone());
        let stored = seen.as_ref() != Some(&known);
        seen = Some(known);
        let (store, engine) = (store.clone(), engine.clone());
        let work = move || {
            let picture = names.renew(|| Arc::new(Picture::of(&store, &engine)), now);
            // Lists are large and names of machines many; most runs change neither.
            if stored {
                let wanted = lists::wanted(&picture.state);
                names.subscriptions.set(&wanted);
                names.shelf.keep(&wanted);
                names.secondaries.set(&secondaries::wanted(&picture.state, &names.config.dns));
                names.reread(&picture, now);
            }
        };
        if tokio::task::spawn_blocking(work).await.is_err() {
            tracing::error!("the resolver could not take over a change");
        }
        tokio::select! {
            changed = revisions.changed() => if changed.is_err() { return },
            changed = runs.changed() => if changed.is_err() { return },
            () = shelved.notified() => seen = None,
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Has zones signed anew before their signatures end.
async fn resign(names: std::sync::Weak<Names>, store: Arc<Store>) {
    loop {
        tokio::time::sleep(RESIGN).await;
        let Some(names) = names.upgrade() else { return };
        if names.signatures.are_due(store.clock().now()) {
            names.shelf.changed.notify_one();
        }
    }
}

async fn sweep(names: std::sync::Weak<Names>, engine: Arc<Engine>) {
    let mut ticks = tokio::time::interval(SWEEP);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if names.strong_count() == 0 {
            return;
        }
        let dataplane = engine.dataplane();
        let swept =
            tokio::task::spawn_blocking(move || dataplane.with(|programs| programs.sweep_learned())).await;
        if let Ok(Err(error)) = swept {
            tracing::warn!(%error, "what clients learned cannot be brought up to date");
        }
    }
}

const DOWN: AlertKind = AlertKind::DnsUpstreamDown;

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

/// An upstream by one of its ways.
fn subject(upstream: &str, egress: &str) -> String {
    format!("{upstream} by {egress}")
}

fn subject_of(status: &UpstreamStatus) -> String {
    subject(&status.address, &status.egress)
}

fn upstreams(config: &Config, picture: &Picture, ways: &Ways, now: jiff::Timestamp) -> Plan {
    let input = picture.input(now);
    let route =
        |egress: &str, proxy: Option<&str>| ways.of_forwarder(&input, &picture.compiled, egress, proxy);
    let rotation = picture.state.group::<DnsRotation>();
    Plan::of(&picture.state, &Given { dns: &config.dns, rotation: &rotation, dnssec: false, route: &route })
}

fn choice(config: &Config, picture: &Picture) -> (DnsBackend, Arc<Choice>) {
    let backend = config.file.dns_backend(&picture.state.settings);
    let filter = (backend == DnsBackend::Extfilter).then(|| picture.state.group::<ExtFilterConfig>());
    (backend, Arc::new(Choice::new(filter.as_ref(), &picture.facts, &config.dns)))
}

/// A resolver that stands for all: policies for destinations are asked about it.
fn first_upstream(plan: &Plan) -> IpAddr {
    let for_all = plan.groups.iter().filter(|group| group.domain.as_ref().is_root());
    let mut places = for_all.flat_map(|group| &group.servers).filter_map(|server| match server.place {
        Place::Address(address) => Some(address.ip()),
        Place::Name(..) => None,
    });
    // Documentation, which no policy names.
    places.next().unwrap_or(IpAddr::from([192, 0, 2, 53]))
}

fn options() -> FilterOptions {
    FilterOptions { zone: TimeZone::system(), canaries: Default::default() }
}

fn zones(
    picture: &Picture,
    key: Key,
    copies: &Copies,
    signatures: &Signatures,
    now: jiff::Timestamp,
) -> Arc<Zones> {
    let domain = DomainName::parse(&picture.state.group::<DhcpConfig>().domain);
    let host = |device: &gateway_model::Device| {
        let macs = device.all_macs();
        let seen = macs.iter().filter_map(|mac| picture.facts.neighbours.get(&mac.octets())).flatten();
        // A link-local address is of use to nobody who asks for a name.
        let far = |address: &&IpAddr| !clients::is_link_local(**address);
        Host { name: device.name.clone(), addresses: seen.filter(far).copied().collect() }
    };
    let options = ZoneOptions {
        key,
        domain: domain.unwrap_or_else(|_| DomainName::parse("lan").expect("a name")),
        hosts: picture.state.devices.iter().map(host).collect(),
        host_ttl: HOST_TTL,
        copies: copies.current(&picture.state),
        signer: Some(Arc::new(signatures.signer(&picture.state, now))),
    };
    Arc::new(Zones::new(&picture.state, &options))
}

/// All addresses are those of both families.
fn places(address: SocketAddr) -> impl Iterator<Item = SocketAddr> {
    let all = address.ip() == IpAddr::from([0, 0, 0, 0]);
    let both = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), address.port());
    [address].into_iter().chain(all.then_some(both))
}

impl gateway_dns::serve::Tls for Server {
    fn accept(
        &self,
        stream: TcpStream,
    ) -> Pin<Box<dyn Future<Output = io::Result<TlsStream<TcpStream>>> + Send + '_>> {
        Box::pin(async move { Server::accept(self, stream).await.map_err(io::Error::other) })
    }
}

fn settings(config: &Config) -> Settings {
    let listen = places(config.dns.listen_addr).map(|address| Listen { address, interface: None }).collect();
    let secure = config.dns.tls_listen_addrs.iter().copied().flat_map(places).collect();
    let log =
        gateway_dns::log::Settings { directory: Some(config.directory.join("log")), ..Default::default() };
    Settings { listen, secure, log, ..Settings::default() }
}
