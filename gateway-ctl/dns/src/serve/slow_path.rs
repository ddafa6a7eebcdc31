//! Slow path: answers any query from the start, and waits for upstreams where it must.

pub(crate) mod tasks;

use std::net::IpAddr;
use std::sync::Arc;

use gateway_core::dns::{Action, Decision, Local, Name, Question, Record, RuleSource};

use super::fetch::{Fetched, Sender};
use super::query::{CachedReply, EntryOrigin, QueryContext};
use super::{Shared, Status, Trace};
use crate::wire::code::ede;
use crate::wire::svcb::strip_ech;
use crate::wire::{Ede, Envelope, rcode, rtype};

/// Maximum number of names that local data may lead through.
const MAX_ALIASES: usize = 8;

/// Partial answer of a query that continues with another name.
#[derive(Default)]
struct PartialAnswer {
    /// Aliases from QNAME to the current name.
    records: Vec<Record>,
    /// DNSSEC records that prove that wildcards may answer.
    proofs: Vec<Record>,
    /// Rule that decided first.
    because: Option<RuleSource>,
    rewritten: bool,
}

impl PartialAnswer {
    fn leap(&mut self, from: &Name, to: &Name, ttl: u32) {
        let rdata = to.as_ref().wire().into();
        self.records.push(Record { name: from.clone(), rtype: rtype::CNAME, ttl, rdata });
    }

    /// Continues with another name in place of an answer that leads through a name with a rule.
    fn rewrite(&mut self, from: &Name, to: &Name, ttl: u32, because: Option<RuleSource>) {
        self.leap(from, to, ttl);
        self.because = because;
        self.rewritten = true;
    }
}

impl Shared {
    /// Writes the answer to a valid query.
    pub async fn resolve(self: &Arc<Self>, query: &QueryContext<'_>, out: &mut Vec<u8>) -> Trace {
        if let Some(trace) = query.unserved(out) {
            return trace;
        }
        let state = query.state;
        let qtype = query.request.qtype;
        let mut name = query.request.name().to_owned();
        let mut path = PartialAnswer::default();
        for _ in 0..MAX_ALIASES {
            let question = Question { name: name.as_ref(), qtype };
            let decision = query.decide(question);
            let is_local_only = decision.action == Action::LocalOnly;
            if !is_local_only && let Some(trace) = query.decided_at(out, &path, &name, &decision) {
                return trace;
            }
            path.because = path.because.take().or_else(|| decision.because.clone());
            if let Action::Name(target) = &decision.action {
                path.leap(&name, target, state.settings.rewrite_ttl);
                path.rewritten = true;
                name = target.clone();
                continue;
            }
            if let Some(mut local) = query.local_answer(question, &decision) {
                if let Some(inner) = query.inspect_local(&local) {
                    if let Some(trace) = query.decided(out, &inner) {
                        return trace;
                    }
                    let Decision { action: Action::Name(target), because } = inner else { break };
                    path.rewrite(&name, &target, state.settings.rewrite_ttl, because);
                    name = target;
                    continue;
                }
                let Some(target) = local.goes_on.take() else { return query.local_at(out, path, local) };
                path.records.append(&mut local.answers);
                path.proofs.append(&mut local.authorities);
                name = target;
                continue;
            }
            if is_local_only && let Some(trace) = query.decided_at(out, &path, &name, &decision) {
                return trace;
            }
            if qtype == rtype::ANY && path.records.is_empty() {
                return query.any(out, path.because);
            }
            let route = state.fqdn_policy.fqdn_route(query.client, query.request.name());
            let wanted = route.is_some();
            let route = route.unwrap_or_else(|| query.client.route.clone());
            let key = query.key(route.partition, question);
            let sender = Sender { route, client: query.client.number };
            let fetched = self.fetch(&key, sender, &state.settings, query.now.ms).await;
            match query.fetched_at(out, &mut path, fetched, wanted) {
                CachedReply::Answered(trace) => return trace,
                CachedReply::Elsewhere(Decision { action, because }) => {
                    let Action::Name(target) = action else { break };
                    path.rewrite(&name, &target, state.settings.rewrite_ttl, because);
                    name = target;
                }
            }
        }
        query.failed(out, Ede { code: ede::OTHER, text: "the aliases stored here lead in a circle" })
    }
}

