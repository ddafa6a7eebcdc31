//! The maps, typed and sized by `gateway_common::maps`. A test compares their names with it.

use aya_ebpf::bindings::{BPF_F_MMAPABLE, BPF_F_NO_PREALLOC};
use aya_ebpf::macros::map;
use aya_ebpf::maps::lpm_trie::LpmTrie;
use aya_ebpf::maps::{
    Array, DevMapHash, HashMap, LruHashMap, LruPerCpuHashMap, PerCpuArray, PerCpuHashMap, ProgramArray,
    RingBuf,
};
use gateway_common::maps::{self as spec, MapSpec};

type Key<M> = <M as MapSpec>::Key;
type Value<M> = <M as MapSpec>::Value;

const fn size<M: MapSpec>() -> u32 {
    M::CAPACITY
}

/// Flag of an array that begins at the beginning of a page, as one that can be mapped into memory does. So no value
/// lies across two cache lines.
const ON_PAGES: u32 = BPF_F_MMAPABLE;

#[map(name = "gw_active_slot")]
pub static ACTIVE_SLOT: Array<Value<spec::ActiveSlot>> =
    Array::with_max_entries(size::<spec::ActiveSlot>(), 0);
#[map(name = "gw_plan_header")]
pub static PLAN_HEADERS: Array<Value<spec::PlanHeaders>> =
    Array::with_max_entries(size::<spec::PlanHeaders>(), 0);
#[map(name = "gw_interfaces")]
pub static INTERFACES: HashMap<Key<spec::Interfaces>, Value<spec::Interfaces>> =
    HashMap::with_max_entries(size::<spec::Interfaces>(), BPF_F_NO_PREALLOC);
#[map(name = "gw_vlans")]
pub static VLANS: HashMap<Key<spec::Vlans>, Value<spec::Vlans>> =
    HashMap::with_max_entries(size::<spec::Vlans>(), BPF_F_NO_PREALLOC);
#[map(name = "gw_device_macs")]
pub static DEVICE_MACS: HashMap<Key<spec::DeviceMacs>, Value<spec::DeviceMacs>> =
    HashMap::with_max_entries(size::<spec::DeviceMacs>(), BPF_F_NO_PREALLOC);
#[map(name = "gw_device_ips")]
pub static DEVICE_ADDRESSES: HashMap<Key<spec::DeviceAddresses>, Value<spec::DeviceAddresses>> =
    HashMap::with_max_entries(size::<spec::DeviceAddresses>(), BPF_F_NO_PREALLOC);
#[map(name = "gw_sources4")]
pub static SOURCES4: LpmTrie<Key<spec::Sources4>, Value<spec::Sources4>> =
    LpmTrie::with_max_entries(size::<spec::Sources4>(), BPF_F_NO_PREALLOC);
#[map(name = "gw_sources6")]
pub static SOURCES6: LpmTrie<Key<spec::Sources6>, Value<spec::Sources6>> =
    LpmTrie::with_max_entries(size::<spec::Sources6>(), BPF_F_NO_PREALLOC);
#[map(name = "gw_dests4")]
pub static DESTINATIONS4: LpmTrie<Key<spec::Destinations4>, Value<spec::Destinations4>> =
    LpmTrie::with_max_entries(size::<spec::Destinations4>(), BPF_F_NO_PREALLOC);
#[map(name = "gw_dests6")]
pub static DESTINATIONS6: LpmTrie<Key<spec::Destinations6>, Value<spec::Destinations6>> =
    LpmTrie::with_max_entries(size::<spec::Destinations6>(), BPF_F_NO_PREALLOC);
#[map(name = "gw_dports4")]
pub static DESTINATION_PORTS4: LpmTrie<Key<spec::DestinationPorts4>, Value<spec::DestinationPorts4>> =
    LpmTrie::with_max_entries(size::<spec::DestinationPorts4>(), BPF_F_NO_PREALLOC);
#[map(name = "gw_dports6")]
pub static DESTINATION_PORTS6: LpmTrie<Key<spec::DestinationPorts6>, Value<spec::DestinationPorts6>> =
    LpmTrie::with_max_entries(size::<spec::DestinationPorts6>(), BPF_F_NO_PREALLOC);
#[map(name = "gw_prefix_level")]
pub static PREFIX_LEVELS: Array<Value<spec::PrefixLevels>> =
    Array::with_max_entries(size::<spec::PrefixLevels>(), 0);
#[map(name = "gw_prefix_bits")]
pub static PREFIX_BITS: Array<Value<spec::PrefixBits>> =
    Array::with_max_entries(size::<spec::PrefixBits>(), 0);
