//! Dry run of a query: its outcome without a query to an upstream and without installing an address.

use std::net::IpAddr;
use std::sync::Arc;

use gateway_core::dns::{Action, Decision, NameRef, Question};

use super::Shared;
use crate::hooks::QueryRoute;
use crate::wire::rtype;

/// Outcome of a query for addresses (type A).
#[derive(Debug)]
pub enum QueryOutcome {
    /// Blocked or rewritten by the filter.
    Decided(Decision),
    /// Answered from local data.
    Here,
    /// Forwarded over this route.
    Elsewhere(Arc<QueryRoute>),
}

impl Shared {
    /// Evaluates a query without sending it. Without a name, it evaluates a name that no rule mentions.
    pub fn dry_run(&self, from: IpAddr, name: Option<NameRef<'_>>) -> QueryOutcome {
        let (state, now) = (self.state.load(), self.clock.now().wall);
        let client = state.clients.client(&state.clients.host_at(from));
        let Some(name) = name else { return QueryOutcome::Elsewhere(client.route.clone()) };
        let question = Question { name, qtype: rtype::A };
        let decision = state.in_force(&client, state.local_answers.decide(&client.asker, question, now), now);
        if decision.action != Action::Pass {
            return QueryOutcome::Decided(decision);
        }
        if let Some(local) = state.local_answers.local(question, false) {
            if let Some(decision) = state.inspect_local(&client, question, &local, now) {
                return QueryOutcome::Decided(decision);
            }
            if local.goes_on.is_none() {
                return QueryOutcome::Here;
            }
        }
        QueryOutcome::Elsewhere(
            state.fqdn_policy.fqdn_route(&client, name).unwrap_or_else(|| client.route.clone()),
        )
    }
}
