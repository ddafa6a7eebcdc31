//! Action of a policy: the value of `gw_actions`.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Number of round-robin slots of a policy. Weights are spread over them.
pub const CHOICE_SLOTS: usize = 16;

/// Action of one rank, by address family. Zeroes block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ActionValue {
    pub v4: Choice,
    pub v6: Choice,
    /// Number of the policy: index of its counters and of its round robin.
    pub policy: u32,
    /// [`Sticky`] as a number.
    pub sticky: u8,
    /// Action for traffic that a proxy does not take: a [`ChoiceKind`] as a number, and [`PROXY_TAKES_UDP`].
    pub rest: u8,
    /// Number of kept legs without an end, per family. They come before the others.
    pub lasting4: u8,
    pub lasting6: u8,
    /// End of the policy as a [`super::deadline`], 0 without an end. After it the policy blocks.
    pub until: u32,
    /// End of the kept legs after the lasting ones as a [`super::deadline`], 0 without an end.
    pub kept_until: u32,
    /// [`Fallback`] of the choice for IPv4, for IPv6, and of the action for traffic that the proxy does not take.
    pub fallback4: u8,
    pub fallback6: u8,
    pub fallback_rest: u8,
    pub _pad: u8,
}

/// Failure policy that a choice needed. A device whose floor is stricter may not use the choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Fallback {
    /// None: every failure policy has this result.
    #[default]
    None = 0,
    /// Fail-degraded: the traffic skips hops.
    Degraded = 1,
    /// Fail-open: the traffic takes the default route.
    Open = 2,
}

impl Fallback {
    /// Reports whether a device with this floor, in the encoding of [`super::device_flags::FLOOR`], may not use it.
    #[inline(always)]
    pub const fn is_below(fallback: u8, floor: u32) -> bool {
        fallback as u32 + floor > Fallback::Open as u32
    }
}

/// Bit of [`ActionValue::unproxied`]: the proxy takes UDP as well as TCP.
pub const PROXY_TAKES_UDP: u8 = 0x80;

impl ActionValue {
    /// [`ActionValue::unproxied`] of these parts.
    pub const fn rest_of(kind: ChoiceKind, udp: bool) -> u8 {
        kind as u8 | if udp { PROXY_TAKES_UDP } else { 0 }
    }

    /// Returns the action for traffic that the proxy does not take. The legs are the egresses towards the proxy.
    pub const fn unproxied(&self) -> ChoiceKind {
        match ChoiceKind::from_wire(self.rest & !PROXY_TAKES_UDP) {
            ChoiceKind::Proxy => ChoiceKind::Drop,
            rest => rest,
        }
    }

    pub const fn proxy_takes_udp(&self) -> bool {
        self.rest & PROXY_TAKES_UDP != 0
    }
}

/// Egress choice of one address family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Choice {
    /// [`ChoiceKind`] as a number; unknown numbers block.
    pub kind: u8,
    /// Number of `legs` for the round robin of new flows, at most [`CHOICE_SLOTS`].
    pub count: u8,
    /// Number of legs after those that only established flows keep.
    pub kept: u8,
    /// Number of the proxy after the hops, 0 without one.
    pub proxy: u8,
    pub legs: [u8; CHOICE_SLOTS],
}

/// Action for packets of one address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ChoiceKind {
    /// Dropped without an answer.
    Drop = 0,
    /// Answered with ICMP unreachable.
    Reject = 1,
    /// The default route.
    Direct = 2,
    /// One of the legs.
    Legs = 3,
    /// A proxy, reached by one of the legs; leg 0 is the default route.
    Proxy = 4,
}

impl ChoiceKind {
    const fn from_wire(value: u8) -> ChoiceKind {
        match value {
            1 => ChoiceKind::Reject,
            2 => ChoiceKind::Direct,
            3 => ChoiceKind::Legs,
            4 => ChoiceKind::Proxy,
            _ => ChoiceKind::Drop,
        }
    }
}

impl Choice {
    pub const DROP: Choice =
        Choice { kind: ChoiceKind::Drop as u8, count: 0, kept: 0, proxy: 0, legs: [0; CHOICE_SLOTS] };
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

    /// Returns the choice with draining legs: flows on one of `legs` keep it. Legs beyond the capacity are not kept.
    pub fn with_draining_legs(mut self, legs: &[u8]) -> Choice {
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

    /// Returns the same legs as paths to a proxy. Blocks without legs or without a proxy.
    pub fn to_proxy(self, proxy: u8) -> Choice {
        if proxy == 0 || !matches!(self.kind(), ChoiceKind::Legs) {
            return Choice::DROP;
        }
        Choice { kind: ChoiceKind::Proxy as u8, proxy, ..self }
    }

    pub const fn kind(&self) -> ChoiceKind {
        ChoiceKind::from_wire(self.kind)
    }
}

/// Scope of a sticky leg: a flow, all flows of a source, or all flows between a source and a destination.
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
