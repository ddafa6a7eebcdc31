//! `capture_*`: packets that a capture keeps at a high rate beside tcpdump, and the cost of a capture whose filter no packet
//! passes.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use gateway_tests::process::Process;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use crate::flows::Flows;
use crate::row::{Measured, Row, Target, alternate, median};
use crate::topology::{Road, Way};

const ROUNDS: usize = 5;
/// `capture_filter` has two figures that are close to each other. They depend on where a network lies in memory, too.
const FILTER_NETWORKS: usize = 3;
const TIME: Duration = Duration::from_millis(800);
const POLICIES: usize = 10_000;
const NANOSECONDS: f64 = 1e9;
/// Load of `capture_kept`. A capture has 50 000 packets at most.
const PACKETS_PER_SECOND: u32 = 200_000;
const LOAD_TIME: Duration = Duration::from_millis(200);
/// Passes all packets of the load, and none of the gateway's own.
const FILTER: &str = "udp dst port 443";
/// tcpdump reads packets at this interval at the latest; what it has not read at its end is in no file.
const TCPDUMP_INTERVAL: Duration = Duration::from_millis(1500);
const SOON: Duration = Duration::from_secs(10);

/// Program that captures.
#[derive(Clone, Copy, Debug)]
enum Recorder {
    Gateway,
    Tcpdump,
}

pub(crate) fn run(rows: &[&str]) -> Result<Vec<Row>> {
    let mut measured = Vec::new();
    if rows.contains(&"capture_kept") {
        measured.push(measure_kept().context("capture_kept")?);
    }
    if rows.contains(&"capture_filter") {
        measured.push(measure_filter().context("capture_filter")?);
    }
    Ok(measured)
}

/// Measures the share of packets that are in the file of a capture.
fn measure_kept() -> Result<Row> {
    let road = Road::build_for(Way::Ours { policies: POLICIES }, Flows::Thousand)?;
    let folder = tempfile::tempdir().context("a folder")?;
    let mut recorders = [Recorder::Gateway, Recorder::Tcpdump];
    let measured = alternate(&mut recorders, ROUNDS, |recorder| match recorder {
        Recorder::Gateway => {
            let id = start(&road, FILTER)?;
            let passed = load(&road)?;
            let kept = stop(&road, &id)?["packets"].as_f64().context("packets of the capture")?;
            Ok(100.0 * kept / passed)
        }
        Recorder::Tcpdump => kept_by_tcpdump(&road, folder.path()),
    })?;
    println!("percent of {PACKETS_PER_SECOND} packets/s for {LOAD_TIME:?}: median (rounds)");
    for (recorder, measured) in recorders.iter().zip(&measured) {
        println!("  {measured}  {recorder:?}");
    }
    Ok(Row {
        bench: "capture_kept",
        ours: measured[0].median,
        peer: measured[1].median,
        peer_name: "tcpdump -w".to_owned(),
        unit: "% of 200 000 packets/s",
        target: Target::RatioAtLeast(1.0),
    })
}

/// Sends the load of `capture_kept`. Returns the number of packets that passed the gateway.
fn load(road: &Road) -> Result<f64> {
    let (due, counts) = road.measure_at(PACKETS_PER_SECOND, LOAD_TIME)?;
    let passed = counts.arrived as f64;
    // The generator sends 4 096 packets at a time, so some are due at the end.
    ensure!(passed > 0.85 * due as f64, "only {passed} of {due} packets arrived");
    Ok(passed)
}

/// Returns the share of the packets that tcpdump wrote, in percent.
fn kept_by_tcpdump(road: &Road, folder: &Path) -> Result<f64> {
    let (file, messages) = (folder.join("tcpdump.pcap"), folder.join("tcpdump.txt"));
    let mut command = road.gateway.command("tcpdump");
    command.args(["-i", "eth1", "-n", "-Z", "root", "-w"]).arg(&file).arg(FILTER);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&messages)?);
    let mut tcpdump = Process::spawn(command)?;
    wait_ok(SOON, "tcpdump to listen", || {
        let said = fs::read_to_string(&messages)?;
        ensure!(said.contains("listening on"), "{said}");
        Ok(())
    })?;
    let passed = load(road)?;
    std::thread::sleep(TCPDUMP_INTERVAL);
    tcpdump.terminate(SOON)?;
    let said = fs::read_to_string(&messages)?;
    let line = said.lines().find_map(|line| line.strip_suffix(" packets captured"));
    let kept: Option<f64> = line.and_then(|count| count.trim().parse().ok());
    Ok(100.0 * kept.with_context(|| format!("no count in {said}"))? / passed)
}

/// Measures forwarding with a capture whose filter no packet passes, beside forwarding without one.
fn measure_filter() -> Result<Row> {
    let mut all = [Vec::new(), Vec::new()];
    for _ in 0..FILTER_NETWORKS {
        let road = Road::build(Way::Ours { policies: POLICIES })?;
        let measured = alternate(&mut [true, false], ROUNDS, |is_captured| nanoseconds(&road, *is_captured))?;
        for (all, measured) in all.iter_mut().zip(measured) {
            all.extend(measured.values);
        }
    }
    let measured = all.map(|values| Measured { median: median(&values), values });
    println!("nanoseconds of one core a packet: median (rounds)");
    for (name, measured) in ["with a capture", "without"].into_iter().zip(&measured) {
        println!("  {measured}  {name}");
    }
    Ok(Row {
        bench: "capture_filter",
        ours: measured[0].median,
        peer: measured[1].median,
        peer_name: "the gateway without a capture".to_owned(),
        unit: "ns a packet",
        target: Target::RatioAtMost(1.05),
    })
}

/// Returns the time of a packet, with or without a capture whose filter no packet passes.
fn nanoseconds(road: &Road, is_captured: bool) -> Result<f64> {
    let id = is_captured.then(|| start(road, "udp port 1")).transpose()?;
    let packets = road.measure_masked(TIME)?;
    if let Some(id) = id {
        let ended = stop(road, &id)?;
        ensure!(ended["packets"] == 0 && ended["state"] == "stopped", "the capture did not last: {ended}");
    }
    Ok(NANOSECONDS / packets)
}

/// Starts a capture at the LAN interface and returns its id.
fn start(road: &Road, filter: &str) -> Result<String> {
    let request = json!({"interface": "eth1", "filter": filter, "count": 50_000, "duration_sec": 3600});
    let session = road.daemon.as_ref().context("a daemon")?.api().post("/diagnostics/capture", &request)?;
    Ok(session["id"].as_str().context("an id")?.to_owned())
}

/// Stops a capture, and returns and deletes it.
fn stop(road: &Road, id: &str) -> Result<Value> {
    let api = road.daemon.as_ref().context("a daemon")?.api();
    let path = format!("/diagnostics/capture/{id}");
    if api.get(&path)?["state"] == "running" {
        api.delete(&path)?;
    }
    let ended = api.get(&path)?;
    api.delete(&path)?;
    Ok(ended)
}
