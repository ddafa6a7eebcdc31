//! A gateway between a LAN and an uplink whose hosts exist only as frames: the test sends and receives each of them.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::time::Duration;

use gateway_common::wire::{
    EgressAllowKey, EgressAllowValue, FastCounter, FastLink, Mac, Mark, PlanValue, RANK_NONE, XdpAnswers,
    XdpCounter, XdpLink, XdpSide,
};
use gateway_core::plan::{Attachment, Dataplane};
use gateway_ctl::os::bpf::{FastPath, Programs};
use gateway_tests::bpf_run::admit_all;
use gateway_tests::frames::FrameSender;
use gateway_tests::netns::{Namespace, Prefix};
use gateway_tests::packet_socket::{ALL_PROTOCOLS, link_address};
use gateway_tests::xdp_peer::XdpPeer;
use socket2::{Domain, Protocol, Socket, Type};

use super::packet::{LAN_MAC, Packet, WAN_MAC, mac};
use crate::kernel::differential::Pins;

const WAN_MTU: u16 = 1400;
/// No packet has this tag.
const UNUSED_VLAN: u16 = 4000;
const SOON: Duration = Duration::from_secs(10);
/// Destination port of the packets that end a part of a sequence.
pub(super) const MARKER: u16 = 9;

pub(super) struct Testbed {
    // Field order is drop order.
    pub programs: Programs,
    pub(super) lan_side: Side,
    wan_side: Side,
    pub gateway: Namespace,
    pub(super) plan: Dataplane,
    pub(super) markers: u16,
    pub lan: u32,
    pub wan: u32,
    /// Way of the DNS answers at XDP.
    pub answers: XdpAnswers,
    peers: Vec<XdpPeer>,
    pub(super) namespaces: [Namespace; 2],
    pins: Pins,
}

/// One end of a link, outside the gateway.
pub(super) struct Side {
    pub(super) sender: FrameSender,
    receiver: Socket,
}

impl Side {
    pub(super) fn open(namespace: &Namespace, interface: &str) -> Side {
        let sender = FrameSender::open(namespace, interface).expect("a sender");
        let receiver = namespace.within(|| {
            let all = i32::from((libc::ETH_P_ALL as u16).to_be());
            let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(all))).expect("a socket");
            socket.bind(&link_address(interface, ALL_PROTOCOLS).expect("an address")).expect("bound");
            socket.set_read_timeout(Some(SOON)).expect("a timeout");
            socket.set_recv_buffer_size(16 << 20).expect("a buffer");
            socket
        });
        Side { sender, receiver }
    }

    /// Returns the frames that the gateway sent, until one to the port of markers with this source port.
    pub(super) fn frames_until(&self, is_marker: impl Fn(&[u8]) -> bool, from: [u8; 6]) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        loop {
            let mut buffer = [std::mem::MaybeUninit::uninit(); 70_000];
            let length = match self.receiver.recv(&mut buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => panic!("the marker did not arrive: {error}; before it {frames:02x?}"),
            };
            // SAFETY: the kernel has written this many bytes.
            let frame: Vec<u8> = buffer[..length].iter().map(|byte| unsafe { byte.assume_init() }).collect();
            if frame.get(6..12) != Some(&from[..]) {
                continue;
            }
            if is_marker(&frame) {
                return frames;
            }
            frames.push(frame);
        }
    }
}

