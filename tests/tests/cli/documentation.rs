//! Shell examples of the documentation, run against a real daemon.
//!
//! The examples of a page run in order as one script, with a daemon of their own, and stop at the first failure.
//! Requests fail on an error of the API. [`PAGES`] has what a reader has beforehand; programs that change the host do
//! not run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gateway_tests::examples;
use gateway_tests::testbed::Testbed;

use crate::cli::client::{Ran, inside, program};

/// Programs of a line that is not run: builds, installation, systemd, the log of the host, and a TLS listener.
const NOT_RUN: &[&str] = &[
    "cargo ",
    "install ",
    "$EDITOR ",
    "gatewayd ",
    "systemctl ",
    "journalctl ",
    "curl --cacert ",
    // Maps and programs of parallel tests have the same names.
    "bpftool ",
    // No server of language models runs here.
    "gateway-ctl ai ",
];

/// Beginning of every script.
const PRELUDE: &str = r#"
set -euo pipefail
api=http://127.0.0.1:8080/api/v1
curl() { command curl --fail-with-body "$@" || { echo "failed: curl $*" >&2; return 1; }; }
device() { curl -s $api/devices -d '{"name":"laptop","mac":"02:00:00:00:00:0a"}' -H 'Content-Type: application/json' | jq -r .data.id; }
tunnel() { curl -s "$api/tunnels/import-wireguard?name=$1" -H 'Content-Type: text/plain' --data-binary @exit.conf; }
policy() { curl -s $api/routing/policies -H 'Content-Type: application/json' \
  -d '{"name":"tunnel","source_type":"device","source_value":"'$id'","hops":[{"type":"vpn","target":"'$1'"}]}' &&
  curl -s -X POST $api/routing/policies/apply; }
"#;

/// Differences between a page and its script.
struct Page {
    file: &'static str,
    /// Settings of the daemon's configuration file.
    configuration: &'static str,
    /// Objects and variables of the reader.
    before: &'static str,
    /// Texts that stand for values of the reader.
    values: &'static [(&'static str, &'static str)],
}

