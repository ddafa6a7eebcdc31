//! The observer: facts as in the kernel, and changes as they occur.

use std::time::Duration;

use gateway_ctl::os::observe::{KernelChanges, Observer};
use gateway_tests::netns::{Namespace, Prefix};
use tokio::sync::watch;
use tokio::time::timeout;

use super::{ip, namespace, netlink, within};

const TIMEOUT: Duration = Duration::from_secs(10);
/// Longer than the interval in which changes are coalesced.
const QUIET: Duration = Duration::from_millis(400);

fn observer() -> Observer {
    Observer::new(netlink()).expect("subscription")
}

#[test]
fn facts_are_what_the_kernel_shows() {
    let prefix = Prefix::unique().expect("root");
    let (ns, device) = (
        Namespace::create(&prefix, "gate").expect("namespace"),
        Namespace::create(&prefix, "dev").expect("namespace"),
    );
    ns.ip(&format!(
        "link add lan0 address 02:00:00:00:00:01 type veth peer name eth0 address 02:00:00:00:00:02 netns {}\n\
         link set lan0 up\naddr add 192.168.7.1/24 dev lan0\naddr add fd00:7::1/64 dev lan0 nodad\n\
         link add wan0 type veth peer name wan0p\nlink set wan0 up\naddr add 192.0.2.2/24 dev wan0\n\
         link add wan1 mtu 1400 type veth peer name wan1p\n\
         link set wan1 up\nlink set wan1p up\naddr add 198.51.100.2/24 dev wan1\n\
         addr add 2001:db8::2/64 dev wan1 nodad\n\
         neigh add 192.0.2.1 lladdr 02:00:00:00:00:99 dev wan0\n\
         route add default via 192.0.2.1 dev wan0 metric 100\nroute add default via 198.51.100.1 metric 50\n\
         route add default via 192.0.2.1 dev wan0 table 47001\nroute add unreachable default metric 9999\n\
         route add default via 2001:db8::1 dev wan1 metric 30",
        device.name()
    ))
    .expect("set-up");
    device
        .ip("link set eth0 up\naddr add 192.168.7.9/24 dev eth0\naddr add fd00:7::9/64 dev eth0 nodad")
        .expect("device");
    for target in ["192.168.7.1", "fd00:7::1"] {
        device.run("ping", &["-c1", "-W5", target]).expect("ping");
    }
    within(&ns, async || {
        let facts = observer().facts(|name| name == "lan0").await.expect("facts");
        let lan = &facts.links["lan0"];
        assert_eq!((lan.up, lan.mac, lan.mtu), (true, Some([2, 0, 0, 0, 0, 1]), 1500));
        assert_eq!((lan.kind.as_str(), &lan.vlan), ("veth", &None));
        assert!(!facts.links["wan0"].up, "set up, but without a carrier");
        assert_eq!(facts.links["wan1"].mtu, 1400);
        assert!(facts.links.values().all(|link| link.index != 0));
        let addresses = &facts.addresses["lan0"];
        assert!(addresses.contains(&"192.168.7.1/24".parse().unwrap()));
        assert!(addresses.contains(&"fd00:7::1/64".parse().unwrap()));

        let routes: Vec<_> = facts
            .default_routes
            .iter()
            .map(|route| {
                (route.interface.as_str(), route.gateway.unwrap().to_string(), route.metric, route.ipv6)
            })
            .collect();
        // Without the route through the link without a carrier.
        let of_wan1 = [("198.51.100.1", 50, false), ("2001:db8::1", 30, true)];
        assert_eq!(routes, of_wan1.map(|(gateway, metric, ipv6)| ("wan1", gateway.to_owned(), metric, ipv6)));

        let neighbours = &facts.neighbours;
        assert_eq!(neighbours.keys().collect::<Vec<_>>(), [&[2, 0, 0, 0, 0, 2]], "only those of the LAN");
        assert!(neighbours[&[2, 0, 0, 0, 0, 2]].contains(&"192.168.7.9".parse().unwrap()));
        assert!(neighbours[&[2, 0, 0, 0, 0, 2]].contains(&"fd00:7::9".parse().unwrap()));
    });
}