impl Testbed {
    pub(super) fn build() -> Testbed {
        let prefix = Prefix::unique().expect("a prefix");
        let pins = Pins(prefix.pin_directory());
        let make = |name: &str| Namespace::create(&prefix, name).expect("a namespace");
        let (host, gateway, internet) = (make("host"), make("gw"), make("net"));
        for namespace in [&host, &internet] {
            namespace.sysctl("net.ipv6.conf.default.disable_ipv6", "1").expect("no IPv6");
        }
        gateway.sysctl("net.ipv6.conf.default.accept_dad", "0").expect("no DAD");
        gateway.sysctl("net.ipv6.conf.default.router_solicitations", "0").expect("no solicitations");
        let (host_name, internet_name) = (host.name(), internet.name());
        let [lan_mac, wan_mac] = [LAN_MAC, WAN_MAC].map(text);
        gateway
            .ip(&format!(
                "link add lan0 address {lan_mac} type veth peer name host0 netns {host_name}\n\
                 link add wan0 address {wan_mac} type veth peer name net0 netns {internet_name}\n\
                 address add 192.168.77.1/24 dev lan0\naddress add fd77::1/64 dev lan0 nodad\n\
                 address add 2001:db8:77::1/64 dev lan0 nodad\nlink set lan0 up\n\
                 address add 198.51.100.2/24 dev wan0\naddress add 2001:db8::2/64 dev wan0 nodad\nlink set wan0 mtu {WAN_MTU} up"
            ))
            .expect("a gateway");
        host.ip("link set host0 up").expect("a LAN");
        internet.ip("link set net0 up").expect("an uplink");
        gateway.forward().expect("forwarding");
        gateway.lift_error_limits();
        for (key, value) in [
            ("net.netfilter.nf_conntrack_tcp_be_liberal", "1"),
            ("net.ipv4.conf.all.send_redirects", "0"),
            ("net.ipv4.conf.lan0.send_redirects", "0"),
        ] {
            // Some are those of the host.
            let _ = gateway.sysctl(key, value);
        }
        gateway
            .nft(
                "table inet test {\n\
                 chain forward { type filter hook forward priority filter; policy drop;\n\
                 iifname lan0 oifname wan0 ct state new,established,related accept;\n\
                 oifname lan0 ct state established,related accept;\n}\n\
                 chain outgoing { type nat hook postrouting priority srcnat;\n\
                 oifname wan0 meta nfproto ipv4 masquerade;\n\
                 oifname wan0 ip6 saddr fc00::/7 masquerade;\n}\n}\n",
            )
            .expect("rules");
        let (lan_side, wan_side) = (Side::open(&host, "host0"), Side::open(&internet, "net0"));
        let (programs, plan, lan, wan) = gateway.within(|| {
            let index = |name: &str| nix::net::if_::if_nametoindex(name).expect("an index");
            let (lan, wan) = (index("lan0"), index("wan0"));
            let mut programs = Programs::load(&pins.0).expect("the programs load");
            let own = EgressAllowValue {
                v4: u32::from_ne_bytes([198, 51, 100, 2]),
                v6: "2001:db8::2".parse::<IpAddr>().expect("an address").into(),
            };
            let mut plan = Dataplane {
                header: PlanValue { all: RANK_NONE, ..PlanValue::default() },
                authorised: [(EgressAllowKey { mark: Mark::DIRECT.0, index: wan }, own)].into(),
                egress_legs: [(wan, 1)].into(),
                ..Dataplane::default()
            };
            admit_all(&mut plan, lan);
            programs.apply(&plan).expect("a plan");
            let attachments =
                [("lan0".to_owned(), Attachment::Ingress), ("wan0".to_owned(), Attachment::Guard)].into();
            let attached = programs.attach(&attachments);
            assert!(attached.failed.is_empty(), "{:?}", attached.failed);
            (programs, plan, lan, wan)
        });
        let testbed = Testbed {
            programs,
            lan_side,
            wan_side,
            gateway,
            plan,
            markers: 20_000,
            lan,
            wan,
            answers: XdpAnswers::Redirect,
            peers: Vec::new(),
            namespaces: [host, internet],
            pins,
        };
        testbed.set_next_hop(9);
        for last in 2..10 {
            testbed.set_host(last, last);
        }
        let routes =
            "route add default via 198.51.100.9 dev wan0\nroute add default via 2001:db8::9 dev wan0";
        testbed.gateway.ip(routes).expect("routes");
        testbed
    }

    pub(super) fn fast_path(&self) -> FastPath {
        self.programs.fast_path.clone()
    }

    pub(super) fn links(&self) -> BTreeMap<u32, FastLink> {
        let link = |mtu| FastLink { mtu, ethernet: 1 };
        [(self.lan, link(1500)), (self.wan, link(WAN_MTU))].into()
    }

    pub(super) fn turn_on(&self) {
        self.fast_path().set(Some(&self.links())).expect("on");
    }

    /// Renews the lease, as the daemon does each second.
    pub(super) fn renew(&self) {
        self.fast_path().renew().expect("renewed");
    }

    /// Attaches XDP to both interfaces, whose peers then accept redirected frames.
    pub(super) fn use_xdp(&mut self) {
        let [host, internet] = &self.namespaces;
        self.peers = [(host, "host0"), (internet, "net0")]
            .map(|(namespace, interface)| XdpPeer::attach(namespace, interface).expect("a peer"))
            .into();
        self.programs.load_xdp();
        let xdp = self.programs.xdp.clone();
        let (lan, wan) = (self.lan, self.wan);
        let links = self.xdp_links();
        self.gateway.within(|| {
            for interface in [lan, wan] {
                xdp.attach(interface).expect("attached");
            }
            xdp.set(&links, &[lan, wan].into()).expect("set");
        });
    }

