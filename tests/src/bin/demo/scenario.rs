//! The scenario of the demonstration, step by step.

mod alert;
mod drain;
mod household;
mod names;
mod nest;
mod past;
mod privacy;
mod uplinks;

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use gateway_tests::dns::Upstream;
use gateway_tests::tap::Counts;
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::{Host, Topology, server, wan};
use gateway_tests::traffic::{Load, ask_server};
use gateway_tests::udp_over_tcp::FarEnd;
use gateway_tests::wait::{wait_for, wait_ok};
use gateway_tests::wireguard::Exit;
use gateway_tests::wireguard::kernel_has_wireguard;
use gateway_tests::{name_server, relay};
use serde_json::{Value, json};

use crate::console::Console;
use household::Traffic;

const STEPS: usize = 17;
const SOON: Duration = Duration::from_secs(20);

pub(crate) struct Walk {
    /// Traffic of the hosts after the scenario.
    household: Vec<Traffic>,
    /// Host of the household that is no device.
    camera: Option<Host>,
    /// Remote end of the tunnel over TCP.
    far: Option<FarEnd>,
    /// Upstream of the resolver.
    upstream: Upstream,
    testbed: Testbed,
    console: Console,
    interrupted: Arc<AtomicBool>,
    door: SocketAddr,
    files: tempfile::TempDir,
    laptop: String,
    tunnels: [String; 2],
    policy: String,
}

impl Walk {
    /// Builds the network and starts the daemon in it.
    pub(crate) fn begin(interrupted: Arc<AtomicBool>) -> Result<Self> {
        let mut testbed = Testbed::prepare().context("build the network")?;
        let upstream = Upstream::start(&testbed.network.internet)?;
        testbed.daemon.configure(&json!({"dns": {"upstream_servers": [name_server::ADDRESS]}}))?;
        testbed.daemon.start().context("start the daemon")?;
        let door = relay::open(testbed.network.gateway.entrance())?;
        let files =
            tempfile::Builder::new().prefix("gateway-demo-").tempdir().context("temporary directory")?;
        let console = Console::new(STEPS);
        let none = String::new;
        Ok(Self {
            household: Vec::new(),
            camera: None,
            far: None,
            upstream,
            testbed,
            console,
            interrupted,
            door,
            files,
            laptop: none(),
            tunnels: [none(), none()],
            policy: none(),
        })
    }

    /// Runs all steps and returns whether every claim held. Ends early when interrupted.
    pub(crate) fn all_steps(&mut self) -> Result<bool> {
        let steps: [fn(&mut Self) -> Result<()>; STEPS - 1] = [
            Self::show_the_network,
            Self::bind_the_laptop,
            Self::see_it_work,
            Self::names,
            Self::block_protocols,
            Self::pull_the_tunnel,
            Self::ask_why,
            Self::alert,
            Self::ask_the_past,
            Self::kill_the_daemon,
            Self::split,
            Self::drain,
            Self::pull_an_uplink,
            Self::nest,
            Self::cross_without_udp,
            Self::go_on,
        ];
        for step in steps {
            if self.interrupted.load(Ordering::Relaxed) {
                return Ok(false);
            }
            step(self)?;
        }
        let summary =
            if self.console.held() { "all assertions passed." } else { "NOT all assertions passed." };
        self.console.step("end", summary);
        Ok(self.console.held())
    }

    fn show_the_network(&mut self) -> Result<()> {
        let network = &self.testbed.network;
        let engine = if kernel_has_wireguard(&network.internet) {
            "the kernel's WireGuard"
        } else {
            "boringtun (no kernel wireguard)"
        };
        self.console.step(
            "network",
            format!("laptop, tv -- gateway -- internet (tells the address it sees), VPN exits A, B   tunnels: {engine}"),
        );
        self.console.say(format!("the daemon's API: http://{}/api/v1", self.door));
        let status = self.console.call(&self.curl("GET", "/status", None))?;
        self.console.claim("the gateway is ready", true, &status["ready"]);
        Ok(())
    }

    fn bind_the_laptop(&mut self) -> Result<()> {
        self.console.step("policy", "laptop -> wg-a, fail-closed; applied");
        let host = &self.testbed.network.laptop;
        let device = json!({"name": host.name, "mac": host.mac});
        self.laptop = id(&self.console.call(&self.curl("POST", "/devices", Some(&device)))?)?;
        for (n, name) in ["wg-a", "wg-b"].into_iter().enumerate() {
            self.tunnels[n] = self.import(name, n)?;
            self.console.call(&self.curl("POST", &format!("/tunnels/{}/up", self.tunnels[n]), None))?;
        }
        self.wait_for_tunnel(0)?;
        self.wait_for_tunnel(1)?;
        let vpn_only = policy("vpn-only", 10, ("device", &self.laptop), &["wg-a"]);
        self.policy = id(&self.console.call(&self.curl("POST", "/routing/policies", Some(&vpn_only)))?)?;
        self.apply()
    }

