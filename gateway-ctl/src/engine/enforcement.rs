//! Operations on a kernel that enforces a plan: commands, and counters that are read on demand. The
//! [`World`](crate::world::World) holds all other state.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use gateway_common::wire::BlockKey;
use gateway_core::dns::Name;
use gateway_core::fqdn_cache::Key;
use gateway_core::leak_check;
use gateway_model::Id;
use gateway_model::kinds::routing_policy::Hits;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Engine, Error, LoadingPrograms, block, exit_addresses, leak_probes};
use crate::os::bpf::{self, Counters, FastPathStats, XdpStats};
use crate::os::link_counters::{self, LinkTraffic};
use crate::os::proxy::RelayStatus;
use crate::reconcile::{Reason, Status, Stopped};
use crate::service::Health;
use crate::services::dhcp::DhcpServer;
use crate::services::foreign_routers::ForeignRouter;
use crate::services::gateway_verdict::GatewayVerdict;
use crate::services::guard_tap::EscapeCounts;
use crate::services::history::History;
use crate::services::hosts::HostInventory;
use crate::services::ipv6_lan::AnnouncementCounters;

pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Kernel behind the API. The default methods are those of a gateway without a kernel.
pub trait Enforcement: Send + Sync {
    /// Reconciles the kernel with the state now. Returns `None` if this gateway enforces nothing. A run that has
    /// already enforced this state is the result of an apply.
    fn reconcile(&self, _reason: Reason) -> Pending<'_, Result<Option<Arc<Status>>, Stopped>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Returns the time since the reconcile loop last made progress.
    fn loop_idle_time(&self) -> Duration {
        Duration::ZERO
    }

    /// Sets the interval of periodic reconciles; `None` turns them off.
    fn set_interval(&self, _interval: Option<Duration>) {}

    /// Returns packets and bytes of a policy, by policy index.
    fn hits(&self, _policy: u32) -> Hits {
        Hits::default()
    }

    /// Counts the flows with a packet in the last `_seconds` seconds, by policy index and leg.
    fn flows_by_leg(&self, _seconds: u32) -> Result<BTreeMap<(u32, u8), u64>, bpf::Error> {
        Ok(BTreeMap::new())
    }

    /// Returns the new flows per minute that were assigned a leg by round robin, by policy index.
    fn turns_per_minute(&self) -> BTreeMap<u32, f64> {
        BTreeMap::new()
    }

    /// Returns the domains through which a client resolved an address.
    fn names_of(&self, _key: &Key) -> Vec<Name> {
        Vec::new()
    }

    /// Returns the generation of the plan that is live in the kernel; 0 under default deny.
    fn generation(&self) -> Result<u32, bpf::Error> {
        Ok(0)
    }

    /// Returns the counters of the programs since they were first loaded.
    fn counters(&self) -> Result<BpfCounters, bpf::Error> {
        Ok(BpfCounters::default())
    }

    /// Returns the statistics of the fast path since the start of the daemon.
    fn fast_path(&self) -> Result<FastPathStats, bpf::Error> {
        Ok(FastPathStats::default())
    }

    /// Returns the statistics of XDP since the start of the daemon.
    fn xdp(&self) -> Result<XdpStats, bpf::Error> {
        Ok(XdpStats::default())
    }

    /// Returns the blocked packets by device, policy and reason.
    fn block_hits(&self) -> Result<BlockHits, bpf::Error> {
        Ok(BlockHits::default())
    }

    /// Returns the bytes through each interface; empty without a kernel, or if they cannot be read.
    fn link_traffic(&self) -> BTreeMap<String, LinkTraffic> {
        BTreeMap::new()
    }

    /// Returns the packets that left past the egress guard.
    fn escaped(&self) -> EscapeCounts {
        EscapeCounts::default()
    }

    /// Returns other routers that announce themselves on the LAN.
    fn foreign_routers(&self) -> Vec<ForeignRouter> {
        Vec::new()
    }

    /// Returns the health that the services of the engine report.
    fn health(&self) -> Pending<'_, Vec<Health>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Returns the DHCP server. `None` without a kernel.
    fn dhcp(&self) -> Option<&DhcpServer> {
        None
    }

