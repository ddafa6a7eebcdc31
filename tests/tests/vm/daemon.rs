//! The daemon on a kernel with WireGuard and VLANs and without tcx: the programs on clsact, the tunnel in the kernel, a
//! LAN trunk. One boot, in which this program runs the tests of `in_guest`.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use gateway_tests::vm::{Opts, quoted};

use crate::vm::checks::{Checks, this_program};

/// Modules beside those that the daemon and `ip` load by themselves. `tun` is for the exits that run in user space.
const MODULES: &[&str] = &["veth", "tun", "bridge"];
const NAMES: [&str; 10] = [
    "a_policy_sends_a_host_through_the_kernels_wireguard_and_nothing_past_it",
    "a_policy_of_a_vlan_is_about_tagged_frames_only",
    "a_vlan_interface_is_made_for_a_trunk_and_removed",
    "an_uplink_may_be_a_vlan_of_a_lan_interface",
    "lan_interfaces_may_be_vlans_of_an_untagged_uplink",
    "a_vlan_that_keeps_the_tag_in_the_frame_has_its_policies",
    "messages_of_a_vlan_are_none_of_its_parent",
    "a_packet_of_a_vlan_does_not_leave_by_its_parent",
    "the_kernel_answers_repeated_queries_and_those_for_blocked_names",
    "an_uplink_without_a_place_for_the_guard_is_reported",
];

/// Shared boot of the tests of this module.
static GUEST: LazyLock<Checks> = LazyLock::new(|| {
    let program = quoted(&this_program());
    let daemon = match std::env::var_os("GATEWAYD_BIN") {
        Some(named) => format!("export GATEWAYD_BIN={}\n", quoted(&PathBuf::from(named))),
        None => String::new(),
    };
    let checks = NAMES.map(|name| format!("check {name} passes {program} vm::daemon::in_guest::{name}\n"));
    // `wg setconf` reads its standard input by name, and a guest has no such name by default.
    let links = "ln -s /proc/self/fd /dev/fd\nln -s /proc/self/fd/0 /dev/stdin\n";
    let script = format!("echo \"release $(uname -r)\"\n{links}{daemon}{}", checks.concat());
    Checks::of(&script, Opts { modules: MODULES, timeout: Duration::from_secs(480), ..Opts::default() })
});

#[test]
fn the_daemon_works_on_debians_kernel() {
    GUEST.assert_release("6.1.");
    for name in NAMES {
        GUEST.assert_ok(name);
    }
}

/// Tests that run in the guest.
pub(super) mod in_guest {
    use std::net::{IpAddr, Ipv4Addr, UdpSocket};
    use std::time::Duration;

    use gateway_ctl::os::dhcp_socket::FrameSocket;
    use gateway_ctl::os::egress_tap::EgressTap;
    use gateway_tests::dns::{A, Client, Upstream};
    use gateway_tests::name_server;
    use gateway_tests::netns::Namespace;
    use gateway_tests::services::HTTP;
    use gateway_tests::testbed::{Testbed, policy};
    use gateway_tests::topology::{Host, LAN_V4, Topology, server, wan};
    use gateway_tests::traffic::ask;
    use gateway_tests::wait::wait_ok;
    use gateway_tests::wireguard::{Exit, PORT};
    use serde_json::{Value, json};

    /// Timeout for an emulated machine, which is slow.
    const TIMEOUT: Duration = Duration::from_secs(20);
    const BLOCKED: Duration = Duration::from_secs(2);
    const FAMILIES: [bool; 2] = [false, true];
    const TUNNEL: &str = "home";

