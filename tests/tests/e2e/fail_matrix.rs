//! Effect of each failure policy when a hop fails, for any cause: cause × policy × family. Each cell has the leaked
//! packets that the tap counted. Here the hops are tunnels.

use std::net::IpAddr;

use gateway_tests::name_server::{self, NameServer};
use gateway_tests::openvpn::Server;
use gateway_tests::testbed::{Testbed, create, policy};
use gateway_tests::topology::{SERVER_V4, wan};
use gateway_tests::traffic::ask;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use crate::e2e::fail_policies::FailPolicy::{self, Closed, Degraded, Open};
use crate::e2e::fail_policies::{
    self, Site, TIMEOUT, assert_leaks, let_it_end, store_policies, timeout_for, wait_until_gone,
};
use crate::e2e::health::{forwards, probed};
use crate::e2e::openvpn::processes;
use crate::e2e::{FAMILIES, SOON, assert_the_tap_sees};

type Row = fail_policies::Row<Tunnels>;

/// Effect of a cause on the hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// The hop is unavailable until the cause is undone.
    Gone,
    /// The gateway repairs the hop by itself: it may be unavailable briefly.
    Repaired,
}

/// A network with one kind of tunnel and the three policies over it.
struct Tunnels {
    names: Option<NameServer>,
    openvpn: Option<Server>,
    testbed: Testbed,
    /// The affected tunnel, and its original object.
    tunnel: String,
    object: Value,
    /// Source addresses that the internet sees of the policies in normal state, and of the degraded one while the hop
    /// is gone.
    usual: [IpAddr; 2],
    degraded: Option<[IpAddr; 2]>,
}

impl Tunnels {
    /// Builds the network. The affected tunnel is the first hop; `behind` are tunnels over it as underlay.
    fn build(testbed: Testbed, object: Value, behind: &[&str], usual: [IpAddr; 2]) -> Tunnels {
        let name = object["name"].as_str().expect("a name").to_owned();
        let tunnel = create(testbed.api(), "/tunnels", &object).expect("tunnel");
        testbed.bring_up(&tunnel).expect("up");
        let hops: Vec<(&str, &str)> =
            std::iter::once(name.as_str()).chain(behind.iter().copied()).map(|name| ("vpn", name)).collect();
        store_policies(&testbed, &hops);
        let tv = testbed.device(&testbed.network.tv).expect("device");
        testbed.policy(&policy("load", 1, ("device", &tv), &[&name])).expect("policy");
        Tunnels {
            names: None,
            openvpn: None,
            testbed,
            tunnel,
            object,
            usual,
            degraded: (!behind.is_empty()).then_some(usual),
        }
    }

    /// Checks one cell.
    fn check(&self, cause: &str, fail_policy: FailPolicy, ipv6: bool) {
        let network = &self.testbed.network;
        let family = usize::from(ipv6);
        let expected = match fail_policy {
            Closed => None,
            Degraded => self.degraded.map(|addresses| addresses[family]),
            Open => Some(wan(ipv6)),
        };
        network.tap.reset();
        let answer = ask(&network.laptop, fail_policy.destination(ipv6), timeout_for(expected));
        let counts = network.tap.counts();
        let cell = format!("{cause} × {} × IPv{}", fail_policy.name(), if ipv6 { 6 } else { 4 });
        assert_eq!(answer.seen(), expected, "{cell}: {answer}");
        assert_leaks(&counts, ipv6, fail_policy == Open, &cell);
        if expected == Some(wan(ipv6)) {
            let_it_end(&self.testbed);
        }
    }

    /// Waits until the tunnels over the hop have reconnected.
    fn wait_for_what_is_left(&self) {
        for (ipv6, address) in FAMILIES.into_iter().zip(self.degraded.into_iter().flatten()) {
            wait_ok(SOON, "what is left of the way", || {
                let answer = ask(&self.testbed.network.laptop, Degraded.destination(ipv6), TIMEOUT);
                anyhow::ensure!(answer.seen() == Some(address), "{answer}");
                Ok(())
            })
            .expect("degraded");
        }
    }

    /// Replaces a field of the affected tunnel.
    fn set(&self, key: &str, value: Value) {
        let place = format!("/tunnels/{}", self.tunnel);
        let mut object = self.testbed.api().get(&place).expect("tunnel");
        object[key] = value;
        self.testbed.api().put(&place, &object).expect("tunnel");
    }