    fn see_it_work(&mut self) -> Result<()> {
        self.console.step("works", "the internet sees the laptop as exit A, the tv as the gateway itself");
        let (laptop, tv) = (&self.testbed.network.laptop, &self.testbed.network.tv);
        for ipv6 in [false, true] {
            let seen = self.console.run(&fetch(laptop, ipv6))?;
            let exit = &self.testbed.network.exit_a;
            self.console.claim("laptop is seen as (exit A)", exit.address(ipv6), seen);
        }
        for ipv6 in [false, true] {
            let seen = self.console.run(&fetch(tv, ipv6))?;
            self.console.claim("tv is seen as (no policy)", wan(ipv6), seen);
        }
        self.testbed.network.settle()?;
        let seen = self.testbed.network.tap.reset();
        let counts = format!("{}", seen.leaked.v4 > 0 && seen.leaked.v6 > 0);
        self.console.claim(
            "the tap on the uplink sees what goes out directly (the tv), both families",
            true,
            counts,
        );
        Ok(())
    }

    fn pull_the_tunnel(&mut self) -> Result<()> {
        self.console
            .step("pull", "the tunnel goes under load: IPv4, IPv6, UDP, TCP, ICMP, DNS, old and new flows");
        let load = self.load_through_exit_a()?;
        let interface = self.testbed.interface(&self.tunnels[0])?;
        let gateway = &self.testbed.network.gateway;
        self.console.run(&gateway.shown(&format!("ip link set {interface} down")))?;
        load.run_for(250)?;
        self.console.call(&self.curl("POST", &format!("/tunnels/{}/down", self.tunnels[0]), None))?;
        load.run_for(500)?;
        for ipv6 in [false, true] {
            let said = self.console.run(&fetch(&self.testbed.network.laptop, ipv6))?;
            self.console.claim("laptop gets", "nothing", or_nothing(&said));
        }
        let sent = load.stop();
        self.console.say(format!("sent meanwhile: {} packets of IPv4, {} of IPv6", sent.v4, sent.v6));
        self.claim_no_leak()
    }

    fn ask_why(&mut self) -> Result<()> {
        self.console.step("why?", "the code that decides explains");
        let question = json!({"device_id": self.laptop});
        let evaluation = self.console.call(&self.curl("POST", "/policy/evaluate", Some(&question)))?;
        self.console.say(evaluation["sentence"].as_str().unwrap_or("(no sentence)"));
        self.console.claim("decision", "block", text(&evaluation["decision"]));
        self.console.claim("policy", "vpn-only", text(&evaluation["matched_policies"][0]["name"]));
        Ok(())
    }

    fn kill_the_daemon(&mut self) -> Result<()> {
        self.console.step("kill -9", "the daemon dies under load and is started again");
        self.console.call(&self.curl("POST", &format!("/tunnels/{}/up", self.tunnels[0]), None))?;
        self.wait_for_tunnel(0)?;
        let load = self.load_through_exit_a()?;
        let pid = self.testbed.daemon.pid().context("the daemon runs")?;
        self.console.run(&format!("kill -9 {pid}"))?;
        wait_for(SOON, "the daemon to end", || self.testbed.daemon.ended().is_some())?;
        load.run_for(500)?;
        for ipv6 in [false, true] {
            let said = self.console.run(&fetch(&self.testbed.network.laptop, ipv6))?;
            self.console.claim("without the daemon the laptop gets", "nothing", or_nothing(&said));
        }
        self.testbed.daemon.start_again()?;
        self.console
            .say(format!("$ gatewayd --config {}", self.testbed.daemon.configuration_file().display()));
        let exit = self.testbed.network.exit_a.address(false);
        load.wait_for_answer_to(exit, SOON).context("exit A after the restart")?;
        load.stop();
        let seen = self.console.run(&fetch(&self.testbed.network.laptop, false))?;
        self.console.claim("after the restart the laptop is seen as (exit A)", exit, seen);
        self.claim_no_leak()
    }

