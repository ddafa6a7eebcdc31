//! Files for Prometheus and Grafana in the package: rules that promtool takes, and expressions over metrics that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn promtool(arguments: &[&str], file: &Path) {
    let program = root().join("target/tools/promtool");
    assert!(program.is_file(), "no promtool: run `cargo xtask setup`");
    let output = Command::new(program).args(arguments).arg(file).output().expect("promtool starts");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}

/// Returns the names of metrics in a text.
fn metrics(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("gateway_")).map(str::to_owned).collect()
}

fn documented() -> BTreeSet<String> {
    metrics(&fs::read_to_string(root().join("docs/src/metrics.md")).expect("the page of metrics"))
}

fn dashboard() -> Value {
    let text = fs::read_to_string(root().join("packaging/grafana/gatewayd.json")).expect("the dashboard");
    serde_json::from_str(&text).expect("JSON")
}

fn panels(dashboard: &Value) -> &[Value] {
    dashboard["panels"].as_array().expect("panels")
}

fn expressions(dashboard: &Value) -> Vec<&str> {
    let targets = panels(dashboard).iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    targets.map(|target| target["expr"].as_str().expect("an expression")).collect()
}

#[test]
fn rules_pass_promtool_and_their_tests() {
    let folder = root().join("packaging/prometheus");
    promtool(&["check", "rules"], &folder.join("gatewayd.rules.yml"));
    promtool(&["test", "rules"], &folder.join("gatewayd.rules.test.yml"));
}

#[test]
fn rules_and_dashboard_use_metrics_that_are_documented() {
    let rules = fs::read_to_string(root().join("packaging/prometheus/gatewayd.rules.yml")).expect("rules");
    let dashboard = dashboard();
    let used = expressions(&dashboard).into_iter().chain([rules.as_str()]).flat_map(metrics);
    let unknown: Vec<String> = used.filter(|name| !documented().contains(name)).collect();
    assert!(unknown.is_empty(), "docs/src/metrics.md does not know {unknown:?}");
}

#[test]
fn prometheus_parses_every_expression_of_the_dashboard() {
    let dashboard = dashboard();
    let mut rules = String::from("groups:\n- name: dashboard\n  rules:\n");
    for (number, expression) in expressions(&dashboard).into_iter().enumerate() {
        let expression = expression.replace("$__rate_interval", "5m").replace("$__range", "6h");
        let quoted = serde_json::to_string(&expression).expect("a string");
        rules.push_str(&format!("  - record: dashboard:expression:{number}\n    expr: {quoted}\n"));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("expressions.yml");
    fs::write(&file, rules).expect("a file of rules");
    promtool(&["check", "rules"], &file);
}

/// Checks what Grafana needs of a panel: an id of its own, a kind, a title, a place in the 24 columns that no other panel
/// takes, and the data source of the variable.
#[test]
fn panels_of_the_dashboard_have_a_place_and_a_source() {
    let dashboard = dashboard();
    let mut taken: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    let mut ids = BTreeSet::new();
    for panel in panels(&dashboard) {
        let id = panel["id"].as_u64().expect("an id");
        assert!(ids.insert(id), "two panels have the id {id}");
        let kind = panel["type"].as_str().expect("a type");
        assert!(["row", "stat", "timeseries", "state-timeline"].contains(&kind), "{kind}");
        assert!(panel["title"].as_str().is_some_and(|title| !title.is_empty()), "{id} has no title");
        let place = |name: &str| panel["gridPos"][name].as_u64().expect(name);
        let (left, top, width, height) = (place("x"), place("y"), place("w"), place("h"));
        assert!(width > 0 && height > 0 && left + width <= 24, "{id} is outside of the columns");
        for column in left..left + width {
            for line in top..top + height {
                let other = taken.insert((column, line), id);
                assert_eq!(other, None, "{id} overlaps");
            }
        }
        if kind != "row" {
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{id}");
            assert!(
                panel["targets"].as_array().is_some_and(|targets| !targets.is_empty()),
                "{id} shows nothing"
            );
        }
    }
    let variables = dashboard["templating"]["list"].as_array().expect("variables");
    let names: Vec<&str> = variables.iter().filter_map(|variable| variable["name"].as_str()).collect();
    assert_eq!(names, ["datasource", "instance"]);
    assert!(dashboard["schemaVersion"].as_u64().is_some_and(|version| version >= 39));
}
