//! Answers from the zones.
//!
//! The algorithm is that of RFC 1034, section 4.3.2. Wildcards follow RFC 4592, negative answers RFC 2308, DNAME RFC
//! 6672, ANY RFC 8482, and DNSSEC records RFC 4035, section 3.1.
//!
//! A name that is known here is answered here for all types, with NODATA where it has no records. Forwarding the other
//! types gave NXDOMAIN of servers that do not know the name, which is about all types (RFC 8020): clients that ask for
//! A and AAAA failed, caches lost the A record, and local names were revealed. Exceptions are what a user wrote: a
//! rewrite that keeps public addresses, and rules with `qtypes`. A negative answer outside of a zone has a SOA record
//! of its own, so that it can be cached. Address queries for names of one label get NODATA; NXDOMAIN would deny a
//! top-level domain and all names below. Their other types are forwarded, for validators.

use super::denial::DeniedName;
use super::node::{Node, Set, negative_soa};
use super::zone::{CutOrAlias, ZoneData};
use super::{Zone, Zones, rdata};
use crate::dns::decision::{Local, Question, Record};
use crate::dns::name::{Name, NameRef};
use crate::dns::rtype;

pub(super) const SERVFAIL: u8 = 2;
pub(super) const NXDOMAIN: u8 = 3;
pub(super) const YXDOMAIN: u8 = 6;

/// Extended DNS error of a zone without valid data (RFC 8914, section 4.25).
const INVALID_DATA: u16 = 24;

/// Extended DNS error without a code of its own (RFC 8914, section 4.1).
const OTHER_ERROR: u16 = 0;

/// TTL of negative answers for names of one label, in seconds.
const BARE_TTL: u32 = 60;

/// Maximum length of a chain of aliases.
const ALIASES: usize = 16;

/// Result for one name of the alias chain.
enum Step {
    Done,
    /// The alias must be followed.
    Alias(Name),
    /// The zone has no valid data.
    Missing,
}

impl Zones {
    /// Returns the answer from local data, or none. `proved` adds DNSSEC records, where there are any.
    pub fn answer(&self, question: Question<'_>, proved: bool) -> Option<Local> {
        let mut local = Local::default();
        let mut alias: Option<Name> = None;
        for _ in 0..ALIASES {
            let name = alias.as_ref().map_or(question.name, Name::as_ref);
            match self.step(Question { name, ..question }, proved, &mut local) {
                Some(Step::Done) => {
                    self.complete(question.qtype, proved, &mut local);
                    return Some(local);
                }
                Some(Step::Alias(next)) => alias = Some(next),
                Some(Step::Missing) => {
                    let ede = Some((INVALID_DATA, "there is no valid copy of the zone"));
                    return Some(Local { rcode: SERVFAIL, ede, ..Local::default() });
                }
                None => {
                    local.goes_on = Some(alias?);
                    return Some(local);
                }
            }
        }
        // Loop of aliases (RFC 1034, section 5.2.2).
        Some(Local { rcode: SERVFAIL, ..Local::default() })
    }

    /// Returns the zone whose records answer. DS records are in the parent zone, if it has the delegation.
    fn zone(&self, question: Question<'_>) -> Option<&Zone> {
        let mut above = question.name.suffixes().filter_map(|apex| Some((apex, self.zones.get(apex)?)));
        let (apex, zone) = above.next()?;
        if question.qtype == rtype::DS
            && apex == question.name
            && let Some((_, parent @ Zone::Primary(own))) = above.next()
            && own.nodes.get(apex).is_some_and(|node| node.set(rtype::NS).is_some())
        {
            return Some(parent);
        }
        Some(zone)
    }

