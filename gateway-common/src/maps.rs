//! The BPF maps: name, size, key type and value type of each.
//!
//! The kernel programs and the daemon both use these types.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::wire::*;

/// Key or value of a map: plain bytes without padding.
pub trait Wire: FromBytes + IntoBytes + Immutable + KnownLayout + Copy + 'static {}
impl<T: FromBytes + IntoBytes + Immutable + KnownLayout + Copy + 'static> Wire for T {}

/// A map. For prefix tries `Key` is the data behind the prefix length.
pub trait MapSpec {
    const NAME: &'static str;
    const CAPACITY: u32;
    type Key: Wire;
    type Value: Wire;
}

/// Maximum number of policies in a plan.
pub const POLICIES: u32 = 131_072;
/// Maximum number of devices with their own counters.
pub const DEVICES: u32 = 131_072;

/// Maximum number of DNS-learned addresses, each per client.
pub const MAX_FQDN_IPS: u32 = 131_072;

macro_rules! maps {
    ($(#[$list_doc:meta])* $list:ident: $($(#[$doc:meta])* $name:ident $text:literal [$capacity:expr] $key:ty => $value:ty;)*) => {
        $($(#[$doc])* #[derive(Clone, Copy, Debug)] pub enum $name {}
        impl MapSpec for $name {
            const NAME: &'static str = $text;
            const CAPACITY: u32 = $capacity;
            type Key = $key;
            type Value = $value;
        })*
        $(#[$list_doc])*
        pub const $list: &[&str] = &[$($text),*];
    };
}

maps! {
    /// The names of all maps that outlive a program, for pinning and inspection.
    NAMES:
    /// Array of one: the slot of the active plan. Only its low byte changes, so a packet sees either the old or the
    /// new slot.
    ActiveSlot "gw_active_slot" [1] u32 => u32;
    /// Array by slot.
    PlanHeaders "gw_plan_header" [3] u32 => PlanValue;
    Interfaces "gw_interfaces" [16_384] InterfaceKey => InterfaceValue;
    Vlans "gw_vlans" [8192] VlanKey => u32;
    DeviceMacs "gw_device_macs" [2 * 2 * DEVICES] MacKey => DeviceValue;
    DeviceAddresses "gw_device_ips" [2 * 4 * DEVICES] AddressKey => DeviceValue;
    Sources4 "gw_sources4" [2 * POLICIES] Prefix4 => u32;
    Sources6 "gw_sources6" [2 * POLICIES] Prefix6 => u32;
    Destinations4 "gw_dests4" [2 * POLICIES] Prefix4 => u32;
    Destinations6 "gw_dests6" [2 * POLICIES] Prefix6 => u32;
    DestinationPorts4 "gw_dports4" [2 * POLICIES] PortPrefix4 => u32;
    DestinationPorts6 "gw_dports6" [2 * POLICIES] PortPrefix6 => u32;
    /// Array by slot: levels of the filter before the tries of sources and destinations.
    PrefixLevels "gw_prefix_level" [3] u32 => FilterLevels;
    /// Array by page, first for slot 1, then for slot 2: bits of that filter.
    PrefixBits "gw_prefix_bits" [2 * FILTER_PAGES] u32 => FilterPage;
    /// Source prefixes of each LAN interface, with their [`SourceKind`].
    LanSources4 "gw_lan_src4" [8192] Prefix4 => u32;
    LanSources6 "gw_lan_src6" [8192] Prefix6 => u32;
    Locals4 "gw_locals4" [8192] Prefix4 => LocalValue;
    Locals6 "gw_locals6" [8192] Prefix6 => LocalValue;
    /// Addresses that several legs have, for each leg but the first.
    SharedAddresses "gw_shared_ips" [4096] SharedAddressKey => u32;
    /// Prefixes of known public resolvers, for the block of DNS over HTTPS. Empty while nothing blocks it.
    DohServers4 "gw_doh4" [16_384] Prefix4 => u32;
    DohServers6 "gw_doh6" [16_384] Prefix6 => u32;
    /// Domains of the same resolvers.
    DohNames "gw_doh_names" [16_384] DomainKey => u32;
    /// Array by rank, first for slot 1, then for slot 2.
    Actions "gw_actions" [2 * POLICIES] u32 => ActionValue;
    /// Array by policy index: round-robin counter of the policy.
    RoundRobinCounters "gw_rr_counter" [POLICIES] u32 => u64;
    /// Addresses that clients resolved for names of FQDN policies.
    FqdnIps "gw_fqdn_ips" [2 * MAX_FQDN_IPS] FqdnIpKey => FqdnIpValue;
    /// Pairs of fwmark and interface index that may leave.
    EgressAllow "gw_egress_allow" [4096] EgressAllowKey => EgressAllowValue;
    /// Leg of an uplink or tunnel interface, by interface index.
    EgressLegs "gw_egress_legs" [1024] u32 => u32;
    /// Array by [`flow_bucket`]: records of the flows whose key has a short form, nearly all IPv4 flows.
    Flows4 "gw_flows4" [32_768] u32 => [FlowRecord4; FLOW_PLACES];
    /// The same of all other flows.
    Flows6 "gw_flows6" [8192] u32 => [FlowRecord6; FLOW_PLACES];
    /// Tags and times of the records of a bucket of the first table.
    FlowPlaces4 "gw_flow_places4" [Flows4::CAPACITY] u32 => FlowPlaces;
    /// The same of the other table.
    FlowPlaces6 "gw_flow_places6" [Flows6::CAPACITY] u32 => FlowPlaces;
    /// Connections with a ClientHello of several segments. Evicts the least recently used entry.
    Hellos "gw_hellos" [4096] FlowKey => HelloProgress;
    /// Array by [`budget_index`]: new flows of each device, and of the unknown hosts of each interface.
    NewFlowCounts "gw_new_flows" [BUDGETS] u32 => NewFlows;
    /// Per-CPU array of one: packets of flows beyond the budget of their device, which have no record.
    Unrecorded "gw_unrecorded" [1] u32 => CounterValue;
    /// Per-CPU array of one: packets that are not in the counters of policies and devices yet.
    CounterLogs "gw_counter_log" [1] u32 => CounterLog;
    /// Per-CPU array by policy number, in pages.
    PolicyCounters "gw_policy_count" [POLICIES / COUNTER_PAGE] u32 => CounterPage;
    /// Per-CPU array by device number, in pages.
    DeviceCounters "gw_device_count" [DEVICES / COUNTER_PAGE] u32 => CounterPage;
    /// Per-CPU array by reason.
    ReasonCounters "gw_reason_count" [64] u32 => CounterValue;
    /// Per-CPU hash of blocked packets. Evicts the least recently used entry.
    BlockHits "gw_block_hits" [16_384] BlockKey => CounterValue;
    /// Per-CPU hash by interface index: packets that the egress guard dropped.
    GuardDrops "gw_guard_drops" [1024] u32 => CounterValue;
    /// Ring buffer of event records, in bytes.
    Events "gw_events" [262_144] u32 => EventRecord;
}

maps! {
    /// Names of the maps that end with the daemon. Without it, the kernel answers no query and the taps count nothing.
    PASSING:
    /// Per-CPU hash by interface index: forwarded packets that left past the egress guard.
    Escaped "gw_escaped" [1024] u32 => CounterValue;
    /// Hosts of the LAN whose traffic the tap counts.
    HostBytes "gw_host_bytes" [16_384] HostKey => HostTraffic;
    /// Packet cache of DNS answers, by client and query bytes.
    DnsCache "gw_dns_cache" [16_384] DnsCacheKey => DnsCacheValue;
    /// Array of one: the generation of the DNS cache. Answers of another generation are ignored.
    DnsEpoch "gw_dns_epoch" [1] u32 => u64;
    /// Ring buffer of datagrams with Initial packets of QUIC, in bytes.
    Initials "gw_initials" [524_288] u32 => QuicInitial;
    /// Ring buffer of TCP segments with a ClientHello, in bytes.
    HelloSegments "gw_hello_segs" [2_097_152] u32 => HelloSegment;
    /// Ring buffer of packets by which hosts announce their names, in bytes.
    Announcements "gw_announced" [262_144] u32 => LinkFrame;
    /// Ring buffer of messages of routers and DHCP servers on the LANs, in bytes. A flood of announcements leaves it alone.
    LinkMessages "gw_link_msgs" [131_072] u32 => LinkFrame;
    /// Array by [`fast_words`]: the epoch of the fast path, and the end of the lease of the daemon.
    FastEpoch "gw_fast_epoch" [2] u32 => u32;
    /// Interfaces that the fast path may use, by index.
    FastLinks "gw_fast_links" [1024] u32 => FastLink;
    /// Array by [hash](crate::fast_path::hash): buckets of IPv4 flows of the fast path, two entries for each flow.
    FastFlows4 "gw_fast4" [65_536] u32 => [FastEntry4; FAST_PLACES];
    /// The same of IPv6 flows.
    FastFlows6 "gw_fast6" [16_384] u32 => [FastEntry6; FAST_PLACES];
    /// Tags of the entries of a bucket of IPv4 flows, 0 without an entry.
    FastTags4 "gw_fast_tags4" [FastFlows4::CAPACITY] u32 => FastTags;
    /// The same of IPv6 flows.
    FastTags6 "gw_fast_tags6" [FastFlows6::CAPACITY] u32 => FastTags;
    /// Counters of the entries of a bucket of IPv4 flows.
    FastTraffic4 "gw_fast_bytes4" [FastFlows4::CAPACITY] u32 => FastTraffic;
    /// The same of IPv6 flows.
    FastTraffic6 "gw_fast_bytes6" [FastFlows6::CAPACITY] u32 => FastTraffic;
    /// Ring buffer of entries that were replaced, in bytes.
    FastReplacements "gw_fast_gone" [4_194_304] u32 => FastReplaced;
    /// Array by [hash](crate::fast_path::hash): actions of the fast path.
    FastActions "gw_fast_actions" [65_536] u32 => FastAction;
    /// Array by traffic control index: packets between ingress and the egress guard.
    FastPackets "gw_fast_pending" [65_536] u32 => FastPending;
    /// Per-CPU array of one: the next index of this processor in `gw_fast_pending`.
    FastNext "gw_fast_next" [1] u32 => u32;
    /// Per-CPU array by [`FastCounter`].
    FastCounts "gw_fast_count" [16] u32 => CounterValue;
    /// Array by [`xdp_link_index`]: interfaces whose packets XDP may take.
    XdpLinks "gw_xdp_links" [XDP_LINK_COUNT] u32 => XdpLink;
    /// Device map by interface index: interfaces that XDP may send packets to.
    XdpPorts "gw_xdp_ports" [256] u32 => XdpPort;
    /// Per-CPU array by [`XdpCounter`].
    XdpCounts "gw_xdp_count" [8] u32 => CounterValue;
    /// Known verdicts on DNS queries, for XDP. Evicts the least recently used entry.
    DnsVerdicts "gw_dns_verdicts" [16_384] DnsVerdictKey => DnsVerdictValue;
    /// Array by [`DnsSourceKey::index`]: notes of packets to the resolver.
    DnsSources "gw_dns_sources" [DNS_SOURCES] u32 => DnsSource;
    /// Clients that the DNS filter answers. Evicts the least recently used entry.
    FilterClients "gw_filter_hosts" [16_384] FilterClientKey => FilterClient;
    /// Array in two halves by [`answer_index`](crate::dns_filter::answer_index): answers of the DNS filter.
    FilterAnswers "gw_filter_reply" [2 * FILTER_ANSWERS] u32 => FilterAnswer;
    /// Array of one: the map with the names of the DNS filter, which is replaced as a whole.
    FilterTables "gw_filter_table" [1] u32 => u32;
    /// Ring buffer of answers of the DNS filter, in bytes.
    FilterHits "gw_filter_hits" [1_048_576] u32 => FilterHit;
    /// Ring buffer of cache hits, in bytes.
    DnsHits "gw_dns_hits" [2_097_152] u32 => DnsHit;
}

/// Returns the index of a rank in [`Actions`]. `None` for `SLOT_NONE` and for a rank beyond the array.
pub const fn action_index(slot: Slot, rank: u32) -> Option<u32> {
    if rank >= POLICIES || slot == SLOT_NONE || slot > 2 {
        return None;
    }
    Some((slot - 1) * POLICIES + rank)
}
