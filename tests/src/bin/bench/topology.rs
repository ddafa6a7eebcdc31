//! The network of the forwarding benches, one instance for each forwarding mode: a LAN host, the gateway, and the
//! internet behind its uplink, each in a namespace.
//!
//! ```text
//!  10.77.0.2 eth0 ── eth1 gateway eth0 ── up0 203.0.113.1, 198.18.0.1
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use gateway_ctl::clock::SystemClock;
use gateway_ctl::store::{AuditTicket, Store};
use gateway_model::State;
use gateway_model::registry::kind;
use gateway_tests::daemon::Daemon;
use gateway_tests::netns::{Namespace, Prefix};
use gateway_tests::wait::wait_for;
use serde_json::{Value, json};

use crate::flows::{Flows, hosts};
use crate::frame::{Mac, Udp};
use crate::generator::{Extent, Generator, Rate};
use crate::policies::{GATEWAY_MAC, create_policies, subnet_policy};
use crate::sink::{Counts, Echo, Sink};

pub(crate) const HOST: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
pub(crate) const WAN: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);
pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// First of the servers that are destinations of the load.
const SERVERS: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 0);
const HOST6: Ipv6Addr = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2);
const WAN6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x113, 0, 0, 0, 0, 2);
const SERVERS6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x18, 1, 0, 0, 0, 0);
/// Time in which each flow gets replies. Conntrack takes a UDP flow for a stream after two seconds.
const ESTABLISHMENT: Duration = Duration::from_secs(3);
const HOST_MAC: Mac = [2, 0, 0, 0x77, 0, 2];
const MARK: u32 = 0x11;
const SOON: Duration = Duration::from_secs(20);
const TABLE: u32 = 100;

/// Forwarding mode of the gateway in a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The daemon with this number of policies, the last of which is the host's.
    Ours { policies: usize },
    /// The same with the fast path.
    FastPath { policies: usize },
    /// The same with XDP. The load enters before the driver of the gateway, and both ends have GRO.
    Xdp { policies: usize },
    /// Kernel forwarding only.
    Plain,
    /// Kernel forwarding with masquerade.
    Masquerade,
    /// The same with the load and the ends of [`Way::Xdp`].
    MasqueradeFromLink,
    /// Sequence of rules that mark by source; one ip rule by mark; masquerade.
    NftLinear { rules: usize, form: RuleForm },
    /// Sequence of ip rules by source; masquerade.
    IpRules { rules: usize },
}

impl Way {
    /// The load enters at the other end of the LAN link, so the gateway receives frames as from a driver.
    pub(crate) fn enters_by_link(self) -> bool {
        matches!(self, Way::Xdp { .. } | Way::MasqueradeFromLink)
    }
}

/// Form of the rules of a linear nft list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleForm {
    /// Equivalent of the gateway's policies: a source network, a counter, in a table for both families.
    Network,
    /// Cheapest form: a single address, no counter, in a table for IPv4 only.
    Address,
}

/// A topology with a running gateway.
#[derive(Debug)]
pub(crate) struct Road {
    pub way: Way,
    // Field order is drop order: the daemon first, then the namespaces.
    pub daemon: Option<Daemon>,
    /// Id of the host's policy.
    pub policy: Option<String>,
    pub lan: Namespace,
    pub gateway: Namespace,
    pub wan: Namespace,
    flows: Flows,
    generator: Generator,
}

impl Road {
    pub(crate) fn build(way: Way) -> Result<Self> {
        Self::build_for(way, Flows::Few)
    }

    /// Builds a topology with a load of so many flows.
    pub(crate) fn build_for(way: Way, flows: Flows) -> Result<Self> {
        let prefix = Prefix::unique()?;
        let lan = Namespace::create(&prefix, "lan")?;
        let gateway = Namespace::create(&prefix, "gateway")?;
        let wan = Namespace::create(&prefix, "wan")?;
        connect(&lan, &gateway, &wan).context("build a road")?;
        if flows.is_ipv6() {
            connect_ipv6(&gateway, &wan).context("addresses of IPv6")?;
        }
        if flows.has_hosts() {
            add_hosts(&gateway).context("hosts of the load")?;
        }
        let generator = generator(way, flows, &lan)?;
        let mut road = Self { way, daemon: None, policy: None, lan, gateway, wan, flows, generator };
        road.equip(&prefix).with_context(|| format!("{way:?}"))?;
        Ok(road)
    }

