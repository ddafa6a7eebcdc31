//! Answers that need nobody else, on the threads that read the sockets. Nothing here waits.

use super::kernel_cache::Holds;
use super::query::{Asking, Found, Told};
use super::{Shared, Status, Trace};
use crate::cache::Freshness;
use crate::wire::rtype;
use crate::wire::stored::Age;

impl Shared {
    /// Writes the answer if it can be given at once, and says how long it can be given again without a look at it.
    pub fn immediate(&self, asking: &Asking<'_>, out: &mut Vec<u8>) -> Option<(Trace, Holds)> {
        if let Some(trace) = asking.unserved(out) {
            return Some((trace, Holds::Once));
        }
        let question = asking.request.asked();
        let way = asking.state.fqdn_policy.wanted(asking.client, question.name);
        // What policies know is learned each time.
        let holds = if way.is_none() { Holds::Fixed } else { Holds::Once };
        let decision = asking.decide(question);
        if decision.action != gateway_core::dns::Action::Pass {
            return Some((asking.decided(out, &decision)?, holds));
        }
        if let Some(local) = asking.state.local_answers.local(question, asking.request.dnssec_ok()) {
            return local.goes_on.is_none().then(|| (asking.local(out, &local, decision.because), holds));
        }
        if question.qtype == rtype::ANY {
            return Some((asking.any(out, decision.because), holds));
        }
        let partition = way.as_ref().unwrap_or(&asking.client.way).partition;
        let entry = self.cache.get(&asking.key(partition, question), asking.now.ms)?;
        let age = match entry.freshness(asking.now.ms) {
            Freshness::Fresh(age) | Freshness::Stale(age) => age,
            Freshness::Old(_) | Freshness::Gone => return None,
        };
        let found = Found { cached: true, wanted: way.is_some(), because: decision.because };
        let Told::Answered(trace) = asking.entry(out, &entry, age, found) else { return None };
        if entry.used(asking.now.ms) {
            let way = way.as_ref().unwrap_or(&asking.client.way);
            self.renew(&entry, way.clone(), asking.client.number, &asking.state.settings);
        }
        let holds = match (age, trace.status) {
            (_, Status::Blocked | Status::Refused) => holds,
            (Age::Fresh(_), Status::Cached) if holds == Holds::Fixed => {
                Holds::Ageing { since: entry.stored_at, until: entry.renewable_at() }
            }
            _ => Holds::Once,
        };
        Some((trace, holds))
    }
}