    /// Returns a daemon whose LAN is a trunk: `eth1`, and VLAN 30 on it with the TV.
    fn trunk() -> Testbed {
        let mut testbed = Testbed::prepare().expect("a scene");
        let network = &testbed.network;
        network
            .gateway
            .ip("link add link eth1 name eth1.30 type vlan id 30\naddress add 192.168.30.1/24 dev eth1.30\n\
                 address add fd00:30::1/64 dev eth1.30 nodad\nlink set eth1.30 up")
            .expect("the gateway's end of the VLAN");
        network
            .tv
            .namespace
            .ip("link add link eth0 name eth0.30 type vlan id 30\naddress add 192.168.30.20/24 dev eth0.30\n\
                 address add fd00:30::20/64 dev eth0.30 nodad\nlink set eth0.30 up\n\
                 route replace default via 192.168.30.1 dev eth0.30\n\
                 route replace default via fd00:30::1 dev eth0.30")
            .expect("the TV's end of the VLAN");
        let file = testbed.daemon.configuration_file();
        let text = std::fs::read_to_string(&file).expect("the configuration");
        let text = text.replace("lan_iface: eth1", "lan_iface: [eth1, eth1.30]");
        assert!(text.contains("[eth1, eth1.30]"), "{text}");
        std::fs::write(&file, text).expect("the configuration");
        testbed.daemon.start().expect("the daemon");
        testbed
    }

    #[test]
    #[ignore = "runs inside the guest"]
    fn a_vlan_interface_is_made_for_a_trunk_and_removed() {
        let mut testbed = Testbed::prepare().expect("a scene");
        testbed
            .network
            .tv
            .namespace
            .ip("link add link eth0 name eth0.30 type vlan id 30\naddress add 192.168.30.20/24 dev eth0.30\n\
                 link set eth0.30 up\nroute replace default via 192.168.30.1 dev eth0.30")
            .expect("the TV's end of the VLAN");
        let vlans = json!([{"name": "eth1.30", "parent": "eth1", "id": 30}]);
        let network = json!({"network": {"lan_iface": ["eth1", "eth1.30"], "vlans": vlans}});
        testbed.daemon.configure(&network).expect("the configuration");
        testbed.daemon.start().expect("the daemon");
        assert_eq!(kind_of_link(&testbed, "eth1.30"), "vlan");
        let address = json!({"method": "static", "address": "192.168.30.1", "prefix": 24});
        testbed.api().put("/interfaces/eth1.30/config", &address).expect("the address");
        let seen_as = |expected: IpAddr| {
            wait_ok(TIMEOUT, &format!("the TV to be seen as {expected}"), || {
                let answer = ask(&testbed.network.tv, (server(false), HTTP).into(), BLOCKED);
                anyhow::ensure!(answer.seen() == Some(expected), "{answer}");
                Ok(())
            })
            .expect("the way");
        };
        seen_as(wan(false));
        // Tagged frames of the trunk are those of the VLAN.
        testbed.tunnel(TUNNEL, &testbed.network.exit_a).expect("the tunnel");
        testbed.policy(&policy("guests", 10, ("vlan", "30"), &[TUNNEL])).expect("the policy");
        seen_as(testbed.network.exit_a.address(false));
        wait_until_seen_as(&testbed.network.laptop, wan);
        let list = testbed.api().get("/interfaces").expect("the list");
        let made = list.as_array().expect("a list").iter().find(|one| one["name"] == "eth1.30");
        let made = made.expect("the interface");
        assert_eq!(
            (&made["made"], &made["vlan_id"], &made["parent"]),
            (&json!(true), &json!(30), &json!("eth1"))
        );

        let less = json!({"network": {"lan_iface": {"value": "eth1"}, "vlans": {"value": []}}});
        testbed.api().put("/settings", &less).expect("the settings");
        testbed.api().act("/enforce/reconcile").expect("reconciled");
        testbed.network.gateway.ip("link show dev eth1.30").expect_err("the interface is gone");
        wait_until_seen_as(&testbed.network.laptop, wan);
    }

    /// A gateway with one cable: the LAN is untagged, the provider is behind a tag.
    #[test]
    #[ignore = "runs inside the guest"]
    fn an_uplink_may_be_a_vlan_of_a_lan_interface() {
        let testbed = Testbed::start().expect("a network");
        let network = &testbed.network;
        for (namespace, parent, address) in [
            (&network.gateway, "eth1", "198.18.40.2/24"),
            (&network.laptop.namespace, "eth0", "198.18.40.1/24"),
        ] {
            let lines = format!(
                "link add link {parent} name {parent}.40 type vlan id 40\naddress add {address} dev {parent}.40\n\
                 link set {parent}.40 up"
            );
            namespace.ip(&lines).expect("a VLAN");
        }
        let uplinks = [("fibre", "eth0", 10), ("tagged", "eth1.40", 20)].map(|(name, interface, priority)| {
            json!({"name": name, "interface": interface, "priority": priority, "weight": 1, "enabled": true})
        });
        testbed.api().put("/system/wan-uplinks", &json!({"uplinks": uplinks})).expect("the uplinks");
        wait_ok(TIMEOUT, "an answer by the tagged uplink", || {
            let ping = ["ping", "-c", "1", "-W", "2", "-I", "198.18.40.2", "198.18.40.1"];
            network.gateway.run("busybox", &ping)?;
            Ok(())
        })
        .expect("the provider answers");
        wait_until_seen_as(&network.laptop, wan);
    }

