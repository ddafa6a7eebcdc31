//! What stands behind the API: the store, and whatever enforces its contents.
//!
//! The engine is behind a trait so that the API can be had without a kernel. [`Detached`] is such a gateway: it
//! compiles, explains and stores, enforces nothing, and says so.

mod detached;

pub use detached::Detached;

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::net::IpAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::compile::{Compiled, CompiledPolicy, Input};
use gateway_core::dns::Name;
use gateway_core::facts::Facts;
use gateway_core::learned::Key;
use gateway_core::network::{Network, UplinkSettings};
use gateway_ctl::clock::{SharedClock, SystemClock};
use gateway_ctl::effects::bpf::{self, AttachMode, Counters};
use gateway_ctl::effects::proxy::RelayStatus;
use gateway_ctl::effects::transport::{Connection, Seen as TransportsSeen};
use gateway_ctl::engine::{self, Engine, StateView};
use gateway_ctl::reconcile::{Reason, Status, Stopped};
use gateway_ctl::services::backup;
use gateway_ctl::services::bridges;
use gateway_ctl::services::deadman::Switch;
use gateway_ctl::services::extfilter;
use gateway_ctl::services::names::Names;
use gateway_ctl::services::notices::Notices;
use gateway_ctl::services::proxies::Seen as ProxiesSeen;
use gateway_ctl::services::tunnels::Seen;
use gateway_ctl::store::{self, AuditResult, AuditTicket, Store};
use gateway_ctl::supervise::Supervisor;
use gateway_model::kinds::device::DeviceLive;
use gateway_model::kinds::proxy::{Proxy, ProxyLive, ProxyStatus};
use gateway_model::kinds::routing_policy::{Hits, Hop, PolicyLive, PolicyStatus};
use gateway_model::kinds::tunnel::TunnelType;
use gateway_model::kinds::tunnel_health::{Health, PeerLive, TunnelLive, TunnelStatus};
use gateway_model::settings::bootstrap::Bootstrap;
use gateway_model::text::PublicKey;
use gateway_model::{Device, Id, RoutingPolicy, State, Tunnel};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::{Notify, watch};

use crate::context::Cx;
use crate::error::{ApiError, Code, chain};
use crate::table::Audit;
use crate::tls::Tls;

/// A running gateway, or one that blocks because it cannot read what it should do.
// There is one in a process.
#[allow(clippy::large_enum_variant)]
pub enum Gateway {
    Open(Open),
    Blocked {
        /// Human-readable, with what to do about it.
        reason: String,
        /// `not_initialised`, `store_missing` or `store_unusable`.
        cause: &'static str,
    },
}

/// The store and what enforces it.
pub struct Open {
    pub store: Arc<Store>,
    pub enforcement: Arc<dyn Enforcement>,
    /// Nothing where nothing resolves.
    pub names: Option<Arc<Names>>,
    pub tls: Arc<Tls>,
    pub deadman: Switch,
    pub backup: Arc<backup::Service>,
    pub bridge_tests: Arc<bridges::Tests>,
    pub extfilter: Arc<extfilter::Service>,
    /// What goes on that is worth an alert.
    pub notices: Notices,
    /// Told when the daemon is to end by itself.
    pub ending: Arc<Notify>,
    /// The long-lived tasks, and how they are.
    pub supervisor: Supervisor,
}

pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What the API asks of an engine.
pub trait Enforcement: Send + Sync {
    /// How the programs are attached (`tcx`, `clsact`); nothing if this gateway enforces nothing.
    fn attached(&self) -> Option<&'static str>;

    /// How the last run came out; wakes after each.
    fn status(&self) -> watch::Receiver<Arc<Status>>;

    /// Time since the reconcile loop was last seen to go on.
    fn loop_idle_time(&self) -> Duration {
        Duration::ZERO
    }

    /// The world as last observed.
    fn facts(&self) -> Arc<Facts>;

    /// Which interface is what.
    fn network(&self) -> &Network;

    /// What the last run compiled; where nothing runs, what would be compiled now.
    fn compiled(&self) -> Arc<Compiled>;

    /// State, facts and plan of one instant, of the newest state.
    fn view(&self) -> Arc<StateView>;

