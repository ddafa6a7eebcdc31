//! The past: a flow from before an apply is asked why it left as it did, and the plan of then answers.

use std::net::IpAddr;

use anyhow::{Context, Result, ensure};
use gateway_tests::testbed::policy;
use gateway_tests::topology::server;
use gateway_tests::traffic::ask_server;
use gateway_tests::wait::wait_ok;
use serde_json::json;

use super::{SOON, Walk, fetch, text};

impl Walk {
    pub(super) fn ask_the_past(&mut self) -> Result<()> {
        self.console
            .step("then?", "the laptop leaves by wg-b from now on; why did a flow of before leave by wg-a?");
        let query = format!("device={}&egress=wg-a&state=ended&limit=1", self.laptop);
        let flow = wait_ok(SOON, "a flow of the laptop in the flow log", || {
            let flows = self.testbed.api().get(&format!("/flows?{query}"))?;
            flows.get(0).cloned().context("none")
        })?;
        self.console.call(&self.curl("GET", &format!("'/flows?{query}'"), None))?;

        self.send_the_laptop_by("wg-b")?;
        let exit = self.testbed.network.exit_b.address(false);
        self.wait_to_be_seen_as(exit)?;
        let seen = self.console.run(&fetch(&self.testbed.network.laptop, false))?;
        self.console.claim("the laptop is seen as (exit B)", exit, seen);
        let question = json!({"device_id": self.laptop, "to": format!("{}:80", server(false))});
        let now = self.console.call(&self.curl("POST", "/policy/evaluate", Some(&question)))?;
        self.console.claim("the plan of now says", "vpn:wg-b", text(&now["families"]["ipv4"]["via"]));

        let question = json!({"flow_id": flow["flow_id"]});
        let then = self.console.call(&self.curl("POST", "/policy/evaluate", Some(&question)))?;
        self.console.say(format!("the flow began at {}", text(&flow["started_at"])));
        self.console.say(text(&then["sentence"]));
        self.console.claim("the plan of then says", "tunnel", text(&then["decision"]));
        self.console.claim("the flow left by", "wg-a", text(&then["flow"]["egress"]));
        self.console.claim("both", "agrees", text(&then["flow"]["comparison"]["result"]));
        self.console.claim("that plan is over", true, then["as_of"]["until"].is_string());
        self.console.claim("and was compiled again as it was", true, &then["as_of"]["reproduced"]);

        self.send_the_laptop_by("wg-a")?;
        self.wait_to_be_seen_as(self.testbed.network.exit_a.address(false))
    }

    fn wait_to_be_seen_as(&self, exit: IpAddr) -> Result<()> {
        wait_ok(SOON, "the laptop to leave by the other exit", || {
            let seen = ask_server(&self.testbed.network.laptop, server(false)).seen();
            ensure!(seen == Some(exit), "seen as {seen:?}");
            Ok(())
        })
    }

    fn send_the_laptop_by(&self, tunnel: &str) -> Result<()> {
        let changed = policy("vpn-only", 10, ("device", &self.laptop), &[tunnel]);
        let path = format!("/routing/policies/{}", self.policy);
        self.console.call(&self.curl("PUT", &path, Some(&changed)))?;
        self.apply()
    }
}
