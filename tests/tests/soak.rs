//! Soak test: hops fail and return at random under load, by every supported fault. Nothing leaks: no packet, no kernel
//! object, no process, no file descriptor.
//!
//! `GATEWAY_SOAK_SECONDS` sets the duration (60), `GATEWAY_SOAK_SEED` repeats a run. Needs root.

mod fast_path;
mod faults;
mod inventory;

use std::time::{Duration, Instant};

use gateway_tests::openvpn::Server;
use gateway_tests::testbed::{Testbed, create, policy};
use gateway_tests::topology::{SERVER_V4, server, wan};
use gateway_tests::traffic::{Load, ask_server};
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use crate::soak::faults::{Deed, Random};
use crate::soak::inventory::Inventory;

const SOON: Duration = Duration::from_secs(60);

/// The network and the state of its faults.
pub(crate) struct Site {
    pub testbed: Testbed,
    pub openvpn: Server,
    /// API objects of the tunnels.
    pub tunnels: Vec<Value>,
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn build() -> Site {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    // The tap counts direct traffic; without this a clean count would prove nothing.
    for ipv6 in [false, true] {
        assert_eq!(ask_server(&network.tv, server(ipv6)).seen(), Some(wan(ipv6)));
    }
    let counts = network.tap.counts();
    assert!(counts.leaked.v4 > 0 && counts.leaked.v6 > 0, "{counts}");
    let openvpn = Server::start(&network.exit_b, &network.prefix, "").expect("server");
    let check = json!({"type": "ping", "target": SERVER_V4, "interval_sec": 1, "timeout_sec": 1, "fail": 2, "success": 1});
    let mut tunnels = vec![
        network.exit_a.tunnel("wg-a"),
        network.exit_b.tunnel("wg-b"),
        json!({"name": "ov-b", "type": "openvpn", "config": openvpn.file("").expect("file")}),
    ];
    tunnels.iter_mut().for_each(|tunnel| tunnel["health_check"] = check.clone());
    for tunnel in &tunnels {
        create(testbed.api(), "/tunnels", tunnel).expect("tunnel");
    }
    let laptop = testbed.device(&network.laptop).expect("device");
    let tv = testbed.device(&network.tv).expect("device");
    let mut split = policy("split", 10, ("device", &laptop), &["wg-a", "wg-b", "ov-b"]);
    split["splitting"] = json!(true);
    let mut one_of = policy("one-of", 11, ("device", &tv), &["ov-b", "wg-a", "wg-b"]);
    one_of["hop_mode"] = json!("failover");
    testbed.store_policy(&split).expect("policy");
    testbed.policy(&one_of).expect("policy");
    Site { testbed, openvpn, tunnels }
}

impl Site {
    /// Restores the initial state and waits until everything works.
    fn settle(&mut self) {
        self.mend();
        wait_ok(SOON, "everything to be well", || {
            let tunnels = self.testbed.api().get("/tunnels")?;
            for tunnel in tunnels.as_array().into_iter().flatten() {
                anyhow::ensure!(tunnel["healthy"] == true, "{}: {}", tunnel["name"], tunnel["last_error"]);
            }
            let policies = self.testbed.api().get("/routing/policies")?;
            for policy in policies.as_array().into_iter().flatten() {
                anyhow::ensure!(policy["status"] == "active", "{}: {}", policy["name"], policy["status"]);
            }
            Ok(())
        })
        .expect("well");
        self.testbed.api().act("/enforce/reconcile").expect("reconciled");
    }
}

#[test]
fn hops_come_and_go_and_nothing_is_left_behind() {
    let length = Duration::from_secs(number("GATEWAY_SOAK_SECONDS", 60));
    let seed = number("GATEWAY_SOAK_SEED", std::process::id().into());
    println!("GATEWAY_SOAK_SEED={seed}");
    let mut random = Random::new(seed);
    let mut site = build();
    site.settle();
    site.testbed.network.tap.reset();
    let load =
        [&site.testbed.network.laptop, &site.testbed.network.tv].map(|host| Load::start(host).expect("load"));
    // Runs each fault once, so that permanent objects exist before the first count.
    for deed in Deed::ALL {
        site.do_it(deed, 0);
        site.settle();
    }
    let before = Inventory::take(&site.testbed);
    let (started, mut done) = (Instant::now(), 0);
    while started.elapsed() < length {
        let (deed, tunnel) = (random.pick(Deed::ALL), random.below(site.tunnels.len()));
        // A daemon that has just restarted has not leaked anything yet.
        if deed == Deed::KillTheDaemon && started.elapsed() > length / 3 {
            continue;
        }
        site.do_it(deed, tunnel);
        done += 1;
        std::thread::sleep(Duration::from_millis(100 + random.below(900) as u64));
        if random.below(8) == 0 {
            site.mend();
        }
        let counts = site.testbed.network.tap.counts();
        assert_eq!(counts.leaked.total(), 0, "seed {seed}, deed {done}, {deed:?} of {tunnel}: {counts}");
    }
    site.settle();
    wait_ok(SOON, "what there is to be what there was", || before.compare(&Inventory::take(&site.testbed)))
        .unwrap_or_else(|error| panic!("seed {seed}, {done} deeds: {error:#}"));
    let sent = load.map(Load::stop);
    let counts = site.testbed.network.tap.counts();
    assert_eq!((counts.leaked.total(), counts.missed), (0, 0), "{counts}");
    println!(
        "{done} deeds, sent {} and {} packets, leaked 0",
        sent[0].v4 + sent[0].v6,
        sent[1].v4 + sent[1].v6
    );
    assert!(done > 0 && sent.iter().all(|sent| sent.v4 > 500 && sent.v6 > 500), "{sent:?}");

    // After all objects are deleted, their kernel state is gone too.
    for collection in ["/routing/policies", "/tunnels"] {
        for object in site.testbed.api().get(collection).expect("list").as_array().expect("a list") {
            let id = object["id"].as_str().expect("an id");
            site.testbed.api().delete(&format!("{collection}/{id}?force=true")).expect("deleted");
        }
    }
    site.testbed.apply().expect("applied");
    wait_ok(SOON, "the tunnels' traces to go", || Inventory::take(&site.testbed).without_tunnels())
        .expect("gone");
}