    /// Puts a guest behind a tag of the cable to the provider. Its network has the number of the VLAN.
    fn guest_behind(network: &Topology, id: u8) -> Host {
        let namespace = Namespace::create(&network.prefix, &format!("guest{id}")).expect("a namespace");
        let moved = format!(
            "link add link up0 name up0.{id} type vlan id {id}\nlink set up0.{id} name eth0 netns {}",
            namespace.name()
        );
        network.internet.ip(&moved).expect("a VLAN");
        let lines = format!(
            "address add 192.168.{id}.20/24 dev eth0\naddress add fd00:{id}::20/64 dev eth0 nodad\nlink set eth0 up\n\
             route add default via 192.168.{id}.1\nroute add default via fd00:{id}::1"
        );
        namespace.ip(&lines).expect("addresses");
        let v6 = format!("fd00:{id}::20").parse().expect("an address");
        Host { namespace, name: "guest", mac: "", v4: [192, 168, id, 20].into(), v6 }
    }

    /// A gateway with one cable to a managed switch: the provider is untagged. One VLAN is a LAN interface, one the port of
    /// a LAN bridge.
    #[test]
    #[ignore = "runs inside the guest"]
    fn lan_interfaces_may_be_vlans_of_an_untagged_uplink() {
        let mut testbed = Testbed::prepare().expect("a scene");
        let network = &testbed.network;
        let addresses = [("eth0.50", 50), ("br-guest", 60)].map(|(interface, id)| {
            format!(
                "address add 192.168.{id}.1/24 dev {interface}\naddress add fd00:{id}::1/64 dev {interface} nodad\n\
                 link set {interface} up\n"
            )
        });
        let links = "link add link eth0 name eth0.50 type vlan id 50\nlink add link eth0 name eth0.60 type vlan id 60\n\
                     link add br-guest type bridge\nlink set eth0.60 master br-guest up\n";
        network.gateway.ip(&[links, &addresses.concat()].concat()).expect("the gateway's end");
        let [guest, bridged] = [50, 60].map(|id| guest_behind(network, id));
        let lan = json!({"network": {"lan_iface": ["eth1", "eth0.50", "br-guest"]}});
        testbed.daemon.configure(&lan).expect("the configuration");
        testbed.daemon.start().expect("the daemon");
        let network = &testbed.network;
        wait_until_seen_as(&guest, wan);
        wait_until_seen_as(&bridged, wan);
        for (host, gateway) in [(&guest, "192.168.50.1"), (&guest, "fd00:50::1"), (&bridged, "192.168.60.1")]
        {
            host.namespace
                .run("busybox", &["ping", "-c", "1", "-W", "2", gateway])
                .expect("the gateway answers");
        }
        testbed.tunnel(TUNNEL, &network.exit_a).expect("the tunnel");
        testbed.policy(&policy("guests", 10, ("interface", "eth0.50"), &[TUNNEL])).expect("the policy");
        wait_until_seen_as(&guest, |ipv6| network.exit_a.address(ipv6));
        wait_until_seen_as(&bridged, wan);
        network.exit_a.kill9().expect("the exit dies");
        assert_blocked(&guest);
        let verdict = testbed.api().get("/status").expect("the status")["verdict"].clone();
        assert_eq!(verdict["leaked_packets"], 0, "{verdict}");
    }

