//! Authoritative data of one zone: its names, its zone cuts, and its denial of existence.

use super::denial::{Denial, DeniedName, wildcard_of};
use super::node::{Node, Set};
use crate::dns::decision::{Local, Record};
use crate::dns::name::{Name, NameRef};
use crate::dns::name_map::NameMap;
use crate::dns::rtype;

#[derive(Clone, Debug)]
pub(super) struct ZoneData {
    pub apex: Name,
    pub nodes: NameMap<Node>,
    /// TTL of negative answers (RFC 2308, section 5).
    pub negative_ttl: u32,
    /// True if the zone has delegations or DNAME records.
    pub turns: bool,
    /// Denial of existence of a signed zone. A signed zone is complete: it contains its host names itself.
    pub denial: Option<Denial>,
}

/// Point on the path to a name from which the zone has no data of its own.
pub(super) enum CutOrAlias<'a> {
    /// Zone cut: another zone has the names below.
    Cut(NameRef<'a>, &'a Node, &'a Set),
    /// DNAME: all names below are renamed (RFC 6672).
    Alias(NameRef<'a>, &'a Set),
}

impl ZoneData {
    /// Returns the cut or alias nearest to the apex on the path to the name. DS records at a cut belong to this zone
    /// (RFC 4035, section 3.1.4.1).
    pub(super) fn cut_or_alias<'a>(&'a self, name: NameRef<'a>, qtype: u16) -> Option<CutOrAlias<'a>> {
        if !self.turns {
            return None;
        }
        let apex = self.apex.as_ref();
        let at = |here: NameRef<'a>| {
            let node = self.nodes.get(here)?;
            let cut = node.set(rtype::NS).filter(|_| here != apex && (here != name || qtype != rtype::DS));
            let alias = || node.set(rtype::DNAME).filter(|_| here != name);
            match cut {
                Some(set) => Some(CutOrAlias::Cut(here, node, set)),
                None => alias().map(|set| CutOrAlias::Alias(here, set)),
            }
        };
        let below = name.suffixes().take_while(|suffix| *suffix != apex);
        below.chain(name.suffixes().find(|suffix| *suffix == apex)).filter_map(at).last()
    }

    /// Returns the closest encloser: the longest existing name at or above one (RFC 4592, section 3.3.1).
    pub(super) fn closest<'a>(&self, name: NameRef<'a>) -> Option<NameRef<'a>> {
        name.suffixes().find(|suffix| self.nodes.get(*suffix).is_some())
    }

    /// Returns the closest encloser and the wildcard below it.
    pub(super) fn wildcard<'a>(&self, name: NameRef<'a>) -> Option<(NameRef<'a>, &Node)> {
        let closest = self.closest(name)?;
        Some((closest, self.nodes.get(wildcard_of(closest)?.as_ref())?))
    }

    /// Adds the SOA record. Its TTL is the lesser of the record's TTL and its MINIMUM field (RFC 2308, section 3).
    pub(super) fn negative(&self, proved: bool, out: &mut Vec<Record>) {
        let Some(soa) = self.nodes.get(self.apex.as_ref()).and_then(|top| top.set(rtype::SOA)) else {
            return;
        };
        let start = out.len();
        soa.write(self.apex.as_ref(), proved, out);
        out[start..].iter_mut().for_each(|record| record.ttl = record.ttl.min(self.negative_ttl));
    }

    /// Adds the proof of nonexistence, if `proved`.
    pub(super) fn prove(&self, denied: DeniedName<'_>, proved: bool, local: &mut Local) {
        if let Some(denial) = self.denial.as_ref().filter(|_| proved) {
            denial.prove(self.apex.as_ref(), &self.nodes, denied, &mut local.authorities);
        }
    }

    /// Returns whether the name is below a zone cut or a DNAME record.
    pub(super) fn is_hidden(&self, name: NameRef<'_>) -> bool {
        let apex = self.apex.as_ref();
        let above = name.suffixes().skip(1).take_while(|suffix| *suffix != apex);
        let mut nodes = above.filter_map(|suffix| self.nodes.get(suffix));
        let top = || self.nodes.get(apex).is_some_and(|top| top.set(rtype::DNAME).is_some());
        self.turns
            && (nodes.any(|node| node.set(rtype::NS).is_some() || node.set(rtype::DNAME).is_some())
                || (name != apex && top()))
    }

    /// Returns whether the name is a zone cut.
    pub(super) fn is_cut(&self, name: NameRef<'_>, node: &Node) -> bool {
        name != self.apex.as_ref() && node.set(rtype::NS).is_some()
    }
}