    /// Returns none if the name has no local answer.
    fn step(&self, question: Question<'_>, proved: bool, local: &mut Local) -> Option<Step> {
        let Question { name, qtype } = question;
        let machine = self.machines.get(name);
        let zone = match self.zone(question) {
            Some(Zone::Primary(zone)) => zone,
            Some(Zone::Missing) => return Some(Step::Missing),
            None if machine.is_none() && is_bare(question) => {
                local.ede = Some((OTHER_ERROR, "a name of one label is not forwarded"));
                local.authorities.push(negative_soa(name, BARE_TTL));
                return Some(Step::Done);
            }
            Some(Zone::Elsewhere) | None => {
                // Host in a forwarded domain. The servers of the domain do not know it: for a type without records they
                // would answer that the name does not exist.
                let node = machine.filter(|node| !node.sets.is_empty()).or_else(|| self.localhost(name))?;
                local.authoritative |= local.answers.is_empty();
                return Some(take(node, question, false, local).unwrap_or_else(|| {
                    local.authorities.push(node.own_soa(name));
                    Step::Done
                }));
            }
        };
        let first = local.answers.is_empty();
        match zone.cut_or_alias(name, qtype) {
            Some(CutOrAlias::Cut(cut, node, set)) => {
                self.refer(zone, (cut, node, set), proved, local);
                return Some(Step::Done);
            }
            Some(CutOrAlias::Alias(domain, set)) => {
                local.authoritative |= first;
                return Some(rename(name, domain, set, proved, local));
            }
            None => local.authoritative |= first,
        }
        let stored = zone.nodes.get(name);
        let machine = machine.filter(|_| zone.denial.is_none());
        // Stored records take precedence; addresses of the two are not mixed.
        let node = match (stored, machine) {
            (Some(stored), Some(machine)) if stored.yields(machine, qtype) => Some(machine),
            _ => stored.or(machine),
        };
        if let Some(node) = node {
            return Some(take(node, question, proved, local).unwrap_or_else(|| {
                zone.negative(proved, &mut local.authorities);
                zone.prove(DeniedName::Type(name), proved, local);
                Step::Done
            }));
        }
        if let Some((closest, node)) = zone.wildcard(name) {
            let taken = take(node, question, proved, local);
            if taken.is_none() {
                zone.negative(proved, &mut local.authorities);
            }
            let denied = if taken.is_some() { DeniedName::Expanded } else { DeniedName::Wildcard };
            zone.prove(denied(name, closest), proved, local);
            return Some(taken.unwrap_or(Step::Done));
        }
        if let Some(node) = self.localhost(name).filter(|_| zone.denial.is_none()) {
            return Some(take(node, question, proved, local).unwrap_or_else(|| {
                zone.negative(proved, &mut local.authorities);
                Step::Done
            }));
        }
        local.rcode = NXDOMAIN;
        zone.negative(proved, &mut local.authorities);
        if let Some(closest) = zone.closest(name) {
            zone.prove(DeniedName::Name(name, closest), proved, local);
        }
        Some(Step::Done)
    }