    #[test]
    #[ignore = "runs inside the guest"]
    fn a_vlan_that_keeps_the_tag_in_the_frame_has_its_policies() {
        let testbed = trunk();
        let network = &testbed.network;
        network.gateway.ip("link set eth1.30 type vlan reorder_hdr off").expect("the flag");
        testbed.tunnel(TUNNEL, &network.exit_a).expect("the tunnel");
        testbed.policy(&policy("guests", 10, ("interface", "eth1.30"), &[TUNNEL])).expect("the policy");
        wait_until_seen_as(&network.tv, |ipv6| network.exit_a.address(ipv6));
        wait_until_seen_as(&network.laptop, wan);
    }

    /// The kernel passes packets of a VLAN to the packet sockets of the parent, too.
    #[test]
    #[ignore = "runs inside the guest"]
    fn messages_of_a_vlan_are_none_of_its_parent() {
        let testbed = trunk();
        let network = &testbed.network;
        let open = |interface| FrameSocket::open(nix::net::if_::if_nametoindex(interface)?);
        let [vlan, parent] =
            network.gateway.within(|| ["eth1.30", "eth1"].map(open)).map(|socket| socket.expect("a socket"));
        let server = network.tv.namespace.within(|| UdpSocket::bind("192.168.30.20:67")).expect("a server");
        let mut buffer = Vec::new();
        wait_ok(TIMEOUT, "a message of the VLAN", || {
            server.send_to(b"an offer", "192.168.30.1:68")?;
            anyhow::ensure!(vlan.next(&mut buffer)?.is_some(), "none");
            Ok(())
        })
        .expect("the VLAN has it");
        assert_eq!(parent.next(&mut buffer).expect("read"), None);
    }

    /// The tap of the leak check counts a packet at the interface of its VLAN, and not at the parent, which may be an uplink.
    #[test]
    #[ignore = "runs inside the guest"]
    fn a_packet_of_a_vlan_does_not_leave_by_its_parent() {
        let testbed = trunk();
        // No packet waits for its neighbour, so they leave in order.
        for host in ["192.168.30.20", "192.168.10.10"] {
            let ping = ["ping", "-c", "1", "-W", "2", host];
            testbed.network.gateway.run("busybox", &ping).expect("the host answers");
        }
        testbed.network.gateway.within(|| {
            let [parent, vlan] =
                ["eth1", "eth1.30"].map(|name| nix::net::if_::if_nametoindex(name).expect(name));
            let tap = EgressTap::open().expect("a tap");
            let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
            for to in ["192.168.30.20:53", "192.168.10.10:53"] {
                socket.send_to(to.as_bytes(), to).expect("sent");
            }
            let (mut seen, mut packet) = (Vec::new(), Vec::new());
            wait_ok(TIMEOUT, "the packet of the parent", || {
                while let Some(interface) = tap.next(&mut packet)? {
                    if packet.ends_with(b"192.168.30.20:53") {
                        seen.push(interface);
                    } else if packet.ends_with(b"192.168.10.10:53") {
                        assert_eq!(interface, parent);
                        return Ok(());
                    }
                }
                anyhow::bail!("not yet")
            })
            .expect("the tap sees it");
            assert_eq!(seen, [vlan]);
        });
    }

    #[test]
    #[ignore = "runs inside the guest"]
    fn the_kernel_answers_repeated_queries_and_those_for_blocked_names() {
        let mut testbed = Testbed::prepare().expect("a scene");
        let _upstream = Upstream::start(&testbed.network.internet).expect("an upstream");
        let servers = json!({"dns": {"upstream_servers": [name_server::ADDRESS]}});
        testbed.daemon.configure(&servers).expect("the configuration");
        testbed.daemon.start().expect("the daemon");
        testbed.api().put("/privacy/dns-mode", &json!({"mode": "system"})).expect("stored");
        testbed.api().post("/dns/blocklist", &json!({"domain": "ads.example"})).expect("blocked");
        testbed.api().act("/enforce/reconcile").expect("reconciled");
        let mut client = Client::of(&testbed.network.laptop, LAN_V4.into()).expect("a client");
        wait_ok(TIMEOUT, "the kernel to answer what was asked before", || {
            let answer = client.ask("www.example", A)?;
            anyhow::ensure!(answer.addresses == [server(false)], "{answer:?}");
            let status = testbed.api().get("/dns/status")?;
            anyhow::ensure!(status["repeated"].as_u64() > Some(0), "{status}");
            Ok(())
        })
        .expect("answers of the packet cache");
        let mut number = 0;
        wait_ok(TIMEOUT, "the kernel to answer", || {
            number += 1;
            let answer = client.ask(&format!("n{number}.ads.example"), A)?;
            anyhow::ensure!(answer.addresses == [IpAddr::V4(Ipv4Addr::UNSPECIFIED)], "{answer:?}");
            let status = testbed.api().get("/dns/status")?;
            anyhow::ensure!(status["kernel_blocked"].as_u64() > Some(0), "{status}");
            Ok(())
        })
        .expect("answers of the kernel");
    }

