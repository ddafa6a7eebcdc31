//! What each failure policy does when a proxy goes, whatever it goes by: cause × policy × family × protocol, each cell
//! with the leaked packets that the tap has counted.
//!
//! One site has the three policies at once, told apart by what they are asked for; another host is closed to the same
//! way and keeps it under load throughout, so that the moment of the change is watched as well.

use std::net::SocketAddr;
use std::time::Duration;

use gateway_tests::scene::{Scene, create};
use gateway_tests::services::{HTTP, HTTP_OTHER};
use gateway_tests::socks::{PORT, Proxy, Server};
use gateway_tests::topology::{other_server, server, wan};
use gateway_tests::traffic::{Answer, Load, ask, ask_udp};
use gateway_tests::wait::wait_ok;
use gateway_tests::wireguard::Exit;
use serde_json::{Value, json};

use crate::paths::path;
use crate::{FAMILIES, SOON, assert_the_tap_sees};

/// How long a blocked question waits: far longer than a way that works would need.
const PATIENCE: Duration = Duration::from_millis(500);
const NAME: &str = "office";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FailPolicy {
    Closed,
    Degraded,
    Open,
}

use FailPolicy::{Closed, Degraded, Open};

impl FailPolicy {
    const ALL: [FailPolicy; 3] = [Closed, Degraded, Open];

