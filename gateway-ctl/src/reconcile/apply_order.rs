//! One run over all subsystems, in the order in which nothing leaks and as little as possible is interrupted.
//!
//! 1. What blocks goes in: rules that refuse, routes that end, and rules that keep this host's own answers to them.
//! 2. The nft table is repaired, and comes to hold the old and the new ways out; a table that is not a running gateway's is left for
//!    later, so that the base block holds until the dataplane stands.
//! 3. Egress backends (tunnels, their bridges, proxies), links, addresses, settings; then routes, then the rules that lead to them.
//! 4. The dataplane: the one store that makes the new plan live.
//! 5. The nft table as wanted, and forwarding is turned on.
//! 6. What is not wanted goes: rules, then their routes, addresses, egress backends in the opposite order, and then what blocked. A
//!    tunnel that goes takes the masquerading of its flows along: what still comes in is answered by this host.
//!
//! A subsystem that fails does not stop the others: without it less is let through, not more.

use std::collections::BTreeMap;

use gateway_core::plan::{AddressKey, LinkSettings, NftRuleset, Plan, RouteKey};

use super::Dataplane;
use super::backends::Host;
use crate::os::nft::{self, Nft};
use crate::os::route::{self, Routes};
use crate::os::rule::{InstalledRule, Rules};
use crate::os::sysctl::Sysctls;
use crate::os::{Memory, Outcome, Pass, sync};

/// All subsystems, with what each was last brought to.
pub struct Subsystems<H, D> {
    host: H,
    dataplane: D,
    memory: Memories,
}

#[derive(Default)]
struct Memories {
    links: Memory<String, LinkSettings>,
    addresses: Memory<AddressKey, ()>,
    sysctls: Memory<String, String>,
    routes: Memory<RouteKey, route::Installed>,
    rules: Memory<InstalledRule, ()>,
    nft: Memory<(), nft::Installed>,
    /// The rule set that `nft` speaks of.
    ruleset: Option<NftRuleset>,
}

impl<H: Host, D: Dataplane> Subsystems<H, D> {
    pub fn new(host: H, dataplane: D) -> Self {
        Self { host, dataplane, memory: Memories::default() }
    }

    /// Returns the subsystems whose changes are facts of the next plan.
    pub fn makers_of_facts(&self) -> Vec<&'static str> {
        let makers = self.host.egress_backends().iter().filter(|backend| backend.makes_links());
        makers.map(|backend| backend.name()).chain(["links", "addresses"]).collect()
    }

    /// Brings everything to the plan. What failed is in the outcomes.
    pub async fn run(&mut self, plan: &Plan) -> BTreeMap<&'static str, Outcome> {
        let Self { host, dataplane, memory } = self;
        let (routes_want, rules_want) = (Routes::want(&plan.routes), Rules::want(&plan.rules));
        let sysctls_want = Sysctls::want(&plan.sysctls);
        let (links, addresses, sysctls) = (host.links(plan), host.addresses(plan), host.sysctls(plan));

        let mut rules = Pass::open(host.rules(), &rules_want, &memory.rules).await;
        let mut routes = Pass::open(host.routes(), &routes_want, &memory.routes).await;
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
        let mut addresses = Pass::open(&addresses, &plan.addresses, &memory.addresses).await;
        addresses.put().await;
        let mut settings = Pass::open(&sysctls, &sysctls_want, &memory.sysctls).await;
        settings.put_where(|name, _| !Sysctls::forwards(name)).await;

        // A link that was made anew or went down has taken its routes along.
        routes.reread().await;
        routes.put().await;
        rules.put().await;

        let dataplane_outcome = dataplane.apply(plan).await;

        if !is_nft_set {
            nft_outcome.absorb(set_nft(host, memory, &plan.nft).await);
        }
        settings.put_where(|name, _| Sysctls::forwards(name)).await;
        // Turning forwarding on or off resets some other settings to their defaults.
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

/// Lets a running gateway's table hold the old and the new ways out while the dataplane changes from one to the other:
/// no new way out is without masquerading and without its closed door, no old one is cut early. A table that somebody
/// else changed is repaired here, before anything that takes longer.
async fn widen_nft<H: Host>(host: &H, memory: &mut Memories, want: &NftRuleset) -> Outcome {
    let Some(before) = memory.ruleset.as_ref() else { return Outcome::default() };
    if before == want {
        return set_nft(host, memory, want).await;
    }
    set_nft(host, memory, &before.union(want)).await
}

async fn set_nft<H: Host>(host: &H, memory: &mut Memories, ruleset: &NftRuleset) -> Outcome {
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
