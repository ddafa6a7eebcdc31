//! Keys, values and records of the BPF maps. Every policy key starts with the slot of its plan, so two plans share a
//! map and one word selects the active one.

mod action;
mod address;
mod counter_log;
mod dns_cache;
mod dns_filter;
mod dns_source;
mod dns_verdict;
mod event;
mod fast_path;
mod flow;
mod flow_bucket;
mod flow_budget;
mod fqdn;
mod hello_segment;
mod host_traffic;
mod link_frame;
mod mark;
mod policy;
mod prefix_filter;
mod quic_initial;
mod server_name;
mod xdp;

pub use action::{ActionValue, CHOICE_SLOTS, Choice, ChoiceKind, Fallback, PROXY_TAKES_UDP, Sticky};
pub use address::{Address, Mac};
pub use counter_log::{CounterLog, LOGGED_PACKETS, LoggedPacket, count_with_log};
pub use dns_cache::{ANSWER, DnsCacheKey, DnsCacheValue, DnsHit, MESSAGE_ID, QUESTION, TTLS};
pub use dns_filter::{
    FILTER_ANSWERS, FILTER_HEAD, FILTER_LABELS, FILTER_QUESTION, FILTER_SLOTS, FILTER_TAIL, FilterAnswer,
    FilterBucket, FilterClient, FilterClientKey, FilterHeader, FilterHit, FilterQuery, FilterSlot, NameKey,
};
pub use dns_source::{DNS_SOURCES, DnsSource, DnsSourceKey, DnsSourceKind};
pub use dns_verdict::{DNS_VERDICT_LIFETIME, DnsVerdictKey, DnsVerdictValue};
pub use event::{BlockKey, COUNTER_PAGE, CounterPage, CounterValue, EventRecord, counter_place};
pub use fast_path::{
    FAST_OFF, FAST_PLACES, FastAction, FastCounter, FastEnd, FastEntry4, FastEntry6, FastLink, FastPending,
    FastReplaced, FastState, FastTags, FastTraffic, fast_flags, fast_traffic, fast_words,
};
pub use flow::{
    DEADLINE_SHIFT, FLOW_TICK_SHIFT, FlowKey, FlowValue, Fragment, ShortFlowKey, deadline, earlier,
    flow_flags,
};
pub use flow_bucket::{FLOW_PLACES, FlowPlaces, FlowRecord, FlowRecord4, FlowRecord6, flow_bucket, flow_tag};
pub use flow_budget::{BUDGETS, FLOW_BUDGET, NewFlows, WINDOW_SHIFT, budget_index};
pub use fqdn::{ClientKey, FqdnIpKey, FqdnIpValue};
pub use hello_segment::{HelloSegment, SEGMENT};
pub use host_traffic::{HostKey, HostTraffic};
pub use link_frame::{LINK_PACKET, LinkFrame};
pub use mark::Mark;
pub use policy::{
    AddressKey, DeviceValue, EgressAllowKey, EgressAllowValue, InterfaceKey, InterfaceValue, LIST_SHIFT,
    LISTS, LocalKind, LocalValue, MacKey, OWN_INTERFACE, PREFIX_BASE, PlanValue, PortPrefix4, PortPrefix6,
    Prefix4, Prefix6, SharedAddressKey, SourceKind, VlanKey, block_flags, device_flags, list_of_slot,
    plan_flags, scope_of_slot, slot_of_list, slot_of_scope,
};
pub use prefix_filter::{
    FILTER_PAGES, FilterBit, FilterLevel, FilterLevels, FilterPage, LEVELS, PrefixTable, TABLES, filter_bit4,
    filter_bit6, filter_page_index, filter_scope,
};
pub use quic_initial::{DATAGRAM, HEADERS, QuicInitial};
pub use server_name::{DomainKey, HelloProgress, LABELS, NAME, ServerNames, fields_before_extensions};
pub use xdp::{
    XDP_LINK_COUNT, XdpAnswers, XdpCounter, XdpLink, XdpMetadata, XdpPort, XdpSide, xdp_link_index,
};

/// Number of a plan slot: 0 is default deny (no plan), 1 and 2 are the two plans.
pub type Slot = u32;

/// No plan is active: default deny.
pub const SLOT_NONE: Slot = 0;

/// No policy: lower precedence than every rank.
pub const RANK_NONE: u32 = u32::MAX;