    fn name(self) -> &'static str {
        match self {
            Closed => "fail-closed",
            Degraded => "fail-degraded",
            Open => "fail-open",
        }
    }

    /// What its policy matches; both protocols answer there.
    fn destination(self, ipv6: bool) -> SocketAddr {
        match self {
            Closed => (server(ipv6), HTTP).into(),
            Degraded => (other_server(ipv6), HTTP).into(),
            Open => (server(ipv6), HTTP_OTHER).into(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Tcp,
    Udp,
}

use Protocol::{Tcp, Udp};

const PROTOCOLS: [Protocol; 2] = [Tcp, Udp];

/// What a cause does to the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// It is unavailable until the cause is undone.
    Gone,
    /// It goes on carrying connections, and refuses datagrams.
    WithoutDatagrams,
}

struct Row {
    cause: &'static str,
    effect: Effect,
    apply: fn(&mut Site),
    undo: fn(&mut Site),
}

/// A network with a proxy at the end of the three policies' ways.
struct Site {
    load: Option<Load>,
    proxy: Proxy,
    scene: Scene,
    /// The proxy that is struck, and how it was made.
    id: String,
    object: Value,
    behind_a_tunnel: bool,
}

impl Site {
    fn build(behind_a_tunnel: bool) -> Site {
        let scene = Scene::start().expect("scene");
        assert_the_tap_sees(&scene, &scene.network.laptop);
        let proxy = Proxy::start(exit_of(&scene, behind_a_tunnel), Server::Dante).expect("proxy");
        let mut object = proxy.object(NAME);
        object["health_check"] = json!({"interval_sec": 5, "timeout_sec": 1, "fail": 2, "success": 1});
        let id = scene.proxy(&object, "up").expect("proxy up");
        let mut hops = vec![("proxy", NAME)];
        if behind_a_tunnel {
            scene.tunnel("wg-a", &scene.network.exit_a).expect("tunnel");
            hops.insert(0, ("vpn", "wg-a"));
        }
        for (n, fail_policy) in (20u32..).zip(FailPolicy::ALL) {
            let to = FAMILIES.map(|ipv6| fail_policy.destination(ipv6).to_string()).join(",");
            let more = json!({"fail_policy": fail_policy.name(), "priority": n});
            scene.store_policy(&path(fail_policy.name(), ("destination", &to), &hops, more)).expect("policy");
        }
        let tv = scene.device(&scene.network.tv).expect("device");
        scene.policy(&path("load", ("device", &tv), &hops, json!({"priority": 1}))).expect("policy");
        Site { load: None, proxy, scene, id, object, behind_a_tunnel }
    }

    /// Where the proxy stands: what the internet sees while all is well.
    fn exit(&self) -> &Exit {
        exit_of(&self.scene, self.behind_a_tunnel)
    }

    fn run(mut self, rows: &[Row]) {
        self.wait_until_well("the start");
        self.check_that_it_cannot_be_renamed();
        self.load = Some(Load::start(&self.scene.network.tv).expect("load"));
        for row in rows {
            println!("{}: {:?}", row.cause, row.effect);
            self.scene.network.tap.reset();
            (row.apply)(&mut self);
            match row.effect {
                Effect::Gone => self.wait_until_gone(row.cause),
                Effect::WithoutDatagrams => self.wait_until_without_datagrams(),
            }
            // Nobody has asked what may go out directly: the change itself leaks nothing.
            self.load.as_ref().expect("load").run_for(60).expect("load");
            let counts = self.scene.network.tap.counts();
            assert_eq!(counts.leaked.total(), 0, "{}, while it came: {counts}", row.cause);
            for protocol in PROTOCOLS {
                for fail_policy in FailPolicy::ALL {
                    FAMILIES.iter().for_each(|ipv6| self.check(row, protocol, fail_policy, *ipv6));
                }
            }
            self.scene.network.tap.reset();
            (row.undo)(&mut self);
            self.wait_until_well(row.cause);
        }
        let sent = self.load.take().expect("load").stop();
        assert!(sent.v4 > 500 && sent.v6 > 500, "{sent:?}");
    }

    /// One cell.
    fn check(&self, row: &Row, protocol: Protocol, fail_policy: FailPolicy, ipv6: bool) {
        let network = &self.scene.network;
        let expected = match (row.effect, protocol, fail_policy) {
            (Effect::WithoutDatagrams, Tcp, _) => Some(self.exit().address(ipv6)),
            (_, _, Closed) => None,
            (_, _, Degraded) => self.behind_a_tunnel.then(|| network.exit_a.address(ipv6)),
            (_, _, Open) => Some(wan(ipv6)),
        };
        network.tap.reset();
        let answer = self.ask(protocol, fail_policy, ipv6);
        let counts = network.tap.counts();
        let family = if ipv6 { 6 } else { 4 };
        let cell = format!("{} × {} × {protocol:?} × IPv{family}", row.cause, fail_policy.name());
        assert_eq!(answer.seen(), expected, "{cell}: {answer}");
        let (leaked, other) = match ipv6 {
            true => (counts.leaked.v6, counts.leaked.v4),
            false => (counts.leaked.v4, counts.leaked.v6),
        };
        let direct = expected == Some(wan(ipv6));
        assert_eq!((leaked > 0, other, counts.missed), (direct, 0, 0), "{cell}: {counts}");
    }

    fn ask(&self, protocol: Protocol, fail_policy: FailPolicy, ipv6: bool) -> Answer {
        let (laptop, to) = (&self.scene.network.laptop, fail_policy.destination(ipv6));
        match protocol {
            Tcp => ask(laptop, to, PATIENCE),
            Udp => ask_udp(laptop, to, PATIENCE),
        }
    }

    /// All policies lead through the proxy, with either protocol.
    fn wait_until_well(&self, after: &str) {
        for fail_policy in FailPolicy::ALL {
            for (protocol, ipv6) in PROTOCOLS.into_iter().flat_map(|p| FAMILIES.map(|ipv6| (p, ipv6))) {
                let what = format!("{} {protocol:?} to be as usual after: {after}", fail_policy.name());
                wait_ok(SOON, &what, || {
                    let answer = self.ask(protocol, fail_policy, ipv6);
                    anyhow::ensure!(answer.seen() == Some(self.exit().address(ipv6)), "{answer}");
                    Ok(())
                })
                .expect("as usual");
            }
        }
    }

    /// The gateway itself says that the policies are where they should be without the proxy.
    fn wait_until_gone(&self, cause: &str) {
        let expected = ["blocked", if self.behind_a_tunnel { "degraded" } else { "blocked" }, "fallback"];
        wait_ok(SOON, &format!("the policies to notice: {cause}"), || {
            let policies = self.scene.api().get("/routing/policies")?;
            let status = |name: &str| {
                let mut all = policies.as_array().into_iter().flatten();
                all.find(|policy| policy["name"] == name).map(|policy| policy["status"].clone())
            };
            let seen = FailPolicy::ALL.map(|policy| status(policy.name()).unwrap_or_default());
            anyhow::ensure!(seen == expected, "{seen:?}");
            Ok(())
        })
        .expect("noticed");
        self.carry_out();
    }

    fn wait_until_without_datagrams(&self) {
        wait_ok(SOON, "the proxy to be seen to refuse datagrams", || {
            let object = self.scene.api().get(&self.place())?;
            let seen = (&object["status"], &object["udp_works"]);
            anyhow::ensure!(seen == (&json!("up"), &json!(false)), "{seen:?}");
            Ok(())
        })
        .expect("noticed");
        self.carry_out();
    }

    /// What the gateway knows is in the kernel.
    fn carry_out(&self) {
        self.scene.api().act("/enforce/reconcile").expect("reconciled");
    }

    fn place(&self) -> String {
        format!("/proxies/{}", self.id)
    }

    fn set(&self, key: &str, value: Value) {
        let mut object = self.scene.api().get(&self.place()).expect("proxy");
        object[key] = value;
        self.scene.api().put(&self.place(), &object).expect("proxy");
    }

    /// As long as policies name it, it keeps its name.
    fn check_that_it_cannot_be_renamed(&self) {
        let mut object = self.scene.api().get(&self.place()).expect("proxy");
        object["name"] = json!("other");
        self.check_refused("PUT", Some(&object));
        assert_eq!(self.scene.api().get(&self.place()).expect("proxy")["name"], NAME);
    }

    fn check_refused(&self, method: &str, object: Option<&Value>) {
        let refused = self.scene.api().send(method, &self.place(), object).expect("answer");
        let error = &refused.body["error"];
        assert_eq!((refused.status, &error["code"]), (409, &json!("in_use")), "{error}");
        assert_eq!(error["details"]["resource_type"], "proxy", "{error}");
    }

    fn delete(&mut self) {
        self.check_refused("DELETE", None);
        self.scene.api().delete(&format!("{}?force=true", self.place())).expect("deleted");
    }

    fn create_again(&mut self) {
        self.id = create(self.scene.api(), "/proxies", &self.object).expect("proxy");
    }

    fn replace_server(&mut self, server: Server<'_>) {
        self.proxy.kill9().expect("killed");
        self.proxy = Proxy::start(self.exit(), server).expect("proxy");
    }

    /// Connections stay as they are on both sides, and nothing of them arrives any more.
    fn silence(&mut self) {
        let deaf = format!(
            "table inet deaf {{\n chain in {{\n type filter hook input priority filter\n tcp dport {PORT} drop\n }}\n}}\n"
        );
        self.exit().namespace.nft(&deaf).expect("deaf");
    }
}

fn exit_of(scene: &Scene, behind_a_tunnel: bool) -> &Exit {
    if behind_a_tunnel { &scene.network.exit_b } else { &scene.network.exit_a }
}

fn rows() -> Vec<Row> {
    vec![
        Row {
            cause: "disabled",
            effect: Effect::Gone,
            apply: |site| site.set("enabled", json!(false)),
            undo: |site| site.set("enabled", json!(true)),
        },
        Row { cause: "deleted", effect: Effect::Gone, apply: Site::delete, undo: Site::create_again },
        Row {
            cause: "proxy killed",
            effect: Effect::Gone,
            apply: |site| site.proxy.kill9().expect("killed"),
            undo: |site| site.replace_server(Server::Dante),
        },
        Row {
            cause: "proxy silent",
            effect: Effect::Gone,
            apply: Site::silence,
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

#[test]
fn a_proxy_hop() {
    Site::build(false).run(&rows());
}

#[test]
fn a_proxy_behind_a_tunnel() {
    Site::build(true).run(&rows());
}
