//! FQDN policies: the matching domains, and the installation of DNS-learned IPs in the dataplane.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use gateway_common::wire::ClientKey;
use gateway_core::dns::NameRef;
use gateway_core::fqdn_match::Domains;
use gateway_core::host_egress;
use gateway_core::indexes::Rank;
use gateway_dns::hooks::{Client, FqdnInstallError, FqdnPolicy, QueryRoute, Resolvers};

use super::inputs::ResolverInputs;
use super::query_routes::QueryRoutes;
use super::upstream_selection::{ClientQuery, UpstreamSelection};
use crate::reconcile::KernelDataplane;

/// Address that no host has.
const NO_CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

pub(super) struct FqdnInstaller {
    dataplane: KernelDataplane,
    domains: Arc<ArcSwap<Domains>>,
    routes: Arc<QueryRoutes>,
    applied: ArcSwap<AppliedPlan>,
}

/// State derived from the plan.
#[derive(Default)]
struct AppliedPlan {
    choice: Arc<UpstreamSelection>,
    /// Query routes of each FQDN policy, by its rank: for all clients, and for the external filter itself.
    by_rank: HashMap<Rank, [Arc<QueryRoute>; 2]>,
}

impl FqdnInstaller {
    pub(super) fn new(
        dataplane: KernelDataplane,
        domains: Arc<ArcSwap<Domains>>,
        routes: Arc<QueryRoutes>,
    ) -> FqdnInstaller {
        FqdnInstaller { dataplane, domains, routes, applied: ArcSwap::default() }
    }

    /// Takes over a new plan. With `ipv6`, upstreams are queried over IPv6, otherwise over IPv4.
    pub(super) fn follow(&self, inputs: &ResolverInputs, choice: Arc<UpstreamSelection>, ipv6: bool) {
        let compiled = inputs.world.compiled();
        let rules = compiled.plan.dataplane.domains.iter();
        let routes = |rank: Rank| {
            let outgoing = host_egress::of_policy(compiled, Some(rank), ipv6);
            let asking = ClientQuery {
                input: inputs.world.input(),
                compiled,
                rank: Some(rank),
                from: Some(NO_CLIENT),
            };
            let (chosen, resolvers) = choice.of(&asking, outgoing.clone());
            (rank, [self.routes.of(chosen, resolvers), self.routes.of(outgoing, Resolvers::Usual)])
        };
        let by_rank = rules.map(|rule| routes(rule.rank)).collect();
        self.applied.store(Arc::new(AppliedPlan { choice, by_rank }));
    }
}

impl FqdnPolicy for FqdnInstaller {
    fn fqdn_route(&self, client: &Client, qname: NameRef<'_>) -> Option<Arc<QueryRoute>> {
        let domains = self.domains.load();
        if domains.is_empty() {
            return None;
        }
        let device = ClientKey::from_number(client.number).device();
        let rank = domains.rank(qname, device)?;
        // If an earlier policy of the client matches, its route applies to traffic and queries for the name. The same
        // route applies if the FQDN policy is so new that its own route is unknown.
        let applied = self.applied.load();
        let itself = usize::from(applied.choice.is_itself(client.asker.address));
        let route = applied
            .by_rank
            .get(&rank)
            .filter(|_| client.rank.is_none_or(|own| rank < own))
            .map(|routes| &routes[itself]);
        Some(route.unwrap_or(&client.route).clone())
    }

    fn install(
        &self,
        client: &Client,
        qname: NameRef<'_>,
        addresses: &[(IpAddr, Duration)],
    ) -> Result<(), FqdnInstallError> {
        let key = ClientKey::from_number(client.number);
        self.dataplane.with(|programs| programs.install_learned(key, qname, addresses)).map_err(|error| {
            tracing::error!(%error, "withheld DNS answer: could not install FQDN policy entry");
            FqdnInstallError(error.to_string().into())
        })
    }
}
