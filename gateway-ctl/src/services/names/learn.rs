//! Policies for domains: which names they know, and addresses on their way to the dataplane.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use gateway_common::wire::{ClientKey, RANK_NONE};
use gateway_core::compile::Compiled;
use gateway_core::dns::NameRef;
use gateway_core::domains::Domains;
use gateway_core::outgoing;
use gateway_dns::seam::{Client, Learn, Unlearned, Way};

use super::ways::Ways;
use crate::reconcile::KernelDataplane;

pub struct Learner {
    dataplane: KernelDataplane,
    domains: Arc<ArcSwap<Domains>>,
    ways: Arc<Ways>,
    /// The way of each policy with domains, by its rank.
    by_rank: ArcSwap<HashMap<u32, Arc<Way>>>,
}

impl Learner {
    pub fn new(
        dataplane: KernelDataplane,
        domains: Arc<ArcSwap<Domains>>,
        ways: Arc<Ways>,
        compiled: &Compiled,
        ipv6: bool,
    ) -> Learner {
        let learner = Learner { dataplane, domains, ways, by_rank: ArcSwap::default() };
        learner.follow(compiled, ipv6);
        learner
    }

    /// Upstreams are asked by IPv6, or by IPv4.
    pub fn follow(&self, compiled: &Compiled, ipv6: bool) {
        let rules = compiled.plan.dataplane.domains.iter();
        let way = |rank: u32| (rank, self.ways.of(outgoing::of_policy(compiled, rank, ipv6)));
        self.by_rank.store(Arc::new(rules.map(|rule| way(rule.rank)).collect()));
    }
}

impl Learn for Learner {
    fn wanted(&self, client: &Client, asked: NameRef<'_>) -> Option<Arc<Way>> {
        let domains = self.domains.load();
        if domains.is_empty() {
            return None;
        }
        let device = ClientKey::from_number(client.number).device();
        let rank = domains.rank(asked, device);
        if rank == RANK_NONE {
            return None;
        }
        // Where a policy of the client comes first, its traffic to the name takes that one's way, and so do its questions.
        // So does what a policy is asked that is too new for its way to be known.
        let by_rank = self.by_rank.load();
        let way = by_rank.get(&rank).filter(|_| rank < client.rank).unwrap_or(&client.way);
        Some(way.clone())
    }

    fn learn(
        &self,
        client: &Client,
        asked: NameRef<'_>,
        addresses: &[(IpAddr, Duration)],
    ) -> Result<(), Unlearned> {
        let key = ClientKey::from_number(client.number);
        self.dataplane.with(|programs| programs.learn(key, asked, addresses)).map_err(|error| {
            tracing::error!(%error, "an answer is kept back: the dataplane has not learned it");
            Unlearned(error.to_string().into())
        })
    }
}