#[map(name = "gw_lan_src4")]
pub static LAN_SOURCES4: LpmTrie<Key<spec::LanSources4>, Value<spec::LanSources4>> =
    LpmTrie::with_max_entries(size::<spec::LanSources4>(), BPF_F_NO_PREALLOC);
#[map(name = "gw_lan_src6")]
pub static LAN_SOURCES6: LpmTrie<Key<spec::LanSources6>, Value<spec::LanSources6>> =
    LpmTrie::with_max_entries(size::<spec::LanSources6>(), BPF_F_NO_PREALLOC);
#[map(name = "gw_locals4")]
pub static LOCALS4: LpmTrie<Key<spec::Locals4>, Value<spec::Locals4>> =
    LpmTrie::with_max_entries(size::<spec::Locals4>(), BPF_F_NO_PREALLOC);
#[map(name = "gw_locals6")]
pub static LOCALS6: LpmTrie<Key<spec::Locals6>, Value<spec::Locals6>> =
    LpmTrie::with_max_entries(size::<spec::Locals6>(), BPF_F_NO_PREALLOC);
#[map(name = "gw_shared_ips")]
pub static SHARED_IPS: HashMap<Key<spec::SharedAddresses>, Value<spec::SharedAddresses>> =
    HashMap::with_max_entries(size::<spec::SharedAddresses>(), BPF_F_NO_PREALLOC);
#[map(name = "gw_doh4")]
pub static DOH_SERVERS4: LpmTrie<Key<spec::DohServers4>, Value<spec::DohServers4>> =
    LpmTrie::with_max_entries(size::<spec::DohServers4>(), BPF_F_NO_PREALLOC);
#[map(name = "gw_doh6")]
pub static DOH_SERVERS6: LpmTrie<Key<spec::DohServers6>, Value<spec::DohServers6>> =
    LpmTrie::with_max_entries(size::<spec::DohServers6>(), BPF_F_NO_PREALLOC);
#[map(name = "gw_doh_names")]
pub static DOH_NAMES: HashMap<Key<spec::DohNames>, Value<spec::DohNames>> =
    HashMap::with_max_entries(size::<spec::DohNames>(), BPF_F_NO_PREALLOC);
#[map(name = "gw_actions")]
pub static ACTIONS: Array<Value<spec::Actions>> = Array::with_max_entries(size::<spec::Actions>(), 0);
#[map(name = "gw_rr_counter")]
pub static RR_COUNTERS: Array<Value<spec::RoundRobinCounters>> =
    Array::with_max_entries(size::<spec::RoundRobinCounters>(), 0);
#[map(name = "gw_fqdn_ips")]
pub static FQDN_IPS: HashMap<Key<spec::FqdnIps>, Value<spec::FqdnIps>> =
    HashMap::with_max_entries(size::<spec::FqdnIps>(), BPF_F_NO_PREALLOC);
#[map(name = "gw_egress_allow")]
pub static EGRESS_ALLOW: HashMap<Key<spec::EgressAllow>, Value<spec::EgressAllow>> =
    HashMap::with_max_entries(size::<spec::EgressAllow>(), BPF_F_NO_PREALLOC);
#[map(name = "gw_egress_legs")]
pub static EGRESS_LEGS: HashMap<Key<spec::EgressLegs>, Value<spec::EgressLegs>> =
    HashMap::with_max_entries(size::<spec::EgressLegs>(), BPF_F_NO_PREALLOC);
#[map(name = "gw_flows4")]
pub static FLOWS4: Array<Value<spec::Flows4>> = Array::with_max_entries(size::<spec::Flows4>(), ON_PAGES);
#[map(name = "gw_flows6")]
pub static FLOWS6: Array<Value<spec::Flows6>> = Array::with_max_entries(size::<spec::Flows6>(), ON_PAGES);
#[map(name = "gw_flow_places4")]
pub static FLOW_PLACES4: Array<Value<spec::FlowPlaces4>> =
    Array::with_max_entries(size::<spec::FlowPlaces4>(), ON_PAGES);
#[map(name = "gw_flow_places6")]
pub static FLOW_PLACES6: Array<Value<spec::FlowPlaces6>> =
    Array::with_max_entries(size::<spec::FlowPlaces6>(), ON_PAGES);
#[map(name = "gw_hellos")]
pub static HELLOS: LruHashMap<Key<spec::Hellos>, Value<spec::Hellos>> =
    LruHashMap::with_max_entries(size::<spec::Hellos>(), 0);
