//! Routes with the gateway's route protocol, in any table.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gateway_core::plan::{RouteKey, RouteValue, names};
use ipnet::IpNet;
use rtnetlink::RouteMessageBuilder;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType, RouteVia,
};

use super::backend::{ABSENT, Backend};
use super::netlink::{Error, Netlink, collect, settled};

/// Metric that the kernel gives an IPv6 route without one.
const METRIC_V6_DEFAULT: u32 = 1024;

#[derive(Clone, Debug)]
pub struct Routes {
    netlink: Netlink,
}

/// A route of the gateway as the kernel reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstalledRoute {
    Plain(RouteValue),
    /// A route that the gateway never installs: several next hops, other kinds, or several routes under one key.
    Foreign(String),
}

impl Routes {
    pub fn new(netlink: Netlink) -> Self {
        Self { netlink }
    }

    /// Returns the routes of a plan in the form that the kernel reports.
    pub fn want(routes: &BTreeMap<RouteKey, RouteValue>) -> BTreeMap<RouteKey, InstalledRoute> {
        let keys = routes.keys().map(|key| {
            let unset = key.metric == 0 && matches!(key.destination, IpNet::V6(_));
            let metric = if unset { METRIC_V6_DEFAULT } else { key.metric };
            RouteKey { metric, destination: key.destination.trunc(), ..key.clone() }
        });
        keys.zip(routes.values().cloned().map(InstalledRoute::Plain)).collect()
    }

    /// Reports whether the route blocks packets. Such a route is the first to be added and the last to be removed.
    pub fn blocks(value: &InstalledRoute) -> bool {
        matches!(value, InstalledRoute::Plain(RouteValue::Unreachable | RouteValue::Prohibit))
    }

    /// Returns all messages with the gateway's route protocol.
    async fn messages(&self) -> Result<Vec<RouteMessage>, Error> {
        let mut ours = Vec::new();
        for request in
            [RouteMessageBuilder::<Ipv4Addr>::new().build(), RouteMessageBuilder::<Ipv6Addr>::new().build()]
        {
            let answer = self.netlink.handle()?.route().get(request).execute();
            let messages = collect("routes", answer).await?;
            ours.extend(messages.into_iter().filter(|message| message.header.protocol == OURS));
        }
        Ok(ours)
    }

    async fn delete(&self, key: &RouteKey) -> Result<(), Error> {
        for message in self.messages().await? {
            if self::key(&message).as_ref() == Some(key) {
                let request = self.netlink.handle()?.route().del(message);
                settled("remove the route", request.execute().await, &[libc::ESRCH, libc::ENODEV])?;
            }
        }
        Ok(())
    }
}

const LOOPBACK: &str = "lo";
const OURS: RouteProtocol = RouteProtocol::Other(names::ROUTE_PROTOCOL);

impl Backend for Routes {
    type Key = RouteKey;
    type Value = InstalledRoute;
    type Error = Error;

    const NAME: &'static str = "routes";
    const REMOVE_FIRST: bool = false;

    async fn read(&self) -> Result<BTreeMap<RouteKey, InstalledRoute>, Error> {
        let messages = self.messages().await?;
        if messages.is_empty() {
            return Ok(BTreeMap::new());
        }
        let names = self.netlink.names().await?;
        let mut have = BTreeMap::<RouteKey, InstalledRoute>::new();
        for message in &messages {
            let Some(key) = key(message) else { continue };
            let value = value(message, &names);
            have.entry(key)
                .and_modify(|first| {
                    *first = InstalledRoute::Foreign(format!("{} and {}", show(first), show(&value)))
                })
                .or_insert(value);
        }
        Ok(have)
    }

    async fn put(
        &self,
        key: &RouteKey,
        want: &InstalledRoute,
        have: Option<&InstalledRoute>,
    ) -> Result<(), Error> {
        let InstalledRoute::Plain(route) = want else {
            return Err(Error::Unsupported("such a route cannot be wanted"));
        };
        if matches!(have, Some(InstalledRoute::Foreign(_))) {
            // A replace would change only the first of several routes.
            self.delete(key).await?;
        }
        let mut message = RouteMessageBuilder::<IpAddr>::new()
            .table_id(key.table)
            .protocol(OURS)
            .priority(key.metric)
            .destination_prefix(key.destination.addr(), key.destination.prefix_len())
            .map_err(|_| Error::Unsupported("the destination is not a prefix"))?;
        match route {
            RouteValue::Unicast { interface, gateway } => {
                message = message.output_interface(self.netlink.index(interface).await?);
                if let Some(gateway) = gateway {
                    // The interface is given, so the gateway may be outside its prefixes (hosters do that).
                    message = message
                        .gateway(*gateway)
                        .map_err(|_| {
                            Error::Unsupported("the gateway is of another family than the destination")
                        })?
                        .onlink();
                }
            }
            RouteValue::Unreachable => message = message.kind(RouteType::Unreachable),
            RouteValue::Prohibit => message = message.kind(RouteType::Prohibit),
            RouteValue::Local => {
                let loopback = self.netlink.index(LOOPBACK).await?;
                message = message.kind(RouteType::Local).scope(RouteScope::Host).output_interface(loopback);
            }
        }
        let request = self.netlink.handle()?.route().add(message.build()).replace();
        settled("add the route", request.execute().await, &[])
    }

