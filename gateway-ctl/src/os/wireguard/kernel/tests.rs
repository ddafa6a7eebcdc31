//! Recognition of links. Tests against a kernel with WireGuard run in the emulated machine.

use super::*;

fn link(kind: InfoKind, alias: Option<&str>) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = 7;
    message.attributes.push(LinkAttribute::IfName("wg-a".to_owned()));
    message.attributes.push(LinkAttribute::Mtu(1420));
    message.attributes.push(LinkAttribute::LinkInfo(vec![LinkInfo::Kind(kind)]));
    message.attributes.extend(alias.map(|alias| LinkAttribute::IfAlias(alias.to_owned())));
    message
}

#[test]
fn only_a_wireguard_link_with_the_alias_is_owned() {
    let ours = link(InfoKind::Wireguard, Some(ALIAS));
    assert_eq!(name_of(&ours), Some("wg-a"));
    let ours = Link::from(&ours);
    assert!(ours.is_ours());
    assert_eq!((ours.index, ours.mtu), (7, Some(1420)));
    assert!(!Link::from(&link(InfoKind::Wireguard, None)).is_ours());
    assert!(!Link::from(&link(InfoKind::Wireguard, Some("somebody's"))).is_ours());
    assert!(!Link::from(&link(InfoKind::Bridge, Some(ALIAS))).is_ours());
}

#[tokio::test]
async fn a_kernel_without_wireguard_says_so_and_the_facade_chooses_userspace() {
    use crate::os::wireguard::WireGuard;
    let facade = WireGuard::new().await.engine();
    match Kernel::probe().await {
        Ok(_) => assert_eq!(facade, Engine::Kernel),
        Err(error) => {
            assert!(matches!(error, Error::NoKernelWireGuard), "{error}");
            assert_eq!(facade, Engine::Userspace);
        }
    }
}