#[test]
fn several_next_hops_are_several_default_routes() {
    let ns = namespace("hops");
    ns.ip("link add hop1 type veth peer name hop1p\nlink add hop2 type veth peer name hop2p\nlink set hop1 up\nlink set hop1p up\n\
           link set hop2 up\nlink set hop2p up\naddr add 192.0.2.2/24 dev hop1\naddr add 198.51.100.2/24 dev hop2\n\
           addr add 2001:db8:a::2/64 dev hop1 nodad\naddr add 2001:db8:b::2/64 dev hop2 nodad\n\
           route add default nexthop via 192.0.2.1 dev hop1 nexthop via 198.51.100.1 dev hop2")
        .expect("set-up");
    ip(
        &ns,
        "-6 route add default metric 7 nexthop via 2001:db8:a::1 dev hop1 nexthop via 2001:db8:b::1 dev hop2",
    );
    within(&ns, async || {
        let facts = observer().facts(|_| false).await.expect("facts");
        let routes: Vec<_> = facts
            .default_routes
            .iter()
            .map(|route| (route.interface.as_str(), route.metric, route.ipv6))
            .collect();
        assert_eq!(routes, [("hop1", 0, false), ("hop2", 0, false), ("hop1", 7, true), ("hop2", 7, true)]);
    });
}

async fn next(changes: &mut watch::Receiver<KernelChanges>) -> KernelChanges {
    timeout(TIMEOUT, changes.changed()).await.expect("a change is told").expect("the observer lives");
    *changes.borrow_and_update()
}

/// Waits until no more changes are published: a new link keeps changing for a while.
async fn settle(changes: &mut watch::Receiver<KernelChanges>) -> KernelChanges {
    while timeout(QUIET, changes.changed()).await.is_ok() {
        changes.borrow_and_update();
    }
    *changes.borrow()
}

#[test]
fn every_kind_of_change_is_reported() {
    let ns = namespace("changes");
    ns.ip("link add lan0 type veth peer name lan0p\nlink set lan0 up\nlink set lan0p up").expect("set-up");
    within(&ns, async || {
        let observer = observer();
        let mut changes = observer.changes();
        settle(&mut changes).await;
        for change in [
            "addr add 192.168.7.1/24 dev lan0",
            "addr add fd00:7::1/64 dev lan0 nodad",
            "route add 203.0.113.0/24 via 192.168.7.2",
            "-6 route add 2001:db8::/32 dev lan0",
            "rule add lookup main priority 4700",
            "-6 rule add lookup main priority 4700",
            "link set lan0 mtu 1400",
            "link del lan0",
        ] {
            let before = settle(&mut changes).await;
            ip(&ns, change);
            let after = next(&mut changes).await;
            assert!(after.structure > before.structure, "{change}: {before:?} {after:?}");
        }
    });
}

#[test]
fn neighbours_are_distinguished() {
    let ns = namespace("neigh");
    ns.ip("link add lan0 type veth peer name lan0p\nlink set lan0 up\nlink set lan0p up\naddr add 192.168.7.1/24 dev lan0")
        .expect("set-up");
    within(&ns, async || {
        let observer = observer();
        let mut changes = observer.changes();
        let before = settle(&mut changes).await;
        ip(&ns, "neigh add 192.168.7.9 lladdr 02:00:00:00:00:09 dev lan0");
        let after = next(&mut changes).await;
        assert_eq!((after.structure, after.neighbours), (before.structure, before.neighbours + 1));
    });
}

#[test]
fn a_storm_is_reported_once_and_one_that_overflows_the_socket_is_survived() {
    let ns = namespace("storm");
    ns.ip("link add lan0 type bridge\nlink set lan0 up").expect("set-up");
    within(&ns, async || {
        let observer = observer();
        let mut changes = observer.changes();
        settle(&mut changes).await;
        // The socket is not read while this thread waits for `ip`, so its buffer overflows.
        let storm: String = (0..20_000)
            .map(|number| {
                format!(
                    "route add 10.{}.{}.{}/32 dev lan0\n",
                    1 + number / 65_536,
                    number / 256 % 256,
                    number % 256
                )
            })
            .collect();
        let before = *changes.borrow();
        ns.ip(&storm).expect("storm");
        let after = next(&mut changes).await;
        assert!(after.structure > before.structure);
        assert!(
            after.structure - before.structure < 20_000,
            "messages were lost, or this test proves nothing"
        );

        let before = settle(&mut changes).await;
        ip(&ns, "link set lan0 mtu 1400");
        let after = next(&mut changes).await;
        assert!(after.structure > before.structure, "changes after the storm are told");
        assert_eq!(observer.facts(|_| false).await.expect("facts").links["lan0"].mtu, 1400);
    });
}
