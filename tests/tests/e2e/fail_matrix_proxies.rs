//! Effect of each failure policy when a proxy fails, for any cause: cause × policy × family × protocol. Each cell has
//! the leaked packets that the tap counted.

use std::time::Duration;

use gateway_tests::socks::{PORT, Proxy, Server};
use gateway_tests::testbed::{Testbed, create};
use gateway_tests::topology::wan;
use gateway_tests::traffic::{Answer, ask, ask_udp};
use gateway_tests::wait::wait_ok;
use gateway_tests::wireguard::Exit;
use serde_json::{Value, json};

use crate::e2e::fail_policies::FailPolicy::{self, Closed, Degraded, Open};
use crate::e2e::fail_policies::{
    self, Site, TIMEOUT, assert_leaks, carry_out, let_it_end, store_policies, timeout_for, wait_until_gone,
};
use crate::e2e::paths::path;
use crate::e2e::{FAMILIES, SOON, assert_the_tap_sees};

type Row = fail_policies::Row<Struck>;

const NAME: &str = "office";
/// Deadline of the recovery. On a busy machine 15 s were not enough after a server had been silent under load, probably
/// because it finds out at retransmissions which of its connections have ended.
const RECOVERY: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Tcp,
    Udp,
}

use Protocol::{Tcp, Udp};

const PROTOCOLS: [Protocol; 2] = [Tcp, Udp];

/// Effect of a cause on the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// The proxy is unavailable until the cause is undone.
    Gone,
    /// The proxy still accepts connections and refuses datagrams.
    WithoutDatagrams,
}

/// A network with a proxy as the last hop of the three policies.
struct Struck {
    proxy: Proxy,
    testbed: Testbed,
    /// The affected proxy, and its original object.
    id: String,
    object: Value,
    behind_a_tunnel: bool,
}

impl Struck {
    fn build(behind_a_tunnel: bool) -> Struck {
        let testbed = Testbed::start().expect("scene");
        assert_the_tap_sees(&testbed, &testbed.network.laptop);
        let proxy = Proxy::start(exit_of(&testbed, behind_a_tunnel), Server::Dante).expect("proxy");
        let mut object = proxy.object(NAME);
        object["health_check"] = json!({"interval_sec": 5, "timeout_sec": 1, "fail": 2, "success": 1});
        let id = testbed.proxy(&object, "up").expect("proxy up");
        let mut hops = vec![("proxy", NAME)];
        if behind_a_tunnel {
            testbed.tunnel("wg-a", &testbed.network.exit_a).expect("tunnel");
            hops.insert(0, ("vpn", "wg-a"));
        }
        store_policies(&testbed, &hops);
        let tv = testbed.device(&testbed.network.tv).expect("device");
        testbed.policy(&path("load", ("device", &tv), &hops, json!({"priority": 1}))).expect("policy");
        Struck { proxy, testbed, id, object, behind_a_tunnel }
    }

    /// Returns the exit of the proxy, which the internet sees in normal state.
    fn exit(&self) -> &Exit {
        exit_of(&self.testbed, self.behind_a_tunnel)
    }

    /// Checks one cell.
    fn check(&self, row: &Row, protocol: Protocol, fail_policy: FailPolicy, ipv6: bool) {
        let network = &self.testbed.network;
        let expected = match (row.effect, protocol, fail_policy) {
            (Effect::WithoutDatagrams, Tcp, _) => Some(self.exit().address(ipv6)),
            (_, _, Closed) => None,
            (_, _, Degraded) => self.behind_a_tunnel.then(|| network.exit_a.address(ipv6)),
            (_, _, Open) => Some(wan(ipv6)),
        };
        network.tap.reset();
        let answer = self.ask(protocol, fail_policy, ipv6, timeout_for(expected));
        let counts = network.tap.counts();
        let family = if ipv6 { 6 } else { 4 };
        let cell = format!("{} × {} × {protocol:?} × IPv{family}", row.cause, fail_policy.name());
        assert_eq!(answer.seen(), expected, "{cell}: {answer}");
        let direct = expected == Some(wan(ipv6));
        assert_leaks(&counts, ipv6, direct, &cell);
        if expected == Some(wan(ipv6)) {
            let_it_end(&self.testbed);
        }
    }

    fn ask(&self, protocol: Protocol, fail_policy: FailPolicy, ipv6: bool, timeout: Duration) -> Answer {
        let (laptop, to) = (&self.testbed.network.laptop, fail_policy.destination(ipv6));
        match protocol {
            Tcp => ask(laptop, to, timeout),
            Udp => ask_udp(laptop, to, timeout),
        }
    }

    fn wait_until_without_datagrams(&self) {
        wait_ok(SOON, "the proxy to be seen to refuse datagrams", || {
            let object = self.testbed.api().get(&self.place())?;
            let seen = (&object["status"], &object["udp_works"]);
            anyhow::ensure!(seen == (&json!("up"), &json!(false)), "{seen:?}");
            Ok(())
        })
        .expect("noticed");
        carry_out(&self.testbed);
    }

