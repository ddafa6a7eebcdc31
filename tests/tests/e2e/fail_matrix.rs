//! What each failure policy does when a hop goes, whatever it goes by: cause × policy × family, each cell with the leaked
//! packets that the tap has counted.
//!
//! One site has the three policies at once, told apart by what they are asked for; another host is closed to the same hop
//! and keeps it under load throughout, so that the moment of the change is watched as well. A new kind of hop is a new
//! site with its rows.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use gateway_tests::name_server::{self, NameServer};
use gateway_tests::openvpn::Server;
use gateway_tests::scene::{Scene, create, policy};
use gateway_tests::services::{HTTP, HTTP_OTHER};
use gateway_tests::topology::{SERVER_V4, other_server, server, wan};
use gateway_tests::traffic::{Load, ask};
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use crate::health::{forwards, probed};
use crate::openvpn::processes;
use crate::paths::path;
use crate::{FAMILIES, SOON, assert_the_tap_sees};

/// How long a blocked question waits: far longer than a way that works would need.
const PATIENCE: Duration = Duration::from_millis(500);

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

    /// What its policy matches.
    fn destination(self, ipv6: bool) -> SocketAddr {
        match self {
            Closed => (server(ipv6), HTTP).into(),
            Degraded => (other_server(ipv6), HTTP).into(),
            Open => (server(ipv6), HTTP_OTHER).into(),
        }
    }
}

/// What a cause does to the hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// It is unavailable until the cause is undone.
    Gone,
    /// The gateway repairs it by itself: for a moment it may be unavailable.
    Repaired,
}

struct Row {
    cause: &'static str,
    effect: Effect,
    apply: fn(&mut Site),
    undo: fn(&mut Site),
}

/// A network with one kind of hop and the three policies over it.
struct Site {
    load: Option<Load>,
    names: Option<NameServer>,
    openvpn: Option<Server>,
    scene: Scene,
    /// The tunnel that is struck, and how it was made.
    tunnel: String,
    object: Value,
    /// What the internet sees of the policies while all is well, and of the degraded one while the hop is gone.
    usual: [IpAddr; 2],
    degraded: Option<[IpAddr; 2]>,
}

impl Site {
    /// The struck tunnel is the first hop; `behind` are those it carries.
    fn build(scene: Scene, object: Value, behind: &[&str], usual: [IpAddr; 2]) -> Site {
        let name = object["name"].as_str().expect("a name").to_owned();
        let tunnel = create(scene.api(), "/tunnels", &object).expect("tunnel");
        scene.bring_up(&tunnel).expect("up");
        let hops: Vec<(&str, &str)> =
            std::iter::once(name.as_str()).chain(behind.iter().copied()).map(|name| ("vpn", name)).collect();
        for (n, fail_policy) in (20u32..).zip(FailPolicy::ALL) {
            let to = FAMILIES.map(|ipv6| fail_policy.destination(ipv6).to_string()).join(",");
            let more = json!({"fail_policy": fail_policy.name(), "priority": n});
            scene.store_policy(&path(fail_policy.name(), ("destination", &to), &hops, more)).expect("policy");
        }
        let tv = scene.device(&scene.network.tv).expect("device");
        scene.policy(&policy("load", 1, ("device", &tv), &[&name])).expect("policy");
        Site {
            load: None,
            names: None,
            openvpn: None,
            scene,
            tunnel,
            object,
            usual,
            degraded: (!behind.is_empty()).then_some(usual),
        }
    }

