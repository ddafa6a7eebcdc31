//! The gateway's nftables table: the packets that it accepts, and its detection of external changes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use gateway_core::plan::{MeshForwarding, NftRuleset};
use gateway_ctl::os::nft::Nft;
use gateway_ctl::os::{LastApplied, Outcome, sync};
use gateway_tests::netns::{Namespace, Prefix};
use gateway_tests::wait::wait_until;

use super::{SILENCE, namespace, receiver, within};

fn ruleset() -> NftRuleset {
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    NftRuleset {
        wan_access: None,
        mesh: None,
        lan: names(&["lan0"]),
        tunnels: names(&["tun0"]),
        uplinks: names(&["wan0"]),
        open_udp: vec![51820],
        open_tcp: vec![],
        proxied: false,
        dns_port: 53,
        redirects_own_dns: false,
        ntp_port: 4704,
        egress: BTreeSet::from([(MARK_UPLINK, "wan0".to_owned()), (MARK_TUNNEL, "tun0".to_owned())]),
        delegated: BTreeSet::from([("wan0".to_owned(), "2001:db8:100::/56".parse().expect("a network"))]),
        sources: ["10.0.3.1", "fd00:3::1"]
            .map(|address| ("tun0".to_owned(), address.parse().expect("an address")))
            .into(),
    }
}

/// Forwarding for nodes of a mesh, with all of its rules.
fn forwarding() -> MeshForwarding {
    MeshForwarding {
        interface: "mesh0".to_owned(),
        subnets: ["192.168.7.0/24", "fd00:7::/64"].map(|net| net.parse().expect("a network")).into(),
        exit: Some(MARK_UPLINK),
        exit_ipv4: true,
        exit_ipv6: true,
    }
}

const MARK_UPLINK: u32 = 0x4700_0001;
const MARK_TUNNEL: u32 = 0x4700_0010;

/// Sets marks on LAN traffic by destination, like the ingress program.
fn mark_by_destination(gateway: &Namespace, uplink: u32, tunnel: u32) {
    let mut rules = String::new();
    for (header, net) in [("ip", ["10.0.2.0/24", "10.0.3.0/24"]), ("ip6", ["fd00:2::/64", "fd00:3::/64"])] {
        for (to, mark) in net.into_iter().zip([uplink, tunnel]) {
            rules.push_str(&format!("iifname \"lan0\" {header} daddr {to} meta mark set {mark:#x}\n"));
        }
    }
    gateway
        .nft(&format!(
            "add table inet marks\ndelete table inet marks\ntable inet marks {{\n chain passing {{\n\
             type filter hook prerouting priority raw\n{rules}}}\n}}\n"
        ))
        .expect("marks");
}

async fn install(ruleset: &NftRuleset) -> Outcome {
    let nft = Nft::gateway(ruleset).expect("plain names");
    sync(&nft, &nft.want(), &mut LastApplied::default()).await
}

#[test]
fn any_change_by_an_outsider_is_reported_and_repaired() {
    let ns = namespace("nft");
    ns.nft("table inet other {\n chain c {\n }\n}\n").expect("table of another");
    within(&ns, async || {
        let nft = Nft::gateway(&ruleset()).expect("plain names");
        let want = nft.want();
        let mut memory = LastApplied::default();
        assert_eq!(sync(&nft, &want, &mut memory).await, Outcome { put: 1, ..Outcome::default() });
        assert_eq!(sync(&nft, &want, &mut memory).await, Outcome::default());
        let pristine = ns.run("nft", &["list", "table", "inet", "gateway"]).expect("listing");

        for change in [
            "add rule inet gateway forward accept",
            "insert rule inet gateway forward iifname \"wan0\" accept",
            "flush chain inet gateway forward",
            "flush table inet gateway",
            "delete table inet gateway",
            "add chain inet gateway forward { policy accept; }",
            "add chain inet gateway mine { type filter hook forward priority -10; policy accept; }",
            "add set inet gateway s { type ipv4_addr; }",
            "add table inet gateway { flags dormant; }",
            "flush chain inet gateway fingerprint",
            "delete table inet gateway; add table inet gateway; add chain inet gateway fingerprint; \
             add rule inet gateway fingerprint return comment \"gateway-00 00\"",
        ] {
            ns.nft(&format!("{change}\n")).unwrap_or_else(|error| panic!("{change}: {error:#}"));
            let outcome = sync(&nft, &want, &mut memory).await;
            assert_eq!((outcome.put, outcome.drift.len()), (1, 1), "{change}: {outcome:?}");
            assert!(outcome.is_ok() && outcome.drift[0].repaired, "{change}: {outcome:?}");
            assert_eq!(
                ns.run("nft", &["list", "table", "inet", "gateway"]).expect("listing"),
                pristine,
                "{change}"
            );
            assert_eq!(sync(&nft, &want, &mut memory).await, Outcome::default(), "{change}");
        }
        ns.run("nft", &["list", "table", "inet", "other"]).expect("tables of others stay");

        let outcome = sync(&nft, &BTreeMap::new(), &mut memory).await;
        assert_eq!((outcome.removed, outcome.failed.len()), (1, 0), "{outcome:?}");
        assert!(ns.run("nft", &["list", "table", "inet", "gateway"]).is_err());
    });
}

