//! The resolver in its place: what it answers comes from the store, who asks and by which way from the plan at work.
//!
//! It is rebuilt from these whenever they change, and never stops answering meanwhile.

mod clients;
mod explain;
mod fqdn;
mod inputs;
mod lists;
mod local_answers;
mod query_routes;
mod secondary_zones;
mod start;
mod updates;
mod upstream_selection;

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use arc_swap::ArcSwap;
use gateway_core::dns::domain_set::Key;
use gateway_core::facts::Facts;
use gateway_dns::hooks::LocalAnswers;
use gateway_dns::lists::{Status as ListStatus, Subscriptions};
use gateway_dns::resolver::{Inputs, Resolver};
use gateway_dns::serve::Settings;
use gateway_dns::serve::settings::{Blocking, Listen, Rate};
use gateway_dns::signing::Signatures;
use gateway_dns::transfer::{Secondaries, Status as CopyStatus};
use gateway_dns::upstream::{Plan, UpstreamStatus, Upstreams};
use gateway_model::kinds::alert_rule::AlertKind;
use gateway_model::settings::bootstrap::{Dns, DnsBackend};
use gateway_model::{Id, Revision};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::server::TlsStream;

use crate::services::active_alerts::ActiveAlerts;
use crate::store::Store;
use crate::tls::Server;
use crate::world::Worlds;

use clients::Table;
use fqdn::FqdnInstaller;
use inputs::{ResolverInputs, first_upstream};
use lists::ListStore;
use local_answers::FilterAndZones;
use query_routes::QueryRoutes;
use secondary_zones::Copies;

/// What the resolver is told at start.
#[derive(Clone, Debug)]
pub struct Config {
    /// For the query log and for copies of lists.
    pub directory: PathBuf,
    /// UpstreamSummary of upstreams and lists that fail.
    pub active_alerts: ActiveAlerts,
}

/// The running resolver.
pub struct DnsService {
    pub resolver: Resolver,
    upstreams: Arc<Upstreams>,
    config: Config,
    list_store: ListStore,
    subscriptions: Subscriptions,
    copies: Copies,
    secondaries: Arc<Secondaries>,
    signatures: Signatures,
    told: ArcSwap<UpstreamSummary>,
    ways: Arc<QueryRoutes>,
    learner: Arc<FqdnInstaller>,
    /// The last one that was taken over.
    renewed: Mutex<Arc<ResolverInputs>>,
    /// It listens nowhere any more.
    silenced: AtomicBool,
    followed: Mutex<Option<Followed>>,
    store: Arc<Store>,
    worlds: Arc<Worlds>,
    key: Key,
    following: Mutex<Vec<JoinHandle<()>>>,
}

impl Drop for DnsService {
    fn drop(&mut self) {
        for task in self.following.get_mut().unwrap_or_else(PoisonError::into_inner) {
            task.abort();
        }
    }
}

/// State that the resolver has taken over.
pub struct Followed {
    revision: Revision,
    /// Of the last change of filter rules, lists, rewrites, zones and settings.
    dns: Revision,
    facts: Arc<Facts>,
}

/// What is told of the plan of the upstreams.
struct UpstreamSummary {
    dns: Arc<Dns>,
    problems: Vec<String>,
    validates: bool,
}

impl UpstreamSummary {
    fn of(plan: &Plan, dns: &Dns) -> Arc<UpstreamSummary> {
        let for_all = plan.groups.iter().find(|group| group.domain.as_ref().is_root());
        let here = dns.backend == DnsBackend::Integrated;
        Arc::new(UpstreamSummary {
            dns: Arc::new(dns.clone()),
            problems: plan.problems.clone(),
            validates: here && for_all.is_some_and(|group| group.dnssec),
        })
    }
}

impl DnsService {
    /// Answers over TLS and HTTPS as well, where the configuration says. The server offers
    /// [`gateway_dns::serve::tls::PROTOCOLS`].
    pub fn secure(&self, server: Arc<Server>) {
        self.resolver.secure(server);
    }

    /// Answers nobody any more.
    pub fn silence(&self) {
        // Held: what is taken over meanwhile must not listen again.
        let _renewed = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        self.silenced.store(true, Ordering::Release);
        let settings = Settings::clone(&self.resolver.settings());
        self.resolver.reconfigure(Settings { listen: Vec::new(), secure: Vec::new(), ..settings });
    }

