//! Name of an interface that another program makes and numbers.

use rtnetlink::LinkUnspec;
use rtnetlink::packet_route::link::LinkAttribute;

use super::netlink::{self, Error, Netlink, settled};

/// Gives an interface a name and sets it up. One that has the name already is left as it is. An interface that belongs to a
/// bridge keeps its name, because it is another one.
pub(crate) async fn adopt(netlink: &Netlink, from: &str, name: &str) -> Result<(), Error> {
    let links = netlink.links().await?;
    let find = |wanted: &str| links.iter().find(|link| netlink::name(link) == Some(wanted));
    if find(name).is_some() {
        return Ok(());
    }
    let is_port = |attribute: &LinkAttribute| matches!(attribute, LinkAttribute::Controller(_));
    let found = find(from).filter(|link| !link.attributes.iter().any(is_port));
    let index = found.ok_or_else(|| Error::NoInterface(from.to_owned()))?.header.index;
    // Older kernels rename only interfaces that are down.
    let steps = [
        ("set the interface down", LinkUnspec::new_with_index(index).down()),
        ("rename the interface", LinkUnspec::new_with_index(index).name(name.to_owned())),
        ("set the interface up", LinkUnspec::new_with_index(index).up()),
    ];
    for (action, message) in steps {
        settled(action, netlink.handle()?.link().set(message.build()).execute().await, &[])?;
    }
    Ok(())
}