    /// Tunnels as last looked at.
    fn tunnels(&self) -> Arc<Seen>;

    /// Proxies as last looked at.
    fn proxies(&self) -> Arc<ProxiesSeen>;

    /// What goes through the proxies now.
    fn relayed(&self) -> RelayStatus;

    /// Transport bridges as they are, by the id of the tunnel that each carries.
    fn transports(&self) -> Arc<TransportsSeen>;

    /// Packets and bytes by the number of the policy.
    fn hits(&self, policy: u32) -> Hits;

    /// Flows with a packet in the last so many seconds, by the number of their policy and their leg.
    fn flows_by_leg(&self, _seconds: u32) -> Result<BTreeMap<(u32, u8), u64>, bpf::Error> {
        Ok(BTreeMap::new())
    }

    /// How many new flows a minute drew a leg, by the number of the policy.
    fn turns_per_minute(&self) -> BTreeMap<u32, f64> {
        BTreeMap::new()
    }

    /// Names by which a client was told an address.
    fn known_as(&self, _key: &Key) -> Vec<Name> {
        Vec::new()
    }

    /// Generation of the plan that is live in the kernel; 0 at rest.
    fn generation(&self) -> Result<u32, bpf::Error>;

    /// What the programs counted.
    fn counters(&self) -> Result<Counted, bpf::Error>;

    /// How often to compare the kernel with the plan without a reason.
    fn set_interval(&self, interval: Option<Duration>);

    /// Brings the kernel to the state now; nothing if this gateway enforces nothing.
    fn reconcile(&self, reason: Reason) -> Pending<'_, Result<Option<Arc<Status>>, Stopped>>;

    /// A tunnel that waits before it tries again tries now.
    fn hurry(&self, _tunnel: Id) {}

    /// Ends the processes that were started for tunnels; the plan in the kernel stays.
    fn end_processes(&self) -> Pending<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Blocks everything for good; nothing is enforced or changed after it.
    fn block(&self) -> Pending<'_, Result<(), engine::Error>>;
}

/// What the programs counted.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Counted {
    /// Verdicts by reason; reasons that never occurred are left out.
    pub verdicts: BTreeMap<String, Counters>,
    /// Packets of flows without a record in the flow table, because their device opened more flows than its budget. Each
    /// such packet gets a full policy lookup.
    pub unrecorded: Counters,
    /// Packets that would have left without a policy's leave and were dropped, by interface.
    pub prevented_leaks: BTreeMap<String, Counters>,
    /// Sampled verdicts on new flows, and leaks that were prevented; newest last.
    pub recent: Vec<bpf::Event>,
}

/// Objects at work, as the API shows them. What is costly to know of policies is asked for when one is shown.
pub struct Observed<'a> {
    enforcement: &'a dyn Enforcement,
    facts: Arc<Facts>,
    seen: Arc<Seen>,
    proxies: Arc<ProxiesSeen>,
    transports: Arc<TransportsSeen>,
    compiled: Arc<Compiled>,
    status: Arc<Status>,
    places: OnceCell<HashMap<Id, usize>>,
}

impl<'a> Observed<'a> {
    fn of(enforcement: &'a dyn Enforcement) -> Self {
        Self {
            enforcement,
            facts: enforcement.facts(),
            seen: enforcement.tunnels(),
            proxies: enforcement.proxies(),
            transports: enforcement.transports(),
            compiled: enforcement.compiled(),
            status: enforcement.status().borrow().clone(),
            places: OnceCell::new(),
        }
    }

    pub fn device(&self, device: &Device) -> DeviceLive {
        let mut ips: Vec<IpAddr> = device
            .all_macs()
            .iter()
            .filter_map(|mac| self.facts.neighbours.get(&mac.octets()))
            .flatten()
            .copied()
            .collect();
        ips.sort_unstable();
        ips.dedup();
        DeviceLive { ips, ..DeviceLive::default() }
    }

