//! DNS service: the resolver, with answers from the store and with clients and query routes from the plan in force.
//!
//! Every change of these rebuilds the inputs of the resolver, which keeps answering meanwhile.

mod clients;
mod explain;
mod fqdn;
mod health;
mod inputs;
mod lan_probe;
mod lan_probes;
mod lists;
mod local_answers;
mod metrics;
mod port_uses;
mod query_routes;
mod secondary_zones;
mod start;
mod updates;
mod upstream_selection;

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

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
use gateway_model::settings::groups::WipeLevel;
use gateway_model::{Id, Revision};
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::os::bpf::DnsSources;
use crate::reconcile::KernelDataplane;
use crate::services::active_alerts::ActiveAlerts;
use crate::services::encrypted_storage::{EncryptedStorage, OpenFolder, StorageContent};
use crate::services::hosts::DnsClients;
use crate::store::Store;
use crate::tls::Server;
use crate::world::Worlds;
use crate::world::reports::leased_names::LeasedNames;

use clients::Table;
use fqdn::FqdnInstaller;
use inputs::{ResolverInputs, first_upstream};
use lists::ListStore;
use local_answers::FilterAndZones;
pub use port_uses::LOST;
use query_routes::QueryRoutes;
use secondary_zones::SecondaryZones;

/// Settings of the resolver at start.
#[derive(Clone, Debug)]
pub struct Config {
    /// Directory of the disk caches of lists and zones.
    pub directory: PathBuf,
    /// Alerts for failing upstreams and lists.
    pub active_alerts: ActiveAlerts,
}

/// The running resolver.
pub struct DnsService {
    pub resolver: Resolver,
    upstreams: Arc<Upstreams>,
    config: Config,
    storage: EncryptedStorage,
    /// Folder of the query log; `None` while it waits for the encrypted storage.
    log_folder: Mutex<Option<OpenFolder>>,
    list_store: ListStore,
    subscriptions: Subscriptions,
    copies: SecondaryZones,
    secondaries: Arc<Secondaries>,
    signatures: Signatures,
    reported: ArcSwap<UpstreamSummary>,
    routes: Arc<QueryRoutes>,
    sources: Option<Arc<DnsSources>>,
    noted: DnsClients,
    learner: Arc<FqdnInstaller>,
    /// Inputs that the resolver took over last.
    renewed: Mutex<Arc<ResolverInputs>>,
    /// Set once the resolver must not listen on any address again.
    silenced: AtomicBool,
    followed: Mutex<Option<AppliedInputs>>,
    port_uses: port_uses::PortUses,
    lan_probes: lan_probes::LanProbes,
    store: Arc<Store>,
    worlds: Arc<Worlds>,
    dataplane: KernelDataplane,
    key: Key,
    started: Instant,
}

/// State that the resolver has taken over.
pub struct AppliedInputs {
    revision: Revision,
    /// Revision of the last change of filter rules, lists, rewrites, zones and settings.
    dns: Revision,
    facts: Arc<Facts>,
    leased_names: Arc<LeasedNames>,
}