    fn act(&self, action: &str) {
        self.testbed.api().act(&format!("/tunnels/{}/{action}", self.tunnel)).expect(action);
    }

    fn delete(&mut self) {
        let place = format!("/tunnels/{}", self.tunnel);
        let refused = self.testbed.api().send("DELETE", &place, None).expect("answer");
        assert_eq!(
            (refused.status, &refused.body["error"]["code"]),
            (409, &json!("in_use")),
            "{}",
            refused.body
        );
        assert_eq!(refused.body["error"]["details"]["references"]["total"], 4, "{}", refused.body);
        self.testbed.api().delete(&format!("{place}?force=true")).expect("deleted");
    }

    fn create_again(&mut self) {
        self.tunnel = create(self.testbed.api(), "/tunnels", &self.object).expect("tunnel");
    }

    fn ip(&self, line: &str) {
        let tunnel = self.testbed.api().get(&format!("/tunnels/{}", self.tunnel)).expect("tunnel");
        let interface = tunnel["interface"].as_str().expect("an interface");
        self.testbed.network.gateway.ip(&line.replace("IT", interface)).expect("ip");
    }

    fn restart(&mut self) {
        self.testbed.daemon.terminate().expect("stop");
        self.testbed.daemon.start().expect("start");
    }
}

impl Site for Tunnels {
    type Effect = Effect;

    fn testbed(&self) -> &Testbed {
        &self.testbed
    }

    fn wait_until_well(&self, after: &str) {
        for fail_policy in FailPolicy::ALL {
            for ipv6 in FAMILIES {
                let what = format!("{} to be as usual after: {after}", fail_policy.name());
                wait_ok(SOON, &what, || {
                    let destination = fail_policy.destination(ipv6);
                    let answer = ask(&self.testbed.network.laptop, destination, TIMEOUT);
                    anyhow::ensure!(answer.seen() == Some(self.usual[usize::from(ipv6)]), "{answer}");
                    Ok(())
                })
                .expect("as usual");
            }
        }
    }

    fn wait_until_noticed(&self, row: &Row) {
        if row.effect == Effect::Gone {
            wait_until_gone(&self.testbed, self.degraded.is_some(), row.cause);
            self.wait_for_what_is_left();
        }
    }

    fn check_cells(&self, row: &Row) {
        if row.effect == Effect::Gone {
            for fail_policy in FailPolicy::ALL {
                FAMILIES.iter().for_each(|ipv6| self.check(row.cause, fail_policy, *ipv6));
            }
        }
    }
}

/// Returns causes through the API, for any kind of tunnel.
fn by_the_api() -> Vec<Row> {
    vec![
        Row {
            cause: "down",
            effect: Effect::Gone,
            apply: |site| site.act("down"),
            undo: |site| site.act("up"),
        },
        Row {
            cause: "disabled",
            effect: Effect::Gone,
            apply: |site| site.set("enabled", json!(false)),
            undo: |site| site.set("enabled", json!(true)),
        },
        Row {
            cause: "renamed",
            effect: Effect::Gone,
            apply: |site| site.set("name", json!("other")),
            undo: |site| site.set("name", site.object["name"].clone()),
        },
        Row { cause: "deleted", effect: Effect::Gone, apply: Tunnels::delete, undo: Tunnels::create_again },
    ]
}

/// Returns causes at the interface of a tunnel.
fn by_the_interface() -> Vec<Row> {
    vec![
        Row {
            cause: "interface down",
            effect: Effect::Repaired,
            apply: |site| site.ip("link set IT down"),
            undo: |site| drop(site.testbed.api().act("/enforce/reconcile").expect("reconcile")),
        },
        Row {
            cause: "interface deleted",
            effect: Effect::Repaired,
            apply: |site| site.ip("link del IT"),
            undo: |site| drop(site.testbed.api().act("/enforce/reconcile").expect("reconcile")),
        },
    ]
}

/// Returns the cause of an exit that answers for the tunnel but forwards nothing.
fn silent() -> Row {
    Row {
        cause: "peer silent",
        effect: Effect::Gone,
        apply: |site| forwards(&site.testbed.network.exit_a, false),
        undo: |site| forwards(&site.testbed.network.exit_a, true),
    }
}