#[map(name = "gw_new_flows")]
pub static NEW_FLOWS: Array<Value<spec::NewFlowCounts>> =
    Array::with_max_entries(size::<spec::NewFlowCounts>(), 0);
#[map(name = "gw_unrecorded")]
pub static UNRECORDED: PerCpuArray<Value<spec::Unrecorded>> =
    PerCpuArray::with_max_entries(size::<spec::Unrecorded>(), 0);
#[map(name = "gw_counter_log")]
pub static COUNTER_LOG: PerCpuArray<Value<spec::CounterLogs>> =
    PerCpuArray::with_max_entries(size::<spec::CounterLogs>(), 0);
#[map(name = "gw_policy_count")]
pub static POLICY_COUNTERS: PerCpuArray<Value<spec::PolicyCounters>> =
    PerCpuArray::with_max_entries(size::<spec::PolicyCounters>(), 0);
#[map(name = "gw_device_count")]
pub static DEVICE_COUNTERS: PerCpuArray<Value<spec::DeviceCounters>> =
    PerCpuArray::with_max_entries(size::<spec::DeviceCounters>(), 0);
#[map(name = "gw_reason_count")]
pub static REASON_COUNTERS: PerCpuArray<Value<spec::ReasonCounters>> =
    PerCpuArray::with_max_entries(size::<spec::ReasonCounters>(), 0);
#[map(name = "gw_block_hits")]
pub static BLOCK_HITS: LruPerCpuHashMap<Key<spec::BlockHits>, Value<spec::BlockHits>> =
    LruPerCpuHashMap::with_max_entries(size::<spec::BlockHits>(), 0);
#[map(name = "gw_guard_drops")]
pub static GUARD_DROPS: PerCpuHashMap<Key<spec::GuardDrops>, Value<spec::GuardDrops>> =
    PerCpuHashMap::with_max_entries(size::<spec::GuardDrops>(), BPF_F_NO_PREALLOC);
#[map(name = "gw_events")]
pub static EVENTS: RingBuf = RingBuf::with_byte_size(size::<spec::Events>(), 0);
#[map(name = "gw_escaped")]
pub static ESCAPED: PerCpuHashMap<Key<spec::Escaped>, Value<spec::Escaped>> =
    PerCpuHashMap::with_max_entries(size::<spec::Escaped>(), BPF_F_NO_PREALLOC);
#[map(name = "gw_host_bytes")]
pub static HOST_BYTES: HashMap<Key<spec::HostBytes>, Value<spec::HostBytes>> =
    HashMap::with_max_entries(size::<spec::HostBytes>(), BPF_F_NO_PREALLOC);
#[map(name = "gw_dns_cache")]
pub static DNS_CACHE: HashMap<Key<spec::DnsCache>, Value<spec::DnsCache>> =
    HashMap::with_max_entries(size::<spec::DnsCache>(), BPF_F_NO_PREALLOC);
#[map(name = "gw_dns_epoch")]
pub static DNS_EPOCH: Array<Value<spec::DnsEpoch>> = Array::with_max_entries(size::<spec::DnsEpoch>(), 0);
#[map(name = "gw_initials")]
pub static INITIALS: RingBuf = RingBuf::with_byte_size(size::<spec::Initials>(), 0);
#[map(name = "gw_hello_segs")]
pub static HELLO_SEGMENTS: RingBuf = RingBuf::with_byte_size(size::<spec::HelloSegments>(), 0);
#[map(name = "gw_announced")]
pub static ANNOUNCEMENTS: RingBuf = RingBuf::with_byte_size(size::<spec::Announcements>(), 0);
#[map(name = "gw_link_msgs")]
pub static LINK_MESSAGES: RingBuf = RingBuf::with_byte_size(size::<spec::LinkMessages>(), 0);
#[map(name = "gw_dns_verdicts")]
pub static DNS_VERDICTS: LruHashMap<Key<spec::DnsVerdicts>, Value<spec::DnsVerdicts>> =
    LruHashMap::with_max_entries(size::<spec::DnsVerdicts>(), 0);
#[map(name = "gw_dns_sources")]
pub static DNS_SOURCES: Array<Value<spec::DnsSources>> =
    Array::with_max_entries(size::<spec::DnsSources>(), ON_PAGES);
#[map(name = "gw_filter_hosts")]
pub static FILTER_CLIENTS: LruHashMap<Key<spec::FilterClients>, Value<spec::FilterClients>> =
    LruHashMap::with_max_entries(size::<spec::FilterClients>(), 0);
