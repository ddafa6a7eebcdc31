//! `/metrics` at VictoriaMetrics, by the set-up that the documentation has, and the alerting rules of the package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use gateway_tests::netns::Namespace;
use gateway_tests::process::Process;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::wait::wait_ok;
use serde_json::Value;
use tempfile::TempDir;

use crate::e2e::{SOON, wait_until_through};

const DATABASE: &str = "127.0.0.1:8428";
const RULES: &str = "127.0.0.1:8880";

fn file_of_project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// Returns the configuration of the documentation, for a gateway on this host that is read each second.
fn configuration() -> String {
    let page = fs::read_to_string(file_of_project("docs/src/flow-history.md")).expect("the page");
    let (_, block) = page.split_once("```yaml\n").expect("a configuration");
    let (block, _) = block.split_once("```").expect("its end");
    assert!(block.contains("192.168.10.1:8080") && block.contains("15s"), "{block}");
    block.replace("192.168.10.1:8080", "127.0.0.1:8080").replace("15s", "1s")
}

/// The data base and its evaluation of rules, in the namespace of the gateway.
struct VictoriaMetrics<'a> {
    gateway: &'a Namespace,
    _processes: [Process; 2],
    _folder: TempDir,
}

impl VictoriaMetrics<'_> {
    fn start(gateway: &Namespace) -> Result<VictoriaMetrics<'_>> {
        let folder = tempfile::tempdir()?;
        let scrape = folder.path().join("scrape.yml");
        fs::write(&scrape, configuration())?;
        let spawn = |program: &str, arguments: &[String]| {
            let mut command = gateway.command(program);
            command.args(arguments).current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
            gateway.spawn(command).context("a program of `cargo xtask setup`")
        };
        let database = spawn(
            "victoria-metrics",
            &[
                format!("-promscrape.config={}", scrape.display()),
                format!("-storageDataPath={}", folder.path().join("data").display()),
                format!("-httpListenAddr={DATABASE}"),
                // The newest values count.
                "-search.latencyOffset=1s".to_owned(),
            ],
        )?;
        let rules = spawn(
            "vmalert",
            &[
                format!("-rule={}", file_of_project("packaging/prometheus/gatewayd.rules.yml").display()),
                format!("-datasource.url=http://{DATABASE}"),
                // No Alertmanager listens there.
                "-notifier.url=http://127.0.0.1:9".to_owned(),
                format!("-httpListenAddr={RULES}"),
                "-evaluationInterval=1s".to_owned(),
            ],
        )?;
        Ok(VictoriaMetrics { gateway, _processes: [database, rules], _folder: folder })
    }

    fn get(&self, at: &str, path: &str, query: &str) -> Result<Value> {
        let url = format!("http://{at}/api/v1/{path}");
        let query = format!("query={query}");
        let arguments = ["-sS", "--fail", "--get", "--data-urlencode", &query, &url];
        let body = self.gateway.run("curl", &arguments)?;
        Ok(serde_json::from_str(&body)?)
    }

    /// Returns the newest value of a query with one result.
    fn value(&self, query: &str) -> Result<f64> {
        let answer = self.get(DATABASE, "query", query)?;
        let text =
            answer["data"]["result"][0]["value"][1].as_str().with_context(|| format!("{query}: {answer}"))?;
        Ok(text.parse()?)
    }
}

#[test]
fn victoria_metrics_takes_the_metrics_and_evaluates_the_rules() {
    let mut testbed = Testbed::start().expect("a testbed");
    let laptop = testbed.device(&testbed.network.laptop).expect("a device");
    testbed.tunnel("wg-a", &testbed.network.exit_a).expect("a tunnel");
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("a policy");
    let victoria = VictoriaMetrics::start(&testbed.network.gateway).expect("VictoriaMetrics");
    wait_until_through(&testbed.network.laptop, &testbed.network.exit_a);
    wait_ok(SOON, "the bytes of the tunnel", || {
        ensure!(victoria.value("up{job=\"gatewayd\"}")? == 1.0, "not read");
        let sent = victoria.value("sum(gateway_tunnel_transmit_bytes_total)")?;
        ensure!(sent > 0.0, "{sent} bytes");
        Ok(())
    })
    .expect("values");
    wait_ok(SOON, "the rules", || {
        let groups = victoria.get(RULES, "rules", "")?["data"]["groups"].clone();
        let groups = groups.as_array().context("groups")?;
        let rules: Vec<&Value> =
            groups.iter().flat_map(|group| group["rules"].as_array().into_iter().flatten()).collect();
        let written = fs::read_to_string(file_of_project("packaging/prometheus/gatewayd.rules.yml"))?;
        ensure!(rules.len() == written.matches("- alert:").count(), "{} rules", rules.len());
        for rule in rules {
            let is_evaluated = rule["lastEvaluation"].as_str().is_some_and(|time| !time.starts_with("0001"));
            ensure!(is_evaluated && rule["lastError"].as_str() == Some(""), "{rule:#}");
        }
        Ok(())
    })
    .expect("evaluated");
    testbed.daemon.kill9().expect("killed");
    wait_ok(SOON, "the alert about a gateway that does not answer", || {
        let alerts = victoria.get(RULES, "alerts", "")?;
        let alerts = alerts["data"]["alerts"].as_array().context("alerts")?.clone();
        ensure!(alerts.iter().any(|alert| alert["name"] == "GatewayNotScraped"), "{alerts:?}");
        Ok(())
    })
    .expect("pending");
}
