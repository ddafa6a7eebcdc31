//! `flow_log_*`: the flow log with as many records as a minute allows, at most 10 000 000: bytes of a record on the disk, a page of
//! one device, and the ten devices with the most bytes of a week. The peer of the first is nfdump, whose files have fewer
//! fields: no names, policies, paths and ids. That of the others is a log with 100 000 records.

mod rate;

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use gateway_core::flow_export::ipfix::Stream;
use gateway_core::flow_log::{
    Client, ClientCondition, Decision, FlowEnd, FlowFilter, FlowId, FlowPath, FlowRecord, TopKey, Traffic,
};
use gateway_ctl::handles::Handle as _;
use gateway_ctl::services::flow_log::{FlowLog, FlowTotals};
use gateway_model::Id;
use gateway_model::id::MacAddr;
use gateway_tests::process::Process;
use gateway_tests::wait::wait_for;
use jiff::{SignedDuration, Timestamp};
use rustix::time::{ClockId, clock_gettime};

use crate::policies::Random;
use crate::row::{Row, Target, median};

const MOST: u64 = 10_000_000;
const WRITE_TIME: Duration = Duration::from_secs(60);
/// Records of the log that the large one is compared with, and of the file of nfdump.
const FEW: u64 = 100_000;
/// Records of one observation.
const BATCH: u64 = 2_000;
const ROUNDS: usize = 3;
const DEVICES: usize = 50;
const DESTINATIONS: usize = 4_000;
const WEEK: SignedDuration = SignedDuration::from_hours(7 * 24);

pub(crate) fn run(names: &[&str]) -> Result<Vec<Row>> {
    let new_flows = rate::run()?;
    if names == [new_flows.bench] {
        return Ok(vec![new_flows]);
    }
    let (small, large) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let end = Timestamp::from_second(1_800_000_000)?;
    let few = fill(small.path(), FEW, Duration::MAX, end)?;
    let many = fill(large.path(), MOST, WRITE_TIME, end)?;
    let rate = many.records as f64 / many.time.as_secs_f64();
    println!("{} records in {:.1} s, {rate:.0} records/s on one core", many.records, many.time.as_secs_f64());
    let nfdump = nfdump_bytes(end)?;
    let ours = many.bytes as f64 / many.records as f64;
    println!(
        "bytes of a record: {ours:.1}, with {FEW} records {:.1}, nfdump {nfdump:.1}",
        few.bytes as f64 / FEW as f64
    );
    println!("top ten domains of a week: {:.1} ms", times(&many, top_domains)?);
    let of_device = times(&many, top_domains_of_device)?;
    println!("of one device: {of_device:.1} ms, through one egress {:.1} ms", times(&many, top_of_egress)?);
    let row = |bench, measure: fn(&Filled) -> Result<()>, below, name: &str| -> Result<Row> {
        let (ours, peer) = (times(&many, measure)?, times(&few, measure)?);
        println!("{name}, ms: {ours:.1}, with {FEW} records {peer:.1}");
        let peer_name = format!("the same with {FEW} records instead of {}", many.records);
        Ok(Row { bench, ours, peer, peer_name, unit: "ms", target: Target::OursBelow(below) })
    };
    Ok(vec![
        new_flows,
        Row {
            bench: "flow_log_bytes",
            ours,
            peer: nfdump,
            peer_name: "nfdump, compressed (LZO)".to_owned(),
            unit: "bytes/record",
            target: Target::OursBelow(40.0),
        },
        row("flow_log_page", page, 50.0, "page of one device")?,
        row("flow_log_top", top, 300.0, "top ten of a week")?,
    ])
}

/// Returns the processor time of this thread, which other load does not change. Files are in the page cache.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

struct Filled {
    log: FlowLog,
    records: u64,
    bytes: u64,
    time: Duration,
    end: Timestamp,
}

