//! `/metrics` of a running gateway.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use gateway_tests::testbed::{Testbed, policy};
use serde_json::json;

use crate::e2e::wait_until_through;

#[test]
fn metrics_cover_dataplane_and_resolver_and_pass_promtool() {
    let testbed = Testbed::start().expect("scene");
    let laptop = testbed.device(&testbed.network.laptop).expect("device");
    testbed.tunnel("wg-a", &testbed.network.exit_a).expect("tunnel");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    let upstream = json!({"value": ["192.0.2.53"]});
    testbed.api().put("/settings/dns.upstream_servers", &upstream).expect("an upstream");
    wait_until_through(&testbed.network.laptop, &testbed.network.exit_a);
    let metrics =
        testbed.network.gateway.run("curl", &["-s", "http://127.0.0.1:8080/metrics"]).expect("metrics");
    for name in [
        "gateway_start_time_seconds ",
        "gateway_reconcile_duration_seconds ",
        "gateway_reconcile_drift_total ",
        "gateway_verdict_packets_total{reason=\"policy_",
        "gateway_tunnel_transmit_bytes_total{",
        "gateway_dns_queries_total ",
        "gateway_dns_cache_hits_total ",
        "gateway_dns_dropped_queries_total{reason=\"rate_limit\"",
        "gateway_dns_upstream_up{",
    ] {
        assert!(metrics.lines().any(|line| line.starts_with(name)), "{name} is not in\n{metrics}");
    }
    let value = |name: &str| {
        let line = metrics.lines().find(|line| line.starts_with(name)).expect(name);
        line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok()).expect(name)
    };
    assert!(value("gateway_start_time_seconds ") > 1.7e9);
    assert!(value("gateway_tunnel_transmit_bytes_total{") > 0.0);
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/metrics.md"));
    let page = page.expect("the page of metrics");
    let families = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let unknown: Vec<&str> = families.filter(|line| !page.contains(&documented_name(line))).collect();
    assert!(unknown.is_empty(), "docs/src/metrics.md does not know {unknown:?}");
    let problems = promtool(&prometheus_text(&metrics));
    assert!(problems.is_empty(), "{problems}\n{metrics}");
}

/// Returns the name of a family as the page has it: that of its samples.
fn documented_name(family: &str) -> String {
    match family.split_once(' ') {
        Some((name, "counter")) => format!("`{name}_total"),
        Some((name, "info")) => format!("`{name}_info"),
        Some((name, _)) => format!("`{name}"),
        None => family.to_owned(),
    }
}

/// Returns the metrics in Prometheus' own text format, which promtool parses. There the family of a counter has the
/// suffix of its samples, too.
fn prometheus_text(openmetrics: &str) -> String {
    let mut counters = Vec::new();
    for line in openmetrics.lines() {
        if let Some(name) = line.strip_prefix("# TYPE ").and_then(|rest| rest.strip_suffix(" counter")) {
            counters.push(name);
        }
    }
    let line = |line: &str| {
        let renamed = counters.iter().find_map(|name| {
            ["# TYPE ", "# HELP "].into_iter().find_map(|start| {
                let rest = line.strip_prefix(start)?.strip_prefix(name)?;
                rest.starts_with(' ').then(|| format!("{start}{name}_total{rest}\n"))
            })
        });
        renamed.unwrap_or_else(|| format!("{line}\n"))
    };
    openmetrics.lines().map(line).collect()
}

fn promtool(metrics: &str) -> String {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/promtool");
    assert!(program.is_file(), "no promtool: run `cargo xtask setup`");
    let mut checking = Command::new(program)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool starts");
    checking.stdin.take().expect("stdin").write_all(metrics.as_bytes()).expect("metrics are written");
    let output = checking.wait_with_output().expect("promtool ends");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success() || !said.is_empty(), "promtool: {}", output.status);
    said
}
