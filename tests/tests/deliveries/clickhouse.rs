//! Flow records at ClickHouse of Debian, by the set-up that the documentation has: rsyslog receives them, a script loads its files.
//!
//! `GATEWAY_FLOW_RECORDS` sets the number of records (20 000).

use std::fs;
use std::io::{BufWriter, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use gateway_core::flow_export::syslog;
use gateway_core::flow_log::{Client, Decision, FlowEnd, FlowId, FlowPath, FlowRecord, Traffic};
use gateway_model::Id;
use gateway_model::id::MacAddr;
use gateway_tests::process::Process;
use gateway_tests::wait::wait_ok;
use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;

use super::SOON;

/// Time for a million records on a slow machine.
const LOAD_TIME: Duration = Duration::from_secs(600);
const DEVICES: u64 = 50;

const CONFIGURATION: &str = "<yandex>
<logger><level>warning</level><console>1</console></logger>
<http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><listen_host>127.0.0.1</listen_host>
<path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path>
<users_config>users.xml</users_config><default_profile>default</default_profile>
<default_database>default</default_database><mark_cache_size>67108864</mark_cache_size>
</yandex>";
const USERS: &str = "<yandex>
<profiles><default><max_memory_usage>2000000000</max_memory_usage></default></profiles>
<users><default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>
<quota>default</quota></default></users><quotas><default></default></quotas>
</yandex>";

fn records() -> u64 {
    std::env::var("GATEWAY_FLOW_RECORDS").map_or(20_000, |text| text.parse().expect("a number"))
}

fn free_port() -> u16 {
    let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    address.expect("a port").port()
}

/// Returns a block of code of the documentation.
fn documented(language: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/flow-history.md");
    let page = fs::read_to_string(path).expect("the page");
    let (_, block) = page.split_once(&format!("```{language}\n")).expect("a block");
    block.split_once("```").expect("its end").0.to_owned()
}

struct ClickHouse {
    url: String,
    _folder: TempDir,
    _process: Process,
}

impl ClickHouse {
    fn start() -> Result<ClickHouse> {
        let (folder, http) = (tempfile::tempdir()?, free_port());
        let place = |text: &str| {
            let text = text.replace("{http}", &http.to_string()).replace("{tcp}", &free_port().to_string());
            text.replace("{folder}", &folder.path().display().to_string())
        };
        let file = folder.path().join("config.xml");
        fs::write(&file, place(CONFIGURATION))?;
        fs::write(folder.path().join("users.xml"), USERS)?;
        let mut command = Command::new("clickhouse-server");
        command.arg(format!("--config-file={}", file.display())).current_dir(folder.path());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process::spawn(command).context("clickhouse-server of `cargo xtask setup`")?;
        let server =
            ClickHouse { url: format!("http://127.0.0.1:{http}"), _folder: folder, _process: process };
        wait_ok(SOON, "ClickHouse", || server.query("SELECT 1"))?;
        Ok(server)
    }

    fn query(&self, query: &str) -> Result<String> {
        let mut command = Command::new("curl");
        command.args(["-sS", "--fail", "--data-binary", query, &self.url]);
        let output = command.output()?;
        ensure!(output.status.success(), "{query}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }
}

struct Rsyslog {
    folder: TempDir,
    port: u16,
    _process: Process,
}

impl Rsyslog {
    fn start() -> Result<Rsyslog> {
        let (folder, port) = (tempfile::tempdir()?, free_port());
        let spool = folder.path().display().to_string();
        let rules = documented("text")
            .replace("\"6514\"", &format!("\"{port}\""))
            .replace("192.0.2.10", "127.0.0.1")
            .replace("/var/spool/flows", &spool);
        let file = folder.path().join("rsyslog.conf");
        fs::write(&file, format!("global(workDirectory=\"{spool}\")\n{rules}"))?;
        let mut command = Command::new("rsyslogd");
        command.args(["-n", "-f"]).arg(&file).arg("-i").arg(folder.path().join("pid"));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process::spawn(command).context("rsyslogd")?;
        Ok(Rsyslog { folder, port, _process: process })
    }

    /// Sends the records with these numbers as the gateway does. Returns the sum of the bytes that they have.
    fn send(&self, numbers: impl Iterator<Item = u64>) -> Result<u64> {
        let to: SocketAddr = ([127, 0, 0, 1], self.port).into();
        let mut socket = BufWriter::new(wait_ok(SOON, "rsyslogd", || Ok(TcpStream::connect(to)?))?);
        let mut sum = 0;
        for number in numbers {
            let (mut bytes, record) = (Vec::new(), record(number));
            sum += record.bytes().unwrap_or(0);
            syslog::append(&mut bytes, &record, "gateway");
            socket.write_all(&bytes)?;
        }
        socket.flush()?;
        Ok(sum)
    }

    /// Runs the script of the documentation, which loads what it put aside the last time.
    fn load(&self, to: &ClickHouse) -> Result<()> {
        let mut command = Command::new("sh");
        command.args(["-c", &documented("shell"), "load-flows"]);
        command.arg(self.folder.path()).arg(&to.url).arg(self.folder.path().join("pid"));
        let output = command.output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }
}

fn record(number: u64) -> FlowRecord {
    let start = Timestamp::from_second(1_790_000_000).expect("a time")
        + SignedDuration::from_millis((number * 7).cast_signed());
    let flow_id = FlowId::new(start, &number.to_le_bytes());
    let device = number % DEVICES;
    let ended = flow_id.start() + SignedDuration::from_secs(2);
    let traffic = |size: u64| Some(Traffic { packets: 1 + number % 9, bytes: size * (1 + number % 9) });
    FlowRecord {
        flow_id,
        part: 0,
        written_at: ended,
        client: Some(Client {
            mac: MacAddr([2, 0, 0, 0, 0, device as u8]),
            address: [192, 168, 10, device as u8].into(),
            port: 40_000,
            interface: 3,
            interface_name: Some("lan0".to_owned()),
            vlan: 0,
            device: Some(Id::from_u128(u128::from(device))),
            trust_class: None,
        }),
        destination: [198, 18, (number >> 8) as u8, number as u8].into(),
        destination_port: 443,
        protocol: 6,
        names: vec![format!("host-{}.example.net", number % 4000)],
        server_name: None,
        paths: vec![FlowPath {
            at: flow_id.start(),
            generation: 7,
            decision: Decision::Permitted,
            reason: 10,
            policy: None,
            hops: vec!["vpn:wg-a".to_owned()],
            leg: Some(16),
            egress: Some("wg-a".to_owned()),
        }],
        path_changes: 0,
        sent: traffic(100),
        received: traffic(1000),
        last_at: Some(ended),
        ended_at: Some(ended),
        end: Some(FlowEnd::Closed),
    }
}

#[test]
fn clickhouse_takes_the_records_that_rsyslog_receives() {
    let (clickhouse, rsyslog) =
        (ClickHouse::start().expect("ClickHouse"), Rsyslog::start().expect("rsyslogd"));
    clickhouse.query(&documented("sql")).expect("the table");
    let count = records();
    let sum = rsyslog.send(0..count).expect("sent");
    let totals = "SELECT count(), sum(sent_bytes + received_bytes), uniq(device_id), uniq(egress) FROM flows";
    let expected = format!("{count}\t{sum}\t{DEVICES}\t1");
    wait_ok(LOAD_TIME, "all records", || {
        rsyslog.load(&clickhouse)?;
        let found = clickhouse.query(totals)?;
        ensure!(found == expected, "{found} instead of {expected}");
        Ok(())
    })
    .expect("loaded");
    // A collector may get a record twice.
    rsyslog.send((0..1_000).chain([count])).expect("sent again");
    let last = format!("SELECT count() FROM flows WHERE flow_id = '{}'", record(count).flow_id);
    wait_ok(SOON, "the record that was sent last", || {
        rsyslog.load(&clickhouse)?;
        ensure!(clickhouse.query(&last)? == "1", "it is missing");
        Ok(())
    })
    .expect("loaded");
    let once = clickhouse.query("SELECT count() FROM flows FINAL").expect("rows");
    assert_eq!(once, (count + 1).to_string());
}