    pub fn tunnel(&self, tunnel: &Tunnel) -> TunnelLive {
        let mut live = self.seen.tunnels.get(&tunnel.meta.id).cloned().unwrap_or_default();
        // What the server gave out may have been refused, which only the compiler can judge.
        let refused = self.compiled.legs.of_tunnel(tunnel.meta.id).filter(|leg| !leg.usable && live.healthy);
        if let Some(leg) = refused.filter(|_| tunnel.r#type == TunnelType::Openvpn) {
            (live.status, live.health, live.healthy) = (TunnelStatus::Degraded, Health::Unhealthy, false);
            live.last_error = Some(leg.reason.clone());
            live.uptime_sec = None;
        }
        live
    }

    pub fn proxy(&self, proxy: &Proxy) -> ProxyLive {
        let status = if proxy.enabled { ProxyStatus::Unknown } else { ProxyStatus::Disabled };
        let unseen = ProxyLive { status, ..ProxyLive::default() };
        self.proxies.proxies.get(&proxy.meta.id).cloned().unwrap_or(unseen)
    }

    /// The bridge that carries a tunnel; nothing if none is at work.
    pub fn transport(&self, tunnel: Id) -> Option<&Connection> {
        self.transports.get(&tunnel.to_string())
    }

    /// How a segment is at work; nothing where nothing is enforced.
    pub fn segment(&self, bridge: Id) -> Option<PolicyStatus> {
        let compiled = self.compiled.policies.iter().find(|policy| policy.id == bridge);
        let live = self.at_work(compiled.filter(|_| self.is_enforced())?);
        let finding = self.compiled.findings.iter().any(|finding| finding.policy == Some(bridge));
        Some(if finding { PolicyStatus::Error } else { live.status })
    }

    /// Whether anything of the plan is in a kernel.
    pub fn is_enforced(&self) -> bool {
        self.enforcement.attached().is_some()
    }

    pub fn peer(&self, tunnel: &Tunnel, key: &PublicKey) -> PeerLive {
        self.seen.peers.get(&(tunnel.meta.id, *key.bytes())).cloned().unwrap_or_default()
    }

    /// A policy that is not in force is `disabled`, or `pending` if it is enabled and was not applied yet.
    pub fn policy(&self, state: &State, policy: &RoutingPolicy) -> PolicyLive {
        let all = &self.compiled.policies;
        let places =
            self.places.get_or_init(|| all.iter().enumerate().map(|(n, policy)| (policy.id, n)).collect());
        let compiled = places.get(&policy.meta.id).and_then(|place| all.get(*place));
        let unapplied = || {
            let waits = state.applied.policies.get(policy.meta.id).is_none_or(|applied| !applied.enabled);
            let status = if policy.enabled && waits { PolicyStatus::Pending } else { PolicyStatus::Disabled };
            PolicyLive { status, ..PolicyLive::default() }
        };
        compiled.map_or_else(unapplied, |policy| self.at_work(policy))
    }

    fn at_work(&self, policy: &CompiledPolicy) -> PolicyLive {
        let dataplane = self.status.subsystems.get("dataplane");
        // A plan that is not in the kernel steers nothing.
        let installed = self.enforcement.attached().is_some()
            && dataplane.is_some_and(|dataplane| dataplane.outcome.is_ok());
        PolicyLive {
            routing: installed,
            status: if installed { policy.status } else { PolicyStatus::Error },
            compiled_at: (self.status.run > 0).then_some(self.status.started),
            hits: self.enforcement.hits(policy.number),
            active_hop: policy.active_hop.clone().filter(|_| installed),
        }
    }

    /// Whether new flows of the policy take this hop.
    pub fn is_active(&self, state: &State, policy: &RoutingPolicy, hop: &Hop) -> bool {
        let live = self.policy(state, policy);
        live.routing && (policy.is_pool() || live.active_hop.as_ref() == Some(hop))
    }
}