#[test]
fn every_shape_of_a_rule_set_is_accepted_by_nft() {
    let ns = namespace("nft2");
    within(&ns, async || {
        let full = ruleset();
        for lan in [vec![], full.lan.clone(), vec!["a".into(), "b.100".into()]] {
            for tunnels in [vec![], full.tunnels.clone(), vec!["t1".into(), "t2".into()]] {
                for uplinks in [vec![], full.uplinks.clone(), vec!["u1".into(), "u2".into()]] {
                    for open_udp in [vec![], vec![51820, 1194]] {
                        let (lan, tunnels, uplinks) = (lan.clone(), tunnels.clone(), uplinks.clone());
                        let proxied = !open_udp.is_empty();
                        let NftRuleset { egress, delegated, sources, .. } = ruleset();
                        let egress = if proxied { egress } else { BTreeSet::new() };
                        let dns_port = if tunnels.is_empty() { 0 } else { 53 };
                        let ntp_port = if uplinks.is_empty() { 0 } else { 4704 };
                        let ruleset = NftRuleset {
                            wan_access: None,
                            mesh: proxied.then(forwarding),
                            lan,
                            tunnels,
                            uplinks,
                            open_tcp: open_udp.clone(),
                            open_udp,
                            proxied,
                            dns_port,
                            redirects_own_dns: proxied,
                            ntp_port,
                            delegated,
                            egress,
                            sources,
                        };
                        let outcome = install(&ruleset).await;
                        assert!(outcome.is_ok(), "{ruleset:?}: {outcome:?}");
                        assert_eq!(install(&ruleset).await, Outcome::default(), "{ruleset:?}");
                    }
                }
            }
        }
    });
}

/// A LAN device, the gateway, and the hosts behind its uplink and its tunnel (a veth pair instead of a tunnel).
struct Network {
    device: Namespace,
    gateway: Namespace,
    internet: Namespace,
    exit: Namespace,
}

const TIMEOUT: Duration = Duration::from_secs(10);

impl Network {
    fn new() -> Self {
        let prefix = Prefix::unique().expect("root");
        let make = |label| Namespace::create(&prefix, label).expect("namespace");
        let network =
            Self { device: make("dev"), gateway: make("gate"), internet: make("inet"), exit: make("exit") };
        let far = [&network.device, &network.internet, &network.exit];
        for ((near, net), far) in [("lan0", 1), ("wan0", 2), ("tun0", 3)].into_iter().zip(far) {
            network
                .gateway
                .ip(&format!(
                    "link add {near} type veth peer name eth0 netns {name}\nlink set {near} up\n\
                     addr add 10.0.{net}.1/24 dev {near}\naddr add fd00:{net}::1/64 dev {near} nodad",
                    name = far.name()
                ))
                .expect("link");
            far.ip(&format!(
                "link set eth0 up\naddr add 10.0.{net}.2/24 dev eth0\naddr add fd00:{net}::2/64 dev eth0 nodad\n\
                 route add default via 10.0.{net}.1\nroute add default via fd00:{net}::1"
            ))
            .expect("far end");
        }
        network.gateway.forward().expect("forwarding");
        mark_by_destination(&network.gateway, MARK_UPLINK, MARK_TUNNEL);
        network
    }
}

