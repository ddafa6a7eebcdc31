//! Fast path: answers from local data and the cache, on the threads that read the sockets. Nothing here waits.

use gateway_core::dns::Action;

use super::kernel_cache::CachePolicy;
use super::query::{CachedReply, EntryOrigin, QueryContext};
use super::{Shared, Status, Trace};
use crate::cache::Freshness;
use crate::wire::rtype;
use crate::wire::stored::AnswerAge;

impl Shared {
    /// Writes the answer if local data or the cache holds it. Returns the trace, and how long the kernel cache may keep
    /// the answer. None: the query needs the slow path.
    pub fn answer_fast(&self, query: &QueryContext<'_>, out: &mut Vec<u8>) -> Option<(Trace, CachePolicy)> {
        if let Some(trace) = query.unserved(out) {
            return Some((trace, CachePolicy::Never));
        }
        let question = query.request.asked();
        let route = query.state.fqdn_policy.fqdn_route(query.client, question.name);
        // FQDN policies install the addresses at each query, so the kernel cache must not answer it.
        let policy = if route.is_none() { CachePolicy::UntilInvalidated } else { CachePolicy::Never };
        let decision = query.decide(question);
        if !matches!(decision.action, Action::Pass | Action::LocalOnly) {
            return Some((query.decided(out, &decision)?, policy));
        }
        if let Some(local) = query.local_answer(question, &decision) {
            if let Some(decision) = query.inspect_local(&local) {
                return Some((query.decided(out, &decision)?, policy));
            }
            return local.goes_on.is_none().then(|| (query.local(out, &local, decision.because), policy));
        }
        if decision.action == Action::LocalOnly {
            return Some((query.decided(out, &decision)?, policy));
        }
        if question.qtype == rtype::ANY {
            return Some((query.any(out, decision.because), policy));
        }
        let partition = route.as_ref().unwrap_or(&query.client.route).partition;
        let entry = self.cache.get(&query.key(partition, question), query.now.ms)?;
        let age = match entry.freshness(query.now.ms) {
            Freshness::Fresh(age) | Freshness::StaleRecheckPending(age) => age,
            Freshness::Stale(_) | Freshness::Expired => return None,
        };
        let found = EntryOrigin { cached: true, wanted: route.is_some(), because: decision.because };
        let CachedReply::Answered(trace) = query.entry(out, &entry, age, found) else { return None };
        if entry.used(query.now.ms) {
            let route = route.as_ref().unwrap_or(&query.client.route);
            self.renew(&entry, route.clone(), query.client.number, &query.state.settings);
        }
        let policy = match (age, trace.status) {
            (_, Status::Blocked | Status::Refused) => policy,
            (AnswerAge::Fresh(_), Status::Cached) if policy == CachePolicy::UntilInvalidated => {
                CachePolicy::Ttl { since: entry.stored_at, until: entry.renewable_at() }
            }
            _ => CachePolicy::Never,
        };
        Some((trace, policy))
    }
}