    /// Shapers of other programs add such a qdisc. Its one list of filters takes those for egress, too.
    #[test]
    #[ignore = "runs inside the guest"]
    fn an_uplink_without_a_place_for_the_guard_is_reported() {
        let mut testbed = Testbed::prepare().expect("a scene");
        for interface in ["eth0", "eth1"] {
            testbed.network.gateway.run("tc", &["qdisc", "add", "dev", interface, "ingress"]).expect("tc");
        }
        testbed.daemon.spawn().expect("the daemon");
        let filters = |interface, direction| {
            let shown = ["filter", "show", "dev", interface, direction];
            testbed.network.gateway.run("tc", &shown).expect("tc")
        };
        let health = |expected: &str| {
            wait_ok(TIMEOUT, expected, || {
                let health = testbed.api().get("/health")?;
                anyhow::ensure!(health["status"] == expected, "{health}");
                Ok(health.to_string())
            })
            .expect("health")
        };
        let reported = health("degraded");
        assert!(reported.contains("the qdisc `ingress` of another program"), "{reported}");
        let [uplink, lan] = ["eth0", "eth1"].map(|interface| filters(interface, "ingress"));
        assert!(uplink.contains("gw_wan_ingress") && lan.contains("gw_ingress"), "{uplink}{lan}");
        assert!(!uplink.contains("gw_guard") && !lan.contains("gw_lan_egress"), "{uplink}{lan}");
        // The LAN has its policies all the same.
        testbed.tunnel(TUNNEL, &testbed.network.exit_a).expect("the tunnel");
        testbed.policy(&policy("all", 10, ("interface", "eth1"), &[TUNNEL])).expect("the policy");
        wait_until_seen_as(&testbed.network.laptop, |ipv6| testbed.network.exit_a.address(ipv6));
        for interface in ["eth0", "eth1"] {
            let gateway = &testbed.network.gateway;
            gateway.run("tc", &["qdisc", "del", "dev", interface, "ingress"]).expect("tc");
        }
        testbed.api().act("/enforce/reconcile").expect("reconciled");
        health("ok");
        assert!(filters("eth0", "egress").contains("gw_guard"));
    }

    /// Moves an exit into the kernel's WireGuard with the same keys and addresses.
    pub(crate) fn carry_by_kernel(exit: &Exit) {
        exit.kill9().expect("the exit in user space ends");
        let namespace = &exit.namespace;
        namespace.ip("link add wg0 type wireguard").expect("kernel WireGuard");
        let place = exit.place;
        let configuration = format!(
            "[Interface]\nPrivateKey = {}\nListenPort = {PORT}\n[Peer]\nPublicKey = {}\nAllowedIPs = {}/32, {}/128\n",
            exit.keys.private,
            exit.client.public,
            place.client_v4(),
            place.client_v6(),
        );
        namespace.feed("wg", &["setconf", "wg0", "/dev/stdin"], &configuration).expect("wg");
        namespace
            .ip(&format!(
                "address replace {}/24 dev wg0\naddress replace {}/64 dev wg0 nodad\nlink set wg0 up",
                place.inner_v4, place.inner_v6
            ))
            .expect("addresses");
    }

    fn wait_until_seen_as(host: &Host, expected: impl Fn(bool) -> IpAddr) {
        for ipv6 in FAMILIES {
            wait_ok(TIMEOUT, &format!("{} to be seen as {}", host.name, expected(ipv6)), || {
                let answer = ask(host, (server(ipv6), HTTP).into(), BLOCKED);
                anyhow::ensure!(answer.seen() == Some(expected(ipv6)), "{answer}");
                Ok(())
            })
            .expect("the way");
        }
    }

