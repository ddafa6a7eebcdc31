//! The network of the tests: LAN hosts, the gateway, its uplink, an internet and two VPN exits, each in a namespace.
//!
//! ```text
//!  laptop 192.168.10.10 ─┐                                                   ┌─ exit-a 198.51.100.7
//!                        lan ── eth1 gateway eth0 ─────── internet ──────────┤
//!  tv     192.168.10.20 ─┘  10.1        203.0.113.2       198.18.0.1, .0.2   └─ exit-b 198.51.100.8
//! ```
//!
//! Everything has IPv6 too. The gateway itself routes nothing. Routing is the task of the daemon, or of
//! [`Topology::forward_plainly`] for tests of the harness and for controls.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::netns::{Namespace, Prefix};
use crate::network_permit::NetworkPermit;
use crate::services::Services;
use crate::tap::{Rules, Tap};
use crate::wait::wait_for;
use crate::wireguard::{Exit, Place};

pub const LAN_V4: Ipv4Addr = Ipv4Addr::new(192, 168, 10, 1);
pub const LAN_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x10, 0, 0, 0, 0, 0, 1);
pub const WAN_V4: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);
pub const WAN_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x113, 0, 0, 0, 0, 2);
/// Gateway's address on the second uplink, if a test has one.
pub const OTHER_WAN_V4: Ipv4Addr = Ipv4Addr::new(203, 0, 114, 2);
pub const OTHER_WAN_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x114, 0, 0, 0, 0, 2);
/// Remote ends of both uplinks.
pub const INTERNET_V4: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
pub const OTHER_INTERNET_V4: Ipv4Addr = Ipv4Addr::new(203, 0, 114, 1);
/// Servers in the internet. The second one is another destination.
pub const SERVER_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
pub const SERVER_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x18, 0, 0, 0, 0, 1);
pub const OTHER_SERVER_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
pub const OTHER_SERVER_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x18, 0, 0, 0, 0, 2);

const EXIT_A: Place = Place {
    label: "exit-a",
    v4: Ipv4Addr::new(198, 51, 100, 7),
    v6: Ipv6Addr::new(0x2001, 0xdb8, 0xa, 0, 0, 0, 0, 7),
    inner_v4: Ipv4Addr::new(10, 66, 1, 1),
    inner_v6: Ipv6Addr::new(0xfd66, 1, 0, 0, 0, 0, 0, 1),
};
const EXIT_B: Place = Place {
    label: "exit-b",
    v4: Ipv4Addr::new(198, 51, 100, 8),
    v6: Ipv6Addr::new(0x2001, 0xdb8, 0xb, 0, 0, 0, 0, 8),
    inner_v4: Ipv4Addr::new(10, 66, 2, 1),
    inner_v6: Ipv6Addr::new(0xfd66, 2, 0, 0, 0, 0, 0, 1),
};

/// Quiet period: long enough for a packet to pass a busy processor, shorter than the retransmission timeout of one
/// second.
const SILENCE: Duration = Duration::from_millis(150);

/// Returns the address of the server in one family.
pub fn server(ipv6: bool) -> IpAddr {
    if ipv6 { SERVER_V6.into() } else { SERVER_V4.into() }
}

pub fn other_server(ipv6: bool) -> IpAddr {
    if ipv6 { OTHER_SERVER_V6.into() } else { OTHER_SERVER_V4.into() }
}

/// Returns the gateway's own address on the uplink, which the internet sees as the source of direct traffic.
pub fn wan(ipv6: bool) -> IpAddr {
    if ipv6 { WAN_V6.into() } else { WAN_V4.into() }
}

/// Returns the gateway's own address on the second uplink.
pub fn other_wan(ipv6: bool) -> IpAddr {
    if ipv6 { OTHER_WAN_V6.into() } else { OTHER_WAN_V4.into() }
}

/// A host of the LAN.
#[derive(Debug)]
pub struct Host {
    pub namespace: Namespace,
    pub name: &'static str,
    pub mac: &'static str,
    pub v4: Ipv4Addr,
    pub v6: Ipv6Addr,
}

/// The whole network. Dropping it removes it.
#[derive(Debug)]
pub struct Topology {
    pub prefix: Prefix,
    // Field order is drop order: processes and servers before their namespaces.
    pub tap: Tap,
    pub services: Services,
    pub exit_a: Exit,
    pub exit_b: Exit,
    pub laptop: Host,
    pub tv: Host,
    pub gateway: Namespace,
    pub lan: Namespace,
    pub internet: Namespace,
    _permit: NetworkPermit,
}

