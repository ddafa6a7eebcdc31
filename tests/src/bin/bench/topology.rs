//! The network of the forwarding benches, as many times as there are ways to forward: a LAN host, the gateway, the
//! internet behind its uplink, each in a namespace.
//!
//! ```text
//!  10.77.0.2 eth0 ── eth1 gateway eth0 ── up0 203.0.113.1, 198.18.0.1
//! ```

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use gateway_ctl::clock::SystemClock;
use gateway_ctl::store::{AuditTicket, Store};
use gateway_model::registry::kind;
use gateway_tests::daemon::Daemon;
use gateway_tests::netns::{Namespace, Prefix};
use serde_json::Value;

use crate::frame::{Mac, Udp};
use crate::generator::{Generator, Rate, Sink};
use crate::policies::{GATEWAY_MAC, create_policies, subnet_policy};

pub const HOST: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
pub const WAN: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);
pub const SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// The first of the servers that the load is for.
const SERVERS: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 0);
const HOST_MAC: Mac = [2, 0, 0, 0x77, 0, 2];
const MARK: u32 = 0x11;
const TABLE: u32 = 100;

/// Forwarding mode of the gateway of a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The daemon with so many policies, the last of which is the host's.
    Ours { policies: usize },
    /// The kernel's forwarding alone.
    Plain,
    /// And masquerade.
    Masquerade,
    /// So many rules that mark by source, one after the other; one ip rule by mark; masquerade.
    NftLinear { rules: usize, form: RuleForm },
    /// So many ip rules by source; masquerade.
    IpRules { rules: usize },
}

/// Form of a linear list of nft rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleForm {
    /// What says the same as our policies: a network as the source, a counter, in a table for both families.
    Network,
    /// The cheapest there is: a single address, no counter, in a table for IPv4 alone.
    Address,
}

/// A road with its gateway at work.
#[derive(Debug)]
pub struct Road {
    pub way: Way,
    // The daemon goes first, then the namespaces.
    pub daemon: Option<Daemon>,
    /// Id of the host's policy.
    pub policy: Option<String>,
    pub lan: Namespace,
    pub gateway: Namespace,
    pub wan: Namespace,
    generator: Generator,
}

impl Road {
    pub fn build(way: Way) -> Result<Self> {
        let prefix = Prefix::unique()?;
        let lan = Namespace::create(&prefix, "lan")?;
        let gateway = Namespace::create(&prefix, "gateway")?;
        let wan = Namespace::create(&prefix, "wan")?;
        connect(&lan, &gateway, &wan).context("build a road")?;
        let generator = Generator::new(&Udp {
            to: GATEWAY_MAC,
            from: HOST_MAC,
            source: HOST.into(),
            destination: SERVERS.into(),
            source_port: 40_960,
            destination_port: 443,
        })?;
        let mut road = Self { way, daemon: None, policy: None, lan, gateway, wan, generator };
        road.equip(&prefix).with_context(|| format!("{way:?}"))?;
        Ok(road)
    }

    fn equip(&mut self, prefix: &Prefix) -> Result<()> {
        match self.way {
            Way::Ours { policies } => return self.start_daemon(prefix, policies),
            Way::Plain => {}
            Way::Masquerade => masquerade(&self.gateway)?,
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

    /// The policies are stored before the daemon starts: a request for each would take longer than all the rest.
    fn start_daemon(&mut self, prefix: &Prefix, policies: usize) -> Result<()> {
        let mut daemon = Daemon::prepare_in(&self.gateway, prefix)?;
        let path = daemon.state_directory().join("store.redb");
        let store = Store::open(&path, SystemClock::shared()).context("make a store")?;
        let ticket = AuditTicket::system("create_routing_policies", "routing_policy");
        let id = store
            .commit(ticket, |draft| -> Result<String> {
                create_policies(draft, policies.saturating_sub(1), 0, "eth0")?;
                let host = subnet_policy("host", 900_000, "10.77.0.0/24", "eth0");
                let made = kind("routing_policy").context("policies")?.create(draft, host)?;
                draft.freeze_applied();
                Ok(made.id.to_string())
            })
            .context("store the policies")?;
        drop(store);
        let started = Instant::now();
        daemon.start()?;
        println!(
            "  the daemon is up with {policies} policies after {:.1} s",
            started.elapsed().as_secs_f64()
        );
        self.daemon = Some(daemon);
        self.policy = Some(id);
        Ok(())
    }

    /// Packets per second that arrive at the far end.
    pub fn measure(&self, time: Duration) -> Result<Rate> {
        let sink = Sink::attach(&self.wan, "up0", WAN)?;
        let lan = self.gateway.within(|| nix::net::if_::if_nametoindex("eth1")).context("eth1")?;
        self.generator.run(&self.gateway, lan, &sink, time)
    }

    /// Packets per second that arrive with the gateway's address on them, as they are to; others did not go the way
    /// that is measured.
    pub fn measure_masked(&self, time: Duration) -> Result<f64> {
        let before = self.hits()?;
        let rate = self.measure(time)?;
        // The gateway itself says something now and then.
        ensure!(rate.masqueraded > 0.99 * rate.arrived, "{:?} lets packets out unmasked: {rate:?}", self.way);
        ensure!(rate.masqueraded > 0.98 * rate.sent, "{:?} loses packets: {rate:?}", self.way);
        if let (Some(before), Some(after)) = (before, self.hits()?) {
            ensure!(after > before, "the host's policy counted nothing");
        }
        Ok(rate.masqueraded)
    }

    /// Packets that the host's policy has counted, where there is one and a daemon to tell.
    fn hits(&self) -> Result<Option<u64>> {
        let (Some(daemon), Some(policy)) = (&self.daemon, &self.policy) else { return Ok(None) };
        let shown = daemon.api().get(&format!("/routing/policies/{policy}"))?;
        Ok(Some(shown.pointer("/hits/packets").and_then(Value::as_u64).context("no hits in the policy")?))
    }
}

/// The links and addresses of a road.
pub fn connect(lan: &Namespace, gateway: &Namespace, wan: &Namespace) -> Result<()> {
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
    // Fixed: the sink answers no questions for addresses.
    gateway.ip("neighbour replace 203.0.113.1 lladdr 02:00:00:11:30:01 dev eth0 nud permanent\n\
         neighbour replace 10.77.0.2 lladdr 02:00:00:77:00:02 dev eth1 nud permanent\n\
         route add default via 203.0.113.1")
}

pub fn masquerade(gateway: &Namespace) -> Result<()> {
    gateway.nft(
        "table ip peer {\nchain out {\ntype nat hook postrouting priority srcnat\noifname \"eth0\" masquerade\n}\n}\n",
    )
}

/// A table of so many rules that mark by source; the last one matches the host.
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

/// A host that sends nothing.
fn source(number: usize) -> Ipv4Addr {
    Ipv4Addr::from(
        u32::from(Ipv4Addr::new(10, 78, 0, 0)) + u32::try_from(number).unwrap_or(u32::MAX) % 65_536,
    )
}