    /// Keeps a peer that accepts redirected frames.
    pub(super) fn keep(&mut self, peer: XdpPeer) {
        self.peers.push(peer);
    }

    pub(super) fn xdp_links(&self) -> BTreeMap<u32, XdpLink> {
        let link = |mac, side: XdpSide| XdpLink {
            mac: Mac::new(mac),
            side: side as u16,
            answers: self.answers as u16,
            ..XdpLink::default()
        };
        [(self.lan, link(LAN_MAC, XdpSide::Lan)), (self.wan, link(WAN_MAC, XdpSide::Uplink))].into()
    }

    /// Loads the programs as the next run of the daemon does.
    pub(super) fn load_again(&self) -> Programs {
        self.gateway.within(|| Programs::load(&self.pins.0)).expect("the programs load")
    }

    pub(super) fn counted_by_xdp(&self, counter: XdpCounter) -> u64 {
        self.programs.xdp.counters().expect("statistics")[&counter].packets
    }

    pub(super) fn counted(&self, counter: FastCounter) -> u64 {
        self.fast_path().stats().expect("statistics").counters[&counter].packets
    }

    /// Sets the MAC address of the next hop.
    pub(super) fn set_next_hop(&self, last: u8) {
        let mac = text(mac(last));
        self.gateway
            .ip(&format!(
                "neigh replace 198.51.100.9 lladdr {mac} dev wan0 nud permanent\n\
                 neigh replace 2001:db8::9 lladdr {mac} dev wan0 nud permanent"
            ))
            .expect("a neighbour");
    }

    /// Sets the MAC address of a host of the LAN.
    pub(super) fn set_host(&self, host: u8, last: u8) {
        let mac = text(mac(last));
        self.gateway
            .ip(&format!(
                "neigh replace 192.168.77.{host} lladdr {mac} dev lan0 nud permanent\n\
                 neigh replace fd77::{host} lladdr {mac} dev lan0 nud permanent\n\
                 neigh replace 2001:db8:77::{host} lladdr {mac} dev lan0 nud permanent"
            ))
            .expect("a neighbour");
    }

    /// Activates a plan of a new generation, with the same verdicts.
    pub(super) fn swap(&mut self) {
        self.change_plan(|plan| {
            if plan.vlans.remove(&UNUSED_VLAN).is_none() {
                plan.vlans.insert(UNUSED_VLAN, 0);
            }
        });
    }

    /// Activates a changed plan.
    pub(super) fn change_plan(&mut self, change: impl FnOnce(&mut Dataplane)) {
        change(&mut self.plan);
        let plan = self.plan.clone();
        assert!(self.programs.apply(&plan).expect("a plan").changed);
    }

    pub(super) fn send_from_lan(&self, packet: &Packet) {
        self.send_frame_from_lan(&packet.frame());
    }

    pub(super) fn send_frame_from_lan(&self, frame: &[u8]) {
        self.lan_side.sender.send(frame).expect("sent");
    }

    pub(super) fn send_from_wan(&self, packet: &Packet) {
        // The link refuses packets that are longer than its MTU.
        let sent = self.wan_side.sender.send(&packet.frame());
        assert!(sent.is_ok() || packet.payload.len() + 60 > usize::from(WAN_MTU), "{sent:?}");
    }

    /// Returns the frames that left to the LAN and to the uplink since the last call.
    pub(super) fn received(&mut self) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        self.markers += 1;
        self.renew();
        let there = Packet::marker(self.markers, MARKER);
        self.send_from_lan(&there);
        let port = self.markers.to_be_bytes();
        let is_there = |frame: &[u8]| frame.get(34..38) == Some(&[port[0], port[1], 0, MARKER as u8][..]);
        let to_wan = self.wan_side.frames_until(is_there, WAN_MAC);
        self.send_from_wan(&there.translated_reply());
        let is_back = |frame: &[u8]| frame.get(34..38) == Some(&[0, MARKER as u8, port[0], port[1]][..]);
        let to_lan = self.lan_side.frames_until(is_back, LAN_MAC);
        (to_lan, to_wan)
    }
}

fn text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}