    /// Erases what was resolved: the query log with its counts, the cache, and the copies of lists and zones on disk.
    /// Goes on after a failure and returns the first. Blocks on the disk.
    pub fn erase_history(&self) -> io::Result<()> {
        let log = self.resolver.log().erase();
        self.resolver.flush(None);
        log.and(self.subscriptions.erase_copies()).and(self.secondaries.erase_copies())
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

    /// How names are resolved now.
    pub fn config(&self) -> Arc<Dns> {
        self.told.load().dns.clone()
    }

    /// How a list on the web stands.
    pub fn list(&self, id: Id, now: jiff::Timestamp) -> ListStatus {
        self.subscriptions.status(id, now)
    }

    /// How the copy of a zone stands.
    pub fn copy(&self, zone: Id) -> CopyStatus {
        self.secondaries.status(zone)
    }

    /// Takes over who asks, by which ways, and local answers if there are new ones, in one step. The inputs are taken when
    /// no other is taken over: none comes after a newer.
    fn renew(
        &self,
        inputs: impl FnOnce() -> Arc<ResolverInputs>,
        local_answers: Option<Arc<FilterAndZones>>,
    ) {
        let mut renewed = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        let inputs = inputs();
        let local_answers = local_answers.map(|filter_and_zones| filter_and_zones as Arc<dyn LocalAnswers>);
        // Each publication ends what the dataplane repeats.
        if inputs.world.is_like(&renewed.world) {
            if local_answers.is_some() {
                self.resolver.publish(Inputs { local_answers, ..Inputs::default() });
            }
            return;
        }
        let (plan, choice) = (inputs.upstreams(&self.ways), inputs.choice());
        let asked = first_upstream(&plan);
        self.told.store(UpstreamSummary::of(&plan, inputs.dns()));
        self.upstreams.replace(plan);
        self.config.active_alerts.keep(DOWN, |subject| {
            self.upstreams.status().iter().any(|one| !one.ok && subject_of(one) == subject)
        });
        self.learner.follow(&inputs, choice.clone(), asked.is_ipv6());
        let table = Table::new(inputs.clone(), asked, self.ways.clone(), choice);
        let settings = settings(&self.config.directory, inputs.dns());
        let is_new = *self.resolver.settings() != settings && !self.silenced.load(Ordering::Acquire);
        self.resolver.publish(Inputs {
            settings: is_new.then_some(settings),
            clients: Some(Arc::new(table)),
            local_answers,
        });
        renewed.clone_from(&inputs);
        self.ways.expire(Instant::now());
    }

    /// Returns what is answered from here, made from what is stored. Takes time if lists are large.
    fn local_answers(&self, inputs: &ResolverInputs) -> Arc<FilterAndZones> {
        let filter = inputs.filter(&self.list_store.current(&inputs.world.state));
        let zones = inputs.zones(self.key, &self.copies, &self.signatures);
        let filtering = inputs.dns().filtering_enabled;
        Arc::new(FilterAndZones::new(filter, zones, self.secondaries.clone(), filtering))
    }
}

const DOWN: AlertKind = AlertKind::DnsUpstreamDown;

/// An upstream by one of its ways.
fn subject(upstream: &str, egress: &str) -> String {
    format!("{upstream} by {egress}")
}

fn subject_of(status: &UpstreamStatus) -> String {
    subject(&status.address, &status.egress)
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

fn settings(directory: &Path, dns: &Dns) -> Settings {
    let listen = places(dns.listen_addr).map(|address| Listen { address, interface: None }).collect();
    let secure = dns.tls_listen_addrs.iter().copied().flat_map(places).collect();
    let log =
        gateway_dns::query_log::Settings { directory: Some(directory.join("log")), ..Default::default() };
    let blocking = Blocking { paused_until: dns.blocking_paused_until, ..Blocking::default() };
    let client_rate = Rate { per_second: dns.rate_limit_per_client, ..Settings::default().client_rate };
    Settings { listen, secure, log, blocking, client_rate, ..Settings::default() }
}