    fn split(&mut self) -> Result<()> {
        self.console.step("split", "two hops, splitting on: 20 connections in each family");
        self.wait_for_tunnel(1)?;
        let mut both = policy("vpn-only", 10, ("device", &self.laptop), &["wg-a", "wg-b"]);
        both["splitting"] = json!(true);
        self.console.call(&self.curl("PUT", &format!("/routing/policies/{}", self.policy), Some(&both)))?;
        self.apply()?;
        for ipv6 in [false, true] {
            let one = fetch(&self.testbed.network.laptop, ipv6);
            let tally = self.console.run(&format!("for i in $(seq 20); do {one}; done | sort | uniq -c"))?;
            let network = &self.testbed.network;
            for (exit, name) in [(&network.exit_a, "exit A"), (&network.exit_b, "exit B")] {
                self.console.claim(&format!("connections by {name}"), 10, count(&tally, exit, ipv6));
            }
        }
        self.claim_no_leak()
    }

    fn cross_without_udp(&mut self) -> Result<()> {
        self.console
            .step("no UDP", "the network drops all UDP; the tunnel over a transport bridge still works");
        let rules = self.files.path().join("no-udp.nft");
        fs::write(&rules, NO_UDP).context("write the rules")?;
        let internet = &self.testbed.network.internet;
        self.console.run(&internet.shown(&format!("nft -f {}", rules.display())))?;
        let said = self.console.run(&fetch(&self.testbed.network.laptop, false))?;
        self.console.claim("by tunnels over UDP the laptop gets", "nothing", or_nothing(&said));

        let exit = &self.testbed.network.exit_a;
        let far = FarEnd::start(exit)?;
        self.console.say("exit A now takes WireGuard over TCP as well, as tcp2udp does");
        self.console.call(&self.curl("POST", "/bridges", Some(&far.bridge("over-tcp"))))?;
        self.far = Some(far);
        // Fields that the body omits are secrets and stay.
        let mut tunnel = exit.tunnel("wg-a");
        tunnel.as_object_mut().context("an object")?.remove("private_key");
        tunnel["bridge"] = json!("over-tcp");
        self.console.call(&self.curl("PUT", &format!("/tunnels/{}", self.tunnels[0]), Some(&tunnel)))?;
        self.console.call(&self.curl("POST", &format!("/tunnels/{}/down", self.tunnels[1]), None))?;
        let vpn_only = policy("vpn-only", 10, ("device", &self.laptop), &["wg-a"]);
        self.console.call(&self.curl(
            "PUT",
            &format!("/routing/policies/{}", self.policy),
            Some(&vpn_only),
        ))?;
        self.apply()?;
        wait_ok(SOON, "the laptop to get through", || {
            let seen = ask_server(&self.testbed.network.laptop, server(false)).seen();
            ensure!(seen == Some(exit.address(false)), "seen as {seen:?}");
            Ok(())
        })?;
        let counts =
            self.fetch_as("over the bridge the laptop is seen as (exit A)", |network| &network.exit_a)?;
        let status = self.console.call(&self.curl("GET", "/bridges/status", None))?;
        self.console.claim("the bridge is", "up", text(&status[0]["status"]));
        self.console
            .say(format!("on the uplink: {} packets of the tunnel, all of TCP", counts.tunnel.total()));
        self.console.claim("packets of UDP on the uplink", 0, counts.udp);
        self.claim_no_leak()
    }

    /// Prints commands to try while the network stays up.
    pub(crate) fn invite(&self) {
        let laptop = &self.testbed.network.laptop;
        println!(
            "\n The network stays up. Dashboard: http://{0}/  API: http://{0}/api/v1  documentation: http://{0}/api/docs",
            self.door
        );
        println!(" As the laptop:   {}", fetch(laptop, false));
        println!(" In the gateway:  {}", self.testbed.network.gateway.shown("ip rule"));
        println!(" The daemon's log: {}", self.testbed.daemon.log_file().display());
        println!(" Ctrl-C removes everything.");
    }

    pub(crate) fn last_words(&self) -> String {
        self.testbed.daemon.last_words()
    }

    /// Removes everything and verifies the removal.
    pub(crate) fn remove(self) -> Result<()> {
        let network = &self.testbed.network;
        let mut traces: Vec<PathBuf> = [
            &network.laptop.namespace,
            &network.tv.namespace,
            &network.gateway,
            &network.lan,
            &network.internet,
        ]
        .into_iter()
        .chain([&network.exit_a.namespace, &network.exit_b.namespace])
        .map(|namespace| namespace.path())
        .collect();
        traces.push(self.testbed.daemon.pin_directory().to_owned());
        traces.push(self.testbed.daemon.state_directory());
        drop(self);
        traces.retain(|trace| trace.exists());
        ensure!(traces.is_empty(), "left behind: {traces:?}");
        println!(" everything is removed");
        Ok(())
    }