/// Sends a datagram from one namespace to a port in another. Returns the received source, if it arrived.
fn datagram(from: &Namespace, to: &Namespace, target: &str) -> Option<IpAddr> {
    let target: SocketAddr = target.parse().expect("an address");
    let any: IpAddr =
        if target.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let receiver = receiver(to, (any, target.port()).into());
    let sender = from.within(|| UdpSocket::bind((any, 0))).expect("sender");
    sender.send_to(b"hello", target).expect("send");
    let (_, source) = receiver.recv_from(&mut [0; 16]).ok()?;
    Some(source.ip())
}

/// Like `datagram` if it must arrive: retries, as a new link is not ready immediately.
fn reaches(from: &Namespace, to: &Namespace, target: &str) -> IpAddr {
    let what = format!("{target} is reached from {}", from.name());
    wait_until(TIMEOUT, &what, || datagram(from, to, target)).expect("reached")
}

#[test]
fn the_lan_reaches_the_outside_masqueraded_and_nothing_comes_in_unasked() {
    let Network { device, gateway, internet, exit } = &Network::new();
    let closed = [
        (internet, device, "10.0.1.2:9000"),
        (internet, device, "[fd00:1::2]:9000"),
        (exit, device, "10.0.1.2:9000"),
        (exit, internet, "10.0.2.2:9000"),
        (exit, internet, "[fd00:2::2]:9000"),
        (internet, exit, "10.0.3.2:9000"),
        (internet, gateway, "10.0.2.1:9000"),
        (internet, gateway, "[fd00:2::1]:9000"),
        (exit, gateway, "10.0.3.1:51820"),
    ];
    for (from, to, target) in closed {
        // Without the table the packet passes, so the following result is an effect of the table.
        reaches(from, to, target);
    }
    within(gateway, async || assert!(install(&ruleset()).await.is_ok()));

    for (to, target, source) in [
        (internet, "10.0.2.2:9000", "10.0.2.1"),
        (internet, "[fd00:2::2]:9000", "fd00:2::1"),
        (exit, "10.0.3.2:9000", "10.0.3.1"),
        (exit, "[fd00:3::2]:9000", "fd00:3::1"),
    ] {
        assert_eq!(reaches(device, to, target).to_string(), source, "masqueraded");
    }
    for (from, to, target) in closed {
        assert_eq!(datagram(from, to, target), None, "{target} is closed");
    }
    reaches(internet, gateway, "10.0.2.1:51820");
    reaches(device, gateway, "10.0.1.1:9000");
    for (from, target) in [(internet, "10.0.2.1"), (exit, "fd00:3::1")] {
        from.run("ping", &["-c1", "-W2", target]).expect("this host answers pings");
    }
}

#[test]
fn uplinks_leave_global_ipv6_sources_alone() {
    let Network { device, gateway, internet, .. } = &Network::new();
    within(gateway, async || assert!(install(&ruleset()).await.is_ok()));
    gateway.ip("addr add 2001:db8:1::1/64 dev lan0 nodad").expect("LAN prefix");
    device
        .ip("addr add 2001:db8:1::2/64 dev eth0 nodad\nroute replace default via fd00:1::1 src 2001:db8:1::2")
        .expect("device");
    let seen = reaches(device, internet, "[fd00:2::2]:9000");
    assert_eq!(seen.to_string(), "2001:db8:1::2");
}