impl Topology {
    /// Builds the network when there is a permit for it.
    pub fn build() -> Result<Self> {
        let permit = NetworkPermit::take()?;
        let prefix = Prefix::unique()?;
        let lan = Namespace::create(&prefix, "lan")?;
        let gateway = Namespace::create(&prefix, "gateway")?;
        let internet = Namespace::create(&prefix, "internet")?;
        build_gateway(&lan, &gateway, &internet).context("build the gateway's links")?;
        let tap = Tap::open(&internet, "up0", Rules::of_the_topology([EXIT_A, EXIT_B]))?;
        let laptop = build_host(&prefix, &lan, "laptop", "02:00:00:10:00:10", 10)?;
        let tv = build_host(&prefix, &lan, "tv", "02:00:00:10:00:20", 20)?;
        let servers = [server(false), server(true), other_server(false), other_server(true)];
        let services = Services::start(&internet, &servers)?;
        let exit_a = build_exit(&prefix, &internet, EXIT_A, Ipv4Addr::new(198, 51, 100, 6))?;
        let exit_b = build_exit(&prefix, &internet, EXIT_B, Ipv4Addr::new(198, 51, 100, 9))?;
        Ok(Self {
            prefix,
            tap,
            services,
            exit_a,
            exit_b,
            laptop,
            tv,
            gateway,
            lan,
            internet,
            _permit: permit,
        })
    }

    /// Makes the gateway an ordinary router with masquerade, as without the daemon: everything leaks.
    pub fn forward_plainly(&self) -> Result<()> {
        self.gateway.forward()?;
        self.gateway.nft(
            "table inet plain {\n chain out {\n type nat hook postrouting priority srcnat\n \
             oifname \"eth0\" masquerade\n }\n}\n",
        )
    }

    /// Adds a second uplink, eth2, to the gateway. Its main table uses it only if the first is gone. Returns the tap at
    /// its remote end.
    pub fn add_uplink(&self) -> Result<Tap> {
        self.gateway.ip(&format!(
            "link add eth2 type veth peer name up1 netns {}\nlink set eth2 address 02:00:00:11:40:02\n\
             address add {OTHER_WAN_V4}/24 dev eth2\naddress add {OTHER_WAN_V6}/64 dev eth2 nodad\nlink set eth2 up",
            self.internet.name()
        ))?;
        self.internet.ip("link set up1 address 02:00:00:11:40:01\naddress add 203.0.114.1/24 dev up1\n\
             address add 2001:db8:114::1/64 dev up1 nodad\nlink set up1 up")?;
        self.gateway.ip(
            "route add default via 203.0.114.1 metric 200\nroute add default via 2001:db8:114::1 metric 2000",
        )?;
        let own = [OTHER_WAN_V4.into(), OTHER_WAN_V6.into()];
        Tap::open(&self.internet, "up1", Rules::of_an_uplink(own, [EXIT_A, EXIT_B]))
    }

    /// Adds a host to the LAN.
    pub fn add_host(&self, name: &'static str, mac: &'static str, number: u8) -> Result<Host> {
        build_host(&self.prefix, &self.lan, name, mac, number)
    }

    /// Adds another interface, eth3, to the gateway, with a host behind it in separate networks.
    pub fn add_segment(&self) -> Result<Host> {
        let namespace = Namespace::create(&self.prefix, "guest")?;
        let mac = "02:00:00:20:00:10";
        self.gateway.ip(&format!(
            "link add eth3 type veth peer name eth0 netns {}\naddress add 192.168.20.1/24 dev eth3\n\
             address add fd00:20::1/64 dev eth3 nodad\nlink set eth3 up",
            namespace.name()
        ))?;
        let (v4, v6) = (Ipv4Addr::new(192, 168, 20, 10), Ipv6Addr::new(0xfd00, 0x20, 0, 0, 0, 0, 0, 0x10));
        namespace.ip(&format!(
            "link set eth0 address {mac}\naddress add {v4}/24 dev eth0\naddress add {v6}/64 dev eth0 nodad\n\
             link set eth0 up\nroute add default via 192.168.20.1\nroute add default via fd00:20::1"
        ))?;
        Ok(Host { namespace, name: "guest", mac, v4, v6 })
    }