const PAGES: &[Page] = &[
    Page { file: "access-point.md", configuration: "{}", before: "", values: &[] },
    Page {
        file: "alerts.md",
        configuration: "{}",
        before: r#"exception='{"type":"temporary-direct","device_id":"'$(device)'","duration_min":3}'
                   curl -s $api/exceptions -H 'Content-Type: application/json' -d "$exception"
                   alert() { curl -s $api/alerts/active | jq '.data[0].id'; }
                   until [ "$(alert)" != null ]; do sleep 0.1; done"#,
        values: &[("alerts mute ID", "alerts mute $(alert)"), ("alerts unmute ID", "alerts unmute $(alert)")],
    },
    Page {
        file: "apply-and-rollback.md",
        configuration: "{}",
        before: "tunnel exit",
        values: &[(
            r#""snapshot":"NAME""#,
            r#""snapshot":"'$(curl -s $api/snapshots | jq -r .data[0].name)'""#,
        )],
    },
    Page { file: "assistant.md", configuration: "{}", before: "", values: &[] },
    Page {
        file: "authentication.md",
        configuration: r#"{"auth": {"enabled": true}}"#,
        before: "",
        values: &[(r#""password":"...""#, r#""password":"correct horse battery""#), ("anna", "admin")],
    },
    Page {
        file: "backup.md",
        configuration: "{}",
        before: "mkdir backups; curl -s $api/config/export-encrypted -H 'Content-Type: application/json' \
                 -d '{\"passphrase\":\"at least twelve\"}' -o backup.age",
        values: &[("/mnt/usb/gateway", "'$PWD'/backups")],
    },
    Page {
        file: "captures.md",
        configuration: "{}",
        before: "",
        values: &[
            ("capture get ID", "capture get $(curl -s $api/diagnostics/captures | jq -r .data[0].id)"),
            ("capture stop ID", "capture stop $(curl -s $api/diagnostics/captures | jq -r .data[0].id)"),
            ("capture/ID/", "capture/$(curl -s $api/diagnostics/captures | jq -r .data[0].id)/"),
        ],
    },
    Page { file: "bluetooth.md", configuration: "{}", before: "", values: &[] },
    Page { file: "dns.md", configuration: "{}", before: "id=$(device)", values: &[] },
    Page {
        file: "federation.md",
        configuration: "{}",
        before: r#"key=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE=
                   node='{"name":"main","url":"https://main.example.net:8080/","public_key":"'$key'"}'
                   curl -s $api/nodes -H 'Content-Type: application/json' -d "$node"
                   # It refuses itself as a peer, and has a key since then.
                   own='{"peer":"'${api%/api/v1}'/","url":"http://127.0.0.1:1/"}'
                   command curl -s $api/nodes/exchange -H 'Content-Type: application/json' -d "$own""#,
        values: &[],
    },
    Page { file: "install.md", configuration: "{}", before: "", values: &[("/usr/local/share/man", "man")] },
    Page {
        file: "interfaces.md",
        configuration: r#"{"network": {"bridges": [{"name": "eth3"}, {"name": "eth4"}]}}"#,
        before: "",
        values: &[],
    },
    Page { file: "privacy.md", configuration: "{}", before: "", values: &[] },
    Page {
        file: "routing.md",
        configuration: "{}",
        before: "tunnel nl",
        values: &[("2026-11-29T20:15:00Z", "'$(date -u +%FT%T.%3NZ)'")],
    },
    Page {
        file: "troubleshooting.md",
        configuration: "{}",
        before: "id=$(device); tunnel nl; gateway-ctl tunnels up nl; policy nl",
        values: &[],
    },
    Page {
        file: "tunnels.md",
        configuration: "{}",
        before: "tunnel nl",
        values: &[("upload-ovpn?name=nl", "upload-ovpn?name=one"), ("-F name=nl", "-F name=two")],
    },
];

#[test]
fn examples_of_the_documentation_run() {
    let pages = pages();
    let known: BTreeSet<&str> = pages.iter().map(|(file, _)| file.as_str()).collect();
    let unknown: Vec<&str> =
        PAGES.iter().map(|page| page.file).filter(|file| !known.contains(file)).collect();
    assert!(unknown.is_empty(), "pages without an example: {unknown:?}");
    let scripts: Vec<(&str, Option<&Page>, String)> = pages
        .iter()
        .map(|(file, text)| {
            let page = PAGES.iter().find(|page| page.file == file);
            (file.as_str(), page, script(text, page))
        })
        .collect();
    let lines = scripts.iter().flat_map(|(_, _, script)| script.lines());
    let run = lines.filter(|line| line.contains("curl") || line.contains("gateway-ctl")).count();
    assert!(pages.len() >= 10 && run >= 50, "{run} commands of {} pages", pages.len());
    // A page mostly waits for its daemon to start.
    let (one, other) = scripts.split_at(scripts.len() / 2);
    let failures = std::thread::scope(|scope| {
        let other = scope.spawn(|| failures(other));
        [failures(one), other.join().expect("no panic")].concat()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn failures(scripts: &[(&str, Option<&Page>, String)]) -> Vec<String> {
    let mut failures = Vec::new();
    for (file, page, script) in scripts {
        let mut testbed = Testbed::prepare().expect("scene");
        let configuration = page.map_or("{}", |page| page.configuration);
        let configuration = serde_json::from_str(configuration).expect("JSON");
        testbed.daemon.configure(&configuration).expect("configured");
        testbed.daemon.start().expect("started");
        let ran = run_script(&testbed, script);
        if ran.code != Some(0) {
            let end = ran.stdout.lines().last().unwrap_or_default();
            failures.push(format!("{file}: {end}\n{}", ran.stderr));
        }
    }
    failures
}

/// Negative control: a script that hides failures would prove nothing.
#[test]
fn an_example_that_fails_is_found() {
    let testbed = Testbed::start().expect("scene");
    let broken = [
        "curl -s $api/no-such-endpoint",
        "curl -s $api/devices/none | jq .data",
        "id=$(curl -s $api/devices/none | jq -r .data.id)",
        "gateway-ctl evaluate nobody",
        "gateway-ctl no-such-kind | head",
    ];
    for example in broken {
        let ran = run_script(&testbed, &format!("{PRELUDE}\n{example}\ntrue"));
        assert_ne!(ran.code, Some(0), "{example}");
    }
    let ran = run_script(&testbed, &format!("{PRELUDE}\ncurl -s $api/devices | jq .data"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

/// Returns the shell examples of each page that has some.
fn pages() -> Vec<(String, Vec<String>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let book =
        fs::read_dir(root.join("docs/src")).expect("the book").map(|entry| entry.expect("a page").path());
    let mut files: Vec<PathBuf> = book.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    files.push(root.join("README.md"));
    files.sort();
    let page = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a page");
        let blocks = text.split("```sh\n").skip(1).filter_map(|rest| rest.split_once("```"));
        let blocks: Vec<String> = blocks.map(|(block, _)| block.to_owned()).collect();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        (!blocks.is_empty()).then_some((name, blocks))
    };
    files.into_iter().filter_map(page).collect()
}

fn script(blocks: &[String], page: Option<&Page>) -> String {
    let is_run = |line: &&str| !NOT_RUN.iter().any(|program| line.starts_with(program));
    let lines: Vec<&str> = blocks.iter().flat_map(|block| block.lines()).filter(is_run).collect();
    let mut text = lines.join("\n");
    for (from, to) in page.map_or(&[][..], |page| page.values) {
        assert!(text.contains(from), "the page has no {from:?}");
        text = text.replace(from, to);
    }
    format!("{PRELUDE}\n{}\n{text}\n", page.map_or("", |page| page.before))
}

fn run_script(testbed: &Testbed, script: &str) -> Ran {
    let folder = tempfile::tempdir().expect("a folder");
    let file = testbed.network.exit_a.configuration_file();
    fs::write(folder.path().join("exit.conf"), file).expect("written");
    fs::write(folder.path().join("nl.ovpn"), examples::OVPN).expect("written");
    let client = program();
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", client.parent().expect("a folder").display());
    let mut command = Command::new("bash");
    command.args(["-c", script]).current_dir(folder.path()).env("PATH", path);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ran::of(inside(testbed, command).output().expect("bash runs"))
}
