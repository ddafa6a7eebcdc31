//! One run over all subsystems, in the order that leaks no packet and interrupts as little as possible.
//!
//! 1. Blocking objects go in first: `prohibit` and `unreachable` rules and routes, and the rules that keep this
//!    host's own replies off the uplink.
//! 2. The nft table is repaired, and then covers the old and the new egresses. A table that is not from a running
//!    gateway is left for later, so that default deny stays in force until the dataplane is live.
//! 3. Egress backends (tunnels, their bridges, proxies), links, addresses and sysctls come next; then routes, and
//!    then the rules that lead to them.
//! 4. The dataplane follows: one store makes the new plan live.
//! 5. The nft table gets its final content, and forwarding is turned on.
//! 6. Obsolete objects are removed: rules, then their routes, addresses, egress backends in reverse order, and at
//!    last the blocking objects. Removing a tunnel also removes the masquerading of its flows, so this host answers
//!    their late packets.
//!
//! A failing subsystem does not stop the others: without it, less traffic is let through, not more.

use std::collections::BTreeMap;

use gateway_core::plan::{AddressKey, LinkSettings, NftRuleset, Plan, RouteKey};

use super::backends::Host;
use super::{Check, Dataplane};
use crate::os::nft::{self, Nft};
use crate::os::route::{self, Routes};
use crate::os::rule::{InstalledRule, Rules};
use crate::os::sysctl::Sysctls;
use crate::os::{LastApplied, Outcome, SyncPass, sync};

/// All subsystems, with the state that each last applied.
pub struct Subsystems<H, D> {
    host: H,
    dataplane: D,
    memory: AppliedStates,
}

#[derive(Default)]
struct AppliedStates {
    links: LastApplied<String, LinkSettings>,
    addresses: LastApplied<AddressKey, ()>,
    sysctls: LastApplied<String, String>,
    routes: LastApplied<RouteKey, route::InstalledRoute>,
    rules: LastApplied<InstalledRule, ()>,
    nft: LastApplied<(), nft::InstalledTable>,
    /// Rule set that was last applied by `nft`.
    ruleset: Option<NftRuleset>,
}

impl<H: Host, D: Dataplane> Subsystems<H, D> {
    pub fn new(host: H, dataplane: D) -> Self {
        Self { host, dataplane, memory: AppliedStates::default() }
    }

    /// Returns the names of the subsystems whose changes are facts of the next plan.
    pub fn makers_of_facts(&self) -> Vec<&'static str> {
        let makers = self.host.egress_backends().iter().filter(|backend| backend.makes_links());
        makers.map(|backend| backend.name()).chain(["links", "addresses"]).collect()
    }

    /// Applies the plan to all subsystems. The outcomes contain the failures.
    pub async fn run(&mut self, plan: &Plan, check: Check) -> BTreeMap<&'static str, Outcome> {
        let Self { host, dataplane, memory } = self;
        let (routes_want, rules_want) = (Routes::want(&plan.routes), Rules::want(&plan.rules));
        let sysctls_want = Sysctls::want(&plan.sysctls);
        let (links, addresses, sysctls) = (host.links(plan), host.addresses(plan), host.sysctls(plan));

        let mut rules = SyncPass::open(host.rules(), &rules_want, &memory.rules).await;
        let mut routes = SyncPass::open(host.routes(), &routes_want, &memory.routes).await;
        rules.put_where(|rule, ()| Rules::blocks(rule)).await;
        routes.put_where(|_, route| Routes::blocks(route)).await;
        rules.put_where(|rule, ()| Rules::answers(rule)).await;

        let mut nft_outcome = widen_nft(host, memory, &plan.nft).await;
        let is_nft_set = memory.ruleset.as_ref() == Some(&plan.nft) && nft_outcome.is_ok();

        let mut stages = Vec::new();
        for backend in host.egress_backends() {
            let mut stage = backend.open(plan).await;
            stage.put().await;
            stages.push(stage);
        }
        let links_outcome = sync(&links, &plan.links, &mut memory.links).await;
        let mut addresses = SyncPass::open(&addresses, &plan.addresses, &memory.addresses).await;
        addresses.put().await;
        let mut settings = SyncPass::open(&sysctls, &sysctls_want, &memory.sysctls).await;
        settings.put_where(|name, _| !Sysctls::forwards(name)).await;

        // A link that was recreated or went down has lost its routes.
        routes.reread().await;
        routes.put().await;
        rules.put().await;

        let dataplane_outcome = dataplane.apply(plan, check).await;

        if !is_nft_set {
            nft_outcome.absorb(set_nft(host, memory, &plan.nft).await);
        }
        settings.put_where(|name, _| Sysctls::forwards(name)).await;
        // Turning forwarding on or off resets some other sysctls to their defaults.
        settings.reread().await;
        settings.put().await;

        rules.remove_where(|rule, ()| !Rules::blocks(rule) && !Rules::answers(rule)).await;
        routes.remove_where(|_, route| !Routes::blocks(route)).await;
        addresses.remove().await;
        for stage in stages.iter_mut().rev() {
            stage.remove().await;
        }
        rules.remove_where(|rule, ()| !Rules::blocks(rule)).await;
        routes.remove().await;
        rules.remove().await;

        let mut outcomes = BTreeMap::from([
            ("links", links_outcome),
            ("addresses", addresses.close(&mut memory.addresses)),
            ("sysctl", settings.close(&mut memory.sysctls)),
            ("dataplane", dataplane_outcome),
            ("routes", routes.close(&mut memory.routes)),
            ("rules", rules.close(&mut memory.rules)),
            ("nft", nft_outcome),
        ]);
        outcomes.extend(stages.into_iter().map(|stage| stage.close()));
        outcomes
    }
}

/// Makes a running gateway's table cover the old and the new egresses while the dataplane changes. No new egress is
/// ever without masquerading and input filter, and no old one is cut early. The function also repairs a table that
/// another program changed, before any step that takes longer.
async fn widen_nft<H: Host>(host: &H, memory: &mut AppliedStates, want: &NftRuleset) -> Outcome {
    let Some(before) = memory.ruleset.as_ref() else { return Outcome::default() };
    if before == want {
        return set_nft(host, memory, want).await;
    }
    set_nft(host, memory, &before.union(want)).await
}

async fn set_nft<H: Host>(host: &H, memory: &mut AppliedStates, ruleset: &NftRuleset) -> Outcome {
    let rendered = match Nft::gateway(ruleset) {
        Ok(rendered) => rendered,
        Err(error) => return Outcome::failure("table inet gateway", &error),
    };
    let outcome = sync(&host.nft(&rendered), &rendered.want(), &mut memory.nft).await;
    if outcome.is_ok() {
        memory.ruleset = Some(ruleset.clone());
    }
    outcome
}
