//! Egress guard of uplinks and tunnels, and the evaluation of packets that arrive by them.

use crate::leg_selection;
use crate::verdict::Reason;
use crate::wire::*;

/// Traffic control index of forwarded packets that the guard passed. The tap behind it looks for it.
pub const PASSED: u16 = 0x6777;

/// Number in the place of a leg's at an uplink that is disabled.
pub const DISABLED_LEG: u32 = 0x100;

/// Reports whether a packet that leaves was forwarded, and has neither passed the guard nor a mark that allows the
/// interface.
///
/// The mark alone would not do: a packet waits in the queue of the interface, and the plan may change meanwhile.
#[inline(always)]
pub fn has_escaped(ingress: u32, index: u16, is_authorised: impl FnOnce() -> bool) -> bool {
    ingress != 0 && index != PASSED && !is_authorised()
}

/// Properties of a packet that is about to leave by an uplink or a tunnel.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// Index of the ingress interface, 0 for host output.
    pub ingress: u32,
    pub mark: u32,
    pub ipv6: bool,
    /// `None` if it is not IP. Only IP is forwarded, so it is a frame of this host, or carries a packet that the
    /// guard of another interface passed (PPPoE).
    pub source: Option<Address>,
    /// Leg of the interface, 0 if it has none.
    pub leg: u32,
    /// No plan is active, so the addresses of this host are unknown.
    pub no_plan: bool,
}

/// Addresses of this host and its networks, as the plan knows them.
pub trait LocalAddresses {
    /// Returns the entry of an address, [`LocalValue::NONE`] without one.
    fn find(&self, address: &Address) -> LocalValue;
    /// Reports whether the interface of a leg has an address whose entry names another leg.
    fn is_shared(&self, leg: u32, address: &Address) -> bool;
}

/// Reports whether the interface of a leg has an address with this entry. Several legs may have the same address.
#[inline(always)]
fn has_leg(found: LocalValue, leg: u32, address: &Address, local: &impl LocalAddresses) -> bool {
    found.leg as u32 == leg || local.is_shared(leg, address)
}

/// Decides whether a packet may leave by an interface; `Ok` passes it.
///
/// Forwarded packets need a mark that authorises the interface, and a source that is an address of it: without it they
/// were not masqueraded. Replies to nodes of the mesh have the source of the host that they asked. Host output with a mark of this gateway needs an authorised mark, too. Without such a mark it
/// needs a source that the plan knows as an address of this host: one of a tunnel leaves by that tunnel only, and one
/// that the plan does not know may be of a tunnel that has just come or goes.
#[inline(always)]
pub fn guard(
    departure: &Departure,
    authorised: Option<EgressAllowValue>,
    local: &impl LocalAddresses,
) -> Result<(), Reason> {
    let Departure { ingress, mark, ipv6, source, leg, no_plan } = *departure;
    let Some(source) = source else { return Ok(()) };
    if ingress == 0 {
        if mark & Mark::OURS_MASK == Mark::OURS {
            return if authorised.is_some() { Ok(()) } else { Err(Reason::GuardWrongEgress) };
        }
        if leg == DISABLED_LEG {
            return Err(Reason::GuardWrongEgress);
        }
        // A host without an address requests one (RFC 2131) or probes one (RFC 4862).
        if no_plan || source.is_unspecified() {
            return Ok(());
        }
        let found = local.find(&source);
        let of_host = found.is(LocalKind::Own) || found.is(LocalKind::Link);
        let of_this_leg = found.is(LocalKind::Forbidden) && has_leg(found, leg, &source, local);
        return if of_host || of_this_leg { Ok(()) } else { Err(Reason::GuardSource) };
    }
    if mark & Mark::PREFIX_MASK != Mark::PREFIX {
        return Err(Reason::GuardUnmarked);
    }
    let Some(own) = authorised else { return Err(Reason::GuardWrongEgress) };
    let is_first = if ipv6 { is_same(&source, &own.v6) } else { own.v4 != 0 && source.last() == own.v4 };
    if is_first {
        return Ok(());
    }
    let found = local.find(&source);
    let leg_of_mark = mark & 0xff;
    let allowed = if own.v4 == EgressAllowValue::REPLIES.v4 {
        !(found.is(LocalKind::Own) || found.is(LocalKind::Forbidden))
    } else if mark & !0xff == Mark::PREFIX && leg_of_mark >= leg_selection::FIRST_TUNNEL as u32 {
        // A tunnel's address.
        found.is(LocalKind::Forbidden) && has_leg(found, leg_of_mark, &source, local)
    } else if ipv6 {
        // An uplink: global addresses are not masqueraded, unique local ones (RFC 4193) are.
        let first = u32::from_be(source.0[0]) >> 25;
        first != 0xfc >> 1 || found.is(LocalKind::Own)
    } else {
        !(found.is(LocalKind::Lan) || found.is(LocalKind::Forbidden))
    };
    if allowed { Ok(()) } else { Err(Reason::GuardSource) }
}

