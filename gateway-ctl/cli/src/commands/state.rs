//! Commands for the state of the gateway and of its network.

use super::build::{column, command, get, operand, post};
use crate::grammar::{Arity, Bad, Column, Flag, Group, Kind, ParameterKind, Prints, Special, Verdict, Work};

const DRIFT: &[Column] = &[
    column("TYPE", "type"),
    column("RESOURCE", "resource"),
    column("FIELD", "field"),
    column("EXPECTED", "expected"),
    column("ACTUAL", "actual"),
    column("SEVERITY", "severity"),
    column("DETECTED_AT", "detected_at"),
    column("REPAIRED", "repaired"),
];

const EVALUATE: &[Flag] = &[Flag {
    name: "flow",
    value: "id",
    field: "flow_id",
    integer: false,
    required: false,
    about: "Instead of a device: a flow of the flow log, by the plan that decided on it",
}];

pub(super) fn kinds(kinds: &mut Vec<Kind>) {
    let mut kind = |name, about, command| {
        kinds.push(Kind { name, group: Group::State, about, commands: vec![command] });
    };
    let about = "Version, readiness, uptime, age of the snapshot, revisions";
    kind("status", about, command("", get("/status"), about).examples(["status", "status | jq .ready"]));
    let about = "Liveness of the daemon, and whether it enforces policies";
    kind("health", about, command("", get("/health"), about).examples(["health", "health | jq -r .status"]));
    let about = "Result of the last reconcile run, by subsystem";
    kind(
        "observer",
        about,
        command("", get("/observer"), about)
            .examples(["observer", "observer | jq '.[] | select(.state != \"ok\")'"]),
    );
    let about = "Host: processor, memory, disks, network interfaces, temperature";
    kind(
        "platform",
        about,
        command("", get("/platform"), about).examples(["platform", "platform | jq .cpu_temp"]),
    );
    let about = "Version of the client and of the server; the server is null if it cannot be reached";
    kind(
        "version",
        about,
        command("", get("/version"), about)
            .work(Work::Special(Special::Version))
            .examples(["version", "version | jq -r .server.version"]),
    );
    explanations(kinds);
}

/// Adds what compares and explains.
fn explanations(kinds: &mut Vec<Kind>) {
    let mut kind = |name, about, command| {
        kinds.push(Kind { name, group: Group::State, about, commands: vec![command] });
    };
    let about = "Health, subsystems, drift, leaks, enforcement and the installed plan in one answer";
    kind(
        "verify",
        about,
        command("", get("/health"), about)
            .also_calls(&[
                get("/observer"),
                get("/drift"),
                get("/policy/leak-matrix"),
                get("/enforce"),
                get("/verify"),
            ])
            .work(Work::Special(Special::Verify))
            .verdict(Verdict { field: "/ok", bad: Bad::False, exit: 7 })
            .examples(["verify", "verify | jq '.checks[] | select(.ok | not)'"]),
    );
    let about = "Recent drift: kernel changes by other programs, newest first";
    kind(
        "drift",
        about,
        command("", get("/drift"), about)
            .prints(Prints::Table(DRIFT))
            .examples(["drift", "drift | cut -f1,2"]),
    );
    let about = "Explain the decision for the traffic of a device; sends no packet";
    kind(
        "evaluate",
        about,
        command("", post("/policy/evaluate"), about)
            .also_calls(&[get("/devices")])
            .operands([operand("device", ParameterKind::Object("/devices"), Arity::Optional)])
            .flags(EVALUATE)
            .work(Work::Special(Special::Evaluate))
            .examples([
                "evaluate laptop | jq -r .sentence",
                "evaluate --flow 19aabbccddeeff00 | jq .flow.comparison",
            ]),
    );
}
