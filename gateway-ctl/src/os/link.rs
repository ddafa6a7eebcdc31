//! Administrative state and MTU of links.
//!
//! The module covers only links that the plan names. It never creates or removes a link.

use std::collections::{BTreeMap, BTreeSet};

use gateway_core::plan::LinkSettings;
use rtnetlink::LinkUnspec;
use rtnetlink::packet_route::link::{LinkAttribute, LinkFlags};

use super::backend::{ABSENT, Backend};
use super::netlink::{self, Error, Netlink, settled};

#[derive(Debug)]
pub struct Links {
    netlink: Netlink,
    names: BTreeSet<String>,
}

impl Links {
    /// Returns a backend that covers the links of these names only.
    pub fn new(netlink: Netlink, names: impl IntoIterator<Item = String>) -> Self {
        Self { netlink, names: names.into_iter().collect() }
    }
}

impl Backend for Links {
    type Key = String;
    type Value = LinkSettings;
    type Error = Error;

    const NAME: &'static str = "links";
    const REMOVE_FIRST: bool = false;

    async fn read(&self) -> Result<BTreeMap<String, LinkSettings>, Error> {
        let mut have = BTreeMap::new();
        for link in self.netlink.links().await? {
            let Some(name) = netlink::name(&link).filter(|name| self.names.contains(*name)) else { continue };
            let mtu = link.attributes.iter().find_map(|attribute| match attribute {
                LinkAttribute::Mtu(mtu) => Some(*mtu),
                _ => None,
            });
            let up = link.header.flags.contains(LinkFlags::Up);
            have.insert(name.to_owned(), LinkSettings { up, mtu: mtu.unwrap_or_default() });
        }
        Ok(have)
    }

    async fn put(
        &self,
        key: &String,
        want: &LinkSettings,
        _have: Option<&LinkSettings>,
    ) -> Result<(), Error> {
        let index = self.netlink.index(key).await?;
        let LinkSettings { up, mtu } = *want;
        let message = LinkUnspec::new_with_index(index).mtu(mtu);
        let message = if up { message.up() } else { message.down() };
        let request = self.netlink.handle()?.link().set(message.build());
        settled("change the link", request.execute().await, &[])
    }

    /// Does nothing: `read` returns no link that the plan does not name.
    async fn remove(&self, _key: &String, _have: &LinkSettings) -> Result<(), Error> {
        Ok(())
    }

    fn resource(key: &String) -> String {
        key.clone()
    }

    fn differences(
        expected: Option<&LinkSettings>,
        actual: Option<&LinkSettings>,
    ) -> Vec<(&'static str, String, String)> {
        let show = |value: Option<String>| value.unwrap_or_else(|| ABSENT.to_owned());
        let up = |link: &LinkSettings| link.up.to_string();
        let mtu = |link: &LinkSettings| link.mtu.to_string();
        let fields = [
            ("up", show(expected.map(up)), show(actual.map(up))),
            ("mtu", show(expected.map(mtu)), show(actual.map(mtu))),
        ];
        fields.into_iter().filter(|(_, expected, actual)| expected != actual).collect()
    }
}