    fn assert_blocked(host: &Host) {
        for ipv6 in FAMILIES {
            let answer = ask(host, (server(ipv6), HTTP).into(), BLOCKED);
            assert_eq!(answer.seen(), None, "{} reached the server and was seen as {answer}", host.name);
        }
    }

    fn assert_nothing_leaked(testbed: &Testbed) {
        testbed.network.settle().expect("silence on the LAN");
        let counts = testbed.network.tap.counts();
        assert!(counts.is_clean(), "{counts}");
    }

    pub(crate) fn kind_of_link(testbed: &Testbed, interface: &str) -> String {
        let shown =
            testbed.network.gateway.run("ip", &["-j", "-d", "link", "show", "dev", interface]).expect("ip");
        let shown: Value = serde_json::from_str(&shown).expect("JSON");
        shown.pointer("/0/linkinfo/info_kind").and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    #[test]
    #[ignore = "runs inside the guest"]
    fn a_policy_sends_a_host_through_the_kernels_wireguard_and_nothing_past_it() {
        let testbed = Testbed::start().expect("a scene");
        let network = &testbed.network;
        carry_by_kernel(&network.exit_a);
        let tunnel = testbed.tunnel(TUNNEL, &network.exit_a).expect("the tunnel");
        let interface = testbed.interface(&tunnel).expect("its interface");
        assert_eq!(kind_of_link(&testbed, &interface), "wireguard", "the kernel carries it");

        // The tap counts direct traffic; without this a clean count would prove nothing.
        wait_until_seen_as(&network.laptop, wan);
        network.settle().expect("silence on the LAN");
        let counts = network.tap.counts();
        assert!(counts.leaked.v4 > 0 && counts.leaked.v6 > 0, "{counts}");

        let laptop = testbed.device(&network.laptop).expect("the device");
        testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &[TUNNEL])).expect("the policy");
        network.settle().expect("silence on the LAN");
        network.tap.reset();
        wait_until_seen_as(&network.laptop, |ipv6| network.exit_a.address(ipv6));
        assert_nothing_leaked(&testbed);
        assert!(network.tap.counts().tunnel.v4 > 0, "the tunnel's packets are on the wire");
        let shown = network.gateway.run("wg", &["show", &interface, "latest-handshakes"]).expect("wg");
        let shaken = shown.split_whitespace().nth(1).and_then(|time| time.parse::<u64>().ok());
        assert!(shaken.is_some_and(|time| time > 0), "{shown}");

        testbed.bring_down(&tunnel).expect("the tunnel goes down");
        assert_blocked(&network.laptop);
        network.gateway.ip(&format!("link show dev {interface}")).expect_err("the device is gone");
        testbed.bring_up(&tunnel).expect("the tunnel comes back");
        wait_until_seen_as(&network.laptop, |ipv6| network.exit_a.address(ipv6));
        // External removal: the route goes with the device, and the traffic takes no other egress.
        network.gateway.ip(&format!("link del dev {interface}")).expect("somebody removes the device");
        wait_until_seen_as(&network.laptop, |ipv6| network.exit_a.address(ipv6));
        assert_nothing_leaked(&testbed);
    }

    #[test]
    #[ignore = "runs inside the guest"]
    fn a_policy_of_a_vlan_is_about_tagged_frames_only() {
        let testbed = trunk();
        let network = &testbed.network;
        testbed.tunnel(TUNNEL, &network.exit_a).expect("the tunnel");
        wait_until_seen_as(&network.tv, wan);
        wait_until_seen_as(&network.laptop, wan);
        testbed.policy(&policy("guests", 10, ("vlan", "30"), &[TUNNEL])).expect("the policy");
        network.settle().expect("silence on the LAN");
        network.tap.reset();
        wait_until_seen_as(&network.tv, |ipv6| network.exit_a.address(ipv6));
        assert_nothing_leaked(&testbed);
        wait_until_seen_as(&network.laptop, wan);
        network.settle().expect("silence on the LAN");
        network.tap.reset();

        network.exit_a.kill9().expect("the exit dies");
        assert_blocked(&network.tv);
        assert_nothing_leaked(&testbed);
        wait_until_seen_as(&network.laptop, wan);
    }
}
