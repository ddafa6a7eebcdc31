//! Hops of two tunnels: one tunnel inside the other.

use anyhow::Result;
use gateway_tests::testbed::policy;
use gateway_tests::wait::wait_ok;
use serde_json::json;

use super::{SOON, Walk};

impl Walk {
    pub(super) fn nest(&mut self) -> Result<()> {
        self.console.step("two hops", "the tunnel to exit B rides inside the tunnel to exit A");
        let mut nested = policy("vpn-only", 10, ("device", &self.laptop), &["wg-a", "wg-b"]);
        nested["splitting"] = json!(false);
        self.console.call(&self.curl("PUT", &format!("/routing/policies/{}", self.policy), Some(&nested)))?;
        self.apply()?;
        let (a, b) = [&self.testbed.network.exit_a, &self.testbed.network.exit_b]
            .map(|exit| exit.address(false))
            .into();
        wait_ok(SOON, "the inner tunnel to be there again", || {
            let seen = self.testbed.network.laptop.namespace.run("curl", &["-s", "-m", "2", &url()])?;
            anyhow::ensure!(seen.trim() == b.to_string(), "{seen}");
            Ok(())
        })?;
        let counts = self.fetch_as("laptop is seen as (exit B)", |network| &network.exit_b)?;
        let heard: Vec<String> = counts.endpoints.keys().map(ToString::to_string).collect();
        self.console.claim("whom the uplink sees the gateway talk to (exit A only)", a, heard.join(", "));
        self.claim_no_leak()
    }
}

fn url() -> String {
    format!("http://{}/ip", gateway_tests::topology::SERVER_V4)
}