/// An attempt that the store's write path does not record by itself.
pub struct Attempt {
    pub audit: Audit,
    pub subject: String,
    /// Name of the user that was tried to sign in as.
    pub username: Option<String>,
    pub denied: bool,
    /// Code and message, if it failed.
    pub error: Option<(&'static str, String)>,
    /// Refusals before this one that have no entry.
    pub unrecorded: u64,
}

impl Open {
    /// The services over an opened store, without a resolver. `is_synchronised` says whether the wall clock is right.
    pub fn over(
        store: Arc<Store>,
        enforcement: Arc<dyn Enforcement>,
        tls: Arc<Tls>,
        file: &Arc<Bootstrap>,
        supervisor: Supervisor,
        is_synchronised: fn() -> bool,
    ) -> Result<Open, store::Error> {
        Ok(Open {
            enforcement,
            names: None,
            deadman: Switch::new(store.clone(), is_synchronised)?,
            backup: backup::Service::new(store.clone(), tls.factory.clone()),
            bridge_tests: Arc::default(),
            extfilter: extfilter::Service::new(store.clone(), file.clone(), &tls.factory),
            notices: Notices::new(store.clock().clone()),
            ending: Arc::new(Notify::new()),
            store,
            tls,
            supervisor,
        })
    }

    pub fn now(&self) -> Timestamp {
        self.store.clock().now()
    }

    pub fn observed(&self) -> Observed<'_> {
        Observed::of(self.enforcement.as_ref())
    }

    /// Everything an explanation is made from, as of now.
    pub fn picture(&self) -> Picture {
        let StateView { state, facts, compiled } = StateView::clone(&self.enforcement.view());
        Picture { state, network: self.enforcement.network().clone(), facts, compiled, now: self.now() }
    }

    /// Brings the kernel to the state now.
    pub async fn reconcile(&self, reason: Reason) -> Result<Option<Arc<Status>>, ApiError> {
        self.enforcement.reconcile(reason).await.map_err(|stopped| ApiError::internal(&stopped))
    }
}

/// State, facts and plan at one instant.
pub struct Picture {
    pub state: Arc<State>,
    pub network: Network,
    pub facts: Arc<Facts>,
    pub compiled: Arc<Compiled>,
    pub now: Timestamp,
}

impl Picture {
    pub fn input(&self) -> Input<'_> {
        Input { state: &self.state, network: &self.network, facts: &self.facts, now: self.now }
    }
}

impl Gateway {
    /// A gateway with its store in this folder and no kernel behind it.
    pub fn detached(folder: &Path) -> Result<Self, store::Error> {
        Self::detached_at(folder, SystemClock::shared())
    }

    /// The same under another clock.
    pub fn detached_at(folder: &Path, clock: SharedClock) -> Result<Self, store::Error> {
        let store = Arc::new(Store::open(folder.join("store.redb"), clock)?);
        let network = Network {
            lan: vec!["eth1".to_owned()],
            uplinks: vec![UplinkSettings { interface: "eth0".to_owned(), gateway: None }],
            sample_every: 0,
            ..Network::default()
        };
        let enforcement = Arc::new(Detached::new(store.clone(), network));
        let tls = Arc::new(Tls::default());
        tls.adopt(&store);
        let supervisor = Supervisor::new(store.clock().clone());
        let file = Arc::default();
        Ok(Gateway::Open(Open::over(store, enforcement, tls, &file, supervisor, || true)?))
    }

    /// Writes an audit entry for an attempt.
    pub async fn record(&self, cx: &Cx, attempt: Attempt) -> Result<(), ApiError> {
        let Gateway::Open(open) = self else { return Ok(()) };
        let Attempt { audit, subject, username, denied, error, unrecorded } = attempt;
        let mut ticket = cx.ticket(audit);
        ticket.resource_id = Some(subject).filter(|subject| !subject.is_empty());
        let result = match (&error, denied) {
            (None, _) => AuditResult::Success,
            (Some(_), true) => AuditResult::Denied,
            (Some(_), false) => AuditResult::Failed,
        };
        if let Some((code, message)) = error {
            ticket.details = serde_json::json!({"error": code, "message": message});
            if unrecorded > 0 {
                ticket.details["unrecorded_refusals_before"] = unrecorded.into();
            }
            username.into_iter().for_each(|username| ticket.details["username"] = username.into());
        }
        let store = open.store.clone();
        blocking(move || store.record(ticket, result)).await?.map_err(ApiError::from)
    }
}

/// Runs what waits for the disk where waiting is allowed.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => Ok(value),
        // The dispatcher answers for panics.
        Err(join) if join.is_panic() => std::panic::resume_unwind(join.into_panic()),
        Err(join) => Err(ApiError::internal(&join)),
    }
}