/// Fills a log with records of a week, until it has so many or the time is over.
fn fill(folder: &Path, records: u64, limit: Duration, end: Timestamp) -> Result<Filled> {
    let log = FlowLog::open(folder, end);
    let mut source = Source::new();
    let (mut written, mut time) = (0, Duration::ZERO);
    while written < records && time < limit {
        // The last records are of the end of the week, however many there are.
        let share = written as f64 / records as f64;
        let now = end - SignedDuration::from_secs_f64(WEEK.as_secs_f64() * (1.0 - share));
        let batch: Vec<FlowRecord> = (0..BATCH).map(|_| source.record(now)).collect();
        let begun = cpu_time();
        log.keep(&batch, now);
        log.add_up(Duration::MAX, None, now);
        time += cpu_time() - begun;
        written += BATCH;
    }
    log.flush(end);
    let files = fs::read_dir(folder.join("flows")).context("the files")?;
    let bytes = files.map(|file| Ok(file?.metadata()?.len())).sum::<Result<u64>>()?;
    Ok(Filled { log, records: written, bytes, time, end })
}

/// Returns the median of the milliseconds that a request takes.
fn times(filled: &Filled, request: fn(&Filled) -> Result<()>) -> Result<f64> {
    let mut all = Vec::new();
    for _ in 0..ROUNDS {
        let begun = cpu_time();
        request(filled)?;
        all.push((cpu_time() - begun).as_secs_f64() * 1000.0);
    }
    Ok(median(&all))
}

fn page(filled: &Filled) -> Result<()> {
    let filter =
        FlowFilter { client: Some(ClientCondition::Device(device(DEVICES / 2))), ..FlowFilter::default() };
    let page = filled.log.read(&filter, None, None, 100);
    ensure!(page.rows.len() == 100 && page.ended_at.is_none(), "{} rows", page.rows.len());
    Ok(())
}

fn top(filled: &Filled) -> Result<()> {
    let filter = FlowFilter { since: Some(filled.end - WEEK), ..FlowFilter::default() };
    top_by(filled, &filter, TopKey::Device)
}

fn top_domains(filled: &Filled) -> Result<()> {
    let filter = FlowFilter { since: Some(filled.end - WEEK), ..FlowFilter::default() };
    top_by(filled, &filter, TopKey::Domain)
}

/// Reads every block: each has records of the device.
fn top_domains_of_device(filled: &Filled) -> Result<()> {
    let client = Some(ClientCondition::Device(device(DEVICES / 2)));
    let filter = FlowFilter { client, since: Some(filled.end - WEEK), ..FlowFilter::default() };
    top_by(filled, &filter, TopKey::Domain)
}

/// The same of an egress.
fn top_of_egress(filled: &Filled) -> Result<()> {
    let egress = Some("wg-b".to_owned());
    let filter = FlowFilter { egress, since: Some(filled.end - WEEK), ..FlowFilter::default() };
    top_by(filled, &filter, TopKey::Device)
}

fn top_by(filled: &Filled, filter: &FlowFilter, by: TopKey) -> Result<()> {
    let FlowTotals { rows, others, ended_at } = filled.log.top(filter, by, 10, None);
    ensure!(rows.len() == 10 && others == 0 && ended_at.is_none(), "{} rows", rows.len());
    Ok(())
}

