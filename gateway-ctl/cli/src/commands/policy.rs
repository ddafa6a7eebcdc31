//! Commands that evaluate and change policies.

use super::build::{column, command, get, operand, post};
use crate::grammar::{Arity, Bad, Column, Group, Kind, Operand, ParameterKind, Prints, Verdict};

const CONFLICTS: &[Column] = &[
    column("POLICY_A", "names.0"),
    column("POLICY_B", "names.1.."),
    column("KIND", "kind"),
    column("REASON", "message"),
    column("SEVERITY", "severity"),
    column("IDS", "policies"),
];

const FAIL_MATRIX: &[Column] = &[
    column("POLICY", "name"),
    column("FAIL_POLICY", "fail_policy"),
    column("WHEN_DOWN", "if_all_fail"),
    column("CURRENT", "current"),
    column("IF_FIRST_FAILS", "if_first_fails"),
    column("LEAK_POSSIBLE", "leak_possible"),
];

const PLAN: Operand = operand("file", ParameterKind::Json, Arity::Optional);
/// A rejected plan has the same exit code as a rejected request.
const INVALID: Verdict = Verdict { field: "/valid", bad: Bad::False, exit: 6 };

pub(super) fn kinds(kinds: &mut Vec<Kind>) {
    let mut kind = |name, about, commands| {
        kinds.push(Kind { name, group: Group::Policy, about, commands });
    };
    let about = "Apply a plan of several objects, all or nothing";
    kind(
        "apply",
        about,
        vec![
            command("", post("/apply"), about)
                .operands([PLAN])
                .verdict(INVALID)
                .examples(["apply plan.json", "apply < plan.json"]),
        ],
    );
    let about = "Preview a plan of several objects; changes nothing";
    kind(
        "validate",
        about,
        vec![
            command("", post("/validate"), about)
                .operands([PLAN])
                .verdict(INVALID)
                .examples(["validate plan.json", "validate plan.json | jq .changes"]),
        ],
    );
    let about = "Put stored policies back to their applied form";
    kind(
        "discard",
        about,
        vec![
            command("", post("/routing/policies/discard"), about)
                .examples(["discard", "discard | jq -r '.remaining[].reason'"]),
        ],
    );
    let about = "Changes of policies that wait for an apply";
    kind(
        "pending",
        about,
        vec![command("", get("/routing/pending"), about).examples(["pending", "pending | jq -r '.[].name'"])],
    );
    let about = "Conflicting policies and policies with missing targets";
    kind(
        "conflicts",
        about,
        vec![
            command("", post("/policy/conflicts"), about)
                .prints(Prints::Table(CONFLICTS))
                .examples(["conflicts", "conflicts | cut -f3,4"]),
        ],
    );
    enforcement(kinds);
}

/// Adds what the gateway enforces, and its tests.
fn enforcement(kinds: &mut Vec<Kind>) {
    let mut kind = |name, about, commands| {
        kinds.push(Kind { name, group: Group::Policy, about, commands });
    };
    let about = "Compiled dataplane: maps, rules, routes, counters";
    kind(
        "render",
        about,
        vec![command("", get("/render"), about).examples(["render", "render | jq -r '.rules[]'"])],
    );
    let about = "Compiled policies as enforced";
    kind(
        "enforce",
        about,
        vec![
            command("", get("/enforce"), about)
                .examples(["enforce", "enforce | jq '.legs[] | select(.usable | not)'"]),
            command("reconcile", post("/enforce/reconcile"), RECONCILE)
                .examples(["enforce reconcile", "enforce reconcile | jq .ok"]),
        ],
    );
    kind(
        "reconcile",
        RECONCILE,
        vec![
            command("", post("/enforce/reconcile"), RECONCILE)
                .examples(["reconcile", "reconcile | jq .drift"]),
        ],
    );
    let about = "Leak matrix: behaviour of each policy in each state of the tunnels";
    kind(
        "leak-matrix",
        about,
        vec![
            command("", get("/policy/leak-matrix"), about)
                .prints(Prints::LeakMatrix)
                .examples(["leak-matrix", "leak-matrix | grep DIRECT"]),
        ],
    );
    let about = "Behaviour of each policy without its first hop, and without any hop";
    kind(
        "fail-matrix",
        about,
        vec![
            command("", get("/policy/fail-matrix"), about)
                .prints(Prints::Table(FAIL_MATRIX))
                .examples(["fail-matrix", "fail-matrix | cut -f1,3"]),
        ],
    );
    let about = "Test for leaks of names, addresses and routes";
    kind(
        "leak-check",
        about,
        vec![
            command("", post("/privacy/leak-check"), about)
                .verdict(Verdict { field: "/verdict", bad: Bad::Text("fail"), exit: 7 })
                .examples(["leak-check", "leak-check | jq -r .verdict"]),
        ],
    );
}

const RECONCILE: &str = "Compare the kernel with the plan now, and repair differences";