#[test]
fn a_change_of_the_rule_set_cuts_no_flow_and_the_block_cuts_all() {
    let Network { device, gateway, internet, .. } = &Network::new();
    within(gateway, async || assert!(install(&ruleset()).await.is_ok()));
    let listener = internet.within(|| TcpListener::bind("0.0.0.0:9000")).expect("listener");
    let mut client = device.within(|| TcpStream::connect("10.0.2.2:9000")).expect("connected");
    let (mut server, _) = listener.accept().expect("accepted");
    server.set_read_timeout(Some(TIMEOUT)).expect("timeout");
    let mut exchange = |byte: u8| -> std::io::Result<()> {
        let mut buffer = [0];
        client.write_all(&[byte])?;
        server.read_exact(&mut buffer)?;
        assert_eq!(buffer, [byte]);
        Ok(())
    };
    exchange(1).expect("before");
    for number in 1..=50 {
        let mut changed = ruleset();
        changed.tunnels.push(format!("tun{number}"));
        within(gateway, async || assert_eq!(install(&changed).await.put, 1));
        exchange(2).expect("after a change");
    }
    within(gateway, async || {
        let nft = Nft::block(&["lan0".to_owned()]);
        assert!(sync(&nft, &nft.want(), &mut LastApplied::default()).await.is_ok());
    });
    server.set_read_timeout(Some(SILENCE)).expect("timeout");
    let mut buffer = [0];
    client.write_all(&[3]).expect("into the buffer");
    assert!(server.read_exact(&mut buffer).is_err(), "nothing is forwarded any longer");
}

#[test]
fn the_lan_cannot_speak_for_the_gateway() {
    let Network { device, gateway, .. } = &Network::new();
    // As a plan sets it: the kernel does not check whether a source is its own.
    gateway.sysctl("net.ipv4.conf.lan0.accept_local", "1").expect("sysctl");
    device.ip("addr add 10.0.2.1/32 dev lo").expect("the gateway's own address");
    let target: SocketAddr = "10.0.1.1:9000".parse().expect("an address");
    let spoofed = || {
        let receiver = receiver(gateway, target);
        let sender = device.within(|| UdpSocket::bind("10.0.2.1:0")).expect("sender");
        sender.send_to(b"hello", target).expect("send");
        receiver.recv_from(&mut [0; 16]).ok()
    };
    wait_until(TIMEOUT, "without our table it is heard", spoofed).expect("heard");
    within(gateway, async || assert!(install(&ruleset()).await.is_ok()));
    reaches(device, gateway, "10.0.1.1:9000");
    assert_eq!(spoofed(), None, "with our table it is not");
    within(gateway, async || {
        let nft = Nft::block(&["lan0".to_owned()]);
        assert!(sync(&nft, &nft.want(), &mut LastApplied::default()).await.is_ok());
    });
    reaches(device, gateway, "10.0.1.1:9000");
    assert_eq!(spoofed(), None, "nor at rest");
}

#[test]
fn handshakes_into_tunnels_carry_a_segment_size_that_fits() {
    let Network { device, gateway, exit, .. } = &Network::new();
    gateway.ip("link set tun0 mtu 1280").expect("mtu");
    within(gateway, async || assert!(install(&ruleset()).await.is_ok()));
    let listener = exit.within(|| TcpListener::bind("0.0.0.0:9000")).expect("listener");
    let _client = device.within(|| TcpStream::connect("10.0.3.2:9000")).expect("connected");
    let (_server, _) = listener.accept().expect("accepted");
    let shown = exit.run("ss", &["-tinH", "sport", "=", ":9000"]).expect("ss");
    let size = |text: &str, name: &str| -> u32 {
        let rest = text.split(&format!(" {name}:")).nth(1).unwrap_or_else(|| panic!("{name} in {text}"));
        rest.split_whitespace().next().unwrap().parse().unwrap()
    };
    // Compares the size that it may send to the device with the size of its own link, less the options that ss omits.
    assert!(size(&shown, "mss") <= 1240 && size(&shown, "advmss") > 1400, "{shown}");
}

