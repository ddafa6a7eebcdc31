//! A store that is killed at any time under load loses no acknowledged write.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use gateway_ctl::clock::SystemClock;
use gateway_ctl::store::Store;
use gateway_model::Id;

const KILLS: u32 = 200;
/// Timeout of opening, writing and end on a slow machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Acknowledged state of the store, from the output of the writers.
#[derive(Default)]
struct Promised {
    there: BTreeSet<Id>,
    gone: BTreeSet<Id>,
    /// May exist or not: the deletion was begun and not acknowledged.
    open: BTreeSet<Id>,
    set: BTreeMap<String, u64>,
    lines: u64,
}

impl Promised {
    fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let id = || words[1].parse::<Id>().expect("an id");
        match words[0] {
            "ready" => return,
            "+" => drop(self.there.insert(id())),
            "?" => {
                self.there.remove(&id());
                self.open.insert(id());
            }
            "-" => {
                self.open.remove(&id());
                self.gone.insert(id());
            }
            "=" => drop(self.set.insert(words[1].to_owned(), words[2].parse().expect("a number"))),
            _ => panic!("the writer said {line:?}"),
        }
        self.lines += 1;
    }

    /// Opens the store and compares.
    fn check(&self, path: &Path, round: u32) {
        let store =
            Store::open(path, SystemClock::shared()).unwrap_or_else(|error| panic!("round {round}: {error}"));
        let state = store.current();
        for id in &self.there {
            assert!(state.devices.contains(*id), "round {round}: {id} was confirmed and is lost");
        }
        for id in &self.gone {
            assert!(!state.devices.contains(*id), "round {round}: {id} was deleted and is back");
        }
        for (key, value) in &self.set {
            let have = state.settings.get(key).and_then(serde_json::Value::as_u64);
            // The next value may have been written without its output line.
            assert!(have >= Some(*value), "round {round}: {key} is {have:?}, not {value}");
        }
        let report = store.verify_audit().expect("the trail is read");
        assert!(report.intact, "round {round}: {report:?}");
        let confirmed = self.lines - self.open.len() as u64;
        assert!(
            report.entries >= confirmed.saturating_sub(self.gone.len() as u64),
            "round {round}: {report:?}"
        );
    }
}

/// Pseudo-random numbers, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

fn start(path: &Path) -> (Child, mpsc::Receiver<String>) {
    let mut writer = Command::new(env!("CARGO_BIN_EXE_store_writer"))
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the writer starts");
    let said = BufReader::new(writer.stdout.take().expect("it is a pipe"));
    let (tell, lines) = mpsc::channel();
    std::thread::spawn(move || {
        // An incomplete last line was not printed.
        for line in said.split(b'\n').map_while(Result::ok) {
            let Ok(line) = String::from_utf8(line) else { return };
            if tell.send(line).is_err() {
                return;
            }
        }
    });
    (writer, lines)
}

/// Kills the writer after `delay`, counted from its output of `lines_before` lines. In every fourth round it counts from the
/// start, so that openings are interrupted too. Returns the output.
fn round(path: &Path, number: u32, lines_before: u64, delay: Duration) -> Vec<String> {
    let (mut writer, lines) = start(path);
    let mut said = Vec::new();
    let lines_before = if number.is_multiple_of(4) { 0 } else { lines_before };
    for _ in 0..lines_before {
        match lines.recv_timeout(TIMEOUT) {
            Ok(line) => said.push(line),
            Err(error) => panic!("round {number}: the writer said nothing: {error}; {:?}", writer.try_wait()),
        }
    }
    let end = Instant::now() + delay;
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        match lines.recv_timeout(left) {
            Ok(line) => said.push(line),
            Err(mpsc::RecvTimeoutError::Timeout) => break,
            Err(mpsc::RecvTimeoutError::Disconnected) => panic!("round {number}: the writer ended by itself"),
        }
    }
    writer.kill().expect("SIGKILL");
    writer.wait().expect("the writer is reaped");
    said.extend(lines.iter());
    said
}

#[test]
fn two_hundred_kills_under_load_lose_nothing_that_was_confirmed() {
    let seed =
        std::env::var("GATEWAY_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x5eed_0001_u64);
    println!("seed {seed} (GATEWAY_SEED)");
    let mut dice = Dice(seed);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("gateway.redb");
    let mut promised = Promised::default();
    let mut lines = 0;
    for number in 1..=KILLS {
        let delay = Duration::from_micros(dice.below(60_000));
        for line in round(&path, number, 1 + dice.below(4), delay) {
            promised.hear(&line);
        }
        lines = promised.lines;
        // Every start reads and checks everything; the test itself checks every tenth round.
        if number % 10 == 0 || number == KILLS {
            promised.check(&path, number);
        }
    }
    assert!(lines > u64::from(KILLS), "there was load: {lines} lines");
    println!("{KILLS} kills, {lines} confirmed steps, {} devices", promised.there.len());
}
