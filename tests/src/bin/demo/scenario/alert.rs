//! The exit of a tunnel dies: one alert reaches an Alertmanager, what follows from it is below it, and both end when the exit
//! is back.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use gateway_tests::process::Process;
use gateway_tests::services::HTTP;
use gateway_tests::topology::server;
use gateway_tests::traffic::ask;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use super::{Walk, text};

/// Port of the Alertmanager on the internet.
const PORT: u16 = 9093;
/// Seconds without an answer to data after which a tunnel is down: the least that can be set.
const LIVENESS_SEC: u32 = 12;
/// Time until an alert is raised and delivered, and until its end is.
const ALERT_TIME: Duration = Duration::from_secs(90);
/// Timeout of a request of the laptop.
const REQUEST_TIME: Duration = Duration::from_millis(500);

impl Walk {
    pub(super) fn alert(&mut self) -> Result<()> {
        self.console
            .step("alert", "exit A dies: an Alertmanager on the internet gets one alert, and its end");
        let manager = self.start_alertmanager()?;
        let url = format!("http://{}:{PORT}", server(false));
        let webhook = json!({"enabled": true, "format": "alertmanager-v2", "url": url});
        self.console.call(&self.curl("PUT", "/alerts/webhook", Some(&webhook)))?;
        let mut tunnel = self.testbed.network.exit_a.tunnel("wg-a");
        // Fields that the body omits are secrets and stay.
        tunnel.as_object_mut().context("an object")?.remove("private_key");
        tunnel["health_check"] = json!({"liveness_sec": LIVENESS_SEC});
        self.testbed.api().put(&format!("/tunnels/{}", self.tunnels[0]), &tunnel)?;
        self.console.call(&self.curl("POST", &format!("/tunnels/{}/up", self.tunnels[0]), None))?;
        self.wait_for_tunnel(0)?;
        self.testbed.network.exit_a.kill9()?;
        self.console.say("exit A is dead; the laptop goes on asking");
        self.wait_for_alerts("tunnel_down", 1)?;
        let consequence = self.wait_for_consequence()?;
        let received = self.console.run(&self.received("tunnel_down"))?;
        let received: Value = serde_json::from_str(&received).context("alerts of the Alertmanager")?;
        self.console.claim(
            "the Alertmanager has an alert of",
            "wg-a",
            text(&received[0]["labels"]["tunnel"]),
        );
        self.console.say(text(&received[0]["annotations"]["summary"]));
        self.console.claim(
            "it names as its consequence the policy",
            "vpn-only",
            text(&consequence["labels"]["routing_policy"]),
        );
        let sent = self.console.run(&self.received("policy_blocked"))?;
        self.console.claim("and no alert of the policy itself", "[]", sent);
        self.testbed.network.exit_a.start()?;
        self.console.say("exit A is back");
        self.wait_for_alerts("tunnel_down", 0)?;
        let received = self.console.run(&self.received("tunnel_down"))?;
        self.console.claim("the Alertmanager has", "[]", received);
        let webhook = json!({"enabled": false, "format": "alertmanager-v2", "url": url});
        self.console.call(&self.curl("PUT", "/alerts/webhook", Some(&webhook)))?;
        self.testbed.network.tap.reset();
        drop(manager);
        Ok(())
    }

    fn start_alertmanager(&self) -> Result<Process> {
        let configuration = self.files.path().join("alertmanager.yml");
        std::fs::write(&configuration, "route: {receiver: none}\nreceivers: [{name: none}]\n")?;
        let mut command = self.testbed.network.internet.command("prometheus-alertmanager");
        command.arg(format!("--config.file={}", configuration.display()));
        command.arg(format!("--storage.path={}", self.files.path().join("alertmanager").display()));
        command
            .arg(format!("--web.listen-address={}:{PORT}", server(false)))
            .arg("--cluster.listen-address=");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let manager = Process::spawn(command).context("prometheus-alertmanager of `cargo xtask setup`")?;
        wait_ok(ALERT_TIME, "the Alertmanager", || self.count_received("tunnel_down").map(drop))?;
        Ok(manager)
    }

    /// Returns the command that shows the active alerts of a kind at the Alertmanager.
    fn received(&self, kind: &str) -> String {
        let url = format!("http://{}:{PORT}/api/v2/alerts?filter=alertname=%22{kind}%22", server(false));
        self.testbed.network.internet.shown(&format!("curl -s -g '{url}'"))
    }

    fn count_received(&self, kind: &str) -> Result<usize> {
        let url = format!("http://{}:{PORT}/api/v2/alerts?filter=alertname=%22{kind}%22", server(false));
        let said = self.testbed.network.internet.run("curl", &["-s", "-g", &url])?;
        let alerts: Vec<Value> = serde_json::from_str(&said)?;
        Ok(alerts.len())
    }

    /// Waits while the laptop asks a server now and then. A load would begin so many flows that later ones are not recorded,
    /// and an unrecorded flow takes its exit by its addresses instead of in turn.
    fn wait_for_alerts(&self, kind: &str, count: usize) -> Result<()> {
        wait_ok(ALERT_TIME, &format!("{count} alerts of {kind} at the Alertmanager"), || {
            ask(&self.testbed.network.laptop, (server(false), HTTP).into(), REQUEST_TIME);
            let found = self.count_received(kind)?;
            ensure!(found == count, "{found}");
            Ok(())
        })
    }

    /// Waits for the alert of the policy, and returns it. It has the one of the tunnel as its cause.
    fn wait_for_consequence(&self) -> Result<Value> {
        let active = || -> Result<Value> {
            let alerts = self.testbed.api().get("/alerts/active")?;
            let find = |kind: &str| {
                alerts.as_array().into_iter().flatten().find(|alert| alert["kind"] == kind).cloned()
            };
            let (cause, consequence) = (find("tunnel_down"), find("policy_blocked"));
            let (cause, consequence) = (cause.context("no cause")?, consequence.context("no consequence")?);
            ensure!(consequence["caused_by"] == cause["id"], "{alerts}");
            Ok(consequence)
        };
        let found = wait_ok(ALERT_TIME, "the alert of the policy below that of the tunnel", active)?;
        self.console.call(&self.curl("GET", "/alerts/active", None))?;
        Ok(found)
    }
}
