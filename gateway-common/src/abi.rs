//! Version of the interface between kernel programs and daemon, with size assertions.
//!
//! The daemon never reads maps pinned by another version: the version is part of the pin directory.

use crate::wire::*;

/// Increment it whenever a wire structure, a map type or the meaning of a value changes.
pub const ABI_VERSION: u32 = 29;

const fn same(actual: usize, expected: usize) {
    assert!(actual == expected, "wire structure changed size: raise ABI_VERSION");
}

const _: () = {
    same(size_of::<PlanValue>(), 28);
    same(size_of::<InterfaceKey>(), 12);
    same(size_of::<InterfaceValue>(), 12);
    same(size_of::<VlanKey>(), 8);
    same(size_of::<MacKey>(), 8);
    same(size_of::<AddressKey>(), 20);
    same(size_of::<DeviceValue>(), 20);
    same(size_of::<Prefix4>(), 8);
    same(size_of::<Prefix6>(), 20);
    same(size_of::<PortPrefix4>(), 8);
    same(size_of::<PortPrefix6>(), 20);
    same(size_of::<LocalValue>(), 4);
    same(size_of::<SharedAddressKey>(), 24);
    same(size_of::<ActionValue>(), 60);
    same(size_of::<EgressAllowKey>(), 8);
    same(size_of::<EgressAllowValue>(), 20);
    same(size_of::<FqdnIpKey>(), 28);
    same(size_of::<FqdnIpValue>(), 8);
    same(size_of::<FlowKey>(), 52);
    same(size_of::<ShortFlowKey>(), 24);
    same(size_of::<FlowValue>(), 32);
    same(size_of::<FlowPlaces>(), 64);
    same(size_of::<FlowRecord4>(), 64);
    same(size_of::<FlowRecord6>(), 128);
    same(size_of::<NewFlows>(), 8);
    same(size_of::<CounterValue>(), 16);
    same(size_of::<CounterPage>(), 1024);
    same(size_of::<CounterLog>(), 1040);
    same(size_of::<FilterLevels>(), 480);
    same(size_of::<FilterPage>(), 1024);
    same(size_of::<BlockKey>(), 12);
    same(size_of::<DomainKey>(), 16);
    same(size_of::<HelloProgress>(), 8);
    same(size_of::<QuicInitial>(), 2368);
    same(size_of::<HelloSegment>(), 2108);
    same(size_of::<LinkFrame>(), 2068);
    same(size_of::<EventRecord>(), 72);
    same(size_of::<DnsCacheKey>(), 132);
    same(size_of::<DnsCacheValue>(), 608);
    same(size_of::<DnsHit>(), 16);
    same(size_of::<FilterClientKey>(), 44);
    same(size_of::<FilterClient>(), 32);
    same(size_of::<FilterBucket>(), 64);
    same(size_of::<FilterHeader>(), 64);
    same(size_of::<FilterAnswer>(), 128);
    same(size_of::<FilterHit>(), 144);
    same(size_of::<DnsSource>(), 48);
    same(size_of::<HostKey>(), 12);
    same(size_of::<HostTraffic>(), 16);
    same(size_of::<DnsVerdictKey>(), 44);
    same(size_of::<DnsVerdictValue>(), 32);
    same(size_of::<FastLink>(), 4);
    same(size_of::<FastEntry4>(), 32);
    same(size_of::<FastEntry6>(), 64);
    same(size_of::<FastTags>(), 8);
    same(size_of::<FastReplaced>(), 80);
    same(size_of::<FastAction>(), 72);
    same(size_of::<FastPending>(), 104);
    same(size_of::<XdpLink>(), 16);
    same(size_of::<XdpPort>(), 8);
    same(size_of::<XdpMetadata>(), 8);
};
