//! Hosts that have asked the resolver since the last round.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use gateway_core::dns_probe::PROBE_MAC;
use gateway_dns::hooks::Host;
use gateway_model::MacAddr;
use parking_lot::Mutex;

/// Maximum number of hosts that are noted for each interface in a round. More than that ask again.
const MAX_NOTED: usize = 512;

/// Notes of the resolver about its clients. Clones are the same notes.
#[derive(Clone, Debug, Default)]
pub struct DnsClients(Arc<Mutex<Noted>>);

/// By interface and MAC address: the tag of the packet, and its source address.
type Noted = BTreeMap<u32, BTreeMap<MacAddr, (u16, IpAddr)>>;

/// Host that has asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DnsClient {
    pub interface: u32,
    pub mac: MacAddr,
    /// Tag of the packet, 0 without one.
    pub vlan: u16,
    pub address: IpAddr,
}

impl DnsClients {
    /// Notes the host of a query. Called for every query, so it does not wait: a host that is not noted asks again.
    pub fn note(&self, host: &Host) {
        // The gateway's own probes are no host.
        let is_noted = |mac: [u8; 6], interface: u32| interface != 0 && mac != PROBE_MAC;
        let Some(ingress) = host.ingress.filter(|ingress| is_noted(ingress.mac, ingress.interface)) else {
            return;
        };
        let Some(mut noted) = self.0.try_lock() else { return };
        let at_interface = noted.entry(ingress.interface).or_default();
        let mac = MacAddr(ingress.mac);
        if at_interface.len() < MAX_NOTED || at_interface.contains_key(&mac) {
            at_interface.insert(mac, (ingress.vlan, host.address));
        }
    }

    /// Returns the hosts that were noted since the last call.
    pub(super) fn take(&self) -> Vec<DnsClient> {
        let noted = std::mem::take(&mut *self.0.lock());
        let of = |(interface, hosts): (u32, BTreeMap<MacAddr, (u16, IpAddr)>)| {
            hosts.into_iter().map(move |(mac, (vlan, address))| DnsClient { interface, mac, vlan, address })
        };
        noted.into_iter().flat_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use gateway_dns::hooks::Ingress;

    use super::*;

    fn host(interface: u32, number: u16) -> Host {
        let [high, low] = number.to_be_bytes();
        let mac = [2, 0, 0, 0, high, low];
        Host { address: [192, 0, 2, low].into(), ingress: Some(Ingress { mac, interface, vlan: 0 }) }
    }

    #[test]
    fn hosts_are_noted_once_a_round_with_their_newest_address() {
        let clients = DnsClients::default();
        clients.note(&host(3, 1));
        let moved = Host { address: [192, 0, 2, 77].into(), ..host(3, 1) };
        clients.note(&moved);
        clients.note(&Host { address: [192, 0, 2, 9].into(), ingress: None });
        let mac = MacAddr([2, 0, 0, 0, 0, 1]);
        assert_eq!(clients.take(), [DnsClient { interface: 3, mac, vlan: 0, address: moved.address }]);
        assert_eq!(clients.take(), []);
    }

    #[test]
    fn probes_of_the_gateway_are_no_host() {
        let clients = DnsClients::default();
        let ingress = Some(Ingress { mac: PROBE_MAC, interface: 3, vlan: 0 });
        clients.note(&Host { ingress, ..host(3, 1) });
        assert_eq!(clients.take(), []);
    }

    #[test]
    fn flood_at_one_interface_takes_no_room_of_another() {
        let clients = DnsClients::default();
        (0..5000).for_each(|number| clients.note(&host(3, number)));
        clients.note(&host(4, 1));
        clients.note(&host(3, 2));
        let taken = clients.take();
        assert_eq!(taken.iter().filter(|client| client.interface == 3).count(), MAX_NOTED);
        assert_eq!(taken.last().map(|client| client.interface), Some(4));
    }
}