    fn run(mut self, rows: &[Row]) {
        self.wait_until_well("the start");
        self.load = Some(Load::start(&self.scene.network.tv).expect("load"));
        for row in rows {
            println!("{}: {:?}", row.cause, row.effect);
            self.scene.network.tap.reset();
            (row.apply)(&mut self);
            match row.effect {
                Effect::Gone => self.wait_until_gone(row.cause),
                Effect::Repaired => {}
            }
            // Nobody has asked what may go out directly: the change itself leaks nothing.
            self.load.as_ref().expect("load").run_for(60).expect("load");
            let counts = self.scene.network.tap.counts();
            assert_eq!(counts.leaked.total(), 0, "{}, while it came: {counts}", row.cause);
            if row.effect == Effect::Gone {
                for fail_policy in FailPolicy::ALL {
                    FAMILIES.iter().for_each(|ipv6| self.check(row.cause, fail_policy, *ipv6));
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
    fn check(&self, cause: &str, fail_policy: FailPolicy, ipv6: bool) {
        let network = &self.scene.network;
        let family = usize::from(ipv6);
        let expected = match fail_policy {
            Closed => None,
            Degraded => self.degraded.map(|addresses| addresses[family]),
            Open => Some(wan(ipv6)),
        };
        network.tap.reset();
        let answer = ask(&network.laptop, fail_policy.destination(ipv6), PATIENCE);
        let counts = network.tap.counts();
        let cell = format!("{cause} × {} × IPv{}", fail_policy.name(), if ipv6 { 6 } else { 4 });
        assert_eq!(answer.seen(), expected, "{cell}: {answer}");
        let (leaked, other) = match ipv6 {
            true => (counts.leaked.v6, counts.leaked.v4),
            false => (counts.leaked.v4, counts.leaked.v6),
        };
        assert_eq!((leaked > 0, other, counts.missed), (fail_policy == Open, 0, 0), "{cell}: {counts}");
    }

    /// All policies lead through their hops.
    fn wait_until_well(&self, after: &str) {
        for fail_policy in FailPolicy::ALL {
            for ipv6 in FAMILIES {
                let what = format!("{} to be as usual after: {after}", fail_policy.name());
                wait_ok(SOON, &what, || {
                    let destination = fail_policy.destination(ipv6);
                    let answer = ask(&self.scene.network.laptop, destination, PATIENCE);
                    anyhow::ensure!(answer.seen() == Some(self.usual[usize::from(ipv6)]), "{answer}");
                    Ok(())
                })
                .expect("as usual");
            }
        }
    }

    /// The gateway itself says that the policies are where they should be without the hop.
    fn wait_until_gone(&self, cause: &str) {
        let expected = ["blocked", if self.degraded.is_some() { "degraded" } else { "blocked" }, "fallback"];
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
        // The gateway says so as soon as it knows; an answer to this comes when the kernel has the plan.
        self.scene.api().act("/enforce/reconcile").expect("reconciled");
        if let Some(addresses) = self.degraded {
            // What is behind the hop makes its way anew.
            for ipv6 in FAMILIES {
                wait_ok(SOON, "what is left of the way", || {
                    let answer = ask(&self.scene.network.laptop, Degraded.destination(ipv6), PATIENCE);
                    anyhow::ensure!(answer.seen() == Some(addresses[usize::from(ipv6)]), "{answer}");
                    Ok(())
                })
                .expect("degraded");
            }
        }
    }

    /// Replaces a field of the struck tunnel.
    fn set(&self, key: &str, value: Value) {
        let place = format!("/tunnels/{}", self.tunnel);
        let mut object = self.scene.api().get(&place).expect("tunnel");
        object[key] = value;
        self.scene.api().put(&place, &object).expect("tunnel");
    }

    fn act(&self, action: &str) {
        self.scene.api().act(&format!("/tunnels/{}/{action}", self.tunnel)).expect(action);
    }

    fn delete(&mut self) {
        let place = format!("/tunnels/{}", self.tunnel);
        let refused = self.scene.api().send("DELETE", &place, None).expect("answer");
        assert_eq!(
            (refused.status, &refused.body["error"]["code"]),
            (409, &json!("in_use")),
            "{}",
            refused.body
        );
        assert_eq!(refused.body["error"]["details"]["references"]["total"], 4, "{}", refused.body);
        self.scene.api().delete(&format!("{place}?force=true")).expect("deleted");
    }

    fn create_again(&mut self) {
        self.tunnel = create(self.scene.api(), "/tunnels", &self.object).expect("tunnel");
    }

    fn ip(&self, line: &str) {
        let tunnel = self.scene.api().get(&format!("/tunnels/{}", self.tunnel)).expect("tunnel");
        let interface = tunnel["interface"].as_str().expect("an interface");
        self.scene.network.gateway.ip(&line.replace("IT", interface)).expect("ip");
    }

    fn restart(&mut self) {
        self.scene.daemon.terminate().expect("stop");
        self.scene.daemon.start().expect("start");
    }
}

/// What is done through the API, to any kind of tunnel.
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
        Row { cause: "deleted", effect: Effect::Gone, apply: Site::delete, undo: Site::create_again },
    ]
}

/// What befalls the interface of a tunnel.
fn by_the_interface() -> Vec<Row> {
    vec![
        Row {
            cause: "interface down",
            effect: Effect::Repaired,
            apply: |site| site.ip("link set IT down"),
            undo: |site| drop(site.scene.api().act("/enforce/reconcile").expect("reconcile")),
        },
        Row {
            cause: "interface deleted",
            effect: Effect::Repaired,
            apply: |site| site.ip("link del IT"),
            undo: |site| drop(site.scene.api().act("/enforce/reconcile").expect("reconcile")),
        },
    ]
}

/// The exit answers for the tunnel and passes nothing on.
fn silent() -> Row {
    Row {
        cause: "peer silent",
        effect: Effect::Gone,
        apply: |site| forwards(&site.scene.network.exit_a, false),
        undo: |site| forwards(&site.scene.network.exit_a, true),
    }
}

#[test]
fn a_wireguard_hop() {
    let mut scene = Scene::prepare().expect("scene");
    let names = NameServer::start(&scene.network.internet, scene.network.exit_a.place.v4).expect("names");
    scene
        .daemon
        .configure(&json!({"dns": {"bootstrap_servers": [name_server::ADDRESS]}}))
        .expect("configuration");
    scene.daemon.start().expect("start");
    assert_the_tap_sees(&scene, &scene.network.laptop);
    let usual = FAMILIES.map(|ipv6| scene.network.exit_a.address(ipv6));
    let mut object = probed(&scene.network.exit_a, "wg-a", "ping", &SERVER_V4.to_string());
    object["peers"][0]["endpoint"] = json!("exit.example:51820");
    object["health_check"]["success"] = json!(1);
    let mut site = Site::build(scene, object, &[], usual);
    site.names = Some(names);
    let mut rows = by_the_api();
    rows.extend(by_the_interface());
    rows.push(silent());
    rows.push(Row {
        cause: "exit killed",
        effect: Effect::Gone,
        apply: |site| site.scene.network.exit_a.kill9().expect("killed"),
        undo: |site| site.scene.network.exit_a.start().expect("started"),
    });
    rows.push(Row {
        cause: "name server gone",
        effect: Effect::Gone,
        apply: |site| {
            site.names.as_ref().expect("names").answer(None);
            site.restart();
        },
        undo: |site| {
            let exit = site.scene.network.exit_a.place.v4;
            site.names.as_ref().expect("names").answer(Some(exit));
        },
    });
    site.run(&rows);
}

#[test]
fn the_outer_hop_of_a_path() {
    let scene = Scene::start().expect("scene");
    assert_the_tap_sees(&scene, &scene.network.laptop);
    let usual = FAMILIES.map(|ipv6| scene.network.exit_b.address(ipv6));
    scene.tunnel("wg-b", &scene.network.exit_b).expect("tunnel");
    let mut object = probed(&scene.network.exit_a, "wg-a", "ping", &SERVER_V4.to_string());
    object["health_check"]["success"] = json!(1);
    let site = Site::build(scene, object, &["wg-b"], usual);
    let mut rows = by_the_api();
    rows.push(silent());
    site.run(&rows);
}

#[test]
fn an_openvpn_hop() {
    let scene = Scene::start().expect("scene");
    assert_the_tap_sees(&scene, &scene.network.laptop);
    let usual = FAMILIES.map(|ipv6| scene.network.exit_a.address(ipv6));
    let mut server = Server::start(&scene.network.exit_a, &scene.network.prefix, "").expect("server");
    server.kill9().expect("ended");
    server.set_transport("tcp-server");
    server.start_again().expect("server");
    let file = server.file("").expect("file").replace("proto udp\n", "proto tcp\n");
    let object = json!({
        "name": "nl", "type": "openvpn", "config": file,
        "health_check": {"type": "ping", "target": SERVER_V4, "interval_sec": 1, "timeout_sec": 1, "fail": 2, "success": 1},
    });
    let mut site = Site::build(scene, object, &[], usual);
    site.openvpn = Some(server);
    let mut rows = by_the_api();
    rows.push(silent());
    rows.push(Row {
        cause: "process killed",
        effect: Effect::Repaired,
        apply: |site| {
            for pid in processes(&site.scene) {
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
    // The connection stays as it is on both sides, and nothing of it arrives any more.
    rows.push(Row {
        cause: "half-open TCP",
        effect: Effect::Gone,
        apply: |site| {
            let deaf = "table inet deaf {\n chain in {\n type filter hook input priority filter\n tcp dport 1194 drop\n }\n}\n";
            site.scene.network.exit_a.namespace.nft(deaf).expect("deaf");
        },
        undo: |site| site.scene.network.exit_a.namespace.nft("delete table inet deaf\n").expect("hears"),
    });
    site.run(&rows);
}