    fn place(&self) -> String {
        format!("/proxies/{}", self.id)
    }

    fn set(&self, key: &str, value: Value) {
        let mut object = self.testbed.api().get(&self.place()).expect("proxy");
        object[key] = value;
        self.testbed.api().put(&self.place(), &object).expect("proxy");
    }

    /// Checks that a proxy cannot be renamed while policies name it.
    fn check_that_it_cannot_be_renamed(&self) {
        let mut object = self.testbed.api().get(&self.place()).expect("proxy");
        object["name"] = json!("other");
        self.check_refused("PUT", Some(&object));
        assert_eq!(self.testbed.api().get(&self.place()).expect("proxy")["name"], NAME);
    }

    fn check_refused(&self, method: &str, object: Option<&Value>) {
        let refused = self.testbed.api().send(method, &self.place(), object).expect("answer");
        let error = &refused.body["error"];
        assert_eq!((refused.status, &error["code"]), (409, &json!("in_use")), "{error}");
        assert_eq!(error["details"]["resource_type"], "proxy", "{error}");
    }

    fn delete(&mut self) {
        self.check_refused("DELETE", None);
        self.testbed.api().delete(&format!("{}?force=true", self.place())).expect("deleted");
    }

    fn create_again(&mut self) {
        self.id = create(self.testbed.api(), "/proxies", &self.object).expect("proxy");
    }

    fn replace_server(&mut self, server: Server<'_>) {
        self.proxy.kill9().expect("killed");
        self.proxy = Proxy::start(self.exit(), server).expect("proxy");
    }

    /// Drops the packets of connections, which stay open on both sides.
    fn silence(&mut self) {
        let deaf = format!(
            "table inet deaf {{\n chain in {{\n type filter hook input priority filter\n tcp dport {PORT} drop\n }}\n}}\n"
        );
        self.exit().namespace.nft(&deaf).expect("deaf");
    }
}

impl Site for Struck {
    type Effect = Effect;

    fn testbed(&self) -> &Testbed {
        &self.testbed
    }

    fn wait_until_well(&self, after: &str) {
        for fail_policy in FailPolicy::ALL {
            for (protocol, ipv6) in PROTOCOLS.into_iter().flat_map(|p| FAMILIES.map(|ipv6| (p, ipv6))) {
                let what = format!("{} {protocol:?} to be as usual after: {after}", fail_policy.name());
                wait_ok(RECOVERY, &what, || {
                    let answer = self.ask(protocol, fail_policy, ipv6, TIMEOUT);
                    anyhow::ensure!(answer.seen() == Some(self.exit().address(ipv6)), "{answer}");
                    Ok(())
                })
                .expect("as usual");
            }
        }
    }

    fn wait_until_noticed(&self, row: &Row) {
        match row.effect {
            Effect::Gone => wait_until_gone(&self.testbed, self.behind_a_tunnel, row.cause),
            Effect::WithoutDatagrams => self.wait_until_without_datagrams(),
        }
    }

    fn check_cells(&self, row: &Row) {
        for protocol in PROTOCOLS {
            for fail_policy in FailPolicy::ALL {
                FAMILIES.iter().for_each(|ipv6| self.check(row, protocol, fail_policy, *ipv6));
            }
        }
    }
}

fn exit_of(testbed: &Testbed, behind_a_tunnel: bool) -> &Exit {
    if behind_a_tunnel { &testbed.network.exit_b } else { &testbed.network.exit_a }
}

fn rows() -> Vec<Row> {
    vec![
        Row {
            cause: "disabled",
            effect: Effect::Gone,
            apply: |site| site.set("enabled", json!(false)),
            undo: |site| site.set("enabled", json!(true)),
        },
        Row { cause: "deleted", effect: Effect::Gone, apply: Struck::delete, undo: Struck::create_again },
        Row {
            cause: "proxy killed",
            effect: Effect::Gone,
            apply: |site| site.proxy.kill9().expect("killed"),
            undo: |site| site.replace_server(Server::Dante),
        },
        Row {
            cause: "proxy silent",
            effect: Effect::Gone,
            apply: Struck::silence,
            undo: |site| site.exit().namespace.nft("delete table inet deaf\n").expect("hears"),
        },
        Row {
            cause: "proxy refuses UDP",
            effect: Effect::WithoutDatagrams,
            apply: |site| site.replace_server(Server::Microsocks { login: None }),
            undo: |site| site.replace_server(Server::Dante),
        },
    ]
}

fn run(behind_a_tunnel: bool) {
    let site = Struck::build(behind_a_tunnel);
    site.wait_until_well("the start");
    site.check_that_it_cannot_be_renamed();
    site.run(&rows());
}

#[test]
fn a_proxy_hop() {
    run(false);
}

#[test]
fn a_proxy_behind_a_tunnel() {
    run(true);
}
