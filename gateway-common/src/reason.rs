//! Reasons of verdicts.

/// Reason of a verdict. Flow records, events and counters hold the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Reason {
    NotIp = 0,
    Malformed = 1,
    /// No plan is active: default deny.
    NoPlan = 2,
    /// To the gateway itself.
    ToGateway = 3,
    /// To another LAN network.
    ToLan = 4,
    /// Multicast, broadcast, link-local.
    LinkLocal = 5,
    /// To an address of the gateway that LAN hosts may not use.
    ToGatewayDenied = 6,
    /// The device is blocked.
    DeviceBlocked = 7,
    /// The trust class of the device denies other LAN networks.
    TrustLanDenied = 8,
    /// The trust class of the device denies the internet.
    TrustInternetDenied = 9,
    /// A policy chose a leg.
    PolicyEgress = 10,
    /// A policy chose the default route.
    PolicyDirect = 11,
    /// A policy rejects the packet: no hop is usable, there is none, or its proxy does not carry such traffic.
    PolicyReject = 12,
    /// A policy drops it.
    PolicyDrop = 13,
    /// No policy matched: default route.
    NoPolicy = 14,
    /// No policy matched, and the gateway forwards nothing without a policy.
    NoPolicyReject = 15,
    /// Egress guard: the packet has no fwmark of the gateway.
    GuardUnmarked = 16,
    /// Egress guard: the fwmark does not allow this interface.
    GuardWrongEgress = 17,
    /// The source does not belong to the ingress LAN (RFC 2827), or is an address of the gateway.
    Spoofed = 18,
    /// A policy chose a proxy.
    PolicyProxy = 19,
    /// The tunnel of the connection is gone. Through another egress it would have another source address.
    PolicyReset = 20,
    /// DNS query to another resolver, which the gateway answers instead.
    ForcedDns = 21,
    /// DNS over TLS or QUIC to another resolver, which the gateway cannot answer instead.
    ForcedDnsReject = 22,
    /// The matching policy has ended, and the next plan is not active yet.
    PolicyEnded = 23,
    /// The ingress LAN interface is not in the plan.
    UnknownInterface = 24,
    /// Egress guard: the source is not an address of the egress interface.
    GuardSource = 25,
    /// Received on an uplink or a tunnel for an address of another tunnel.
    WrongIngress = 26,
    /// DNS over TLS or QUIC to another resolver, which a privacy block stops.
    DotBlocked = 27,
    /// HTTPS to a known public resolver, which a privacy block stops.
    DohBlocked = 28,
    /// QUIC, which a privacy block stops.
    QuicBlocked = 29,
    /// IPv6, or IPv6 in IPv4, to an address outside the LAN, which a privacy block stops.
    Ipv6Blocked = 30,
    /// STUN or TURN, which a privacy block stops or keeps off the default route.
    StunBlocked = 31,
    /// LAN discovery protocol to an address outside the LAN.
    DiscoveryDropped = 32,
    /// NTP query for another server: redirected to the time server of the gateway.
    ForcedNtp = 33,
    /// To a port for the administration of the gateway, which the trust class of the device denies.
    AdminDenied = 34,
    /// The policy could only fail in a way that the privacy class of the device does not allow.
    FloorReject = 35,
    /// QUIC of a host that may not use DNS over HTTPS, whose server is not known yet: the daemon reads the name in the
    /// Initial packets, and sends them on.
    QuicHeld = 36,
}

impl Reason {
    /// Reports whether the packet was for another resolver, or of a protocol that a privacy class blocks.
    #[inline(always)]
    pub const fn is_block(self) -> bool {
        let number = self as u8;
        number == Reason::ForcedDns as u8
            || number == Reason::ForcedDnsReject as u8
            || number >= Reason::DotBlocked as u8 && number <= Reason::ForcedNtp as u8
    }

    /// Reports whether this is the name of such a reason.
    pub fn is_block_name(name: &str) -> bool {
        let all = (0..=u8::MAX).map_while(Reason::from_wire);
        all.filter(|reason| reason.is_block()).any(|reason| reason.as_str() == name)
    }

    /// Returns the name in metrics and explanations.
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
            Reason::DotBlocked => "dot_blocked",
            Reason::DohBlocked => "doh_blocked",
            Reason::QuicBlocked => "quic_blocked",
            Reason::Ipv6Blocked => "ipv6_blocked",
            Reason::StunBlocked => "stun_blocked",
            Reason::DiscoveryDropped => "discovery_dropped",
            Reason::ForcedNtp => "forced_ntp",
            Reason::AdminDenied => "admin_denied",
            Reason::FloorReject => "floor_reject",
            Reason::QuicHeld => "quic_held",
        }
    }

    pub const fn from_wire(value: u8) -> Option<Reason> {
        use Reason::*;
        const ALL: [Reason; 37] = [
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
            DotBlocked,
            DohBlocked,
            QuicBlocked,
            Ipv6Blocked,
            StunBlocked,
            DiscoveryDropped,
            ForcedNtp,
            AdminDenied,
            FloorReject,
            QuicHeld,
        ];
        // In one register: else the compiler compares another one than it uses, and the verifier refuses it.
        let index = core::hint::black_box(value as usize);
        if index < ALL.len() { Some(ALL[index]) } else { None }
    }
}
