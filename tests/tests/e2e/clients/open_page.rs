//! Blocks that begin while a page is open.

use gateway_tests::topology::{Host, server};
use gateway_tests::traffic::ping;
use gateway_tests::wait::wait_ok;

use super::Outcome::{FellBack, Succeeded};
use super::browsers::{Call, is_echoed, load_by_http3};
use super::fixture::Fixture;
use super::{LONG, SHORT, create_class};
use crate::e2e::SOON;
use crate::e2e::foreign_routers::{accept_advertisements, announcer};

/// Replaces the static IPv6 configuration of the laptop by that of an announcement.
fn configure_by_announcement(fixture: &Fixture) {
    let network = &fixture.testbed.network;
    let laptop = &network.laptop;
    network.gateway.ip("address add 2001:db8:66::1/64 dev eth1 nodad").expect("an address");
    network.internet.ip("route add 2001:db8:66::/64 via 2001:db8:113::2").expect("a route");
    laptop.namespace.ip("route del default via fd00:10::1").expect("deleted");
    laptop.namespace.ip(&format!("address del {}/64 dev eth0", laptop.v6)).expect("deleted");
    accept_advertisements(laptop);
    let announce = announcer(network);
    wait_ok(SOON, "the laptop to have IPv6", || {
        announce()?;
        anyhow::ensure!(ping(laptop, server(true)));
        Ok(())
    })
    .expect("announced");
}

/// The browser has connections by HTTP/2 and HTTP/3 and a data channel. It loses them, and loads pages without.
#[test]
fn open_page_falls_back_and_its_call_ends() {
    let fixture = Fixture::build();
    let network = &fixture.testbed.network;
    configure_by_announcement(&fixture);
    let open = |host: &Host| {
        let mut page = fixture.browser(host).open().expect("a page");
        let mut peer = fixture.peer.open().expect("a page");
        assert_eq!(load_by_http3(&mut page, LONG), Succeeded, "{}", host.name);
        Call::place(&mut page, &mut peer, LONG);
        assert!(is_echoed(&mut page, LONG), "{}", host.name);
        (page, peer)
    };
    let (mut laptop, _peer_of_laptop) = open(&network.laptop);
    let (mut tv, _peer_of_tv) = open(&network.tv);
    fixture.set_class_of_laptop(&create_class(&fixture, "webrtc"));
    assert!(!is_echoed(&mut laptop, SHORT), "the call of the laptop goes on");
    assert!(is_echoed(&mut tv, LONG), "the call of the tv");
    fixture.set_class_of_laptop("isolated");
    assert_eq!(load_by_http3(&mut laptop, SHORT), FellBack);
    assert_eq!(load_by_http3(&mut tv, LONG), Succeeded);
}
