//! Drains a tunnel of the pool: existing flows continue, new flows use other tunnels.

use anyhow::{Context, Result, ensure};
use gateway_tests::topology::server;
use gateway_tests::traffic::{TIMEOUT, TcpFlow};

use super::{Walk, count, fetch, text};

impl Walk {
    pub(super) fn drain(&mut self) -> Result<()> {
        self.console.step("drain", "the tunnel to exit A is taken down while connections are in it");
        let exit = self.testbed.network.exit_a.address(false);
        let mut flow = self.flow_through_exit_a()?;
        self.console.call(&self.curl("POST", &format!("/tunnels/{}/down", self.tunnels[0]), None))?;
        // The request returns when the programs have the new plan.
        self.console.call(&self.curl("POST", "/enforce/reconcile", None))?;
        let status = self.console.call(&self.curl("GET", "/splitting/status", None))?;
        let members = &status["policies"][0]["endpoints"];
        self.console.claim("wg-a is", "draining", text(&members[0]["state"]));
        self.console.claim("wg-b is", "active", text(&members[1]["state"]));
        self.console.claim("the connection of before is still by exit A", exit, flow.ask(TIMEOUT));
        let one = fetch(&self.testbed.network.laptop, false);
        let tally = self.console.run(&format!("for i in $(seq 10); do {one}; done | sort | uniq -c"))?;
        let network = &self.testbed.network;
        for (exit, name, expected) in [(&network.exit_a, "exit A", 0), (&network.exit_b, "exit B", 10)] {
            self.console.claim(&format!("new connections by {name}"), expected, count(&tally, exit, false));
        }
        self.console.call(&self.curl("POST", &format!("/tunnels/{}/up", self.tunnels[0]), None))?;
        self.wait_for_tunnel(0)?;
        self.console.claim("and when wg-a is up again", exit, flow.ask(TIMEOUT));
        self.claim_no_leak()
    }

    fn flow_through_exit_a(&self) -> Result<TcpFlow> {
        let network = &self.testbed.network;
        for _ in 0..4 {
            let mut flow = TcpFlow::open(&network.laptop, server(false))?;
            let seen = flow.ask(TIMEOUT).seen().context("no answer")?;
            if seen == network.exit_a.address(false) {
                return Ok(flow);
            }
            ensure!(seen == network.exit_b.address(false), "seen as {seen}");
        }
        anyhow::bail!("no connection of four took exit A")
    }
}