/// Summary of the upstream plan, for the API.
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
    /// Enables DNS over TLS and HTTPS on the configured addresses. The server offers
    /// [`gateway_dns::serve::tls::PROTOCOLS`].
    pub fn secure(&self, server: Arc<Server>) {
        self.resolver.secure(server);
    }

    /// Stops answering on all addresses for good.
    fn silence(&self) {
        // The lock prevents a concurrent update from listening again.
        let _renewed = self.renewed.lock();
        self.silenced.store(true, Ordering::Release);
        let settings = Settings::clone(&self.resolver.settings());
        self.resolver.reconfigure(Settings { listen: Vec::new(), secure: Vec::new(), ..settings });
    }

    fn wipe(&self, level: WipeLevel) -> io::Result<()> {
        match level {
            WipeLevel::Soft | WipeLevel::Medium => self.erase_history(),
            // The folder of the history is destroyed.
            WipeLevel::Hard => {
                self.silence();
                Ok(())
            }
        }
    }

    /// Erases the history of resolution: the query log with its statistics, the cache, and the disk caches of lists
    /// and zones. Continues after a failure and returns the first error. Blocks on the disk.
    fn erase_history(&self) -> io::Result<()> {
        let log = self.resolver.log().erase();
        self.resolver.flush(None);
        log.and(self.subscriptions.erase_copies()).and(self.secondaries.erase_copies())
    }

    /// Moves the query log to where its records lie now. Without a folder, it waits in memory.
    fn move_log(&self) {
        // No concurrent update sets the earlier folder again.
        let _renewed = self.renewed.lock();
        let folder = self.storage.open_folder(StorageContent::QueryLog);
        let log = log_settings(folder.as_ref());
        let settings = Settings::clone(&self.resolver.settings());
        if settings.log != log {
            self.resolver.reconfigure(Settings { log, ..settings });
        }
        // The files in the earlier folder are closed.
        *self.log_folder.lock() = folder;
    }

    /// Returns the status of each upstream over each egress in use.
    pub fn upstreams(&self) -> Vec<UpstreamStatus> {
        self.upstreams.status()
    }

    /// Returns the upstreams that cannot be queried as configured, with the reasons.
    pub fn problems(&self) -> Vec<String> {
        self.reported.load().problems.clone()
    }

    /// Reports whether answers of the upstreams for all domains are validated by DNSSEC.
    pub fn validates(&self) -> bool {
        self.reported.load().validates
    }

    /// Returns the DNS configuration in force.
    pub fn config(&self) -> Arc<Dns> {
        self.reported.load().dns.clone()
    }

    /// Returns the status of a subscribed list.
    pub fn list(&self, id: Id, now: jiff::Timestamp) -> ListStatus {
        self.subscriptions.status(id, now)
    }

    /// Returns the status of a secondary zone.
    pub fn copy(&self, zone: Id) -> CopyStatus {
        self.secondaries.status(zone)
    }

    /// Publishes clients, query routes and, if given, new local answers in one step. The function reads the inputs
    /// under the lock, so that older inputs never replace newer ones.
    fn renew(
        &self,
        inputs: impl FnOnce() -> Arc<ResolverInputs>,
        local_answers: Option<Arc<FilterAndZones>>,
    ) {
        let mut renewed = self.renewed.lock();
        let inputs = inputs();
        let local_answers = local_answers.map(|filter_and_zones| filter_and_zones as Arc<dyn LocalAnswers>);
        // Each publication invalidates the kernel DNS cache.
        if inputs.world.is_like(&renewed.world) {
            if local_answers.is_some() {
                self.resolver.publish(Inputs { local_answers, ..Inputs::default() });
            }
            return;
        }
        let (plan, choice) = (inputs.upstreams(&self.routes), inputs.choice());
        let asked = first_upstream(&plan);
        self.reported.store(UpstreamSummary::of(&plan, inputs.dns()));
        self.upstreams.replace(plan);
        self.end_alerts();
        self.learner.follow(&inputs, choice.clone(), asked.is_ipv6());
        let identity = (self.sources.clone(), self.noted.clone());
        let table = Table::new(inputs.clone(), asked, self.routes.clone(), choice, identity);
        let settings = settings(self.log_folder.lock().as_ref(), inputs.dns());
        let is_new = *self.resolver.settings() != settings && !self.silenced.load(Ordering::Acquire);
        self.resolver.publish(Inputs {
            settings: is_new.then_some(settings),
            clients: Some(Arc::new(table)),
            local_answers,
        });
        renewed.clone_from(&inputs);
        self.routes.expire(Instant::now());
    }

    /// Ends the alerts of upstreams that answer, and of those that are not used any more. One that was not queried in this
    /// run may be down.
    fn end_alerts(&self) {
        let (upstreams, is_settled) = (self.upstreams.status(), self.started.elapsed() >= SETTLED_AFTER);
        let may_be_down = |alert: &str| may_be_down(&upstreams, alert, is_settled);
        self.config.active_alerts.keep(UPSTREAM_DOWN_ALERT, may_be_down);
    }

    /// Builds the local answers from the stored state. Takes time if lists are large.
    fn local_answers(&self, inputs: &ResolverInputs) -> Arc<FilterAndZones> {
        let filter = inputs.filter(&self.list_store.current(&inputs.world.state));
        let zones = inputs.zones(self.key, &self.copies, &self.signatures);
        Arc::new(FilterAndZones { filter, zones, secondaries: self.secondaries.clone() })
    }
}

