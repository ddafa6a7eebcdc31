//! IP addresses of the links that the gateway manages (tunnels), and those that it sets on other links.
//!
//! The gateway manages every address on its own links, whatever its origin, except the link-local addresses that the
//! kernel creates. On other links it changes only addresses with its protocol number, which kernels before Linux 5.18 do
//! not keep.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use gateway_core::plan::{AddressKey, names};
use ipnet::IpNet;
use rtnetlink::packet_route::address::{
    AddressAttribute, AddressFlags, AddressMessage, AddressProtocol, AddressScope,
};

use super::backend::{ABSENT, Backend, PRESENT};
use super::netlink::{Error, Netlink, collect, settled};

#[derive(Debug)]
pub struct Addresses {
    netlink: Netlink,
    links: BTreeSet<String>,
    /// Addresses that the gateway wants on other links. One that is there is not set again.
    wanted: BTreeSet<AddressKey>,
    /// Those of them whose network gets a route by the kernel. No other part of the plan has it.
    routed: BTreeSet<AddressKey>,
}

impl Addresses {
    /// Returns a backend that covers the addresses of these links, and those of the gateway on other links.
    pub fn new(netlink: Netlink, links: impl IntoIterator<Item = String>) -> Self {
        Self { netlink, links: links.into_iter().collect(), wanted: BTreeSet::new(), routed: BTreeSet::new() }
    }

    /// Adds addresses that the gateway wants on links that are not its own, and those of them whose network gets a route by
    /// the kernel.
    #[must_use]
    pub fn with_wanted(self, wanted: BTreeSet<AddressKey>, routed: BTreeSet<AddressKey>) -> Self {
        Self { wanted, routed, ..self }
    }

    async fn messages(&self) -> Result<Vec<AddressMessage>, Error> {
        collect("addresses", self.netlink.handle()?.address().get().execute()).await
    }

    fn key(&self, names: &BTreeMap<u32, String>, message: &AddressMessage) -> Option<AddressKey> {
        let interface = names.get(&message.header.index)?;
        let key = AddressKey { interface: interface.clone(), address: address(message)? };
        let made_by_kernel = message.header.scope == AddressScope::Link;
        let is_managed = self.links.contains(interface) && !made_by_kernel;
        (is_managed || is_tagged(message) || self.wanted.contains(&key)).then_some(key)
    }
}

impl Backend for Addresses {
    type Key = AddressKey;
    type Value = ();
    type Error = Error;

    const NAME: &'static str = "addresses";
    const REMOVE_FIRST: bool = false;

    async fn read(&self) -> Result<BTreeMap<AddressKey, ()>, Error> {
        let names = self.netlink.names().await?;
        let messages = self.messages().await?;
        Ok(messages.iter().filter_map(|message| Some((self.key(&names, message)?, ()))).collect())
    }

    async fn put(&self, key: &AddressKey, _want: &(), _have: Option<&()>) -> Result<(), Error> {
        let index = self.netlink.index(&key.interface).await?;
        let (address, length) = (key.address.addr(), key.address.prefix_len());
        let request = self.netlink.handle()?.address().add(index, address, length);
        let is_routed = self.routed.contains(key);
        let mut request = if is_routed { request } else { request.replace() };
        let attributes = &mut request.message_mut().attributes;
        // A remote end may announce a network that equals a local one. It must not get a route in the main table
        // (TunnelCrack LocalNet attack). A tunnel has no neighbours, so duplicate address detection is of no use.
        if !is_routed {
            attributes.push(AddressAttribute::Flags(AddressFlags::Noprefixroute | AddressFlags::Nodad));
        }
        attributes.push(AddressAttribute::Protocol(AddressProtocol::Other(names::ROUTE_PROTOCOL)));
        settled("add the address", request.execute().await, &[libc::EEXIST])
    }

    async fn remove(&self, key: &AddressKey, _have: &()) -> Result<(), Error> {
        let names = self.netlink.names().await?;
        for message in self.messages().await? {
            if self.key(&names, &message).as_ref() == Some(key) {
                let request = self.netlink.handle()?.address().del(message);
                settled("remove the address", request.execute().await, &[libc::EADDRNOTAVAIL, libc::ENODEV])?;
            }
        }
        Ok(())
    }

    fn resource(key: &AddressKey) -> String {
        format!("{} on {}", key.address, key.interface)
    }

    fn differences(expected: Option<&()>, actual: Option<&()>) -> Vec<(&'static str, String, String)> {
        let show = |value: Option<&()>| value.map_or(ABSENT, |()| PRESENT).to_owned();
        vec![("address", show(expected), show(actual))]
    }
}

/// Returns the address of the host. On a point-to-point link, `Address` is that of the remote end.
pub(super) fn address(message: &AddressMessage) -> Option<IpNet> {
    let find = |pick: fn(&AddressAttribute) -> Option<IpAddr>| message.attributes.iter().find_map(pick);
    let local = find(|attribute| match attribute {
        AddressAttribute::Local(address) => Some(*address),
        _ => None,
    });
    let own = local.or_else(|| {
        find(|attribute| match attribute {
            AddressAttribute::Address(address) => Some(*address),
            _ => None,
        })
    });
    IpNet::new(own?, message.header.prefix_len).ok()
}

fn is_tagged(message: &AddressMessage) -> bool {
    let tag = AddressAttribute::Protocol(AddressProtocol::Other(names::ROUTE_PROTOCOL));
    message.attributes.contains(&tag)
}
