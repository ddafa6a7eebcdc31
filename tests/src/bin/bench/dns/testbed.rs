//! The network of a measured resolver: a LAN host that sends the queries, the resolver's host, and the upstream behind
//! it, each in a namespace.
//!
//! ```text
//!  10.77.0.2 eth0 ── eth1 10.77.0.1 gateway eth0 ── up0, upstream 192.0.2.53
//! ```
//!
//! One core runs the resolver and all kernel work for it, from the packet at its LAN interface to the transmission of
//! the answer. The other cores run the load and the kernel work for that. So the utilisation of the core is the cost of
//! the resolver, including the kernel's work. Without this split the kernel would receive each query on the core and in
//! the time of the program that sends it.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::{Context, Result, ensure};
use gateway_tests::cores;
use gateway_tests::dns::{A, Client, Reply, Upstream};
use gateway_tests::netns::{Namespace, Prefix};
use gateway_tests::topology::SERVER_V4;

use crate::topology::connect;

/// Address of the resolver on its LAN.
pub(super) const RESOLVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// TTL of the answers in seconds; longer than any measurement.
const TTL: u32 = 3600;

/// Answer for a blocked name.
pub(super) const NULL: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
/// Answer of the upstream for every name.
pub(super) const ANSWER: IpAddr = IpAddr::V4(SERVER_V4);

#[derive(Debug)]
pub(super) struct Testbed {
    pub prefix: Prefix,
    _upstream: Upstream,
    pub lan: Namespace,
    pub gateway: Namespace,
    _wan: Namespace,
}

/// Core of each process.
#[derive(Clone, Debug)]
pub(super) struct Cores {
    pub resolver: usize,
    pub load: Vec<usize>,
}

impl Cores {
    /// Assigns the last core to the resolver. The first one gets most of the machine's interrupts.
    pub(super) fn split() -> Result<Self> {
        let number = cores::number()?;
        ensure!(number >= 2, "a resolver and its load need a core each, and this machine has one");
        Ok(Self { resolver: number - 1, load: (0..number - 1).collect() })
    }

    /// Returns the cores of the load in the format of taskset(1).
    pub(super) fn of_the_load(&self) -> String {
        let numbers: Vec<_> = self.load.iter().map(usize::to_string).collect();
        numbers.join(",")
    }
}

impl Testbed {
    pub(super) fn build(cores: &Cores) -> Result<Self> {
        let prefix = Prefix::unique()?;
        let lan = Namespace::create(&prefix, "lan")?;
        let gateway = Namespace::create(&prefix, "gateway")?;
        let wan = Namespace::create(&prefix, "wan")?;
        connect(&lan, &gateway, &wan).context("build the links")?;
        for (namespace, interface, cores) in [
            (&lan, "eth0", &cores.load),
            (&gateway, "eth1", &vec![cores.resolver]),
            (&gateway, "eth0", &vec![cores.resolver]),
            (&wan, "up0", &cores.load),
        ] {
            receive_on(namespace, interface, cores)?;
        }
        let upstream = Upstream::start_with_ttl(&wan, TTL)?;
        Ok(Self { prefix, _upstream: upstream, lan, gateway, _wan: wan })
    }

    pub(super) fn client(&self) -> Result<Client> {
        Client::within(&self.lan, RESOLVER.into())
    }

    /// Fails unless each of the names is answered with this address.
    pub(super) fn check<'a>(&self, names: impl IntoIterator<Item = &'a str>, wanted: IpAddr) -> Result<()> {
        let mut client = self.client()?;
        for name in names {
            let reply = client.ask(name, A)?;
            ensure!(
                reply == Reply { rcode: 0, addresses: vec![wanted] },
                "{name} is answered with {reply:?} in place of {wanted}"
            );
        }
        Ok(())
    }
}

/// Lets these cores do the receive processing of an interface, independent of the sending core. Uses `ip netns exec`,
/// as only a /sys of the namespace shows the setting.
fn receive_on(namespace: &Namespace, interface: &str, cores: &[usize]) -> Result<()> {
    let mut words = vec![0u32; cores.iter().max().map_or(1, |core| core / 32 + 1)];
    for core in cores {
        words[core / 32] |= 1 << (core % 32);
    }
    let mask: Vec<String> = words.iter().rev().map(|word| format!("{word:08x}")).collect();
    let file = format!("/sys/class/net/{interface}/queues/rx-0/rps_cpus");
    let write = format!("echo {} > {file}", mask.join(","));
    let mut command = std::process::Command::new("ip");
    command.args(["netns", "exec", namespace.name(), "sh", "-c", &write]);
    let output = command.output().context("start ip")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "receive packets of {interface} on {cores:?}: {}", said.trim());
    Ok(())
}