#[test]
fn a_packet_without_the_mark_of_its_interface_is_not_forwarded() {
    let Network { device, gateway, internet, exit } = &Network::new();
    within(gateway, async || assert!(install(&ruleset()).await.is_ok()));
    let targets = [
        (internet, "10.0.2.2:9000"),
        (internet, "[fd00:2::2]:9000"),
        (exit, "10.0.3.2:9000"),
        (exit, "[fd00:3::2]:9000"),
    ];
    for (to, target) in targets {
        reaches(device, to, target);
    }
    let flow = Flow::open(device, internet, "10.0.2.2:9001");
    flow.exchange().expect("an established flow");
    for (uplink, tunnel) in [(0, 0), (MARK_TUNNEL, MARK_UPLINK), (0x4700_0002, 0x4700_0011)] {
        mark_by_destination(gateway, uplink, tunnel);
        for (to, target) in targets {
            assert_eq!(datagram(device, to, target), None, "{target} with {uplink:#x} and {tunnel:#x}");
        }
        flow.exchange().expect_err("nor an established flow");
    }
    mark_by_destination(gateway, MARK_UPLINK, MARK_TUNNEL);
    flow.exchange().expect("with its mark it goes on");
}

#[test]
fn a_flow_that_began_directly_does_not_enter_a_tunnel_with_the_address_of_the_lan() {
    let Network { device, gateway, internet, exit } = &Network::new();
    within(gateway, async || assert!(install(&ruleset()).await.is_ok()));
    gateway.ip("addr add 2001:db8:1::1/64 dev lan0 nodad").expect("LAN prefix");
    device.ip("addr add 2001:db8:1::2/64 dev eth0 nodad").expect("device");
    for far in [internet, exit] {
        far.ip("addr add 2001:db8:9::9/128 dev lo nodad").expect("a server that both paths reach");
    }
    gateway.ip("route add 2001:db8:9::9 via fd00:2::2").expect("route");
    device.ip("route replace default via fd00:1::1 src 2001:db8:1::2").expect("source");
    let mark = |mark: u32| {
        gateway
            .nft(&format!(
                "add table inet marks\ndelete table inet marks\ntable inet marks {{\n chain passing {{\n\
                 type filter hook prerouting priority raw\niifname \"lan0\" meta mark set {mark:#x}\n}}\n}}\n"
            ))
            .expect("marks");
    };
    // Hooked after the gateway's chains: packets that leave by the tunnel with a LAN address.
    gateway
        .nft(
            "table ip6 watch {\n chain passing {\n type filter hook postrouting priority 300\n\
             oifname \"tun0\" ip6 saddr 2001:db8:1::/64 counter\n}\n}\n",
        )
        .expect("counter");
    mark(MARK_UPLINK);
    let flow = Flow::open(device, internet, "[2001:db8:9::9]:9001");
    wait_until(TIMEOUT, "the direct flow", || flow.exchange().ok()).expect("direct");
    gateway.ip("route replace 2001:db8:9::9 via fd00:3::2").expect("route by the tunnel");
    mark(MARK_TUNNEL);
    for _ in 0..3 {
        flow.exchange().expect_err("the flow has no translated source");
    }
    let shown = gateway.run("nft", &["list", "table", "ip6", "watch"]).expect("counter");
    assert!(shown.contains("packets 0 "), "{shown}");
    // A separate flow begins with the tunnel's address.
    let seen = reaches(device, exit, "[2001:db8:9::9]:9002");
    assert_eq!(seen.to_string(), "fd00:3::1");
}

/// A UDP flow between two namespaces whose remote end echoes everything.
struct Flow {
    near: UdpSocket,
    far: UdpSocket,
}

impl Flow {
    fn open(from: &Namespace, to: &Namespace, target: &str) -> Self {
        let target: SocketAddr = target.parse().expect("an address");
        let any = |port| {
            let address: IpAddr =
                if target.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
            SocketAddr::from((address, port))
        };
        let near = from.within(|| UdpSocket::bind(any(0))).expect("near end");
        near.connect(target).expect("near end");
        let far = to.within(|| UdpSocket::bind(target)).expect("far end");
        for socket in [&near, &far] {
            socket.set_read_timeout(Some(SILENCE)).expect("timeout");
        }
        Self { near, far }
    }

    fn exchange(&self) -> std::io::Result<()> {
        let mut buffer = [0; 16];
        self.near.send(b"there")?;
        let (_, source) = self.far.recv_from(&mut buffer)?;
        self.far.send_to(b"back", source)?;
        self.near.recv(&mut buffer).map(drop)
    }
}