#[map(name = "gw_filter_reply")]
pub static FILTER_ANSWER_MAP: Array<Value<spec::FilterAnswers>> =
    Array::with_max_entries(size::<spec::FilterAnswers>(), 0);
#[map(name = "gw_filter_hits")]
pub static FILTER_HITS: RingBuf = RingBuf::with_byte_size(size::<spec::FilterHits>(), 0);
#[map(name = "gw_dns_hits")]
pub static DNS_HITS: RingBuf = RingBuf::with_byte_size(size::<spec::DnsHits>(), 0);
#[map(name = "gw_fast_epoch")]
pub static FAST_EPOCH: Array<Value<spec::FastEpoch>> = Array::with_max_entries(size::<spec::FastEpoch>(), 0);
#[map(name = "gw_fast_links")]
pub static FAST_LINKS: HashMap<Key<spec::FastLinks>, Value<spec::FastLinks>> =
    HashMap::with_max_entries(size::<spec::FastLinks>(), BPF_F_NO_PREALLOC);
#[map(name = "gw_fast4")]
pub static FAST_FLOWS4: Array<Value<spec::FastFlows4>> =
    Array::with_max_entries(size::<spec::FastFlows4>(), ON_PAGES);
#[map(name = "gw_fast6")]
pub static FAST_FLOWS6: Array<Value<spec::FastFlows6>> =
    Array::with_max_entries(size::<spec::FastFlows6>(), ON_PAGES);
#[map(name = "gw_fast_bytes4")]
pub static FAST_TRAFFIC4: Array<Value<spec::FastTraffic4>> =
    Array::with_max_entries(size::<spec::FastTraffic4>(), ON_PAGES);
#[map(name = "gw_fast_bytes6")]
pub static FAST_TRAFFIC6: Array<Value<spec::FastTraffic6>> =
    Array::with_max_entries(size::<spec::FastTraffic6>(), ON_PAGES);
#[map(name = "gw_fast_gone")]
pub static FAST_REPLACED: RingBuf = RingBuf::with_byte_size(size::<spec::FastReplacements>(), 0);
#[map(name = "gw_fast_tags4")]
pub static FAST_TAGS4: Array<Value<spec::FastTags4>> =
    Array::with_max_entries(size::<spec::FastTags4>(), ON_PAGES);
#[map(name = "gw_fast_tags6")]
pub static FAST_TAGS6: Array<Value<spec::FastTags6>> =
    Array::with_max_entries(size::<spec::FastTags6>(), ON_PAGES);
#[map(name = "gw_fast_actions")]
pub static FAST_ACTIONS: Array<Value<spec::FastActions>> =
    Array::with_max_entries(size::<spec::FastActions>(), 0);
#[map(name = "gw_fast_pending")]
pub static FAST_PENDING: Array<Value<spec::FastPackets>> =
    Array::with_max_entries(size::<spec::FastPackets>(), 0);
#[map(name = "gw_fast_next")]
pub static FAST_NEXT: PerCpuArray<Value<spec::FastNext>> =
    PerCpuArray::with_max_entries(size::<spec::FastNext>(), 0);
#[map(name = "gw_fast_count")]
pub static FAST_COUNTS: PerCpuArray<Value<spec::FastCounts>> =
    PerCpuArray::with_max_entries(size::<spec::FastCounts>(), 0);
#[map(name = "gw_xdp_links")]
pub static XDP_LINKS: Array<Value<spec::XdpLinks>> = Array::with_max_entries(size::<spec::XdpLinks>(), 0);
#[map(name = "gw_xdp_ports")]
pub static XDP_PORTS: DevMapHash = DevMapHash::with_max_entries(size::<spec::XdpPorts>(), 0);
#[map(name = "gw_xdp_count")]
pub static XDP_COUNTS: PerCpuArray<Value<spec::XdpCounts>> =
    PerCpuArray::with_max_entries(size::<spec::XdpCounts>(), 0);
/// The programs that answer queries: from the packet cache, then the three of the filter. Empty while no daemon runs.
#[map(name = "gw_tail_calls")]
pub static TAIL_CALLS: ProgramArray = ProgramArray::with_max_entries(4, 0);
/// Indexes of the programs in [`TAIL_CALLS`] and [`XDP_CALLS`].
pub const CALL_REPLY: u32 = 0;
pub const CALL_READ: u32 = 1;
pub const CALL_LOOK_UP: u32 = 2;
pub const CALL_BLOCK: u32 = 3;
/// The programs that answer queries at XDP, in the same order.
#[map(name = "gw_xdp_calls")]
pub static XDP_CALLS: ProgramArray = ProgramArray::with_max_entries(4, 0);