/// Sends records to nfcapd, and returns the bytes that its file has for each.
fn nfdump_bytes(end: Timestamp) -> Result<f64> {
    const PORT: u16 = 4739;
    let folder = tempfile::tempdir()?;
    let mut command = Command::new("nfcapd");
    command.args(["-z", "-b", "127.0.0.1", "-p", &PORT.to_string(), "-w"]).arg(folder.path());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut nfcapd = Process::spawn(command)?;
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(("127.0.0.1", PORT))?;
    let mut stream = Stream::new(1, 1400);
    wait_for(Duration::from_secs(10), "nfcapd", || {
        socket.send(&stream.templates(end)).is_ok() && UdpSocket::bind(("127.0.0.1", PORT)).is_err()
    })?;
    let mut source = Source::new();
    for part in 0..FEW / BATCH {
        let now = end + SignedDuration::from_secs(part as i64);
        socket.send(&stream.templates(now))?;
        let batch: Vec<FlowRecord> = (0..BATCH).map(|_| source.record(now)).collect();
        for message in stream.messages(&batch, now) {
            socket.send(&message)?;
            // Slow enough for a receiver that shares the processors.
            std::thread::sleep(Duration::from_micros(300));
        }
    }
    nfcapd.terminate(Duration::from_secs(10))?;
    let bytes = fs::read_dir(folder.path())?.map(|file| Ok(file?.metadata()?.len())).sum::<Result<u64>>()?;
    let mut command = Command::new("nfdump");
    command.arg("-R").arg(folder.path()).args(["-q", "-o", "fmt:%byt"]);
    let output = command.output().context("nfdump")?;
    let arrived = String::from_utf8(output.stdout)?.lines().filter(|line| !line.trim().is_empty()).count();
    ensure!(arrived as u64 * 10 > FEW * 9, "only {arrived} records arrived at nfcapd");
    Ok(bytes as f64 / arrived as f64)
}

fn device(number: usize) -> Id {
    Id::from_u128(0x9000_0000_0000 + number as u128)
}

/// Records such as a home has: few destinations take most flows, most flows are short.
struct Source {
    random: Random,
}

impl Source {
    fn new() -> Source {
        Source { random: Random(7) }
    }

    fn record(&mut self, now: Timestamp) -> FlowRecord {
        let random = &mut self.random;
        let host = random.below(DEVICES).min(random.below(DEVICES));
        // The product of two has few that are frequent.
        let destination = random.below(DESTINATIONS) * random.below(DESTINATIONS) / DESTINATIONS;
        let duration = 20 + (random.next() % 1000) * (random.next() % 120);
        let start = now - SignedDuration::from_millis((duration + random.next() % 2000) as i64);
        let port = 32_768 + (random.next() % 28_000) as u16;
        let packets = 2 + random.next() % 8 * (1 + random.next() % 40);
        let egress = ["wg-a", "wg-b", "auto"][host % 3];
        let is_denied = random.below(50) == 0;
        let flow_id = FlowId::new(start, &random.next().to_le_bytes());
        let ended = flow_id.start() + SignedDuration::from_millis(duration as i64);
        let path = FlowPath {
            at: flow_id.start(),
            generation: 7 + (now.as_second() / 86_400 % 7) as u32,
            decision: if is_denied { Decision::Dropped } else { Decision::Permitted },
            reason: 10,
            policy: (egress != "auto").then(|| Id::from_u128(host as u128 % 3)),
            hops: if egress == "auto" { Vec::new() } else { vec![format!("vpn:{egress}")] },
            leg: Some(16),
            egress: (!is_denied).then(|| egress.to_owned()),
        };
        let counted =
            |packets: u64, size: u64| (!is_denied).then_some(Traffic { packets, bytes: packets * size });
        let [a, b] = (destination as u16).to_be_bytes();
        FlowRecord {
            flow_id,
            part: 0,
            written_at: now,
            client: Some(Client {
                mac: MacAddr([2, 0, 0, 0, 0, host as u8]),
                address: [192, 168, 10, 10 + host as u8].into(),
                port,
                interface: 3,
                interface_name: Some("lan0".to_owned()),
                vlan: 0,
                device: Some(device(host)),
                trust_class: Some("home".to_owned()),
            }),
            destination: [198, 18, a, b].into(),
            destination_port: [443, 443, 443, 80, 123][destination % 5],
            protocol: if destination % 5 == 4 { 17 } else { 6 },
            names: vec![format!("host-{destination}.service-{}.example.net", destination % 300)],
            server_name: None,
            paths: vec![path],
            path_changes: 0,
            sent: counted(packets, 52 + random.next() % 600),
            received: counted(packets, 52 + random.next() % 1400),
            last_at: Some(ended),
            ended_at: Some(ended),
            end: Some(if is_denied { FlowEnd::Silent } else { FlowEnd::Closed }),
        }
    }
}