    /// Replaces the load by another one of the same hosts.
    pub(crate) fn set_flows(&mut self, flows: Flows) -> Result<()> {
        self.generator = generator(self.way, flows, &self.lan)?;
        self.flows = flows;
        Ok(())
    }

    /// Sends packets of each flow and a reply to each of them, so all flows are established.
    pub(crate) fn establish(&self) -> Result<()> {
        let _echo = Echo::attach(&self.wan, "up0")?;
        let replies = Sink::attach(&self.lan, "eth0", HOST.into())?;
        let interface = self.entrance()?;
        let extent = Extent::Time(ESTABLISHMENT);
        self.generator.run(self.entrance_namespace(), interface, &replies, extent)?;
        let Counts { arrived, .. } = replies.counts()?;
        ensure!(arrived > u64::from(self.flows.warm_up()), "the hosts got {arrived} replies");
        Ok(())
    }

    fn equip(&mut self, prefix: &Prefix) -> Result<()> {
        if self.way.enters_by_link() {
            // A veth accepts frames that XDP redirects if its peer has GRO.
            for (namespace, link) in [(&self.gateway, "eth1"), (&self.wan, "up0"), (&self.lan, "eth0")] {
                namespace.run("ethtool", &["-K", link, "gro", "on"])?;
            }
        }
        match self.way {
            Way::Ours { policies } | Way::FastPath { policies } | Way::Xdp { policies } => {
                return self.start_daemon(prefix, policies);
            }
            Way::Plain => {}
            Way::Masquerade | Way::MasqueradeFromLink if self.flows.is_ipv6() => {
                masquerade_ipv6(&self.gateway)?;
            }
            Way::Masquerade | Way::MasqueradeFromLink => masquerade(&self.gateway)?,
            Way::NftLinear { rules, form } => {
                masquerade(&self.gateway)?;
                self.gateway.nft(&linear(rules, form))?;
                self.gateway.ip(&format!(
                    "route add default via 203.0.113.1 dev eth0 table {TABLE}\n\
                     rule add fwmark {MARK} lookup {TABLE} priority 1000"
                ))?;
            }
            Way::IpRules { rules } => {
                masquerade(&self.gateway)?;
                let lines: String = (1..rules)
                    .map(|n| {
                        format!("rule add from {} lookup {} priority {}\n", source(n), TABLE + 1, 1000 + n)
                    })
                    .collect();
                self.gateway.ip(&format!(
                    "route add default via 203.0.113.1 dev eth0 table {TABLE}\n{lines}\
                     rule add from {HOST} lookup {TABLE} priority {}",
                    1000 + rules
                ))?;
            }
        }
        self.gateway.forward()
    }

    /// Starts the daemon with policies. They are stored before the start, as one request for each would dominate the
    /// run time.
    fn start_daemon(&mut self, prefix: &Prefix, policies: usize) -> Result<()> {
        let mut daemon = Daemon::prepare_in(&self.gateway, prefix)?;
        let path = daemon.state_directory().join("store.redb");
        let store = Store::open(&path, SystemClock::shared()).context("make a store")?;
        let ticket = AuditTicket::system("create_routing_policies", "routing_policy");
        let id = store
            .commit(ticket, |draft| -> Result<String> {
                create_policies(draft, policies.saturating_sub(1), 0, "eth0")?;
                if self.flows.has_hosts() {
                    create_devices(draft)?;
                }
                let host = subnet_policy("host", 900_000, "10.77.0.0/24,fd77::/64", "eth0");
                let made = kind("routing_policy").context("policies")?.create(draft, host)?;
                draft.freeze_applied();
                Ok(made.id.to_string())
            })
            .context("store the policies")?;
        drop(store);
        let is_fast = matches!(self.way, Way::FastPath { .. } | Way::Xdp { .. });
        let xdp = if matches!(self.way, Way::Xdp { .. }) { "native" } else { "off" };
        let fast_path = if is_fast { "on" } else { "off" };
        daemon.configure(&json!({ "dataplane": { "fast_path": fast_path, "xdp": xdp } }))?;
        let started = Instant::now();
        daemon.start()?;
        if is_fast {
            wait_for(SOON, "the fast path", || {
                daemon.api().get("/status").is_ok_and(|status| {
                    let sends = |one: &Value| one["interface"] == "eth0" && one["sends"] == true;
                    let xdp_is_on =
                        status["fast_path"]["xdp"].as_array().is_some_and(|all| all.iter().any(sends));
                    status["fast_path"]["on"] == true && (xdp == "off" || xdp_is_on)
                })
            })?;
        }
        println!(
            "  the daemon is up with {policies} policies after {:.1} s",
            started.elapsed().as_secs_f64()
        );
        self.daemon = Some(daemon);
        self.policy = Some(id);
        Ok(())
    }

