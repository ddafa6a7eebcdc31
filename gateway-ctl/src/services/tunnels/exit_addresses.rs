//! Addresses that servers saw by tunnels, as leak checks report them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use gateway_core::leak_check::ExitAnswers;
use gateway_model::Id;
use gateway_model::kinds::tunnel_health::{TunnelLive, TunnelStatus};
use parking_lot::Mutex;

use crate::handles::in_memory;

/// Addresses that the watcher of the tunnels has not taken yet. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExitAddresses(Arc<Mutex<BTreeMap<Id, IpAddr>>>);

in_memory!(ExitAddresses);

impl ExitAddresses {
    /// Reports the answers of a leak check. Of a tunnel with both families, the IPv4 address counts.
    pub(crate) fn report(&self, answers: &ExitAnswers) {
        let mut addresses = self.0.lock();
        for (query, answer) in answers {
            let (Some(tunnel), Ok(address)) = (query.tunnel, answer) else { continue };
            let known = addresses.entry(tunnel).or_insert(*address);
            if address.is_ipv4() {
                *known = *address;
            }
        }
    }

    /// Adds the reported address of a tunnel to its state. Without a new one, the last one counts until the state of
    /// the tunnel or its endpoint changes.
    pub(super) fn add_to(&self, tunnel: Id, live: &mut TunnelLive, before: Option<&TunnelLive>) {
        let reported = self.0.lock().remove(&tunnel);
        let is_same = |before: &&TunnelLive| {
            (before.last_change, before.endpoint_ip) == (live.last_change, live.endpoint_ip)
        };
        let last = || before.filter(is_same).and_then(|before| before.exit_ip);
        live.exit_ip = reported.or_else(last).filter(|_| live.status == TunnelStatus::Up);
    }
}

#[cfg(test)]
mod tests {
    use gateway_core::indexes::LegId;

    use gateway_core::leak_check::ExitQuery;
    use jiff::Timestamp;

    use super::*;

    const V4: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 7));

    fn tunnel() -> Id {
        "00000000-0000-7000-8000-000000000001".parse().expect("an id")
    }

    /// Reports an answer by the tunnel.
    fn report(exits: &ExitAddresses, source: &str, answer: Result<IpAddr, String>) {
        let source = source.parse().expect("an address");
        let egress = "a".to_owned();
        let query = ExitQuery {
            leg: LegId::FIRST,
            interface: egress.clone(),
            egress,
            source,
            tunnel: Some(tunnel()),
        };
        exits.report(&[(query, answer)].into());
    }

    fn up(second: i64) -> TunnelLive {
        let last_change = Timestamp::from_second(second).ok();
        TunnelLive { status: TunnelStatus::Up, last_change, ..TunnelLive::default() }
    }

    /// Returns the address after a poll.
    fn shown(exits: &ExitAddresses, mut live: TunnelLive, before: Option<&TunnelLive>) -> TunnelLive {
        exits.add_to(tunnel(), &mut live, before);
        live
    }

    #[test]
    fn an_address_counts_until_the_state_of_the_tunnel_changes() {
        let exits = ExitAddresses::default();
        report(&exits, "10.0.0.2", Ok(V4));
        let first = shown(&exits, up(1), None);
        assert_eq!(first.exit_ip, Some(V4));
        assert_eq!(shown(&exits, up(1), Some(&first)).exit_ip, Some(V4));
        assert_eq!(shown(&exits, up(2), Some(&first)).exit_ip, None, "it was down meanwhile");
        let moved = TunnelLive { endpoint_ip: Some(V4), ..up(1) };
        assert_eq!(shown(&exits, moved, Some(&first)).exit_ip, None, "its remote end moved");
        let degraded = TunnelLive { status: TunnelStatus::Degraded, ..up(1) };
        report(&exits, "10.0.0.2", Ok(V4));
        assert_eq!(shown(&exits, degraded, Some(&first)).exit_ip, None);
    }

    #[test]
    fn the_ipv4_address_wins_and_a_missing_answer_changes_nothing() {
        let exits = ExitAddresses::default();
        let v6: IpAddr = "2001:db8::7".parse().expect("an address");
        report(&exits, "10.0.0.2", Ok(V4));
        report(&exits, "fd00::2", Ok(v6));
        report(&exits, "10.0.0.2", Err("silence".to_owned()));
        assert_eq!(shown(&exits, up(1), None).exit_ip, Some(V4));
        report(&exits, "fd00::2", Ok(v6));
        assert_eq!(shown(&exits, up(1), None).exit_ip, Some(v6));
    }
}
