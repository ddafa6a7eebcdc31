//! Counters of stopped leaks: packets at a wrong egress, and packets that blocks stopped.

use std::collections::BTreeMap;

use gateway_common::verdict::Reason;
use gateway_ctl::os::bpf::Event;
use gateway_ctl::readings::{BlockHits, BpfCounters};
use gateway_ctl::services::events::Recent;
use gateway_ctl::services::foreign_routers::{ForeignRouter, ForeignRouters};
use gateway_ctl::services::guard_tap::{EscapeCounts, Escapes};
use gateway_model::{Id, State};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::blocking::blocking;
use crate::context::Cx;
use crate::error::ApiError;
use crate::request::Req;

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LeakMonitor {
    /// Time since which packets are counted; null if nothing is enforced here.
    pub since: Option<Timestamp>,
    /// By policy. Packets without a policy have a null id.
    pub counters: Vec<PolicyLeaks>,
    /// Share of the time since the start of the daemon in which the tap behind the egress guard observed, in percent.
    pub observed_pct: f64,
    /// Drops of the egress guard, and a sample of the first packets of blocked flows; newest last.
    pub last_events: Vec<Event>,
    /// Other routers that hosts of the LAN can send IPv6 to, past the gateway.
    pub foreign_routers: Vec<ForeignRouter>,
}

/// Stopped packets of a policy.
#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct PolicyLeaks {
    /// Policy that would have routed them. Null for packets that no policy matched, that another resolver was asked
    /// with, or that the egress guard dropped.
    pub policy_id: Option<Id>,
    /// Packets that the egress guard dropped, because their mark did not allow the interface.
    pub wrong_egress_packets: u64,
    /// Forwarded packets that left past the egress guard while the tap observed. Not zero is a leak.
    pub escaped_packets: u64,
    /// Bytes of all packets that are counted here.
    pub bytes: u64,
    /// DNS queries to other resolvers, plain or over TLS or QUIC.
    pub dns_bypass: u64,
    /// Packets to known public resolvers for DNS over HTTPS.
    pub doh_hits: u64,
    pub stun_blocked: u64,
    pub ipv6_blocked: u64,
    pub quic_blocked: u64,
    /// Discovery protocols of the LAN.
    pub discovery_dropped: u64,
    /// NTP queries to other servers, which the gateway answers.
    pub ntp_redirected: u64,
}

pub(super) async fn show(cx: Cx, _: Req<()>) -> Result<LeakMonitor, ApiError> {
    let open = cx.open()?;
    let (reader, state) = (open.enforcement.dataplane(), open.store.current());
    let (facts, recent) = (open.worlds.last().facts.clone(), open.handles.get::<Recent>());
    let counted = blocking(move || Ok((reader.counters(&facts, &recent)?, reader.block_hits()?))).await?;
    let (programs, blocks) =
        counted.map_err(|error: gateway_ctl::os::bpf::Error| ApiError::internal(&error))?;
    let foreign_routers = open.handles.get::<ForeignRouters>().list();
    Ok(LeakMonitor {
        foreign_routers,
        ..monitor(&state, programs, &blocks, &open.handles.get::<Escapes>().read())
    })
}

fn monitor(state: &State, programs: BpfCounters, blocks: &BlockHits, escaped: &EscapeCounts) -> LeakMonitor {
    let by_number: BTreeMap<u32, Id> =
        state.routing_policies.iter().map(|policy| (policy.meta.slot, policy.meta.id)).collect();
    let mut counters: BTreeMap<Option<Id>, PolicyLeaks> = BTreeMap::new();
    for (key, hits) in &blocks.hits {
        let policy_id = by_number.get(&key.policy).copied();
        let leaks = counters.entry(policy_id).or_default();
        leaks.bytes += hits.bytes;
        let reason = u8::try_from(key.reason).ok().and_then(Reason::from_wire);
        let counter = match reason {
            Some(Reason::ForcedDns | Reason::ForcedDnsReject | Reason::DotBlocked) => &mut leaks.dns_bypass,
            Some(Reason::DohBlocked) => &mut leaks.doh_hits,
            Some(Reason::StunBlocked) => &mut leaks.stun_blocked,
            Some(Reason::Ipv6Blocked) => &mut leaks.ipv6_blocked,
            Some(Reason::QuicBlocked) => &mut leaks.quic_blocked,
            Some(Reason::DiscoveryDropped) => &mut leaks.discovery_dropped,
            Some(Reason::ForcedNtp) => &mut leaks.ntp_redirected,
            _ => continue,
        };
        *counter += hits.packets;
    }
    for hits in programs.prevented_leaks.values() {
        let leaks = counters.entry(None).or_default();
        leaks.wrong_egress_packets += hits.packets;
        leaks.bytes += hits.bytes;
    }
    for counted in escaped.counters.values() {
        let leaks = counters.entry(None).or_default();
        leaks.escaped_packets += counted.packets;
        leaks.bytes += counted.bytes;
    }
    let is_leak = |event: &Event| event.guard || Reason::is_block_name(event.reason);
    LeakMonitor {
        since: blocks.since,
        observed_pct: escaped.observed_pct,
        counters: counters.into_iter().map(|(policy_id, leaks)| PolicyLeaks { policy_id, ..leaks }).collect(),
        last_events: programs.recent.into_iter().filter(is_leak).collect(),
        foreign_routers: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use gateway_common::wire::BlockKey;
    use gateway_ctl::os::bpf::Counters;

    use super::*;

    #[test]
    fn every_block_has_a_counter() {
        let reasons = (0..=u8::MAX).filter_map(Reason::from_wire).filter(|reason| reason.is_block());
        let hit = |reason: Reason| {
            let key = BlockKey { device: 3, policy: 0, reason: reason as u32 };
            (key, Counters { packets: 1, bytes: 100 })
        };
        let hits: BTreeMap<BlockKey, Counters> = reasons.map(hit).collect();
        let (number, blocks) = (hits.len() as u64, BlockHits { since: None, hits });
        let programs = BpfCounters {
            prevented_leaks: BTreeMap::from([("eth0".to_owned(), Counters { packets: 5, bytes: 500 })]),
            ..BpfCounters::default()
        };
        let one = Counters { packets: 1, bytes: 100 };
        let escaped =
            EscapeCounts { counters: BTreeMap::from([("eth0".to_owned(), one)]), ..EscapeCounts::default() };
        let shown = monitor(&State::default(), programs, &blocks, &escaped);
        let expected = PolicyLeaks {
            policy_id: None,
            wrong_egress_packets: 5,
            escaped_packets: 1,
            bytes: 100 * number + 600,
            dns_bypass: 3,
            doh_hits: 1,
            stun_blocked: 1,
            ipv6_blocked: 1,
            quic_blocked: 1,
            discovery_dropped: 1,
            ntp_redirected: 1,
        };
        assert_eq!(shown.counters, [expected]);
    }
}
