//! Egress guard of uplinks and tunnels, and the evaluation of packets that arrive by them.

use crate::leg_selection;
use crate::verdict::Reason;
use crate::wire::*;

/// Traffic control index of forwarded packets that the guard passed. The tap behind it looks for it.
pub const PASSED: u16 = 0x6777;

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

/// Decides whether a packet may leave by an interface; `Ok` passes it.
///
/// Forwarded packets need a mark that authorises the interface, and a source that is an address of it: without it they
/// were not masqueraded. Host output with a mark of this gateway needs an authorised mark, too. Without such a mark it
/// needs a source that the plan knows as an address of this host: one of a tunnel leaves by that tunnel only, and one
/// that the plan does not know may be of a tunnel that has just come or goes.
#[inline(always)]
pub fn guard(
    departure: &Departure,
    authorised: Option<EgressAllowValue>,
    local: impl FnOnce(&Address) -> LocalValue,
) -> Result<(), Reason> {
    let Departure { ingress, mark, ipv6, source, leg, no_plan } = *departure;
    let Some(source) = source else { return Ok(()) };
    if ingress == 0 {
        if mark & Mark::OURS_MASK == Mark::OURS {
            return if authorised.is_some() { Ok(()) } else { Err(Reason::GuardWrongEgress) };
        }
        // A host without an address requests one (RFC 2131) or probes one (RFC 4862).
        if no_plan || source.is_unspecified() {
            return Ok(());
        }
        let found = local(&source);
        let of_host = found.is(LocalKind::Own) || found.is(LocalKind::Link);
        let of_this_leg = found.is(LocalKind::Forbidden) && found.leg as u32 == leg;
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
    let found = local(&source);
    let leg_of_mark = mark & 0xff;
    let allowed = if mark & !0xff == Mark::PREFIX && leg_of_mark >= leg_selection::FIRST_TUNNEL as u32 {
        // A tunnel's address.
        found.is(LocalKind::Forbidden) && found.leg as u32 == leg_of_mark
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
/// A tunnel's address is reached through that tunnel only (CVE-2019-14899): who can send to an uplink must not reach
/// into a tunnel's flows. By a tunnel nothing reaches any other address of this host.
#[inline(always)]
pub fn arrive(leg: u32, destination: LocalValue) -> Result<Option<Mark>, Reason> {
    let foreign = destination.leg as u32 != leg;
    let is_tunnel = leg >= leg_selection::FIRST_TUNNEL as u32;
    if foreign && (destination.is(LocalKind::Forbidden) || is_tunnel && destination.is(LocalKind::Own)) {
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

    /// .1 is the uplink's, .2 the tunnel's, .3 of a LAN host.
    fn local(address: &Address) -> LocalValue {
        match address.last().to_ne_bytes() {
            [10, 0, 0, 1] => LocalValue::of_leg(LocalKind::Own, 1),
            [10, 0, 0, 2] => LocalValue::of_leg(LocalKind::Forbidden, TUNNEL),
            [10, 0, 0, 3] => LocalValue::new(LocalKind::Lan),
            [169, 254, ..] => LocalValue::new(LocalKind::Link),
            _ => LocalValue::NONE,
        }
    }

    #[test]
    fn unmarked_host_output_needs_a_source_that_the_plan_knows() {
        let passes = |departure: Departure| guard(&departure, None, local).is_ok();
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
    fn addresses_of_a_deleted_tunnel_stay_on_its_interface() {
        let left_behind = |_: &Address| LocalValue::new(LocalKind::Forbidden);
        assert!(guard(&sends(0, 2, 1), None, left_behind).is_err(), "by an uplink");
        assert!(guard(&sends(0, 2, 0), None, left_behind).is_ok(), "by its own interface");
        let arrives = |leg: u8| arrive(leg.into(), LocalValue::new(LocalKind::Forbidden));
        assert!(arrives(1).is_err(), "from an uplink");
        assert!(arrives(TUNNEL).is_err(), "from another tunnel");
        assert_eq!(arrives(0), Ok(None), "from its own interface");
    }
}
