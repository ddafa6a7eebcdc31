//! Commands for logs, backups, captures, secrets and the assistant.

use super::build::{column, command, delete, get, list, operand, post, put};
use crate::grammar::{
    Arity, Bad, Column, Command, Flag, Group, Kind, ParameterKind, Prints, Special, Verdict, Work,
};

/// Shells with completions.
const SHELLS: &[&str] = &["bash", "zsh", "fish"];

const AUDIT: &[Column] = &[
    column("TIMESTAMP", "timestamp"),
    column("ACTOR", "actor"),
    column("ACTION", "action"),
    column("RESOURCE_TYPE", "resource_type"),
    column("RESOURCE_ID", "resource_id"),
    column("DETAILS", "details"),
    column("RESULT", "result"),
];

const ALERTS: &[Column] = &[
    column("ID", "id"),
    column("STATE", "status"),
    column("SEVERITY", "severity"),
    column("KIND", "kind"),
    column("RAISED_AT", "first_seen"),
    column("MESSAGE", "message"),
    column("MUTED_UNTIL", "muted_until"),
];

const ANOMALIES: &[Column] = &[
    column("ID", "id"),
    column("KIND", "kind"),
    column("SCORE", "score"),
    column("AT", "last_seen"),
    column("SUBJECT", "device_id"),
];

/// Stored secrets of receivers of alerts.
const RECEIVER_SECRETS: &[&str] = &["webhook.secret", "webhook.token", "email.password", "mqtt.password"];

const SNAPSHOTS: &[Column] = &[
    column("NAME", "name"),
    column("CREATED_AT", "created_at"),
    column("REASON", "reason"),
    column("SIZE", "size"),
    column("AUTHOR", "author"),
    column("SUMMARY", "summary"),
];

const SECRETS: &[Column] = &[
    column("KIND", "type"),
    column("NAME", "name"),
    column("ENCRYPTED", "encrypted"),
    column("FIELD", "field"),
    column("UPDATED_AT", "updated_at"),
    column("REF", "ref"),
];

pub(super) fn kinds(kinds: &mut Vec<Kind>) {
    let mut kind = |name, about, commands| {
        kinds.push(Kind { name, group: Group::Operations, about, commands });
    };
    let about = "Audit trail, newest first";
    kind("audit", about, vec![list(get("/audit"), about, AUDIT).examples(["audit", "audit | cut -f1-4"])]);
    let about = "Alerts, newest first";
    kind("alerts", about, alerts(about));
    let about = "Anomalies in the traffic of devices, newest first";
    kind(
        "anomalies",
        about,
        vec![list(get("/anomalies"), about, ANOMALIES).examples(["anomalies", "anomalies | cut -f2,5"])],
    );
    kind("backup", "Exports and scheduled backups", backup());
    objects(kinds);
}

/// Adds snapshots, secrets and tools.
fn objects(kinds: &mut Vec<Kind>) {
    let mut kind = |name, about, commands| {
        kinds.push(Kind { name, group: Group::Operations, about, commands });
    };
    let about = "Snapshots of the configuration, taken before each apply and import";
    kind(
        "snapshots",
        about,
        vec![list(get("/snapshots"), about, SNAPSHOTS).examples(["snapshots", "snapshots | cut -f1,3"])],
    );
    let about = "Roll back to a snapshot";
    kind(
        "rollback",
        about,
        vec![
            command("", post("/rollback"), about)
                .operands([operand("snapshot", ParameterKind::Object("/snapshots"), Arity::One)])
                .examples(["rollback NAME", "rollback NAME | jq ."]),
        ],
    );
    let about = "Stored secrets and their encryption, without the values";
    kind(
        "secrets",
        about,
        vec![list(get("/secrets"), about, SECRETS).examples(["secrets", "secrets | grep -w false"])],
    );
    kind("capture", "Packet captures", capture());
    let about = "Write a support bundle without names, addresses and secrets";
    kind(
        "bundle",
        about,
        vec![
            command("", post("/diagnostics/bundle"), about)
                .also_calls(&[get("/diagnostics/bundle/{id}"), get("/diagnostics/bundle/{id}/archive")])
                .operands([operand("file", ParameterKind::Text, Arity::Optional)])
                .work(Work::Special(Special::Bundle))
                .examples(["bundle", "bundle gateway.tar.gz"]),
        ],
    );
    kind("ai", "Assistant on this host", assistant());
    let about = "Print the completions for a shell";
    kind(
        "completion",
        about,
        vec![Command {
            calls: Vec::new(),
            ..command("", get(""), about)
                .operands([operand("shell", ParameterKind::Word(SHELLS), Arity::One)])
                .work(Work::Special(Special::Completion))
                .prints(Prints::Text)
                .examples([
                    "completion bash > /etc/bash_completion.d/gateway-ctl",
                    "completion fish > ~/.config/fish/completions/gateway-ctl.fish",
                ])
        }],
    );
}

