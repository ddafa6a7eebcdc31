//! `tcp_bulk`, `fastpath_tcp`: one TCP stream from the LAN to the internet. Both ends and the gateway run on one core, so throughput is
//! throughput per core.

use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use gateway_tests::cores::FIRST;
use gateway_tests::netns::Namespace;
use gateway_tests::process::Process;
use gateway_tests::wait::wait_ok;
use serde_json::Value;

use crate::generator::core;
use crate::row::{Row, Target, alternate};
use crate::topology::{Road, SERVER, Way};

const ROUNDS: usize = 5;
const SECONDS: &str = "2";
const PORT: u16 = 5201;
const SOON: std::time::Duration = std::time::Duration::from_secs(10);

pub fn run() -> Result<Vec<Row>> {
    let mut roads = [
        Road::build(Way::Ours { policies: 10_000 })?,
        Road::build(Way::Masquerade)?,
        Road::build(Way::Plain)?,
        Road::build(Way::FastPath { policies: 10_000 })?,
    ];
    let mut servers = Vec::new();
    for road in &roads {
        road.wan.ip("route add default via 203.0.113.2")?;
        servers.push(serve(&road.wan)?);
    }
    let measured = alternate(&mut roads, ROUNDS, |road| throughput(&road.lan))?;
    println!("Gbit/s on one core: median (rounds)");
    for (road, measured) in roads.iter().zip(&measured) {
        println!("  {measured}  {:?}", road.way);
    }
    drop(servers);
    let row = |bench, ours: usize, least| Row {
        bench,
        ours: measured[ours].median,
        peer: measured[1].median,
        peer_name: "forwarding with conntrack and masquerade".to_owned(),
        unit: "Gbit/s on one core",
        target: Target::RatioAtLeast(least),
    };
    Ok(vec![row("tcp_bulk", 0, 0.9), row("fastpath_tcp", 3, 1.0)])
}

fn iperf(namespace: &Namespace, arguments: &[&str]) -> std::process::Command {
    let mut command = namespace.command("nice");
    command.args(["-n", &FIRST.to_string(), "taskset", "-c", &core().to_string(), "iperf3"]).args(arguments);
    command
}

fn serve(namespace: &Namespace) -> Result<Process> {
    let mut command = iperf(namespace, &["--server"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let server = namespace.spawn(command)?;
    wait_ok(SOON, "the server to listen", || {
        let connect = || std::net::TcpStream::connect((SERVER, PORT));
        namespace.within(connect).map(drop).context("connect")
    })?;
    Ok(server)
}

fn throughput(lan: &Namespace) -> Result<f64> {
    let arguments = ["--client", &SERVER.to_string(), "--time", SECONDS, "--omit", "1", "--json"];
    let output = iperf(lan, &arguments).stdin(Stdio::null()).output().context("start iperf3")?;
    let report: Value = serde_json::from_slice(&output.stdout).context("what iperf3 says")?;
    ensure!(report["error"].is_null() && output.status.success(), "iperf3: {}", report["error"]);
    let bits = report.pointer("/end/sum_received/bits_per_second").and_then(Value::as_f64);
    Ok(bits.context("no throughput in what iperf3 says")? / 1e9)
}
