//! Addresses of a scope that any client can get.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use super::scope::Scope;

/// Use of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressUse {
    /// No client has had it.
    Unused,
    Offered,
    Active,
    Declined,
    /// Its lease has ended, or was released, at this time.
    Ended(i64),
}

/// Excluded, reserved, or of the network itself.
const UNAVAILABLE: u8 = 0;
const UNUSED: u8 = 1;
const OFFERED: u8 = 2;
const ACTIVE: u8 = 3;
const DECLINED: u8 = 4;
const ENDED: u8 = 5;

/// Range of a scope with the use of each address.
#[derive(Debug, Default)]
pub(super) struct Pool {
    first: u32,
    uses: Vec<u8>,
    counts: [u32; 6],
    /// Addresses whose leases ended, the oldest first.
    ended: BTreeSet<(i64, Ipv4Addr)>,
    ends: BTreeMap<Ipv4Addr, i64>,
    /// No address before it is unused.
    hint: usize,
}

impl Pool {
    pub(super) fn new(scope: &Scope, is_reserved: impl Fn(Ipv4Addr) -> bool) -> Pool {
        let (first, last) = (u32::from(scope.range.first), u32::from(scope.range.last));
        let uses: Vec<u8> = (first..=last)
            .map(|address| {
                let address = Ipv4Addr::from(address);
                if scope.is_allocatable(address) && !is_reserved(address) { UNUSED } else { UNAVAILABLE }
            })
            .collect();
        let mut counts = [0; 6];
        uses.iter().for_each(|kind| counts[usize::from(*kind)] += 1);
        Pool { first, uses, counts, ..Pool::default() }
    }

    fn index(&self, address: Ipv4Addr) -> Option<usize> {
        let index = usize::try_from(u32::from(address).checked_sub(self.first)?).ok()?;
        (index < self.uses.len()).then_some(index)
    }

    /// Reports whether the address can be given to any client, used or not.
    pub(super) fn contains(&self, address: Ipv4Addr) -> bool {
        self.index(address).is_some_and(|index| self.uses[index] != UNAVAILABLE)
    }

    /// Reports whether no client has a claim to the address.
    pub(super) fn is_free(&self, address: Ipv4Addr) -> bool {
        self.index(address).is_some_and(|index| matches!(self.uses[index], UNUSED | ENDED))
    }

    /// Sets the use of an address that is available.
    pub(super) fn set(&mut self, address: Ipv4Addr, now_used: AddressUse) {
        let Some(index) = self.index(address).filter(|index| self.uses[*index] != UNAVAILABLE) else {
            return;
        };
        if let Some(end) = self.ends.remove(&address) {
            self.ended.remove(&(end, address));
        }
        let kind = match now_used {
            AddressUse::Unused => UNUSED,
            AddressUse::Offered => OFFERED,
            AddressUse::Active => ACTIVE,
            AddressUse::Declined => DECLINED,
            AddressUse::Ended(end) => {
                self.ended.insert((end, address));
                self.ends.insert(address, end);
                ENDED
            }
        };
        let before = std::mem::replace(&mut self.uses[index], kind);
        self.counts[usize::from(before)] -= 1;
        self.counts[usize::from(kind)] += 1;
        if kind == UNUSED {
            self.hint = self.hint.min(index);
        }
    }

    /// Returns an address that no client has had, else the one whose lease ended first.
    pub(super) fn next_free(&mut self) -> Option<Ipv4Addr> {
        if self.counts[usize::from(UNUSED)] == 0 {
            return self.oldest_ended();
        }
        let found = self.uses[self.hint..].iter().position(|kind| *kind == UNUSED)?;
        self.hint += found;
        Some(Ipv4Addr::from(self.first + u32::try_from(self.hint).ok()?))
    }

    /// Returns the address whose lease ended first.
    pub(super) fn oldest_ended(&self) -> Option<Ipv4Addr> {
        self.ended.first().map(|(_, address)| *address)
    }

    /// Returns the number of addresses that any client can get.
    pub(super) fn size(&self) -> u32 {
        self.counts[usize::from(UNUSED)..].iter().sum()
    }

    pub(super) fn offered(&self) -> u32 {
        self.counts[usize::from(OFFERED)]
    }

    pub(super) fn active(&self) -> u32 {
        self.counts[usize::from(ACTIVE)]
    }

    pub(super) fn declined(&self) -> u32 {
        self.counts[usize::from(DECLINED)]
    }

    pub(super) fn free(&self) -> u32 {
        self.counts[usize::from(UNUSED)] + self.counts[usize::from(ENDED)]
    }
}