    /// Returns when the gateway receives nothing more from its LAN, so that earlier packets have been processed.
    pub fn settle(&self) -> Result<()> {
        let mut last = (received(&self.gateway, "eth1")?, Instant::now());
        wait_for(Duration::from_secs(10), "the LAN to fall silent", || {
            let now = received(&self.gateway, "eth1").unwrap_or(u64::MAX);
            if now != last.0 {
                last = (now, Instant::now());
            }
            last.1.elapsed() > SILENCE
        })
    }
}

/// Returns the number of packets that an interface has received.
fn received(namespace: &Namespace, interface: &str) -> Result<u64> {
    let table = namespace.within(|| std::fs::read_to_string("/proc/thread-self/net/dev"));
    let table = table.context("interface counters")?;
    let row = table.lines().find_map(|line| line.trim().strip_prefix(interface)?.strip_prefix(':'));
    let packets = row.and_then(|row| row.split_whitespace().nth(1)).context("no such interface")?;
    packets.parse().context("packets")
}

fn build_gateway(lan: &Namespace, gateway: &Namespace, internet: &Namespace) -> Result<()> {
    let (gateway_name, internet_name) = (gateway.name(), internet.name());
    lan.ip(&format!(
        "link add br0 type bridge mcast_snooping 0\nlink set br0 up\n\
         link add to-gateway type veth peer name eth1 netns {gateway_name}\n\
         link set to-gateway master br0 up"
    ))?;
    gateway.ip(&format!(
        "link add eth0 type veth peer name up0 netns {internet_name}\n\
         link set eth1 address 02:00:00:10:00:01\naddress add {LAN_V4}/24 dev eth1\n\
         address add {LAN_V6}/64 dev eth1 nodad\nlink set eth1 up\n\
         link set eth0 address 02:00:00:11:30:02\naddress add {WAN_V4}/24 dev eth0\n\
         address add {WAN_V6}/64 dev eth0 nodad\nlink set eth0 up"
    ))?;
    internet.forward()?;
    internet.ip(&format!(
        "link set up0 address 02:00:00:11:30:01\naddress add 203.0.113.1/24 dev up0\n\
         address add 2001:db8:113::1/64 dev up0 nodad\nlink set up0 up\n\
         address add {SERVER_V4}/32 dev lo\naddress add {OTHER_SERVER_V4}/32 dev lo\n\
         address add {SERVER_V6}/128 dev lo nodad\naddress add {OTHER_SERVER_V6}/128 dev lo nodad"
    ))?;
    gateway.ip("route add default via 203.0.113.1\nroute add default via 2001:db8:113::1")
}

fn build_host(
    prefix: &Prefix,
    lan: &Namespace,
    name: &'static str,
    mac: &'static str,
    number: u8,
) -> Result<Host> {
    let namespace = Namespace::create(prefix, name)?;
    let v4 = Ipv4Addr::new(192, 168, 10, number);
    // Decimal notation: fd00:10::10 for host 10.
    let digits = u16::from_str_radix(&number.to_string(), 16).context("host number")?;
    let v6 = Ipv6Addr::new(0xfd00, 0x10, 0, 0, 0, 0, 0, digits);
    lan.ip(&format!(
        "link add to-{name} type veth peer name eth0 netns {}\nlink set to-{name} master br0 up",
        namespace.name()
    ))?;
    namespace.ip(&format!(
        "link set eth0 address {mac}\naddress add {v4}/24 dev eth0\naddress add {v6}/64 dev eth0 nodad\n\
         link set eth0 up\nroute add default via {LAN_V4}\nroute add default via {LAN_V6}"
    ))?;
    Ok(Host { namespace, name, mac, v4, v6 })
}

fn build_exit(prefix: &Prefix, internet: &Namespace, place: Place, next: Ipv4Addr) -> Result<Exit> {
    let namespace = Namespace::create(prefix, place.label)?;
    let label = place.label;
    let router = Ipv6Addr::from(u128::from(place.v6) & !0xffff | 1);
    internet.ip(&format!(
        "link add to-{label} type veth peer name eth0 netns {}\naddress add {next}/31 dev to-{label}\n\
         address add {router}/64 dev to-{label} nodad\nlink set to-{label} up",
        namespace.name()
    ))?;
    namespace.ip(&format!(
        "address add {}/31 dev eth0\naddress add {}/64 dev eth0 nodad\nlink set eth0 up\n\
         route add default via {next}\nroute add default via {router}",
        place.v4, place.v6
    ))?;
    Exit::new(namespace, prefix, place).with_context(|| format!("start {label}"))
}
