//! Checks and normalisation in the facade, before any engine gets the configuration.

use super::*;

fn config(peers: Vec<PeerConfig>) -> DeviceConfig {
    DeviceConfig {
        name: "wg-test".to_owned(),
        private_key: Key::new([7; 32]),
        listen_port: None,
        fwmark: 0,
        mtu: 1420,
        peers,
    }
}

fn peer(key: u8, allowed: &[&str]) -> PeerConfig {
    PeerConfig {
        public_key: [key; 32],
        preshared_key: Some(Key::new([9; 32])),
        endpoint: None,
        allowed_ips: allowed.iter().map(|net| net.parse().expect("a network")).collect(),
        persistent_keepalive: None,
    }
}

#[test]
fn names_that_linux_would_refuse_are_refused() {
    for name in ["", ".", "..", "a/b", "a b", "a:b", "wg%d", "sixteen-bytes-xx", "ä"] {
        let config = DeviceConfig { name: name.to_owned(), ..config(Vec::new()) };
        assert!(matches!(check(&config), Err(Error::Name(_))), "{name:?}");
    }
    assert!(check(&config(Vec::new())).is_ok());
}

#[test]
fn a_peer_is_listed_once_and_is_not_the_device_itself() {
    let twice = config(vec![peer(1, &[]), peer(1, &[])]);
    assert!(matches!(check(&twice), Err(Error::DuplicatePeer(_))));
    let own = public_key(&Key::new([7; 32]));
    let myself = config(vec![PeerConfig { public_key: own, ..peer(1, &[]) }]);
    assert!(matches!(check(&myself), Err(Error::PeerIsSelf(_))));
}

#[test]
fn a_network_claimed_twice_belongs_to_the_last_claimant() {
    let settled = with_settled_claims(&config(vec![
        peer(1, &["0.0.0.0/0", "10.0.0.9/24"]),
        peer(2, &["0.0.0.0/0", "fd00::/8"]),
    ]));
    let allowed = |i: usize| settled.peers[i].allowed_ips.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(allowed(0), ["10.0.0.0/24"]);
    assert_eq!(allowed(1), ["0.0.0.0/0", "fd00::/8"]);
}

#[test]
fn debug_shows_no_secret() {
    let shown = format!("{:?}", config(vec![peer(1, &["10.0.0.0/8"])]));
    assert!(!shown.contains("7, 7, 7") && !shown.contains("9, 9, 9"));
    assert_eq!(shown.matches("Key(***)").count(), 2);
}

#[tokio::test]
async fn without_devices_there_is_nothing_to_list_or_remove() {
    let wireguard = WireGuard::with_engine(Engine::Userspace).await.expect("always there");
    assert_eq!(wireguard.engine(), Engine::Userspace);
    assert_eq!(wireguard.list().await.expect("list"), Vec::<String>::new());
    assert_eq!(wireguard.status("wg-none").await.expect("status"), None);
    wireguard.remove("wg-none").await.expect("nothing to remove");
}