#[test]
fn a_wireguard_hop() {
    let mut testbed = Testbed::prepare().expect("scene");
    let names = NameServer::start(&testbed.network.internet, testbed.network.exit_a.place.v4).expect("names");
    testbed
        .daemon
        .configure(&json!({"dns": {"bootstrap_servers": [name_server::ADDRESS]}}))
        .expect("configuration");
    testbed.daemon.start().expect("start");
    assert_the_tap_sees(&testbed, &testbed.network.laptop);
    let usual = FAMILIES.map(|ipv6| testbed.network.exit_a.address(ipv6));
    let mut object = probed(&testbed.network.exit_a, "wg-a", "ping", &SERVER_V4.to_string());
    object["peers"][0]["endpoint"] = json!("exit.example:51820");
    object["health_check"]["success"] = json!(1);
    let mut site = Tunnels::build(testbed, object, &[], usual);
    site.names = Some(names);
    let mut rows = by_the_api();
    rows.extend(by_the_interface());
    rows.push(silent());
    rows.push(Row {
        cause: "exit killed",
        effect: Effect::Gone,
        apply: |site| site.testbed.network.exit_a.kill9().expect("killed"),
        undo: |site| site.testbed.network.exit_a.start().expect("started"),
    });
    rows.push(Row {
        cause: "name server gone",
        effect: Effect::Gone,
        apply: |site| {
            site.names.as_ref().expect("names").answer(None);
            site.restart();
        },
        undo: |site| {
            let exit = site.testbed.network.exit_a.place.v4;
            site.names.as_ref().expect("names").answer(Some(exit));
        },
    });
    site.run(&rows);
}

#[test]
fn the_outer_hop_of_a_path() {
    let testbed = Testbed::start().expect("scene");
    assert_the_tap_sees(&testbed, &testbed.network.laptop);
    let usual = FAMILIES.map(|ipv6| testbed.network.exit_b.address(ipv6));
    testbed.tunnel("wg-b", &testbed.network.exit_b).expect("tunnel");
    let mut object = probed(&testbed.network.exit_a, "wg-a", "ping", &SERVER_V4.to_string());
    object["health_check"]["success"] = json!(1);
    let site = Tunnels::build(testbed, object, &["wg-b"], usual);
    let mut rows = by_the_api();
    rows.push(silent());
    site.run(&rows);
}

#[test]
fn an_openvpn_hop() {
    let testbed = Testbed::start().expect("scene");
    assert_the_tap_sees(&testbed, &testbed.network.laptop);
    let usual = FAMILIES.map(|ipv6| testbed.network.exit_a.address(ipv6));
    let mut server = Server::start(&testbed.network.exit_a, &testbed.network.prefix, "").expect("server");
    server.kill9().expect("ended");
    server.set_transport("tcp-server");
    server.start_again().expect("server");
    let file = server.file("").expect("file").replace("proto udp\n", "proto tcp\n");
    let object = json!({
        "name": "nl", "type": "openvpn", "config": file,
        "health_check": {"type": "ping", "target": SERVER_V4, "interval_sec": 1, "timeout_sec": 1, "fail": 2, "success": 1},
    });
    let mut site = Tunnels::build(testbed, object, &[], usual);
    site.openvpn = Some(server);
    let mut rows = by_the_api();
    rows.push(silent());
    rows.push(Row {
        cause: "process killed",
        effect: Effect::Repaired,
        apply: |site| {
            for pid in processes(&site.testbed) {
                let pid = nix::unistd::Pid::from_raw(pid);
                nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).expect("killed");
            }
        },
        undo: |_| {},
    });
    rows.push(Row {
        cause: "server killed",
        effect: Effect::Gone,
        apply: |site| site.openvpn.as_ref().expect("server").kill9().expect("killed"),
        undo: |site| site.openvpn.as_ref().expect("server").start_again().expect("started"),
    });
    // The connection stays open on both sides, but its packets no longer arrive.
    rows.push(Row {
        cause: "half-open TCP",
        effect: Effect::Gone,
        apply: |site| {
            let deaf = "table inet deaf {\n chain in {\n type filter hook input priority filter\n tcp dport 1194 drop\n }\n}\n";
            site.testbed.network.exit_a.namespace.nft(deaf).expect("deaf");
        },
        undo: |site| site.testbed.network.exit_a.namespace.nft("delete table inet deaf\n").expect("hears"),
    });
    site.run(&rows);
}
