//! What a policy does once it has won: the value of `gw_actions`.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// How many places the round robin of one policy has; weights are spread over them.
pub const CHOICE_SLOTS: usize = 16;

/// The action of one rank, per address family. All zeroes block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ActionValue {
    pub v4: Choice,
    pub v6: Choice,
    /// Number of the policy: index of its counters and of its round robin.
    pub policy: u32,
    /// [`Sticky`] as a number.
    pub sticky: u8,
    pub _pad: [u8; 3],
}

/// The ways of one address family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Choice {
    /// [`ChoiceKind`] as a number; unknown numbers block.
    pub kind: u8,
    /// How many of `legs` new flows take in turn, at most [`CHOICE_SLOTS`].
    pub count: u8,
    /// How many legs behind those only flows keep that have them already.
    pub kept: u8,
    pub _pad: u8,
    pub legs: [u8; CHOICE_SLOTS],
}

/// What happens to a packet of the family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ChoiceKind {
    /// Dropped without an answer.
    Drop = 0,
    /// Answered with ICMP unreachable.
    Reject = 1,
    /// The default way.
    Direct = 2,
    /// One of the legs.
    Legs = 3,
}

impl Choice {
    pub const DROP: Choice =
        Choice { kind: ChoiceKind::Drop as u8, count: 0, kept: 0, _pad: 0, legs: [0; CHOICE_SLOTS] };
    pub const REJECT: Choice = Choice { kind: ChoiceKind::Reject as u8, ..Self::DROP };
    pub const DIRECT: Choice = Choice { kind: ChoiceKind::Direct as u8, ..Self::DROP };

    /// A round robin over `legs`; more than [`CHOICE_SLOTS`] are cut off, none at all blocks.
    pub fn legs(legs: &[u8]) -> Choice {
        let mut choice = Choice::DROP;
        for (place, leg) in choice.legs.iter_mut().zip(legs) {
            *place = *leg;
            choice.count += 1;
        }
        if choice.count > 0 {
            choice.kind = ChoiceKind::Legs as u8;
        }
        choice
    }

    /// The same, and flows that have one of `legs` keep it. What finds no room is not kept.
    pub fn keeping(mut self, legs: &[u8]) -> Choice {
        if !matches!(self.kind(), ChoiceKind::Legs) {
            return self;
        }
        for leg in legs {
            let used = self.count as usize + self.kept as usize;
            if used < CHOICE_SLOTS && !self.legs[..used].contains(leg) {
                self.legs[used] = *leg;
                self.kept += 1;
            }
        }
        self
    }

    /// All legs that a flow may have, those of new flows first.
    pub fn all(&self) -> &[u8] {
        let used = (self.count as usize).saturating_add(self.kept as usize);
        &self.legs[..if used < CHOICE_SLOTS { used } else { CHOICE_SLOTS }]
    }

    pub const fn kind(&self) -> ChoiceKind {
        match self.kind {
            1 => ChoiceKind::Reject,
            2 => ChoiceKind::Direct,
            3 => ChoiceKind::Legs,
            _ => ChoiceKind::Drop,
        }
    }
}

/// What keeps its leg: each flow, all flows of a source, or all between a source and a destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Sticky {
    #[default]
    Flow = 0,
    Source = 1,
    SourceDestination = 2,
}

impl Sticky {
    pub const fn from_wire(value: u8) -> Sticky {
        match value {
            1 => Sticky::Source,
            2 => Sticky::SourceDestination,
            _ => Sticky::Flow,
        }
    }
}