    /// Writes a referral: the name servers of the delegation, and whether it is signed (RFC 4035, section 3.1.4).
    fn refer(
        &self,
        zone: &ZoneData,
        (cut, node, servers): (NameRef<'_>, &Node, &Set),
        proved: bool,
        local: &mut Local,
    ) {
        servers.write(cut, false, &mut local.authorities);
        match node.set(rtype::DS) {
            Some(set) if proved => set.write(cut, true, &mut local.authorities),
            Some(_) => {}
            None => zone.prove(DeniedName::Type(cut), proved, local),
        }
        for target in servers.targets() {
            // Glue is below this or another zone cut, so it has no DNSSEC records.
            let glue = zone.nodes.get(target.as_ref()).filter(|_| zone.is_hidden(target.as_ref()));
            match glue {
                Some(glue) => add(glue, target.as_ref(), false, &mut local.additionals),
                None => self.add_addresses(target.as_ref(), proved, &mut local.additionals),
            }
        }
    }

    /// Returns the node of `localhost` for all names below it (RFC 6761, section 6.3), unless the zone is stored.
    fn localhost(&self, name: NameRef<'_>) -> Option<&Node> {
        const LOCALHOST: &[u8] = b"\x09localhost\0";
        let localhost = NameRef::new(LOCALHOST)?;
        name.is_within(localhost).then(|| self.machines.get(localhost)).flatten()
    }

    /// Adds the addresses of the names in the answer (RFC 1034, section 4.3.2, step 6).
    fn complete(&self, qtype: u16, proved: bool, local: &mut Local) {
        if !matches!(qtype, rtype::MX | rtype::SRV | rtype::NS | rtype::HTTPS | rtype::SVCB) {
            return;
        }
        let answers = local.answers.iter().filter(|record| record.rtype == qtype);
        let targets: Vec<Name> =
            answers.filter_map(|record| rdata::target(record.rtype, &record.rdata)).collect();
        for target in targets {
            self.add_addresses(target.as_ref(), proved, &mut local.additionals);
        }
    }

    fn add_addresses(&self, name: NameRef<'_>, proved: bool, additionals: &mut Vec<Record>) {
        if let Some(node) = self.node(name) {
            add(node, name, proved, additionals);
        }
    }

    /// Returns the node that answers for a name, also by wildcard.
    fn node(&self, name: NameRef<'_>) -> Option<&Node> {
        let zone = name.suffixes().find_map(|apex| self.zones.get(apex));
        let Some(Zone::Primary(zone)) = zone else { return self.machines.get(name) };
        if zone.is_hidden(name) {
            return None;
        }
        let machine = || self.machines.get(name).filter(|_| zone.denial.is_none());
        // A wildcard answer would need its own proof.
        let wildcard = || zone.wildcard(name).filter(|_| zone.denial.is_none()).map(|(_, node)| node);
        zone.nodes.get(name).or_else(machine).or_else(wildcard)
    }
}

/// Reports whether a query is for the addresses of a name of one label. Such names are those of hosts of a network. Top-level
/// domains, which exist, have no addresses (SAC053), so the answer says nothing on the names below.
fn is_bare(question: Question<'_>) -> bool {
    matches!(question.qtype, rtype::A | rtype::AAAA | rtype::HTTPS | rtype::SVCB)
        && question.name.parent().is_some_and(NameRef::is_root)
}

fn add(node: &Node, name: NameRef<'_>, proved: bool, additionals: &mut Vec<Record>) {
    for set in [rtype::A, rtype::AAAA].into_iter().filter_map(|rtype| node.set(rtype)) {
        let have = |record: &Record| record.rtype == set.rtype && record.name.as_ref() == name;
        if !additionals.iter().any(have) {
            set.write(name, proved, additionals);
        }
    }
}

/// Adds the node's records of the type to the answer. Returns none if it has neither such records nor an alias.
fn take(node: &Node, question: Question<'_>, proved: bool, local: &mut Local) -> Option<Step> {
    let Question { name, qtype } = question;
    if qtype == rtype::RRSIG {
        let before = local.answers.len();
        node.signatures(name, &mut local.answers);
        return (local.answers.len() > before).then_some(Step::Done);
    }
    // One set is enough for ANY (RFC 8482, section 4.1).
    let set = if qtype == rtype::ANY { node.sets.first() } else { node.set(qtype) };
    if let Some(set) = set {
        set.write(name, proved, &mut local.answers);
        return Some(Step::Done);
    }
    let alias = node.set(rtype::CNAME)?;
    alias.write(name, proved, &mut local.answers);
    Some(alias.targets().next().map_or(Step::Done, |target| Step::Alias(target.clone())))
}

/// Adds the DNAME record of the domain and the CNAME synthesized from it (RFC 6672, section 3.2).
fn rename(name: NameRef<'_>, domain: NameRef<'_>, set: &Set, proved: bool, local: &mut Local) -> Step {
    set.write(domain, proved, &mut local.answers);
    let Some((data, new)) = set.records.first().and_then(|data| Some((data, data.target.as_ref()?))) else {
        return Step::Done;
    };
    let Some(target) = name.with_end(domain, new.as_ref()) else {
        local.rcode = YXDOMAIN;
        return Step::Done;
    };
    let rdata = target.as_ref().wire().into();
    local.answers.push(Record { name: name.to_owned(), rtype: rtype::CNAME, ttl: data.ttl, rdata });
    Step::Alias(target)
}