    /// Returns the numbers of router advertisements and of related packets.
    fn router_announcements(&self) -> AnnouncementCounters {
        AnnouncementCounters::default()
    }

    /// Returns the last verdict on the gateway.
    fn verdict(&self) -> Option<Arc<GatewayVerdict>> {
        None
    }

    /// Returns the history of uplinks and tunnels. `None` without a kernel.
    fn history(&self) -> Option<&History> {
        None
    }

    /// Returns the inventory of hosts.
    fn hosts(&self) -> Option<&HostInventory> {
        None
    }

    /// Sends the probes of a leak check, observes what becomes of them, and asks servers for the address that they see.
    fn send_probes(&self, _plan: Arc<leak_check::Plan>) -> Pending<'_, leak_check::Run> {
        let failure = Some("this gateway is not attached to a kernel".to_owned());
        Box::pin(std::future::ready(leak_check::Run { failure, ..leak_check::Run::default() }))
    }

    /// Returns the current traffic through the proxies.
    fn relayed(&self) -> RelayStatus {
        RelayStatus::default()
    }

    /// Makes the DHCP client of an interface renew its lease. Returns false if none runs.
    fn renew_lease(&self, _interface: &str) -> bool {
        false
    }

    /// Makes a tunnel that waits for its next attempt retry now.
    fn retry_now(&self, _tunnel: Id) {}

    /// Ends the services that enforce the plan, for good. The plan in the kernel stays.
    fn end(&self) -> Pending<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Blocks everything for good. Nothing is enforced or changed afterwards.
    fn block(&self) -> Pending<'_, Result<(), Error>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Packets that privacy blocks stopped.
#[derive(Clone, Debug, Default)]
pub struct BlockHits {
    /// Time since which they are counted.
    pub since: Option<Timestamp>,
    pub hits: BTreeMap<BlockKey, Counters>,
}

/// Counters of the BPF programs.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct BpfCounters {
    /// Verdicts by reason. Reasons that never occurred are absent.
    pub verdicts: BTreeMap<String, Counters>,
    /// Packets of flows without an entry in the flow table, because their device exceeded its flow budget. Each such
    /// packet gets a full policy lookup.
    pub unrecorded: Counters,
    /// Packets dropped by the egress guard, by interface.
    pub prevented_leaks: BTreeMap<String, Counters>,
    /// Sampled verdicts on new flows, and drops of the egress guard; newest last.
    pub recent: Vec<bpf::Event>,
}

/// Absent kernel: this gateway compiles, explains and stores, but enforces nothing, and reports so.
#[derive(Clone, Debug)]
pub struct Detached {
    /// Hosts of an earlier run; nothing observes any.
    pub hosts: HostInventory,
}

impl Enforcement for Detached {
    fn hosts(&self) -> Option<&HostInventory> {
        Some(&self.hosts)
    }
}

