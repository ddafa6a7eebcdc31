//! Bridges and VLAN interfaces that the configuration names.
//!
//! Links of the gateway have its mark as their alias, and only those are removed. A link of that name and kind that
//! another program made is used as it is. Ports that others add to a bridge stay.
//!
//! They are keys of the configuration and no objects of the store, because links must exist before its policies mean
//! anything; a list in the store would be wrong after a crash between the kernel and the store. They are the first
//! backend of a run, so that addresses, routes and programs find them. A link that was made but not yet marked when the
//! daemon was killed is used and never removed. VLANs inside a bridge are not filtered: the programs evaluate tags
//! without an interface at the parent.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use gateway_core::plan::{Plan, VirtualLink};
use rtnetlink::packet_route::link::{InfoData, InfoKind, InfoVlan, LinkAttribute, LinkInfo, LinkMessage};
use rtnetlink::{LinkBridge, LinkUnspec, LinkVlan};
use tokio::sync::Mutex;

use super::backend::{ABSENT, Backend};
use super::netlink::{self, Error, Netlink, settled};

/// Alias of the links that the gateway made.
pub(crate) const ALIAS: &str = "made by gatewayd";

#[derive(Debug)]
pub(crate) struct VirtualLinks {
    netlink: Netlink,
    /// Links and ports that were put. A port that is not wanted any more is released if it is here.
    put: Mutex<BTreeMap<String, BTreeSet<String>>>,
}

/// A link as it is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FoundLink {
    As(VirtualLink),
    /// A link of another kind, or of another VLAN.
    Otherwise {
        kind: String,
        is_ours: bool,
    },
}

impl VirtualLinks {
    pub(crate) fn new(netlink: Netlink) -> Self {
        Self { netlink, put: Mutex::default() }
    }