fn alerts(about: &'static str) -> Vec<Command> {
    const MUTE: &[Flag] = &[Flag {
        name: "seconds",
        value: "n",
        field: "duration_sec",
        integer: true,
        required: true,
        about: "Time of the mute, 2592000 (30 days) at most",
    }];
    let id = operand("id", ParameterKind::Text, Arity::One);
    vec![
        list(get("/alerts"), about, ALERTS).examples(["alerts", "alerts | awk -F'\\t' '$2 == \"active\"'"]),
        command("mute", post("/alerts/{id}/mute"), "Notify no receiver of an alert for a time")
            .operands([id])
            .flags(MUTE)
            .examples(["alerts mute 7 --seconds 3600", "alerts mute 7 --seconds 86400 | jq -r .muted_until"]),
        command("unmute", post("/alerts/{id}/unmute"), "Lift the mute of an alert")
            .operands([id])
            .examples(["alerts unmute 7", "alerts unmute 7 | jq -r .status"]),
        command("clear-secret", put("/alerts/webhook"), "Clear a stored secret of a receiver of alerts")
            .also_calls(&[
                get("/alerts/webhook"),
                get("/alerts/email"),
                put("/alerts/email"),
                get("/alerts/mqtt"),
                put("/alerts/mqtt"),
            ])
            .operands([operand("secret", ParameterKind::Word(RECEIVER_SECRETS), Arity::One)])
            .work(Work::Special(Special::ClearSecret))
            .examples([
                "alerts clear-secret webhook.token",
                "alerts clear-secret webhook.secret | jq .has_secret",
            ]),
    ]
}

fn backup() -> Vec<Command> {
    vec![
        command("export", get("/config/export"), "Print the configuration without its secrets")
            .examples(["backup export > gateway.json", "backup export | jq keys"]),
        command("import", post("/config/import"), "Import a plain export, all or nothing")
            .operands([operand("file", ParameterKind::File, Arity::One)])
            .examples(["backup import gateway.json", "backup import /root/gateway.json | jq ."]),
        command("status", get("/backup/status"), "Last backups, the next one, and the target")
            .examples(["backup status", "backup status | jq -r .last_result"]),
        command("run", post("/backup/run"), "Create a backup now")
            .examples(["backup run", "backup run | jq -r .name"]),
    ]
}

fn capture() -> Vec<Command> {
    const FLAGS: &[Flag] = &[
        Flag {
            name: "iface",
            value: "interface",
            field: "interface",
            integer: false,
            required: true,
            about: "Interface to listen on",
        },
        Flag {
            name: "filter",
            value: "bpf",
            field: "filter",
            integer: false,
            required: false,
            about: "Filter expression for packets",
        },
        Flag {
            name: "count",
            value: "n",
            field: "count",
            integer: true,
            required: false,
            about: "Number of packets after which to stop, 50000 at most",
        },
    ];
    let id = operand("id", ParameterKind::Object("/diagnostics/captures"), Arity::One);
    vec![
        command("list", get("/diagnostics/captures"), "Running and recent captures")
            .examples(["capture list", "capture list | jq -r '.[].id'"]),
        command("start", post("/diagnostics/capture"), "Start a capture").flags(FLAGS).examples([
            "capture start --iface eth1",
            "capture start --iface eth1 --filter 'port 53' --count 100",
        ]),
        command("get", get("/diagnostics/capture/{id}"), "Status and packets of a capture")
            .operands([id])
            .examples(["capture get ID", "capture get ID | jq ."]),
        command("stop", delete("/diagnostics/capture/{id}"), "Stop a capture")
            .operands([id])
            .examples(["capture stop ID", "capture stop ID | jq ."]),
    ]
}

fn assistant() -> Vec<Command> {
    const MODELS: &[Column] = &[
        column("NAME", "name"),
        column("SIZE", "size"),
        column("VRAM", "size_vram"),
        column("UNTIL", "expires_at"),
    ];
    let text = operand("text", ParameterKind::Text, Arity::One);
    let name = operand("name", ParameterKind::Text, Arity::One);
    vec![
        command("status", get("/ai/status"), "Status of the assistant")
            .examples(["ai status", "ai status | jq .reachable"]),
        command("query", post("/ai/query"), "Request a suggestion; applies nothing")
            .operands([text])
            .remark("suggestion only; nothing was applied")
            .examples([
                "ai query 'send the TV through the tunnel to Sweden'",
                "ai query 'why is it slow' | jq -r .answer",
            ]),
        command("policy", post("/ai/policy"), "Request a policy; applies nothing")
            .operands([text])
            .remark("suggestion only; nothing was applied")
            .examples([
                "ai policy 'block the guests'",
                "ai policy 'block the guests' | jq '.suggestions[0].body'",
            ]),
        list(get("/ai/models/running"), "Models in memory", MODELS)
            .verb("models")
            .examples(["ai models", "ai models | cut -f1"]),
        command("load", post("/ai/models/load"), "Load a model into memory")
            .operands([name])
            .examples(["ai load qwen2.5:3b", "ai load qwen2.5:3b | jq .loaded"]),
        command("unload", post("/ai/models/unload"), "Free the memory of a model")
            .operands([name])
            .examples(["ai unload qwen2.5:3b", "ai unload qwen2.5:3b | jq .loaded"]),
        command("pull", post("/ai/models/pull"), "Start the download of a model")
            .operands([name])
            .examples(["ai pull qwen2.5:3b", "ai pull qwen2.5:3b | jq -r .state"]),
        command("remove", delete("/ai/models/{name}"), "Remove a model from the server")
            .operands([name])
            .examples(["ai remove qwen2.5:3b", "ai remove qwen2.5:3b | jq .deleted"]),
        command("service", post("/ai/service"), "Start or stop the local server of models")
            .operands([operand("action", ParameterKind::Word(&["start", "stop"]), Arity::One)])
            .examples(["ai service start", "ai service stop"]),
        command("validate", post("/ai/validate"), "Check a policy; changes nothing")
            .operands([operand("json", ParameterKind::Json, Arity::Optional)])
            .verdict(Verdict { field: "/valid", bad: Bad::False, exit: 6 })
            .examples(["ai validate policy.json", "ai validate policy.json | jq .issues"]),
    ]
}
