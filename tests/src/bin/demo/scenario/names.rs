//! DNS: a blocked name with the reason, and a name whose policy applies to the first packet.

use anyhow::{Context, Result, ensure};
use gateway_tests::testbed::policy;
use gateway_tests::topology::{LAN_V4, SERVER_V4, server, wan};
use gateway_tests::wait::wait_ok;
use serde_json::json;

use super::{SOON, Walk, id, text};

impl Walk {
    pub(super) fn names(&mut self) -> Result<()> {
        self.console
            .step("names", "the tv asks the gateway: a blocked name, and one that a policy sends by wg-b");
        let tv = &self.testbed.network.tv.namespace;
        let dig = |name: &str| tv.shown(&format!("dig +short +time=2 @{LAN_V4} {name} A"));
        let seen = self.console.run(&dig("ads.example"))?;
        self.console.claim("ads.example is", server(false), seen);
        let blocked = json!({"domains": ["ads.example"]});
        self.console.call(&self.curl("POST", "/dns/blocklist", Some(&blocked)))?;
        wait_ok(SOON, "the name to be blocked", || {
            let seen = tv.run("dig", &["+short", &format!("@{LAN_V4}"), "ads.example", "A"])?;
            ensure!(seen.trim() == "0.0.0.0", "{seen}");
            Ok(())
        })?;
        let seen = self.console.run(&dig("www.ads.example"))?;
        self.console.claim("once blocked, www.ads.example is", "0.0.0.0", seen);
        let log = self.console.call(&self.curl("GET", "/dns/log?status=blocked", None))?;
        self.console.claim("by", "blocklist", text(&log[0]["reason"]));
        self.console.claim("namely", "ads.example", text(&log[0]["rule"]));

        let films = policy("films", 20, ("domain", "films.example"), &["wg-b"]);
        let films = id(&self.console.call(&self.curl("POST", "/routing/policies", Some(&films)))?)?;
        self.apply()?;
        let fetch = format!("curl -s -m 2 http://{SERVER_V4}/ip");
        let seen = self.console.run(&tv.shown(&fetch))?;
        self.console.claim("before it has asked for a name the tv is seen as", wan(false), seen);
        let asked = format!("sh -c 'dig +short @{LAN_V4} www.films.example A >/dev/null; {fetch}'");
        let seen = self.console.run(&tv.shown(&asked))?;
        let exit = self.testbed.network.exit_b.address(false);
        self.console.claim("with the first packet after the answer (exit B)", exit, seen);
        let question = json!({"mac": self.testbed.network.tv.mac, "destination": "www.films.example"});
        let evaluation = self.console.call(&self.curl("POST", "/policy/evaluate", Some(&question)))?;
        let via = evaluation["families"]["ipv4"]["via"].as_str().context("a way")?;
        self.console.claim("and so says the gateway", "vpn:wg-b", via);
        let asker = self.upstream.askers("www.films.example").last().copied().context("nobody asked")?;
        self.console.claim("its question left by the tunnel too, as", exit, asker);
        // The following steps expect the tv to have no policy.
        self.console.call(&self.curl("DELETE", &format!("/routing/policies/{films}"), None))?;
        self.apply()?;
        self.testbed.network.settle()?;
        self.testbed.network.tap.reset();
        Ok(())
    }
}