impl From<store::Error> for ApiError {
    fn from(error: store::Error) -> Self {
        if error.is_full() {
            tracing::error!(error = %chain(&error), "no room for the store");
            return Self::new(Code::StorageFull, "There is no room left on the disk of the store.");
        }
        match &error {
            store::Error::SecretsLocked => {
                let message =
                    "The passphrase of the secrets is lost: set it again before a secret can be stored.";
                Self::new(Code::InvalidState, message)
                    .detail("state", "secrets_locked")
                    .detail("allowed", vec!["POST /secrets/set-passphrase"])
            }
            _ => Self::internal(&error),
        }
    }
}

impl Cx {
    /// The entry that a change of this request will leave.
    pub fn ticket(&self, audit: Audit) -> AuditTicket {
        AuditTicket {
            actor: self.actor.name.clone(),
            auth: self.actor.proof.audit(),
            ip: self.actor.ip,
            request_id: self.request_id.clone(),
            action: audit.action.to_owned(),
            resource_type: audit.resource_type.to_owned(),
            resource_id: None,
            named: None,
            details: serde_json::Value::Null,
        }
    }
}

impl Enforcement for Engine {
    fn attached(&self) -> Option<&'static str> {
        Some(match self.attach_mode() {
            AttachMode::Tcx => "tcx",
            AttachMode::Clsact => "clsact",
        })
    }

    fn status(&self) -> watch::Receiver<Arc<Status>> {
        Engine::status(self)
    }

    fn loop_idle_time(&self) -> Duration {
        Engine::loop_idle_time(self)
    }

    fn facts(&self) -> Arc<Facts> {
        Engine::facts(self)
    }

    fn network(&self) -> &Network {
        Engine::network(self)
    }

    fn compiled(&self) -> Arc<Compiled> {
        Engine::compiled(self)
    }

    fn view(&self) -> Arc<StateView> {
        Engine::view(self)
    }

    fn tunnels(&self) -> Arc<Seen> {
        Engine::tunnels(self)
    }

    fn proxies(&self) -> Arc<ProxiesSeen> {
        Engine::proxies(self)
    }

    fn relayed(&self) -> RelayStatus {
        Engine::relayed(self)
    }

    fn transports(&self) -> Arc<TransportsSeen> {
        Engine::transports(self)
    }

    fn hits(&self, policy: u32) -> Hits {
        Engine::hits(self, policy)
    }

    fn flows_by_leg(&self, seconds: u32) -> Result<BTreeMap<(u32, u8), u64>, bpf::Error> {
        Engine::flows_by_leg(self, seconds)
    }

    fn turns_per_minute(&self) -> BTreeMap<u32, f64> {
        Engine::turns_per_minute(self)
    }

    fn known_as(&self, key: &Key) -> Vec<Name> {
        Engine::known_as(self, key)
    }

    fn generation(&self) -> Result<u32, bpf::Error> {
        Engine::generation(self)
    }

    fn counters(&self) -> Result<Counted, bpf::Error> {
        let counted = Engine::counted(self)?;
        let facts = Engine::facts(self);
        let name = |index: u32| {
            let link = facts.links.iter().find(|(_, link)| link.index == index);
            link.map_or_else(|| format!("ifindex {index}"), |(name, _)| name.clone())
        };
        let prevented = counted.prevented.into_iter();
        let prevented_leaks = prevented.map(|(index, counters)| (name(index), counters)).collect();
        Ok(Counted {
            verdicts: counted.verdicts,
            unrecorded: counted.unrecorded,
            prevented_leaks,
            recent: Engine::events(self),
        })
    }

    fn set_interval(&self, interval: Option<Duration>) {
        Engine::set_interval(self, interval);
    }

    fn reconcile(&self, reason: Reason) -> Pending<'_, Result<Option<Arc<Status>>, Stopped>> {
        Box::pin(async move { Engine::reconcile(self, reason).await.map(Some) })
    }

    fn hurry(&self, tunnel: Id) {
        Engine::hurry(self, tunnel);
    }

    fn end_processes(&self) -> Pending<'_, ()> {
        Box::pin(Engine::end_processes(self))
    }

    fn block(&self) -> Pending<'_, Result<(), engine::Error>> {
        Box::pin(Engine::block(self))
    }
}