    pub(crate) fn want(plan: &Plan) -> Cow<'_, BTreeMap<String, FoundLink>> {
        let links = plan.virtual_links.iter();
        Cow::Owned(links.map(|(name, link)| (name.clone(), FoundLink::As(link.clone()))).collect())
    }

    async fn make(&self, name: &str, link: &VirtualLink) -> Result<(), Error> {
        let message = match link {
            VirtualLink::Bridge { .. } => LinkBridge::new(name).up().build(),
            // The plan sets it up once its program is attached.
            VirtualLink::Vlan { parent, id } => {
                LinkVlan::new(name, self.netlink.index(parent).await?, *id).build()
            }
        };
        let request = self.netlink.handle()?.link().add(message);
        settled("make the link", request.execute().await, &[])?;
        let index = self.netlink.index(name).await?;
        let marked = LinkUnspec::new_with_index(index).alias(ALIAS).build();
        settled("mark the link", self.netlink.handle()?.link().set(marked).execute().await, &[])
    }

    async fn delete(&self, name: &str) -> Result<(), Error> {
        let index = match self.netlink.index(name).await {
            Ok(index) => index,
            Err(Error::NoInterface(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        settled("remove the link", self.netlink.handle()?.link().del(index).execute().await, &[libc::ENODEV])
    }

    /// Adds and releases ports. A missing interface does not keep the others out.
    async fn set_ports(
        &self,
        name: &str,
        wanted: &BTreeSet<String>,
        have: &BTreeSet<String>,
    ) -> Result<(), Error> {
        let bridge = self.netlink.index(name).await?;
        let mut result = Ok(());
        for port in wanted.difference(have) {
            let added = match self.netlink.index(port).await {
                Ok(index) => {
                    let message = LinkUnspec::new_with_index(index).controller(bridge).up().build();
                    settled("add the port", self.netlink.handle()?.link().set(message).execute().await, &[])
                }
                Err(error) => Err(error),
            };
            match added {
                Ok(()) => {
                    self.put.lock().await.entry(name.to_owned()).or_default().insert(port.clone());
                }
                Err(error) => result = Err(error),
            }
        }
        for port in have.difference(wanted) {
            let Ok(index) = self.netlink.index(port).await else { continue };
            let message = LinkUnspec::new_with_index(index).nocontroller().build();
            settled(
                "release the port",
                self.netlink.handle()?.link().set(message).execute().await,
                &[libc::ENODEV],
            )?;
            if let Some(ports) = self.put.lock().await.get_mut(name) {
                ports.remove(port);
            }
        }
        result
    }
}

impl Backend for VirtualLinks {
    type Key = String;
    type Value = FoundLink;
    type Error = Error;

    const NAME: &'static str = "virtual_links";
    const REMOVE_FIRST: bool = false;

    async fn read(&self) -> Result<BTreeMap<String, FoundLink>, Error> {
        let messages = self.netlink.links().await?;
        let put = self.put.lock().await;
        let name_of = |index: u32| {
            messages
                .iter()
                .find(|other| other.header.index == index)
                .and_then(netlink::name)
                .map(str::to_owned)
        };
        let mut found = BTreeMap::new();
        for message in &messages {
            let Some(name) = netlink::name(message) else { continue };
            let is_ours = message.attributes.contains(&LinkAttribute::IfAlias(ALIAS.to_owned()));
            // Those of others count only while they are wanted.
            if !is_ours && !put.contains_key(name) {
                continue;
            }
            let ports = || {
                let ports = messages.iter().filter(|port| controller(port) == Some(message.header.index));
                ports.filter_map(netlink::name).map(str::to_owned).collect::<BTreeSet<String>>()
            };
            let value = match kind(message) {
                (Some(InfoKind::Bridge), _) => {
                    let ours = put.get(name).cloned().unwrap_or_default();
                    FoundLink::As(VirtualLink::Bridge {
                        ports: ports().intersection(&ours).cloned().collect(),
                    })
                }
                (Some(InfoKind::Vlan), Some(id)) => match parent(message).and_then(name_of) {
                    Some(parent) => FoundLink::As(VirtualLink::Vlan { parent, id }),
                    None => FoundLink::Otherwise { kind: "vlan".to_owned(), is_ours },
                },
                (kind, _) => {
                    let kind = kind.map_or_else(|| "hardware".to_owned(), |kind| kind.to_string());
                    FoundLink::Otherwise { kind, is_ours }
                }
            };
            found.insert(name.to_owned(), value);
        }
        Ok(found)
    }

    async fn put(&self, key: &String, want: &FoundLink, have: Option<&FoundLink>) -> Result<(), Error> {
        let FoundLink::As(want) = want else {
            return Err(Error::Unsupported("such a link cannot be wanted"));
        };
        let exists = self.netlink.index(key).await.is_ok();
        match have {
            None if exists => self.adopt(key, want).await?,
            None => self.make(key, want).await?,
            Some(FoundLink::As(VirtualLink::Bridge { .. })) if matches!(want, VirtualLink::Bridge { .. }) => {
            }
            Some(FoundLink::Otherwise { is_ours: false, .. }) => return Err(FOREIGN),
            Some(_) if !self.is_ours(key).await? => return Err(FOREIGN),
            Some(_) => {
                self.delete(key).await?;
                self.make(key, want).await?;
            }
        }
        self.put.lock().await.entry(key.clone()).or_default();
        if let VirtualLink::Bridge { ports } = want {
            let have = match have {
                Some(FoundLink::As(VirtualLink::Bridge { ports })) => ports.clone(),
                _ => BTreeSet::new(),
            };
            self.set_ports(key, ports, &have).await?;
        }
        Ok(())
    }

    async fn remove(&self, key: &String, _have: &FoundLink) -> Result<(), Error> {
        let ports = self.put.lock().await.remove(key).unwrap_or_default();
        if self.is_ours(key).await? {
            return self.delete(key).await;
        }
        self.set_ports(key, &BTreeSet::new(), &ports).await
    }

    fn resource(key: &String) -> String {
        key.clone()
    }

    fn differences(
        expected: Option<&FoundLink>,
        actual: Option<&FoundLink>,
    ) -> Vec<(&'static str, String, String)> {
        let show = |value: Option<&FoundLink>| match value {
            None => ABSENT.to_owned(),
            Some(FoundLink::As(VirtualLink::Bridge { ports })) => {
                format!("bridge of {}", ports.iter().cloned().collect::<Vec<_>>().join(", "))
            }
            Some(FoundLink::As(VirtualLink::Vlan { parent, id })) => format!("VLAN {id} of {parent}"),
            Some(FoundLink::Otherwise { kind, .. }) => format!("another link ({kind})"),
        };
        vec![("link", show(expected), show(actual))]
    }
}

const FOREIGN: Error =
    Error::Unsupported("another program has made a link of this name, of another kind; remove or rename it");

impl VirtualLinks {
    async fn find(&self, name: &str) -> Result<Option<LinkMessage>, Error> {
        Ok(self.netlink.links().await?.into_iter().find(|link| netlink::name(link) == Some(name)))
    }

    async fn is_ours(&self, name: &str) -> Result<bool, Error> {
        let alias = LinkAttribute::IfAlias(ALIAS.to_owned());
        Ok(self.find(name).await?.is_some_and(|link| link.attributes.contains(&alias)))
    }

    /// Uses a link that another program made, if it is the wanted one.
    async fn adopt(&self, name: &str, want: &VirtualLink) -> Result<(), Error> {
        let Some(link) = self.find(name).await? else { return Err(Error::NoInterface(name.to_owned())) };
        let is_same = match (want, kind(&link)) {
            (VirtualLink::Bridge { .. }, (Some(InfoKind::Bridge), _)) => true,
            (VirtualLink::Vlan { parent: wanted, id }, (Some(InfoKind::Vlan), Some(found))) => {
                found == *id && parent(&link) == Some(self.netlink.index(wanted).await?)
            }
            _ => false,
        };
        if is_same { Ok(()) } else { Err(FOREIGN) }
    }
}

/// Returns the kind of a link, and the id of a VLAN.
fn kind(link: &LinkMessage) -> (Option<InfoKind>, Option<u16>) {
    let infos = link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::LinkInfo(infos) => Some(infos.as_slice()),
        _ => None,
    });
    let (mut kind, mut id) = (None, None);
    for info in infos.unwrap_or_default() {
        match info {
            LinkInfo::Kind(found) => kind = Some(found.clone()),
            LinkInfo::Data(InfoData::Vlan(data)) => {
                id = data.iter().find_map(|item| match item {
                    InfoVlan::Id(id) => Some(*id),
                    _ => None,
                });
            }
            _ => {}
        }
    }
    (kind, id)
}

fn controller(link: &LinkMessage) -> Option<u32> {
    link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::Controller(index) => Some(*index),
        _ => None,
    })
}

fn parent(link: &LinkMessage) -> Option<u32> {
    link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::Link(index) => Some(*index),
        _ => None,
    })
}
