//! `forward_vs_*`: small packets per second of one core, from the LAN interface to the remote end of the uplink.
//!
//! All variants masquerade. The peers evaluate their lists to the end: the host's rule is the last one, as is its
//! policy in the gateway. The rules of the nft list match the semantics of the policies, as a policy router for both
//! families writes them: a source network, a counter, a mark. The bench also prints the cost of the cheapest equivalent
//! form in nft (one address each, no counters, IPv4 only).

use std::time::Duration;

use anyhow::{Context, Result};
use gateway_common::abi::ABI_VERSION;

use crate::row::{Row, Target, alternate};
use crate::topology::{Road, RuleForm, Way, masquerade};

const ROUNDS: usize = 5;
const TIME: Duration = Duration::from_millis(800);
const POLICIES: usize = 10_000;
const RULES: usize = 1_000;
const MILLION: f64 = 1e6;

pub(crate) fn run() -> Result<Vec<Row>> {
    let peers = [
        ("forward_vs_ct_masq", Way::Masquerade, "forwarding with conntrack and masquerade", 0.65),
        (
            "forward_vs_nft_linear",
            Way::NftLinear { rules: RULES, form: RuleForm::Network },
            "1 000 nft rules that count and mark by source network, conntrack, masquerade",
            5.0,
        ),
        (
            "forward_vs_ip_rule",
            Way::IpRules { rules: RULES },
            "1 000 ip rules by source (the last matches), conntrack, masquerade",
            10.0,
        ),
    ];
    let mut roads = vec![Road::build(Way::Ours { policies: POLICIES })?];
    for (_, way, ..) in peers {
        roads.push(Road::build(way)?);
    }
    roads.push(Road::build(Way::NftLinear { rules: RULES, form: RuleForm::Address })?);
    let measured = alternate(&mut roads, ROUNDS, |road| Ok(road.measure_masked(TIME)? / MILLION))?;
    println!("million packets per second of one core: median (rounds)");
    for (road, measured) in roads.iter().zip(&measured) {
        println!("  {measured}  {:?}", road.way);
    }
    let rows = peers.into_iter().zip(&measured[1..]).map(|((bench, _, name, least), peer)| Row {
        bench,
        ours: measured[0].median,
        peer: peer.median,
        peer_name: name.to_owned(),
        unit: "Mpackets/s on one core",
        target: Target::RatioAtLeast(least),
    });
    Ok(rows.collect())
}

/// Measures the cost of each component of the gateway's packet path. It removes the components one by one, and compares
/// with peers that have the same components.
pub(crate) fn break_down() -> Result<Vec<Row>> {
    let mut ours = Road::build(Way::Ours { policies: POLICIES })?;
    let mut peers = [Road::build(Way::Plain)?, Road::build(Way::Masquerade)?];
    // The rules persist without the daemon, and the daemon would restore removed components.
    ours.daemon.as_mut().context("a daemon")?.kill9()?;
    println!("million packets per second, and nanoseconds per packet:");
    let show = |name: &str, road: &mut Road| -> Result<()> {
        let all = alternate(std::slice::from_mut(road), 3, |road| Ok(road.measure(TIME)?.arrived / MILLION))?;
        println!("  {}  {:>6.0} ns  {name}", all[0], 1000.0 / all[0].median);
        Ok(())
    };
    show("peer: plain", &mut peers[0])?;
    show("peer: conntrack and masquerade", &mut peers[1])?;
    show("ours: programs, rules, nft", &mut ours)?;
    ours.gateway.sysctl("net.ipv4.conf.eth1.accept_local", "0")?;
    show("ours, and the kernel's own look at sources (accept_local off)", &mut ours)?;
    ours.gateway.sysctl("net.ipv4.conf.eth1.accept_local", "1")?;
    ours.gateway
        .ip("rule flush\nrule add lookup main priority 32766\nrule add lookup default priority 32767")?;
    show("ours: programs, nft (rules taken away)", &mut ours)?;
    ours.gateway.nft("delete table inet gateway\n")?;
    masquerade(&ours.gateway)?;
    show("ours: programs, and the peer's masquerade instead of our nft table", &mut ours)?;
    ours.gateway.nft("delete table ip peer\n")?;
    detach(&ours, "gw_guard")?;
    show("ours: the ingress program alone", &mut ours)?;
    detach(&ours, "gw_ingress")?;
    show("ours: nothing left", &mut ours)?;
    show("peer: plain, again", &mut peers[0])?;
    show("peer: conntrack and masquerade, again", &mut peers[1])?;
    // After a namespace had a custom rule, the kernel never uses the routing shortcut there again.
    peers[0].gateway.ip("rule add fwmark 1 lookup main priority 1000")?;
    show("peer: plain with one ip rule", &mut peers[0])?;
    Ok(Vec::new())
}

/// Detaches a program from all interfaces. Only its pins keep it attached.
fn detach(road: &Road, program: &str) -> Result<()> {
    let pins = road.daemon.as_ref().context("a daemon")?.pin_directory();
    let links = pins.join(format!("v{ABI_VERSION}")).join("links");
    for link in std::fs::read_dir(&links).context("the pinned links")? {
        let link = link?;
        if link.file_name().to_string_lossy().starts_with(program) {
            std::fs::remove_file(link.path()).context("remove a pinned link")?;
        }
    }
    Ok(())
}
