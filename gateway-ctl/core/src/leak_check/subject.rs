//! Host as which the probes are sent: a device, or a host that the gateway does not know.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gateway_model::Device;
use gateway_model::problem::Problems;
use ipnet::IpNet;

use crate::compile::Input;
use crate::evaluate::{self, Entry, Request, Subject};

/// Host on a LAN.
#[derive(Clone, Debug)]
pub struct Host {
    pub label: String,
    pub mac: [u8; 6],
    pub v4: IpAddr,
    /// The resolver treats queries from `v4` as those of this host.
    pub is_known_by_address: bool,
    pub v6: IpAddr,
    pub entry: Entry,
    /// MAC address of the gateway on that LAN.
    pub gateway: [u8; 6],
    /// Address of the gateway on that LAN that hosts ask for names.
    pub resolver: Option<IpAddr>,
}

impl Host {
    /// Returns the host of a device, or an unknown one with a random address. `None` if no LAN interface exists.
    pub fn find(input: &Input<'_>, device: Option<&Device>, random: [u8; 6]) -> Option<Host> {
        let request = Request { device_id: device.map(|device| device.meta.id), ..Request::default() };
        let known =
            Subject::find(input, &request).ok().and_then(|subject| subject.mac).map(|mac| mac.octets());
        // Locally administered, unicast (IEEE 802, section 8.2).
        let unknown = [random[0] & 0xfc | 2, random[1], random[2], random[3], random[4], random[5]];
        let mac = known.unwrap_or(unknown);
        let addresses: Vec<IpAddr> =
            input.facts.neighbours.get(&mac).into_iter().flatten().copied().collect();
        let label = device.map_or_else(|| "an unknown host".to_owned(), |device| device.name.clone());
        Host::with(input, label, mac, &addresses, device.is_none(), random)
    }

    /// Returns a host of no device with an address of a network. `None` if no LAN interface exists.
    pub fn in_network(input: &Input<'_>, net: IpNet, random: [u8; 6]) -> Option<Host> {
        let mac = [random[0] & 0xfc | 2, random[1], random[2], random[3], random[4], random[5]];
        let address = spare(input, net, random).unwrap_or(net.addr());
        Host::with(input, net.to_string(), mac, &[address], true, random)
    }

    fn with(
        input: &Input<'_>,
        label: String,
        mac: [u8; 6],
        addresses: &[IpAddr],
        is_any: bool,
        random: [u8; 6],
    ) -> Option<Host> {
        let entry =
            evaluate::entry(input, &Request::default(), addresses, &mut Problems::new(), &mut Vec::new());
        let link = input.facts.links.get(&entry.name).filter(|_| entry.index != 0)?;
        let nets = || input.facts.addresses.get(&entry.name).into_iter().flatten().copied();
        let observed = |ipv6: bool| {
            addresses.iter().copied().find(|address| {
                address.is_ipv6() == ipv6
                    && nets().any(|net| net.contains(address))
                    && !is_link_local(*address)
            })
        };
        let of = |ipv6: bool| {
            let net = nets().find(|net| net.addr().is_ipv6() == ipv6 && !is_link_local(net.addr()));
            observed(ipv6).or_else(|| spare(input, net?, random))
        };
        let resolver = nets().find(|net| net.addr().is_ipv4()).map(|net| net.addr());
        Some(Host {
            label,
            mac,
            // Addresses for documentation: of a LAN without the family, the gateway forwards none.
            v4: of(false).unwrap_or(Ipv4Addr::new(192, 0, 2, 77).into()),
            v6: of(true).unwrap_or(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x77).into()),
            gateway: link.mac.unwrap_or_default(),
            resolver,
            is_known_by_address: is_any || observed(false).is_some(),
            entry,
        })
    }
}

/// Returns an address of the network that no host is known to have.
fn spare(input: &Input<'_>, net: IpNet, random: [u8; 6]) -> Option<IpAddr> {
    let is_free = |address: &IpAddr| {
        let own = input.facts.addresses.values().flatten().any(|own| own.addr() == *address);
        !own && !input.facts.neighbours.values().any(|known| known.contains(address))
    };
    match net {
        IpNet::V4(net) => {
            let last = u32::from(net.broadcast());
            let below = (1..=254).map(|back| last.saturating_sub(back)).map(Ipv4Addr::from);
            below.take_while(|address| net.contains(address)).map(IpAddr::from).find(is_free)
        }
        IpNet::V6(net) => {
            let host = u128::from(u64::from_be_bytes([
                0, 0, 2, random[1], random[2], random[3], random[4], random[5],
            ]));
            let mask = u128::from(net.hostmask());
            let address = IpAddr::from(Ipv6Addr::from(u128::from(net.network()) | host & mask));
            is_free(&address).then_some(address)
        }
    }
}

pub(super) fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}
