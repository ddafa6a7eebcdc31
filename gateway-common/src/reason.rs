//! Reasons of verdicts.

/// Why. The numbers stand in flow records, events and counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Reason {
    NotIp = 0,
    Malformed = 1,
    /// No plan is live.
    NoPlan = 2,
    /// To the gateway itself.
    ToGateway = 3,
    /// To another LAN network.
    ToLan = 4,
    /// Multicast, broadcast, link-local.
    LinkLocal = 5,
    /// To an own address that LAN hosts have no business with.
    ToGatewayDenied = 6,
    /// The device is blocked.
    DeviceBlocked = 7,
    /// The device's trust class keeps it off the LAN.
    TrustLanDenied = 8,
    /// The device's trust class keeps it off the internet.
    TrustInternetDenied = 9,
    /// A policy chose a leg.
    PolicyEgress = 10,
    /// A policy sends it the default way.
    PolicyDirect = 11,
    /// A policy rejects it: no way of it is usable, it has none, or its proxy does not take such traffic.
    PolicyReject = 12,
    /// A policy drops it.
    PolicyDrop = 13,
    /// No policy matched: the default way.
    NoPolicy = 14,
    /// No policy matched, and without one nothing leaves.
    NoPolicyReject = 15,
    /// The guard: no mark of ours.
    GuardUnmarked = 16,
    /// The guard: the mark does not authorise this interface.
    GuardWrongEgress = 17,
    /// Its source is no address of the LAN that it came by (RFC 2827), or one of the gateway itself.
    Spoofed = 18,
    /// A policy chose a proxy.
    PolicyProxy = 19,
    /// The tunnel in which the connection began takes it no longer; elsewhere it would come from another address.
    PolicyReset = 20,
    /// A question for a resolver elsewhere, which the gateway answers.
    ForcedDns = 21,
    /// DNS over TLS or QUIC to a resolver elsewhere, which cannot be answered in its place.
    ForcedDnsReject = 22,
    /// The policy that matched has ended; a new plan has not come yet.
    PolicyEnded = 23,
    /// It came in by a LAN interface that the plan does not know.
    UnknownInterface = 24,
    /// The guard: its source is not an address of the interface it would leave by.
    GuardSource = 25,
    /// It came in by an uplink or a tunnel, for an address of another tunnel.
    WrongIngress = 26,
}

impl Reason {
    /// Its name in counters and explanations.
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::NotIp => "not_ip",
            Reason::Malformed => "malformed",
            Reason::NoPlan => "no_plan",
            Reason::ToGateway => "to_gateway",
            Reason::ToLan => "to_lan",
            Reason::LinkLocal => "link_local",
            Reason::ToGatewayDenied => "to_gateway_denied",
            Reason::DeviceBlocked => "device_blocked",
            Reason::TrustLanDenied => "trust_lan_denied",
            Reason::TrustInternetDenied => "trust_internet_denied",
            Reason::PolicyEgress => "policy_egress",
            Reason::PolicyDirect => "policy_direct",
            Reason::PolicyReject => "policy_reject",
            Reason::PolicyDrop => "policy_drop",
            Reason::NoPolicy => "no_policy",
            Reason::NoPolicyReject => "no_policy_reject",
            Reason::GuardUnmarked => "guard_unmarked",
            Reason::GuardWrongEgress => "guard_wrong_egress",
            Reason::Spoofed => "spoofed",
            Reason::PolicyProxy => "policy_proxy",
            Reason::PolicyReset => "policy_reset",
            Reason::ForcedDns => "forced_dns",
            Reason::ForcedDnsReject => "forced_dns_reject",
            Reason::PolicyEnded => "policy_ended",
            Reason::UnknownInterface => "unknown_interface",
            Reason::GuardSource => "guard_source",
            Reason::WrongIngress => "wrong_ingress",
        }
    }

    pub const fn from_wire(value: u8) -> Option<Reason> {
        use Reason::*;
        const ALL: [Reason; 27] = [
            NotIp,
            Malformed,
            NoPlan,
            ToGateway,
            ToLan,
            LinkLocal,
            ToGatewayDenied,
            DeviceBlocked,
            TrustLanDenied,
            TrustInternetDenied,
            PolicyEgress,
            PolicyDirect,
            PolicyReject,
            PolicyDrop,
            NoPolicy,
            NoPolicyReject,
            GuardUnmarked,
            GuardWrongEgress,
            Spoofed,
            PolicyProxy,
            PolicyReset,
            ForcedDns,
            ForcedDnsReject,
            PolicyEnded,
            UnknownInterface,
            GuardSource,
            WrongIngress,
        ];
        if (value as usize) < ALL.len() { Some(ALL[value as usize]) } else { None }
    }
}
