//! `tcp_bulk`, `fastpath_tcp`: one TCP stream from the LAN to the internet, `fastpath_tcp_down` one in the other
//! direction. Both ends and the gateway run on one core, so throughput is throughput per core.

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

/// Direction of the stream.
#[derive(Clone, Copy, Debug)]
enum Direction {
    Up,
    Down,
}

pub(crate) fn run(rows: &[&str]) -> Result<Vec<Row>> {
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
    let directions = [
        (Direction::Up, &[("tcp_bulk", 0, 0.9), ("fastpath_tcp", 3, 1.0)][..]),
        (Direction::Down, &[("fastpath_tcp_down", 3, 1.0)][..]),
    ];
    let mut measured_rows = Vec::new();
    for (direction, benches) in directions {
        if !benches.iter().any(|(bench, ..)| rows.contains(bench)) {
            continue;
        }
        let measured = alternate(&mut roads, ROUNDS, |road| throughput(&road.lan, direction))?;
        println!("Gbit/s on one core, {direction:?}: median (rounds)");
        for (road, measured) in roads.iter().zip(&measured) {
            println!("  {measured}  {:?}", road.way);
        }
        measured_rows.extend(benches.iter().map(|&(bench, ours, least)| Row {
            bench,
            ours: measured[ours].median,
            peer: measured[1].median,
            peer_name: "forwarding with conntrack and masquerade".to_owned(),
            unit: "Gbit/s on one core",
            target: Target::RatioAtLeast(least),
        }));
    }
    Ok(measured_rows)
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

fn throughput(lan: &Namespace, direction: Direction) -> Result<f64> {
    let server = SERVER.to_string();
    let mut arguments = vec!["--client", server.as_str(), "--time", SECONDS, "--omit", "1", "--json"];
    if matches!(direction, Direction::Down) {
        arguments.push("--reverse");
    }
    let output = iperf(lan, &arguments).stdin(Stdio::null()).output().context("start iperf3")?;
    let report: Value = serde_json::from_slice(&output.stdout).context("what iperf3 says")?;
    ensure!(report["error"].is_null() && output.status.success(), "iperf3: {}", report["error"]);
    let bits = report.pointer("/end/sum_received/bits_per_second").and_then(Value::as_f64);
    Ok(bits.context("no throughput in what iperf3 says")? / 1e9)
}