    async fn remove(&self, key: &RouteKey, _have: &InstalledRoute) -> Result<(), Error> {
        self.delete(key).await
    }

    fn resource(key: &RouteKey) -> String {
        format!("{} table {} metric {}", key.destination, key.table, key.metric)
    }

    fn differences(
        expected: Option<&InstalledRoute>,
        actual: Option<&InstalledRoute>,
    ) -> Vec<(&'static str, String, String)> {
        let show = |value: Option<&InstalledRoute>| value.map_or_else(|| ABSENT.to_owned(), show);
        vec![("route", show(expected), show(actual))]
    }
}

fn key(message: &RouteMessage) -> Option<RouteKey> {
    let length = message.header.destination_prefix_length;
    let mut destination = match message.header.address_family {
        AddressFamily::Inet => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        AddressFamily::Inet6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        _ => return None,
    };
    let mut table = u32::from(message.header.table);
    let mut metric = 0;
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(address) => destination = ip(address)?,
            RouteAttribute::Table(number) => table = *number,
            RouteAttribute::Priority(number) => metric = *number,
            _ => {}
        }
    }
    Some(RouteKey { table, destination: IpNet::new(destination, length).ok()?, metric })
}

fn value(message: &RouteMessage, names: &BTreeMap<u32, String>) -> InstalledRoute {
    let mut interface = None;
    let mut gateway = None;
    let RouteHeader { source_prefix_length, tos, .. } = message.header;
    let mut foreign = source_prefix_length != 0 || tos != 0;
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Oif(index) => interface = names.get(index).cloned(),
            RouteAttribute::Gateway(address) => gateway = ip(address),
            RouteAttribute::Via(address) => gateway = via(address),
            RouteAttribute::MultiPath(_)
            | RouteAttribute::Encap(_)
            | RouteAttribute::NhId(_)
            | RouteAttribute::PrefSource(_)
            | RouteAttribute::Metrics(_)
            | RouteAttribute::Realm(_) => foreign = true,
            _ => {}
        }
    }
    match (message.header.kind, interface) {
        (RouteType::Unreachable, _) if !foreign => InstalledRoute::Plain(RouteValue::Unreachable),
        (RouteType::Prohibit, _) if !foreign => InstalledRoute::Plain(RouteValue::Prohibit),
        (RouteType::Local, Some(interface)) if !foreign && interface == LOOPBACK && gateway.is_none() => {
            InstalledRoute::Plain(RouteValue::Local)
        }
        (RouteType::Unicast, Some(interface)) if !foreign => {
            InstalledRoute::Plain(RouteValue::Unicast { interface, gateway })
        }
        (kind, interface) => {
            let interface = interface.unwrap_or_else(|| "no single interface".to_owned());
            InstalledRoute::Foreign(format!("{kind:?} by {interface}, with settings that are not ours"))
        }
    }
}

fn show(value: &InstalledRoute) -> String {
    match value {
        InstalledRoute::Plain(RouteValue::Unicast { interface, gateway: Some(gateway) }) => {
            format!("via {gateway} dev {interface}")
        }
        InstalledRoute::Plain(RouteValue::Unicast { interface, gateway: None }) => format!("dev {interface}"),
        InstalledRoute::Plain(RouteValue::Unreachable) => "unreachable".to_owned(),
        InstalledRoute::Plain(RouteValue::Prohibit) => "prohibit".to_owned(),
        InstalledRoute::Plain(RouteValue::Local) => "local".to_owned(),
        InstalledRoute::Foreign(text) => text.clone(),
    }
}

pub(super) fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some((*address).into()),
        RouteAddress::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}

pub(super) fn via(address: &RouteVia) -> Option<IpAddr> {
    match address {
        RouteVia::Inet(address) => Some((*address).into()),
        RouteVia::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}