#[inline(always)]
const fn is_same(a: &Address, b: &Address) -> bool {
    a.0[0] == b.0[0] && a.0[1] == b.0[1] && a.0[2] == b.0[2] && a.0[3] == b.0[3]
}

/// Evaluates a packet that arrived by an uplink or a tunnel. Returns its fwmark, or a drop.
///
/// Nothing arrives by an uplink that is disabled, so this host has nothing to reply to.
///
/// A tunnel's address is reached through that tunnel only (CVE-2019-14899): who can send to an uplink must not reach
/// into a tunnel's flows. By a tunnel nothing reaches any other address of this host.
#[inline(always)]
pub fn arrive(leg: u32, destination: &Address, local: &impl LocalAddresses) -> Result<Option<Mark>, Reason> {
    if leg == DISABLED_LEG {
        return Err(Reason::WrongIngress);
    }
    let found = local.find(destination);
    let is_tunnel = leg >= leg_selection::FIRST_TUNNEL as u32;
    let is_of_leg_only = found.is(LocalKind::Forbidden) || is_tunnel && found.is(LocalKind::Own);
    if is_of_leg_only && !has_leg(found, leg, destination, local) {
        return Err(Reason::WrongIngress);
    }
    Ok(if leg == 0 || leg > 0xff { None } else { Some(Mark::arrived_by(leg as u8)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TUNNEL: u8 = leg_selection::FIRST_TUNNEL;

    fn sends(mark: u32, last: u8, leg: u8) -> Departure {
        let source = Address::v4_word(u32::from_ne_bytes([10, 0, 0, last]));
        Departure { ingress: 0, mark, ipv6: false, source: Some(source), leg: leg.into(), no_plan: false }
    }

    /// .1 is the uplink's, .2 the tunnel's, .3 of a LAN host, .4 of two tunnels.
    struct Known;

    impl LocalAddresses for Known {
        fn find(&self, address: &Address) -> LocalValue {
            match address.last().to_ne_bytes() {
                [10, 0, 0, 1] => LocalValue::of_leg(LocalKind::Own, 1),
                [10, 0, 0, 2 | 4] => LocalValue::of_leg(LocalKind::Forbidden, TUNNEL),
                [10, 0, 0, 3] => LocalValue::new(LocalKind::Lan),
                [169, 254, ..] => LocalValue::new(LocalKind::Link),
                _ => LocalValue::NONE,
            }
        }

        fn is_shared(&self, leg: u32, address: &Address) -> bool {
            leg == u32::from(TUNNEL) + 1 && address.last().to_ne_bytes() == [10, 0, 0, 4]
        }
    }

    /// An address of a deleted tunnel.
    struct LeftBehind;

    impl LocalAddresses for LeftBehind {
        fn find(&self, _: &Address) -> LocalValue {
            LocalValue::new(LocalKind::Forbidden)
        }

        fn is_shared(&self, _: u32, _: &Address) -> bool {
            false
        }
    }

    fn v4(last: u8) -> Address {
        Address::v4_word(u32::from_ne_bytes([10, 0, 0, last]))
    }

    #[test]
    fn unmarked_host_output_needs_a_source_that_the_plan_knows() {
        let passes = |departure: Departure| guard(&departure, None, &Known).is_ok();
        assert!(passes(sends(0, 1, 1)), "the uplink's own address");
        assert!(passes(sends(0, 2, TUNNEL)), "the tunnel's address by the tunnel");
        assert!(!passes(sends(0, 2, 1)), "the tunnel's address by the uplink");
        assert!(!passes(sends(0, 2, 0)), "the tunnel's address by an interface without a leg");
        assert!(!passes(sends(0, 3, 1)), "an address of a LAN host");
        assert!(!passes(sends(0, 9, 1)), "an address that the plan does not know");
        assert!(passes(Departure { no_plan: true, ..sends(0, 9, 1) }), "without a plan");
        let unspecified = [Address::v4_word(0), Address::default()];
        for source in unspecified {
            assert!(passes(Departure { source: Some(source), ..sends(0, 0, 1) }), "DHCP and DAD");
        }
        let link_local = Address::v4_word(u32::from_ne_bytes([169, 254, 1, 1]));
        assert!(passes(Departure { source: Some(link_local), ..sends(0, 0, 1) }));
    }

    #[test]
    fn address_of_two_tunnels_is_of_both_and_of_no_other() {
        let others = [0, 1, TUNNEL + 2];
        for leg in [TUNNEL, TUNNEL + 1] {
            assert!(guard(&sends(0, 4, leg), None, &Known).is_ok(), "host output by leg {leg}");
            let mut forwarded = Departure { ingress: 9, ..sends(Mark::leg(leg).0, 4, 0) };
            let second = EgressAllowValue::default();
            assert!(guard(&forwarded, Some(second), &Known).is_ok(), "as a further address of leg {leg}");
            forwarded.source = Some(v4(2));
            let is_own = leg == TUNNEL;
            assert_eq!(guard(&forwarded, Some(second), &Known).is_ok(), is_own, "that of the first only");
            assert_eq!(arrive(leg.into(), &v4(4), &Known), Ok(Some(Mark::arrived_by(leg))));
        }
        for leg in others {
            assert!(guard(&sends(0, 4, leg), None, &Known).is_err(), "host output by leg {leg}");
            assert_eq!(arrive(leg.into(), &v4(4), &Known), Err(Reason::WrongIngress));
        }
    }

    #[test]
    fn replies_to_nodes_of_the_mesh_have_the_source_of_their_host() {
        let replies = Some(EgressAllowValue::REPLIES);
        let reply = |last| Departure { ingress: 9, ..sends(Mark::LOCAL.0, last, 0) };
        assert!(guard(&reply(3), replies, &Known).is_ok(), "a host of the LAN");
        assert!(guard(&reply(9), replies, &Known).is_ok(), "a host of the internet");
        for last in [1, 2, 4] {
            assert!(guard(&reply(last), replies, &Known).is_err(), "an address of this host: {last}");
        }
        assert!(guard(&reply(3), None, &Known).is_err(), "by another interface");
        assert!(guard(&reply(3), Some(EgressAllowValue::default()), &Known).is_err(), "not to the mesh");
    }

    #[test]
    fn nothing_passes_an_uplink_that_is_disabled() {
        for last in [1, 2, 3, 9] {
            assert!(guard(&sends(0, last, 0), None, &Known).is_ok() == (last == 1));
            let departure = |mark, leg| Departure { leg, ..sends(mark, last, 0) };
            for mark in [0, Mark::OWN_QUERY.0, Mark::OWN.0, Mark::carried_by(1).0, Mark::arrived_by(1).0] {
                let reason = guard(&departure(mark, DISABLED_LEG), None, &Known);
                assert_eq!(reason, Err(Reason::GuardWrongEgress), "mark {mark:#x}");
            }
            assert_eq!(arrive(DISABLED_LEG, &v4(last), &Known), Err(Reason::WrongIngress));
        }
        let unspecified = Departure { source: Some(Address::v4_word(0)), ..sends(0, 0, 0) };
        assert!(guard(&Departure { leg: DISABLED_LEG, ..unspecified }, None, &Known).is_err(), "DHCP");
    }

    #[test]
    fn addresses_of_a_deleted_tunnel_stay_on_its_interface() {
        assert!(guard(&sends(0, 2, 1), None, &LeftBehind).is_err(), "by an uplink");
        assert!(guard(&sends(0, 2, 0), None, &LeftBehind).is_ok(), "by its own interface");
        let arrives = |leg: u8| arrive(leg.into(), &v4(2), &LeftBehind);
        assert!(arrives(1).is_err(), "from an uplink");
        assert!(arrives(TUNNEL).is_err(), "from another tunnel");
        assert_eq!(arrives(0), Ok(None), "from its own interface");
    }
}