    /// Returns the packets per second that arrive at the remote end.
    pub(crate) fn measure(&self, time: Duration) -> Result<Rate> {
        self.measure_for(Extent::Time(time))
    }

    fn measure_for(&self, extent: Extent) -> Result<Rate> {
        let interface = self.entrance()?;
        self.generator.run(self.entrance_namespace(), interface, &self.sink()?, extent)
    }

    /// Returns the number of packets that were due at a rate, and what arrived at the remote end of them.
    pub(crate) fn measure_at(&self, packets_per_second: u32, time: Duration) -> Result<(u64, Counts)> {
        let interface = self.entrance()?;
        let rate = (packets_per_second, time);
        self.generator.run_at(self.entrance_namespace(), interface, &self.sink()?, rate)
    }

    fn sink(&self) -> Result<Sink> {
        let masqueraded: IpAddr = if self.flows.is_ipv6() { WAN6.into() } else { WAN.into() };
        Sink::attach(&self.wan, "up0", masqueraded)
    }

    fn entrance_namespace(&self) -> &Namespace {
        if self.way.enters_by_link() { &self.lan } else { &self.gateway }
    }

    /// Index of the interface that the generator uses.
    fn entrance(&self) -> Result<u32> {
        let name = if self.way.enters_by_link() { "eth0" } else { "eth1" };
        self.entrance_namespace().within(|| nix::net::if_::if_nametoindex(name)).context(name)
    }

    /// Returns the packets per second that arrive with the gateway's address as source, as they should. Fails if others
    /// did not take the measured path.
    pub(crate) fn measure_masked(&self, time: Duration) -> Result<f64> {
        self.measure_masked_for(Extent::Time(time))
    }

    pub(crate) fn measure_masked_for(&self, extent: Extent) -> Result<f64> {
        let before = self.hits()?;
        let rate = self.measure_for(extent)?;
        // The gateway itself sends a packet occasionally.
        ensure!(rate.masqueraded > 0.99 * rate.arrived, "{:?} lets packets out unmasked: {rate:?}", self.way);
        ensure!(rate.masqueraded > 0.98 * rate.sent, "{:?} loses packets: {rate:?}", self.way);
        if let (Some(before), Some(after)) = (before, self.hits()?) {
            ensure!(after > before, "the host's policy counted nothing");
        }
        Ok(rate.masqueraded)
    }

    /// Returns the packet count of the host's policy, if there is a policy and a daemon.
    fn hits(&self) -> Result<Option<u64>> {
        let (Some(daemon), Some(policy)) = (&self.daemon, &self.policy) else { return Ok(None) };
        let shown = daemon.api().get(&format!("/routing/policies/{policy}"))?;
        Ok(Some(shown.pointer("/hits/packets").and_then(Value::as_u64).context("no hits in the policy")?))
    }
}

fn generator(way: Way, flows: Flows, lan: &Namespace) -> Result<Generator> {
    let link = match way.enters_by_link() {
        true => Some(lan.within(|| nix::net::if_::if_nametoindex("eth0")).context("eth0")?),
        false => None,
    };
    let (source, destination): (IpAddr, IpAddr) =
        if flows.is_ipv6() { (HOST6.into(), SERVERS6.into()) } else { (HOST.into(), SERVERS.into()) };
    let headers = Udp {
        to: GATEWAY_MAC,
        from: HOST_MAC,
        source,
        destination,
        source_port: 40_960,
        destination_port: 443,
    };
    Generator::new(&headers, flows, link)
}

fn connect_ipv6(gateway: &Namespace, wan: &Namespace) -> Result<()> {
    gateway.ip(&format!(
        "address add fd77::1/64 dev eth1 nodad\naddress add {WAN6}/64 dev eth0 nodad\n\
         neighbour replace 2001:db8:113::1 lladdr 02:00:00:11:30:01 dev eth0 nud permanent\n\
         neighbour replace {HOST6} lladdr 02:00:00:77:00:02 dev eth1 nud permanent\n\
         route add default via 2001:db8:113::1"
    ))?;
    wan.ip("address add 2001:db8:113::1/64 dev up0 nodad")
}