impl Enforcement for Engine {
    fn reconcile(&self, reason: Reason) -> Pending<'_, Result<Option<Arc<Status>>, Stopped>> {
        Box::pin(async move {
            let status = match reason {
                Reason::Apply | Reason::Revision => {
                    let revision = self.worlds.revision();
                    self.handle.run_for(reason, revision).await
                }
                _ => self.handle.run_now(reason).await,
            };
            status.map(Some)
        })
    }

    fn loop_idle_time(&self) -> Duration {
        self.handle.idle_time()
    }

    fn set_interval(&self, interval: Option<Duration>) {
        self.handle.set_interval(interval);
    }

    fn hits(&self, policy: u32) -> Hits {
        let counters = self.dataplane.with(|programs| programs.policy_counters(policy));
        let Counters { packets, bytes } = counters.unwrap_or_default();
        Hits { packets, bytes }
    }

    fn flows_by_leg(&self, seconds: u32) -> Result<BTreeMap<(u32, u8), u64>, bpf::Error> {
        self.dataplane.with(|programs| programs.flow_reader())?.flows_by_leg(seconds)
    }

    fn turns_per_minute(&self) -> BTreeMap<u32, f64> {
        self.turns.per_minute()
    }

    fn names_of(&self, key: &Key) -> Vec<Name> {
        self.dataplane.with(|programs| programs.names_of(key))
    }

    fn generation(&self) -> Result<u32, bpf::Error> {
        self.dataplane.with(|programs| programs.generation())
    }

    fn counters(&self) -> Result<BpfCounters, bpf::Error> {
        let facts = self.worlds.last().facts.clone();
        let name = |index: u32| {
            let link = facts.links.iter().find(|(_, link)| link.index == index);
            link.map_or_else(|| format!("ifindex {index}"), |(name, _)| name.clone())
        };
        self.dataplane.with(|programs| {
            let reasons = programs.reason_counters()?.into_iter();
            let prevented = programs.prevented()?.into_iter();
            Ok(BpfCounters {
                verdicts: reasons.map(|(reason, counters)| (reason.as_str().to_owned(), counters)).collect(),
                unrecorded: programs.unrecorded()?,
                prevented_leaks: prevented.map(|(index, counters)| (name(index), counters)).collect(),
                recent: self.recent.list(),
            })
        })
    }

    fn fast_path(&self) -> Result<FastPathStats, bpf::Error> {
        self.dataplane.fast_path().stats()
    }

    fn xdp(&self) -> Result<XdpStats, bpf::Error> {
        self.dataplane.xdp().stats()
    }

    fn block_hits(&self) -> Result<BlockHits, bpf::Error> {
        self.dataplane
            .with(|programs| Ok(BlockHits { since: programs.counting_since(), hits: programs.block_hits()? }))
    }

    fn link_traffic(&self) -> BTreeMap<String, LinkTraffic> {
        link_counters::traffic().unwrap_or_default()
    }

    fn escaped(&self) -> EscapeCounts {
        self.escapes.read()
    }

    fn foreign_routers(&self) -> Vec<ForeignRouter> {
        self.routers.list()
    }

    fn health(&self) -> Pending<'_, Vec<Health>> {
        Box::pin(self.services.health())
    }

    fn dhcp(&self) -> Option<&DhcpServer> {
        Some(&self.dhcp)
    }

    fn router_announcements(&self) -> AnnouncementCounters {
        self.announcements.counters()
    }

    fn verdict(&self) -> Option<Arc<GatewayVerdict>> {
        self.verdicts.borrow().clone()
    }

    fn history(&self) -> Option<&History> {
        Some(&self.history)
    }

    fn hosts(&self) -> Option<&HostInventory> {
        Some(&self.hosts)
    }

    fn send_probes(&self, plan: Arc<leak_check::Plan>) -> Pending<'_, leak_check::Run> {
        Box::pin(async move {
            // Taps of two runs would read each other's probes.
            let _one_at_a_time = self.probing.lock().await;
            let (dataplane, probed) = (self.dataplane.clone(), plan.clone());
            let sent = tokio::task::spawn_blocking(move || leak_probes::run(&dataplane, &probed));
            let (sent, exits) = tokio::join!(sent, exit_addresses::ask(&plan, &self.endpoint_names));
            self.exits.report(&exits);
            let failure = |error: String| leak_check::Run { failure: Some(error), ..Default::default() };
            let run = match sent {
                Ok(Ok(run)) => run,
                Ok(Err(error)) => failure(format!("{error:#}")),
                Err(error) => failure(error.to_string()),
            };
            leak_check::Run { exits, ..run }
        })
    }

    fn relayed(&self) -> RelayStatus {
        self.relay.status()
    }

    fn renew_lease(&self, interface: &str) -> bool {
        self.dhcp_clients.renew(interface)
    }

    fn retry_now(&self, tunnel: Id) {
        self.openvpn.retry_now(&tunnel.to_string());
    }

    fn end(&self) -> Pending<'_, ()> {
        Box::pin(self.services.end())
    }

    fn block(&self) -> Pending<'_, Result<(), Error>> {
        Box::pin(async move {
            self.services.abort();
            self.openvpn.stop().await;
            let config = self.worlds.in_force().config;
            block(&config, LoadingPrograms::begin(&config)).await
        })
    }
}
