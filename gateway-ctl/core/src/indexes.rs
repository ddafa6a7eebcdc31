//! Numbers of legs, proxies and policies in marks and maps, as types.
//!
//! A zero that stands for none occurs in the wire layouts only, and becomes an `Option` here.

use std::fmt;
use std::num::{NonZeroU8, NonZeroU32};

use gateway_common::leg_selection::FIRST_TUNNEL;
use gateway_common::wire::{Choice, Mark, RANK_NONE};
use serde::{Deserialize, Serialize};

/// Number of a leg: an uplink below [`FIRST_TUNNEL`], else a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LegId(NonZeroU8);

/// Number of a proxy, which the marks of its traffic have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProxyIndex(NonZeroU8);

/// Index of a policy in the maps of counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyIndex(NonZeroU32);

/// Place of a policy in force in the order of trial: the first one that matches decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(u32);

impl Rank {
    /// Returns the rank of a number in a wire layout, where [`RANK_NONE`] stands for none.
    pub const fn of_wire(number: u32) -> Option<Rank> {
        match number {
            RANK_NONE => None,
            number => Some(Rank(number)),
        }
    }

    /// Returns all ranks in their order.
    pub fn all() -> impl Iterator<Item = Rank> {
        (0..RANK_NONE).map(Rank)
    }

    pub const fn get(self) -> u32 {
        self.0
    }

    /// Returns the number in a wire layout.
    pub fn raw(rank: Option<Rank>) -> u32 {
        rank.map_or(RANK_NONE, Rank::get)
    }

    /// Returns the place in a list of all policies in force.
    pub fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl LegId {
    /// The first uplink.
    pub const FIRST: LegId = LegId(NonZeroU8::MIN);

    /// Returns the leg with a number. `None` for zero.
    pub const fn new(number: u8) -> Option<LegId> {
        match NonZeroU8::new(number) {
            Some(number) => Some(LegId(number)),
            None => None,
        }
    }

    pub const fn get(self) -> u8 {
        self.0.get()
    }

    /// Returns the number in a wire layout, where zero stands for none.
    pub fn raw(leg: Option<LegId>) -> u8 {
        leg.map_or(0, LegId::get)
    }

    /// Returns the mark of packets that take the leg.
    pub const fn mark(self) -> Mark {
        Mark::leg(self.get())
    }

    /// Returns the mark of the gateway's own packets by a leg. `None` is the default route.
    pub fn host_mark(leg: Option<LegId>) -> Mark {
        Mark::carried_by(LegId::raw(leg))
    }

    pub const fn is_tunnel(self) -> bool {
        self.get() >= FIRST_TUNNEL
    }

    /// Returns the legs of a choice for new flows. `None` is the default route to a proxy.
    pub fn of_choice(choice: &Choice) -> impl Iterator<Item = Option<LegId>> + use<> {
        choice.legs.into_iter().take(usize::from(choice.count)).map(LegId::new)
    }
}

impl Default for LegId {
    fn default() -> LegId {
        LegId::FIRST
    }
}

impl PolicyIndex {
    /// Returns the policy with a number. `None` for zero.
    pub const fn new(number: u32) -> Option<PolicyIndex> {
        match NonZeroU32::new(number) {
            Some(number) => Some(PolicyIndex(number)),
            None => None,
        }
    }

    pub const fn get(self) -> u32 {
        self.0.get()
    }

    /// Returns the number in a wire layout, where zero stands for none.
    pub fn raw(policy: Option<PolicyIndex>) -> u32 {
        policy.map_or(0, PolicyIndex::get)
    }
}

impl ProxyIndex {
    /// Returns the proxy with a number. `None` for zero.
    pub const fn new(number: u8) -> Option<ProxyIndex> {
        match NonZeroU8::new(number) {
            Some(number) => Some(ProxyIndex(number)),
            None => None,
        }
    }

    pub const fn get(self) -> u8 {
        self.0.get()
    }
}

impl fmt::Display for LegId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<LegId> for u32 {
    fn from(leg: LegId) -> u32 {
        leg.get().into()
    }
}