/// Creates static neighbours for the hosts of a load, which exist only as frames.
fn add_hosts(gateway: &Namespace) -> Result<()> {
    let lines: String = hosts()
        .map(|(host, mac)| {
            let mac = mac.map(|byte| format!("{byte:02x}")).join(":");
            format!("neighbour replace 10.77.0.{host} lladdr {mac} dev eth1 nud permanent\n")
        })
        .collect();
    gateway.ip(&lines)
}

/// Creates a device for each host of a load, as each has a budget of new flows of its own.
fn create_devices(state: &mut State) -> Result<()> {
    let devices = kind("device").context("the kind of devices")?;
    for (host, mac) in hosts() {
        let mac = mac.map(|byte| format!("{byte:02x}")).join(":");
        let device = json!({"name": format!("host{host}"), "mac": mac});
        devices.create(state, device).with_context(|| format!("host {host}"))?;
    }
    Ok(())
}

/// Creates the links and addresses of a topology.
pub(crate) fn connect(lan: &Namespace, gateway: &Namespace, wan: &Namespace) -> Result<()> {
    gateway.ip(&format!(
        "link add eth1 type veth peer name eth0 netns {}\nlink add eth0 type veth peer name up0 netns {}\n\
         link set eth1 address 02:00:00:10:00:01\naddress add 10.77.0.1/24 dev eth1\nlink set eth1 up\n\
         address add {WAN}/24 dev eth0\nlink set eth0 up",
        lan.name(),
        wan.name()
    ))?;
    lan.ip(&format!(
        "link set eth0 address 02:00:00:77:00:02\naddress add {HOST}/24 dev eth0\nlink set eth0 up\n\
         route add default via 10.77.0.1"
    ))?;
    wan.ip(&format!(
        "link set up0 address 02:00:00:11:30:01\naddress add 203.0.113.1/24 dev up0\nlink set up0 up\n\
         address add {SERVER}/32 dev lo"
    ))?;
    // Static entry: the sink does not answer neighbour requests.
    gateway.ip("neighbour replace 203.0.113.1 lladdr 02:00:00:11:30:01 dev eth0 nud permanent\n\
         neighbour replace 10.77.0.2 lladdr 02:00:00:77:00:02 dev eth1 nud permanent\n\
         route add default via 203.0.113.1")
}

pub(crate) fn masquerade(gateway: &Namespace) -> Result<()> {
    gateway.nft(
        "table ip peer {\nchain out {\ntype nat hook postrouting priority srcnat\noifname \"eth0\" masquerade\n}\n}\n",
    )
}

fn masquerade_ipv6(gateway: &Namespace) -> Result<()> {
    gateway.nft(
        "table ip6 peer {\nchain out {\ntype nat hook postrouting priority srcnat\noifname \"eth0\" masquerade\n}\n}\n",
    )
}

/// Returns a table of rules that mark by source. The last rule matches the host.
fn linear(rules: usize, form: RuleForm) -> String {
    let rule = |number: Option<usize>| match (form, number) {
        (RuleForm::Network, Some(number)) => {
            let [.., high, low] = number.to_be_bytes();
            format!("ip saddr 64.{high}.{low}.0/24 counter meta mark set {}\n", MARK + 1)
        }
        (RuleForm::Network, None) => format!("ip saddr 10.77.0.0/24 counter meta mark set {MARK}\n"),
        (RuleForm::Address, Some(number)) => {
            format!("ip saddr {} meta mark set {}\n", source(number), MARK + 1)
        }
        (RuleForm::Address, None) => format!("ip saddr {HOST} meta mark set {MARK}\n"),
    };
    let family = if form == RuleForm::Network { "inet" } else { "ip" };
    let rules: String = (1..rules).map(Some).chain([None]).map(rule).collect();
    format!(
        "table {family} linear {{\nchain marks {{\ntype filter hook prerouting priority mangle\n{rules}}}\n}}\n"
    )
}

/// Returns the address of a host that sends nothing.
fn source(number: usize) -> Ipv4Addr {
    Ipv4Addr::from(
        u32::from(Ipv4Addr::new(10, 78, 0, 0)) + u32::try_from(number).unwrap_or(u32::MAX) % 65_536,
    )
}