/// Folder of the query log, in that of all records.
const LOG_FOLDER: &str = "dns/log";

const UPSTREAM_DOWN_ALERT: AlertKind = AlertKind::DnsUpstreamDown;

/// Time after the start from which an egress that no query has used counts as unused.
const SETTLED_AFTER: Duration = Duration::from_secs(600);
/// Text between the upstream and the egress in the subject of an alert.
const EGRESS_WORD: &str = " by ";

/// Subject of an alert: an upstream over one egress.
fn subject(upstream: &str, egress: &str) -> String {
    format!("{upstream}{EGRESS_WORD}{egress}")
}

/// Reports whether the upstream of an alert is in use, and does not answer as far as it is known. By an egress that was not
/// used in this run it may be down, until `is_settled`: egresses that are not used for so long are forgotten.
fn may_be_down(upstreams: &[UpstreamStatus], alert: &str, is_settled: bool) -> bool {
    let is_same_address = |one: &&UpstreamStatus| {
        alert.strip_prefix(&one.address).is_some_and(|rest| rest.starts_with(EGRESS_WORD))
    };
    let mut of_address = upstreams.iter().filter(is_same_address);
    let is_same = |one: &UpstreamStatus| one.queries > 0 && subject(&one.address, &one.egress) == alert;
    match of_address.clone().find(|one| is_same(one)) {
        Some(one) => !one.ok || one.rtt_ms.is_none(),
        None => of_address.any(|one| one.queries == 0 || !is_settled),
    }
}

/// Expands the IPv4 wildcard address to both address families.
fn bind_addresses(address: SocketAddr) -> impl Iterator<Item = SocketAddr> {
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

fn log_settings(folder: Option<&OpenFolder>) -> gateway_dns::query_log::Settings {
    let directory = folder.map(|folder| folder.base().join(LOG_FOLDER));
    gateway_dns::query_log::Settings { directory, ..Default::default() }
}

/// Returns the settings of the resolver. Without a folder, the query log is in memory only.
fn settings(log_folder: Option<&OpenFolder>, dns: &Dns) -> Settings {
    let listen = bind_addresses(dns.listen_addr).map(|address| Listen { address, interface: None }).collect();
    let secure = dns.tls_listen_addrs.iter().copied().flat_map(bind_addresses).collect();
    let log = log_settings(log_folder);
    let blocking = Blocking { paused_until: dns.blocking_paused_until, ..Blocking::default() };
    let client_rate = Rate { per_second: dns.rate_limit_per_client, ..Settings::default().client_rate };
    Settings { listen, secure, log, blocking, client_rate, ..Settings::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(egress: &str, queries: u64, ok: bool, has_answered: bool) -> UpstreamStatus {
        UpstreamStatus {
            address: "9.9.9.9:53".into(),
            protocol: "udp".into(),
            egress: egress.into(),
            rtt_ms: has_answered.then_some(8.0),
            ok,
            queries,
            failures: 0,
            last_error: None,
        }
    }

    #[test]
    fn upstream_that_was_not_queried_is_unknown() {
        let alert = "9.9.9.9:53 by wg-a";
        let unused = status("default", 0, true, false);
        for is_settled in [false, true] {
            assert!(may_be_down(std::slice::from_ref(&unused), alert, is_settled));
            assert!(may_be_down(&[status("wg-a", 1, true, false)], alert, is_settled), "no answer yet");
            assert!(may_be_down(&[status("wg-a", 5, false, true)], alert, is_settled), "it died");
            assert!(!may_be_down(&[status("wg-a", 5, true, true)], alert, is_settled), "it answers");
            assert!(!may_be_down(&[], alert, is_settled), "it is not used any more");
        }
        let other = [status("default", 5, true, true)];
        assert!(may_be_down(&other, alert, false), "by another egress it was not queried");
        assert!(!may_be_down(&other, alert, true));
        assert!(!may_be_down(&other, "9.9.9.9 by wg-a", false), "another upstream");
    }
}
