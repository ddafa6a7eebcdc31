//! What would become of a question, by the decisions that answer it. Nobody is asked and nothing is learned.

use std::net::IpAddr;
use std::sync::Arc;

use gateway_core::dns::{Action, Decision, NameRef, Question};

use super::Shared;
use crate::hooks::QueryRoute;
use crate::wire::rtype;

/// Of a question for addresses.
#[derive(Debug)]
pub enum Fate {
    /// It is shut, or asked as another name.
    Decided(Decision),
    /// Answered from what is stored here.
    Here,
    /// Asked elsewhere, by this way.
    Elsewhere(Arc<QueryRoute>),
}

impl Shared {
    /// Without a name, one that nothing is said of.
    pub fn fate(&self, from: IpAddr, name: Option<NameRef<'_>>) -> Fate {
        let (state, now) = (self.state.load(), self.clock.now().wall);
        let client = state.clients.client(from);
        let Some(name) = name else { return Fate::Elsewhere(client.way.clone()) };
        let question = Question { name, qtype: rtype::A };
        let decision = state.in_force(&client, state.local_answers.decide(&client.asker, question, now), now);
        if decision.action != Action::Pass {
            return Fate::Decided(decision);
        }
        if state.local_answers.local(question, false).is_some_and(|local| local.goes_on.is_none()) {
            return Fate::Here;
        }
        Fate::Elsewhere(state.fqdn_policy.wanted(&client, name).unwrap_or_else(|| client.way.clone()))
    }
}
