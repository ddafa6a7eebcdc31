//! What can be asked of a kernel that enforces a plan: commands, and counters that are read when somebody shows them.
//! Everything else that is known of it is in the [`World`](crate::world::World).

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use gateway_core::dns::Name;
use gateway_core::fqdn_cache::Key;
use gateway_model::Id;
use gateway_model::kinds::routing_policy::Hits;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Engine, Error, block};
use crate::os::bpf::{self, Counters};
use crate::os::proxy::RelayStatus;
use crate::reconcile::{Reason, Status, Stopped};

pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A kernel behind the API. The defaults are those of a gateway without one.
pub trait Enforcement: Send + Sync {
    /// Brings the kernel to the state now; none if this gateway enforces nothing.
    fn reconcile(&self, _reason: Reason) -> Pending<'_, Result<Option<Arc<Status>>, Stopped>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Time since the reconcile loop was last seen to go on.
    fn loop_idle_time(&self) -> Duration {
        Duration::ZERO
    }

    /// How often to compare the kernel with the plan without a reason.
    fn set_interval(&self, _interval: Option<Duration>) {}

    /// Packets and bytes by the number of the policy.
    fn hits(&self, _policy: u32) -> Hits {
        Hits::default()
    }

    /// Flows with a packet in the last so many seconds, by the number of their policy and their leg.
    fn flows_by_leg(&self, _seconds: u32) -> Result<BTreeMap<(u32, u8), u64>, bpf::Error> {
        Ok(BTreeMap::new())
    }

    /// New flows a minute that drew a leg, by the number of the policy.
    fn turns_per_minute(&self) -> BTreeMap<u32, f64> {
        BTreeMap::new()
    }

    /// DnsService by which a client was told an address.
    fn known_as(&self, _key: &Key) -> Vec<Name> {
        Vec::new()
    }

    /// Generation of the plan that is live in the kernel; 0 at rest.
    fn generation(&self) -> Result<u32, bpf::Error> {
        Ok(0)
    }

    /// Counters of the programs since they were first loaded.
    fn counters(&self) -> Result<Counted, bpf::Error> {
        Ok(Counted::default())
    }

    /// Traffic through the proxies now.
    fn relayed(&self) -> RelayStatus {
        RelayStatus::default()
    }

    /// A tunnel that waits before it tries again tries now.
    fn hurry(&self, _tunnel: Id) {}

    /// Ends the services that enforce, for good; the plan in the kernel stays.
    fn end(&self) -> Pending<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Blocks everything for good; nothing is enforced or changed after it.
    fn block(&self) -> Pending<'_, Result<(), Error>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Counters of the programs.
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

/// No kernel: this gateway compiles, explains and stores, enforces nothing, and says so.
#[derive(Clone, Copy, Debug, Default)]
pub struct Detached;

impl Enforcement for Detached {}

impl Enforcement for Engine {
    fn reconcile(&self, reason: Reason) -> Pending<'_, Result<Option<Arc<Status>>, Stopped>> {
        Box::pin(async move { self.handle.run_now(reason).await.map(Some) })
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

    fn known_as(&self, key: &Key) -> Vec<Name> {
        self.dataplane.with(|programs| programs.known_as(key))
    }

    fn generation(&self) -> Result<u32, bpf::Error> {
        self.dataplane.with(|programs| programs.generation())
    }

    fn counters(&self) -> Result<Counted, bpf::Error> {
        let facts = self.worlds.last().facts.clone();
        let name = |index: u32| {
            let link = facts.links.iter().find(|(_, link)| link.index == index);
            link.map_or_else(|| format!("ifindex {index}"), |(name, _)| name.clone())
        };
        self.dataplane.with(|programs| {
            let reasons = programs.reason_counters()?.into_iter();
            let prevented = programs.prevented()?.into_iter();
            Ok(Counted {
                verdicts: reasons.map(|(reason, counters)| (reason.as_str().to_owned(), counters)).collect(),
                unrecorded: programs.unrecorded()?,
                prevented_leaks: prevented.map(|(index, counters)| (name(index), counters)).collect(),
                recent: self.recent.list(),
            })
        })
    }

    fn relayed(&self) -> RelayStatus {
        self.relay.status()
    }

    fn hurry(&self, tunnel: Id) {
        self.openvpn.hurry(&tunnel.to_string());
    }

    fn end(&self) -> Pending<'_, ()> {
        Box::pin(self.services.end())
    }

    fn block(&self) -> Pending<'_, Result<(), Error>> {
        Box::pin(async move {
            self.services.abort();
            self.openvpn.stop().await;
            block(&self.worlds.in_force().config).await
        })
    }
}