impl QueryContext<'_> {
    fn decided_at(
        &self,
        out: &mut Vec<u8>,
        path: &PartialAnswer,
        name: &Name,
        decision: &Decision,
    ) -> Option<Trace> {
        if path.records.is_empty() {
            return self.decided(out, decision);
        }
        let addresses = match &decision.action {
            Action::Addresses(addresses) => Some(addresses.as_slice()),
            Action::LocalOnly => Some(&[][..]),
            _ => None,
        };
        if let Some(addresses) = addresses {
            let mut records = path.records.clone();
            let ttl = self.state.settings.rewrite_ttl;
            for address in addresses {
                let (rtype, rdata): (u16, Box<[u8]>) = match address {
                    IpAddr::V4(address) => (rtype::A, address.octets().into()),
                    IpAddr::V6(address) => (rtype::AAAA, address.octets().into()),
                };
                if rtype == self.request.qtype {
                    records.push(Record { name: name.clone(), rtype, ttl, rdata });
                }
            }
            if let Err(install_failed) = self.install_records(&records) {
                return Some(self.install_failed(out, &install_failed));
            }
            self.envelope.with(rcode::NOERROR, None).records(out, self.request, [&records, &[], &[]]);
            let because = path.because.clone().or(decision.because.clone());
            return Some(Trace { because, ..Trace::new(Status::Rewritten) });
        }
        let mut trace = self.decided(out, decision)?;
        if let Some(because) = trace.because.as_mut() {
            because.through.get_or_insert_with(|| name.to_string().into());
        }
        Some(trace)
    }

    fn local_at(&self, out: &mut Vec<u8>, path: PartialAnswer, mut local: Local) -> Trace {
        if path.records.is_empty() {
            return self.local(out, &local, path.because);
        }
        let mut records = path.records;
        records.append(&mut local.answers);
        let mut authorities = path.proofs;
        authorities.append(&mut local.authorities);
        let local = Local { answers: records, authorities, authoritative: false, ..local };
        let mut trace = self.local(out, &local, path.because);
        if path.rewritten && trace.status == Status::Allowed {
            trace.status = Status::Rewritten;
        }
        trace
    }

    fn fetched_at(
        &self,
        out: &mut Vec<u8>,
        path: &mut PartialAnswer,
        fetched: Fetched,
        wanted: bool,
    ) -> CachedReply {
        let Fetched { entry, age, cached } = fetched;
        let found = EntryOrigin { cached, wanted, because: path.because.clone() };
        if path.records.is_empty() {
            return self.entry(out, &entry, age, found);
        }
        let [mut answers, mut authorities] = entry.stored.unpack(age);
        let mut records = std::mem::take(&mut path.records);
        if let Some(decision) = self.inspect(&entry.stored.names, &entry.stored.addresses) {
            return match self.decided(out, &decision) {
                Some(trace) => CachedReply::Answered(trace),
                None => {
                    path.records = records;
                    CachedReply::Elsewhere(decision)
                }
            };
        }
        if self.may_have_ech() {
            strip_ech(&mut answers);
        }
        records.append(&mut answers);
        authorities.append(&mut path.proofs);
        if wanted && let Err(install_failed) = self.install_records(&records) {
            return CachedReply::Answered(self.install_failed(out, &install_failed));
        }
        let (ede, mut trace) = self.envelope_of(&entry, age, cached);
        let envelope: Envelope<'_> = self.envelope.with(entry.rcode, ede);
        envelope.records(out, self.request, [&records, &authorities, &[]]);
        trace.because = found.because;
        if path.rewritten && trace.status != Status::Error {
            trace.status = Status::Rewritten;
        }
        CachedReply::Answered(trace)
    }
}
