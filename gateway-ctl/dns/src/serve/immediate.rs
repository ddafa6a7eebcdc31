//! Answers that need nobody else, on the threads that read the sockets. Nothing here waits.

use super::asking::{Asking, Found, Told};
use super::{Shared, Trace};
use crate::cache::Freshness;
use crate::wire::rtype;

impl Shared {
    /// Writes the answer if it can be given at once.
    pub fn immediate(&self, asking: &Asking<'_>, out: &mut Vec<u8>) -> Option<Trace> {
        if let Some(trace) = asking.unserved(out) {
            return Some(trace);
        }
        let question = asking.request.asked();
        let decision = asking.decide(question);
        if decision.action != gateway_core::dns::Action::Pass {
            return asking.decided(out, &decision);
        }
        if let Some(local) = asking.state.book.local(question) {
            return local.goes_on.is_none().then(|| asking.local(out, &local, decision.because));
        }
        if question.qtype == rtype::ANY {
            return Some(asking.any(out, decision.because));
        }
        let way = asking.state.learn.wanted(asking.client, question.name);
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
        Some(trace)
    }
}
