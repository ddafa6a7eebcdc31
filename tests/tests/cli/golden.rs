//! Every command against a running daemon, compared with a file under `golden`. `UPDATE=1` rewrites the files.
//!
//! A command whose endpoint is not implemented answers 501, and its file says so. When the endpoint is implemented, the
//! test fails until the file is rewritten and reviewed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use crate::cli::cases::{CASES, Case, Look};
use crate::cli::client::{Ran, feed, run};

/// Time limit of the first verdict, which `status` shows.
const VERDICT_TIMEOUT: Duration = Duration::from_secs(20);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/golden")
}

/// Objects that fill the lists.
const FURNITURE: &[(&str, &str)] = &[
    (
        "/routing/policies",
        r#"{"name":"never decides","priority":20,"source_type":"all","hops":[{"type":"interface","target":"eth0"}]}"#,
    ),
    ("/segments", r#"{"name":"guests","interface":"eth1","cidr":"192.168.30.0/24","trust_class":"guest"}"#),
    ("/nodes", r#"{"name":"branch","url":"https://branch.example.net/","role":"secondary"}"#),
];

#[test]
fn every_command_against_a_live_daemon() {
    let mut testbed = Testbed::prepare().expect("a fresh network");
    // Which changes end its entries depends on the kernel and the time.
    testbed.daemon.configure(&json!({"dataplane": {"fast_path": "off"}})).expect("configured");
    testbed.daemon.start().expect("a daemon");
    let policy = policy("vpn-only", 10, ("all", ""), &["exit"]);
    let tunnel = include_str!("golden/input/tunnel.json").parse::<Value>().expect("JSON");
    testbed.api().post("/tunnels", &tunnel).expect("a tunnel");
    testbed.api().post("/routing/policies", &policy).expect("a policy");
    testbed.api().act("/routing/policies/apply").expect("the policy is applied");
    for (collection, object) in FURNITURE {
        let object = object.parse::<Value>().expect("JSON");
        testbed.api().post(collection, &object).unwrap_or_else(|error| panic!("{collection}: {error:#}"));
    }
    // Whether the clock of this machine is synchronised is not what the files show.
    let blocks = json!({"value": {"all": {}}});
    testbed.api().put("/settings/privacy.blocks", &blocks).expect("stored");
    wait_ok(VERDICT_TIMEOUT, "the first verdict on the gateway", || {
        let status = testbed.api().get("/status")?;
        anyhow::ensure!(status["verdict"]["checked_at"].is_string(), "{status}");
        Ok(())
    })
    .expect("a verdict");

    let update = std::env::var_os("UPDATE").is_some();
    let mut wrong = Vec::new();
    for case in CASES {
        let got = shown(case, &testbed);
        let path = folder().join(format!("{}.txt", case.file));
        if update {
            fs::write(&path, &got).expect("the golden file can be written");
        }
        let wanted = fs::read_to_string(&path).unwrap_or_default();
        if got != wanted {
            wrong.push(format!("=== {} ===\n{}", case.file, difference(&wanted, &got)));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} commands answer otherwise than their files (UPDATE=1 writes them anew):\n{}",
        wrong.len(),
        CASES.len(),
        wrong.join("\n")
    );
}

#[test]
fn every_golden_file_is_of_a_case() {
    let cases: BTreeSet<String> = CASES.iter().map(|case| format!("{}.txt", case.file)).collect();
    assert_eq!(cases.len(), CASES.len(), "two cases share a file");
    let entries = fs::read_dir(folder()).expect("the folder of the golden files");
    let files = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"));
    let files: BTreeSet<String> = files.filter(|name| name.ends_with(".txt")).collect();
    assert_eq!(files, cases);
}

fn shown(case: &Case, testbed: &Testbed) -> String {
    let arguments: Vec<String> = case.arguments.iter().map(|argument| known(testbed, argument)).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ran = match case.input {
        Some(input) => feed(testbed, &arguments, input),
        None => run(testbed, &arguments),
    };
    let Ran { code, stdout, stderr } = ran;
    let code = code.map_or("a signal".to_owned(), |code| code.to_string());
    let stdout = match (case.look, serde_json::from_str::<Value>(&stdout)) {
        (Look::Shape, Ok(value)) => shape(&value),
        (Look::Whole | Look::Shape, _) => settled(&stdout),
        (Look::Newest, _) => newest(&stdout),
        (Look::Header, _) => stdout.lines().next().map(|line| format!("{line}\n")).unwrap_or_default(),
    };
    format!(
        "$ gateway-ctl {}\nexit {code}\n--- stdout\n{stdout}--- stderr\n{}",
        case.arguments.join(" "),
        settled(&stderr)
    )
}

/// Replaces `ID OF /path` and `NAME OF /path` by those of the first object there.
fn known(testbed: &Testbed, argument: &str) -> String {
    let mut text = argument.to_owned();
    for (words, field) in [("ID OF ", "id"), ("NAME OF ", "name")] {
        let Some(start) = text.find(words) else { continue };
        let path = text[start + words.len()..].split('"').next().unwrap_or_default().to_owned();
        let list = testbed.api().get(&path).expect("a list");
        let value = list[0][field].as_str().unwrap_or_else(|| panic!("nothing at {path}"));
        text = text.replace(&format!("{words}{path}"), value);
    }
    text
}

/// Returns the columns and the first row, with placeholders for numbers.
fn newest(table: &str) -> String {
    let number = |cell: &str| match cell.parse::<u64>() {
        Ok(_) => "<number>".to_owned(),
        Err(_) => cell.to_owned(),
    };
    let line = |line: &str| line.split('\t').map(number).collect::<Vec<_>>().join("\t");
    settled(&table.lines().take(2).map(line).collect::<Vec<_>>().join("\n"))
}

/// Replaces values that differ between runs by placeholders.
fn settled(text: &str) -> String {
    let mut settled = String::new();
    for line in text.lines() {
        settled.push_str(&counted(&words(line)));
        settled.push('\n');
    }
    settled
}

/// Replaces ids and times.
fn words(line: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | ':' | '.' | '+');
    let mut text = String::new();
    let mut rest = line;
    while !rest.is_empty() {
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        text.push_str(&word_settled(word));
        let next = after.chars().next().map_or(0, char::len_utf8);
        text.push_str(&after[..next]);
        rest = &after[next..];
    }
    text
}

fn word_settled(word: &str) -> String {
    let is_id = word.len() == 36
        && word.chars().enumerate().all(|(n, c)| match n {
            8 | 13 | 18 | 23 => c == '-',
            _ => c.is_ascii_hexdigit(),
        });
    if is_id {
        "<id>".to_owned()
    } else if word.len() == 64 && word.bytes().all(|c| c.is_ascii_hexdigit()) {
        "<hash>".to_owned()
    } else if word.parse::<jiff::Timestamp>().is_ok() {
        "<time>".to_owned()
    } else if let Some((_, why)) = word.split_once('-').filter(|(at, _)| is_compact_time(at)) {
        format!("<time>-{why}")
    } else if word == env!("CARGO_PKG_VERSION") {
        "<version>".to_owned()
    } else {
        word.to_owned()
    }
}

/// Reports whether the word is like `20261121T164649Z`, the beginning of a snapshot's id.
fn is_compact_time(word: &str) -> bool {
    word.len() == 16
        && word.chars().enumerate().all(|(n, c)| match n {
            8 => c == 'T',
            15 => c == 'Z',
            _ => c.is_ascii_digit(),
        })
}

/// Replaces numbers of JSON fields that count time or runs.
fn counted(line: &str) -> String {
    const COUNTING: &[&str] =
        &["revision", "duration_ms", "run", "applied_revision", "stored_revision", "remaining_sec"];
    let Some((name, value)) = line.split_once("\": ") else { return line.to_owned() };
    let is_counting = COUNTING.contains(&name.trim_start().trim_start_matches('"'))
        && value.trim_end_matches(',').parse::<u64>().is_ok();
    let comma = if value.ends_with(',') { "," } else { "" };
    if is_counting { format!("{name}\": <number>{comma}") } else { line.to_owned() }
}

/// Returns a document with types instead of values, and the first element of each list.
fn shape(value: &Value) -> String {
    fn of(value: &Value) -> Value {
        match value {
            Value::Null => Value::from("null"),
            Value::Bool(_) => Value::from("boolean"),
            Value::Number(_) => Value::from("number"),
            Value::String(_) => Value::from("string"),
            Value::Array(list) => list.first().map(of).into_iter().collect(),
            Value::Object(fields) => {
                fields.iter().map(|(name, value)| (name.clone(), field(name, value))).collect()
            }
        }
    }
    // Counters and samples depend on the traffic.
    fn field(name: &str, value: &Value) -> Value {
        match name {
            "verdicts" => Value::from("object"),
            "recent" => Value::from("list"),
            // So do those of the host.
            "sensors" | "power" => Value::from("list"),
            "cpu_temp" => Value::from("number"),
            _ => of(value),
        }
    }
    let text = serde_json::to_string_pretty(&of(value)).expect("plain values");
    // A nullable field counts as a string.
    format!("{}\n", text.replace("\"null\"", "\"string\""))
}

/// Returns the lines that only one of the texts has.
fn difference(wanted: &str, got: &str) -> String {
    let (wanted, got): (Vec<&str>, Vec<&str>) = (wanted.lines().collect(), got.lines().collect());
    let missing = wanted.iter().filter(|line| !got.contains(line)).map(|line| format!("- {line}"));
    let extra = got.iter().filter(|line| !wanted.contains(line)).map(|line| format!("+ {line}"));
    let lines: Vec<String> = missing.chain(extra).collect();
    if lines.is_empty() { "the order of the lines".to_owned() } else { lines.join("\n") }
}

#[test]
fn volatile_values_are_masked() {
    let line = "  \"id\": \"0199f1c2-0000-7000-8000-000000000001\", \"at\": \"2026-11-21T12:00:00.5Z\"";
    assert_eq!(words(line), "  \"id\": \"<id>\", \"at\": \"<time>\"");
    assert_eq!(words("\"snapshot\": \"20261121T164649Z-pre-apply\""), "\"snapshot\": \"<time>-pre-apply\"");
    assert_eq!(words(&"a1".repeat(32)), "<hash>");
    assert_eq!(counted("  \"revision\": 17,"), "  \"revision\": <number>,");
    assert_eq!(counted("  \"level\": 80,"), "  \"level\": 80,");
}