    fn curl(&self, method: &str, path: &str, body: Option<&Value>) -> String {
        let url = format!("http://{}/api/v1{path}", self.door);
        match (method, body) {
            ("GET", _) => format!("curl -s {url}"),
            (_, None) => format!("curl -s -X {method} {url}"),
            (_, Some(body)) => {
                format!("curl -s -X {method} {url} -H 'Content-Type: application/json' -d '{body}'")
            }
        }
    }

    /// Imports a tunnel from a file, as users get it from a VPN service. So the key is not on the command line.
    fn import(&self, name: &str, number: usize) -> Result<String> {
        let network = &self.testbed.network;
        let exit = if number == 0 { &network.exit_a } else { &network.exit_b };
        let file = self.files.path().join(format!("{name}.conf"));
        fs::write(&file, exit.configuration_file()).context("write the tunnel's file")?;
        let url = format!("http://{}/api/v1/tunnels/import-wireguard?name={name}", self.door);
        let command =
            format!("curl -s -H 'Content-Type: text/plain' --data-binary @{} '{url}'", file.display());
        id(&self.console.call(&command)?)
    }

    fn apply(&self) -> Result<()> {
        self.console.call(&self.curl("POST", "/routing/policies/apply", None)).map(drop)
    }

    fn wait_for_tunnel(&self, number: usize) -> Result<()> {
        wait_ok(SOON, "the tunnel to be up and healthy", || {
            let object = self.testbed.api().get(&format!("/tunnels/{}", self.tunnels[number]))?;
            ensure!(object["status"] == "up" && object["healthy"] == true, "{object}");
            Ok(())
        })
    }

    fn load_through_exit_a(&self) -> Result<Load> {
        let load = Load::start(&self.testbed.network.laptop)?;
        for ipv6 in [false, true] {
            load.wait_for_answer_to(self.testbed.network.exit_a.address(ipv6), SOON)?;
        }
        Ok(load)
    }

    /// Sends requests from the laptop in both families and claims that servers see it as this exit. Returns the packets
    /// on the uplink meanwhile.
    fn fetch_as(&mut self, claim: &str, exit: fn(&Topology) -> &Exit) -> Result<Counts> {
        self.testbed.network.settle()?;
        self.testbed.network.tap.reset();
        for ipv6 in [false, true] {
            let seen = self.console.run(&fetch(&self.testbed.network.laptop, ipv6))?;
            self.console.claim(claim, exit(&self.testbed.network).address(ipv6), seen);
        }
        self.testbed.network.settle()?;
        Ok(self.testbed.network.tap.counts())
    }

    fn claim_no_leak(&mut self) -> Result<()> {
        self.testbed.network.settle()?;
        let counts = self.testbed.network.tap.reset();
        self.console.claim("packets of the laptop on the uplink, IPv4", 0, counts.leaked.v4);
        self.console.claim("packets of the laptop on the uplink, IPv6", 0, counts.leaked.v6);
        self.console.claim("its DNS queries on the uplink", 0, counts.leaked_dns);
        self.console.claim("packets that the tap missed", 0, counts.missed);
        for sample in &counts.samples {
            self.console.say(sample);
        }
        Ok(())
    }
}

/// A typical hotel firewall.
const NO_UDP: &str = "table inet hotel {
  chain in { type filter hook prerouting priority raw; iifname \"up0\" meta l4proto udp drop; }
  chain out { type filter hook postrouting priority 300; oifname \"up0\" meta l4proto udp drop; }
}
";

/// Returns the command that shows the public address of a host.
fn fetch(host: &Host, ipv6: bool) -> String {
    let address = match server(ipv6) {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    };
    host.namespace.shown(&format!("curl -s -g -m 2 'http://{address}/ip'"))
}

/// Returns the count of an exit in the output of `uniq -c`.
fn count(tally: &str, exit: &Exit, ipv6: bool) -> String {
    let address = exit.address(ipv6).to_string();
    let line = tally.lines().find(|line| line.split_whitespace().nth(1) == Some(&address));
    line.and_then(|line| line.split_whitespace().next()).unwrap_or("0").to_owned()
}

fn id(object: &Value) -> Result<String> {
    object["id"].as_str().map(str::to_owned).with_context(|| format!("no id in {object}"))
}

fn or_nothing(said: &str) -> &str {
    if said.is_empty() { "nothing" } else { said }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("(none)")
}
