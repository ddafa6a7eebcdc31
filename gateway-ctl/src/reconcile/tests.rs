//! Tests of the order of a run and of the loop, over fake backends.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use gateway_common::wire::Mark;
use gateway_core::facts::Link;
use gateway_core::indexes::ProxyIndex;
use gateway_core::plan::{
    AddressKey, Family, LinkSettings, NftRuleset, ProxyTarget, RouteKey, RouteValue, RuleAction, RuleKey,
    RuleValue, SecretKey, WireGuardDevice, names,
};
use parking_lot::Mutex;

use super::*;
use crate::os::fake_backend::{Journal, Mem};
use crate::os::nft::{self, Nft};
use crate::os::route;
use crate::os::rule::InstalledRule;

#[derive(Clone)]
struct FakeHost {
    journal: Journal,
    egress_backends: Arc<[Box<dyn EgressBackend>]>,
    wireguard: Mem<String, WireGuardState>,
    links: Mem<String, LinkSettings>,
    addresses: Mem<AddressKey, ()>,
    sysctls: Mem<String, String>,
    routes: Mem<RouteKey, route::InstalledRoute>,
    rules: Mem<InstalledRule, ()>,
    nft: Mem<(), nft::InstalledTable>,
}

impl FakeHost {
    fn new() -> Self {
        let journal = Journal::default();
        let wireguard = Mem::journaling("wireguard", &journal);
        let tunnels = SyncedBackend::new("wireguard", wireguard.clone(), Tunnels::want).making_links();
        let proxies = Mem::journaling("proxies", &journal);
        let proxies = SyncedBackend::new("proxies", proxies, |plan| Cow::Borrowed(&plan.proxies));
        Self {
            egress_backends: Arc::new([Box::new(tunnels), Box::new(proxies)]),
            wireguard,
            links: Mem::journaling("links", &journal),
            addresses: Mem::journaling("addresses", &journal),
            sysctls: Mem::journaling("sysctl", &journal),
            routes: Mem::journaling("routes", &journal),
            rules: Mem::journaling("rules", &journal),
            nft: Mem::journaling("nft", &journal),
            journal,
        }
    }
}

impl Host for FakeHost {
    type Links = Mem<String, LinkSettings>;
    type Addresses = Mem<AddressKey, ()>;
    type Sysctls = Mem<String, String>;
    type Routes = Mem<RouteKey, route::InstalledRoute>;
    type Rules = Mem<InstalledRule, ()>;
    type Nft = Mem<(), nft::InstalledTable>;

    fn egress_backends(&self) -> &[Box<dyn EgressBackend>] {
        &self.egress_backends
    }
    fn links(&self, _plan: &Plan) -> Self::Links {
        self.links.clone()
    }
    fn addresses(&self, _plan: &Plan) -> Self::Addresses {
        self.addresses.clone()
    }
    fn sysctls(&self, _plan: &Plan) -> Self::Sysctls {
        self.sysctls.clone()
    }
    fn routes(&self) -> &Self::Routes {
        &self.routes
    }
    fn rules(&self) -> &Self::Rules {
        &self.rules
    }
    fn nft(&self, _ruleset: &Nft) -> Self::Nft {
        self.nft.clone()
    }
}

#[derive(Clone, Default)]
struct FakeDataplane {
    journal: Journal,
    /// Number of entries that each apply writes.
    put: Arc<AtomicUsize>,
    /// Comparisons that the applies were asked for.
    checks: Arc<Mutex<Vec<Check>>>,
}

impl Dataplane for FakeDataplane {
    async fn apply(&self, _plan: &Plan, check: Check) -> Outcome {
        self.journal.write("dataplane".to_owned());
        self.checks.lock().push(check);
        Outcome { put: self.put.load(Ordering::Relaxed), ..Outcome::default() }
    }
}

fn subsystems(host: &FakeHost) -> Subsystems<FakeHost, FakeDataplane> {
    Subsystems::new(host.clone(), FakeDataplane { journal: host.journal.clone(), ..FakeDataplane::default() })
}

/// Returns a plan with a LAN, an uplink and one tunnel with its leg.
fn plan(tunnel: &str, leg: u32) -> Plan {
    let mut plan = Plan::default();
    let device = WireGuardDevice {
        tunnel_id: tunnel.to_owned(),
        private_key: SecretKey([1; 32]),
        listen_port: None,
        fwmark: Mark(0),
        mtu: 1420,
        peers: Default::default(),
    };
    plan.wireguard.insert(tunnel.to_owned(), device);
    plan.links.insert(tunnel.to_owned(), LinkSettings { up: true, mtu: 1420 });
    let address = "10.9.0.2/32".parse().unwrap();
    plan.addresses.insert(AddressKey { interface: tunnel.to_owned(), address }, ());
    let destination = "0.0.0.0/0".parse().unwrap();
    let table = names::TABLE_BASE + leg;
    let unicast = RouteValue::Unicast { interface: tunnel.to_owned(), gateway: None };
    plan.routes.insert(RouteKey { table, destination, metric: 10 }, unicast);
    plan.routes.insert(RouteKey { table, destination, metric: names::METRIC_LAST }, RouteValue::Unreachable);
    let rule = |fwmark, input: Option<&str>, action| RuleValue {
        source: None,
        fwmark,
        input_interface: input.map(str::to_owned),
        output_interface: None,
        action,
        suppress_prefix_length: None,
    };
    let place = |priority| RuleKey { family: Family::V4, priority };
    plan.rules.insert(place(4700 + leg), rule(Some((leg, 0xff)), None, RuleAction::Table(table)));
    plan.rules.insert(place(4999), rule(None, Some("lan0"), RuleAction::Prohibit));
    let answers = RuleValue {
        source: Some("10.9.0.2/32".parse().unwrap()),
        ..rule(None, Some("lo"), RuleAction::Table(table))
    };
    plan.rules.insert(place(4960 + leg), answers);
    plan.sysctls.insert("net.ipv4.ip_forward".to_owned(), "1".to_owned());
    plan.sysctls.insert("net.ipv4.conf.all.src_valid_mark".to_owned(), "1".to_owned());
    plan.nft = NftRuleset {
        lan: vec!["lan0".to_owned()],
        tunnels: vec![tunnel.to_owned()],
        uplinks: vec!["wan0".to_owned()],
        open_udp: vec![],
        open_tcp: vec![],
        proxied: false,
        dns_port: 53,
        ..NftRuleset::default()
    };
    plan
}

/// Returns the index of the first journal line that contains all the words.
#[track_caller]
fn position(journal: &[String], words: &[&str]) -> usize {
    let found = journal.iter().position(|line| words.iter().all(|word| line.contains(word)));
    found.unwrap_or_else(|| panic!("no line with {words:?} in {journal:#?}"))
}

#[track_caller]
fn assert_in_order(journal: &[String], lines: &[&[&str]]) {
    for pair in lines.windows(2) {
        assert!(position(journal, pair[0]) < position(journal, pair[1]), "{pair:?} in {journal:#?}");
    }
}

#[tokio::test]
async fn a_first_run_blocks_first_and_forwards_last() {
    let host = FakeHost::new();
    let outcomes = subsystems(&host).run(&plan("gw-a", 1), Check::Maps).await;
    assert!(outcomes.values().all(Outcome::is_ok));
    let journal = host.journal.take();
    assert_in_order(
        &journal,
        &[
            &["rules put", "Prohibit"],
            &["routes put", "4294967295"],
            &["rules put", "10.9.0.2/32"],
            &["wireguard put"],
            &["links put"],
            &["addresses put"],
            &["sysctl put", "src_valid_mark"],
            &["routes put", "metric: 10 "],
            &["rules put", "fwmark: Some"],
            &["dataplane"],
            &["nft put"],
            &["sysctl put", "ip_forward"],
        ],
    );
    assert_eq!(
        journal.iter().filter(|line| line.starts_with("nft")).count(),
        1,
        "the base block held until then"
    );
}

#[tokio::test]
async fn an_unchanged_plan_changes_nothing() {
    let host = FakeHost::new();
    let mut subsystems = subsystems(&host);
    subsystems.run(&plan("gw-a", 1), Check::Maps).await;
    host.journal.take();
    let outcomes = subsystems.run(&plan("gw-a", 1), Check::Maps).await;
    assert!(outcomes.values().all(|outcome| *outcome == Outcome::default()), "{outcomes:?}");
    assert_eq!(host.journal.take(), ["dataplane"]);
}

#[tokio::test]
async fn a_change_puts_the_new_before_the_flip_and_takes_the_old_away_after_it() {
    let host = FakeHost::new();
    let mut subsystems = subsystems(&host);
    subsystems.run(&plan("gw-a", 1), Check::Maps).await;
    host.journal.take();
    let outcomes = subsystems.run(&plan("gw-b", 2), Check::Maps).await;
    assert!(outcomes.values().all(|outcome| outcome.drift.is_empty()), "our own change is no drift");
    let journal = host.journal.take();
    assert_in_order(
        &journal,
        &[
            &["nft put"],
            &["wireguard put", "gw-b"],
            &["routes put", "47002", "metric: 10 "],
            &["rules put", "47002", "fwmark: Some"],
            &["dataplane"],
            &["rules remove", "47001", "fwmark: Some"],
            &["routes remove", "47001", "metric: 10 "],
            &["addresses remove", "gw-a"],
            &["wireguard remove", "gw-a"],
            &["rules remove", "47001", "10.9.0.2/32"],
            &["routes remove", "47001", "4294967295"],
        ],
    );
    let last_nft = journal.iter().rposition(|line| line.starts_with("nft put")).unwrap();
    assert!(last_nft > position(&journal, &["dataplane"]), "the old egress is closed after the flip");
}

#[tokio::test]
async fn egress_backends_are_removed_in_reverse_order() {
    let host = FakeHost::new();
    let mut subsystems = subsystems(&host);
    let proxy = ProxyTarget {
        proxy_id: "p".to_owned(),
        name: "p".to_owned(),
        address: None,
        login: None,
        udp: false,
        legs: Default::default(),
        connections: 1,
    };
    let mut plan = plan("gw-a", 1);
    plan.proxies.insert(ProxyIndex::new(1).expect("a proxy"), proxy);
    let outcomes = subsystems.run(&plan, Check::Maps).await;
    assert_eq!((outcomes["wireguard"].put, outcomes["proxies"].put), (1, 1));
    assert_in_order(&host.journal.take(), &[&["wireguard put"], &["proxies put"], &["dataplane"]]);
    subsystems.run(&Plan::default(), Check::Maps).await;
    assert_in_order(&host.journal.take(), &[&["dataplane"], &["proxies remove"], &["wireguard remove"]]);
}

#[tokio::test]
async fn blocking_entries_are_removed_last() {
    let host = FakeHost::new();
    let mut subsystems = subsystems(&host);
    subsystems.run(&plan("gw-a", 1), Check::Maps).await;
    host.journal.take();
    subsystems.run(&Plan::default(), Check::Maps).await;
    assert_in_order(
        &host.journal.take(),
        &[
            &["dataplane"],
            &["rules remove", "fwmark: Some"],
            &["routes remove", "metric: 10 "],
            &["wireguard remove"],
            &["rules remove", "10.9.0.2/32"],
            &["routes remove", "4294967295"],
            &["rules remove", "Prohibit"],
        ],
    );
}

#[tokio::test]
async fn a_failing_subsystem_never_stops_the_others() {
    let host = FakeHost::new();
    host.wireguard.fail_reading(true);
    host.links.fail_at(["gw-a".to_owned()]);
    host.routes.fail_reading(true);
    let outcomes = subsystems(&host).run(&plan("gw-a", 1), Check::Maps).await;
    let failed: Vec<_> =
        outcomes.iter().filter(|(_, outcome)| !outcome.is_ok()).map(|(name, _)| *name).collect();
    assert_eq!(failed, ["links", "routes", "wireguard"]);
    let journal = host.journal.take();
    for line in ["rules put", "addresses put", "dataplane", "nft put", "sysctl put"] {
        position(&journal, &[line]);
    }
}

#[tokio::test]
async fn a_name_that_cannot_stand_in_a_rule_fails_the_table_and_nothing_else() {
    let host = FakeHost::new();
    let mut plan = plan("gw-a", 1);
    plan.nft.uplinks.push("eth*".to_owned());
    let outcomes = subsystems(&host).run(&plan, Check::Maps).await;
    assert!(!outcomes["nft"].is_ok());
    assert_eq!(outcomes.values().filter(|outcome| !outcome.is_ok()).count(), 1);
}

#[tokio::test]
async fn routes_that_went_with_their_link_are_put_again_in_the_same_run() {
    let host = FakeHost::new();
    let mut subsystems = subsystems(&host);
    subsystems.run(&plan("gw-a", 1), Check::Maps).await;
    host.wireguard.tamper(|devices| devices.clear());
    host.routes.tamper(|routes| routes.clear());
    let outcomes = subsystems.run(&plan("gw-a", 1), Check::Maps).await;
    assert_eq!(host.routes.entries().len(), 2);
    assert_eq!((outcomes["wireguard"].drift.len(), outcomes["routes"].drift.len()), (1, 2));
}

/// Fake facts that tests change, with notifications of the changes.
#[derive(Clone)]
struct FakeWorld {
    facts: Arc<Mutex<Facts>>,
    seen: Arc<watch::Sender<KernelChanges>>,
}

impl FakeWorld {
    fn new() -> Self {
        Self { facts: Arc::default(), seen: Arc::new(watch::channel(KernelChanges::default()).0) }
    }

    fn change(&self, change: impl FnOnce(&mut Facts)) {
        change(&mut self.facts.lock());
    }
}

impl Observe for FakeWorld {
    async fn facts(&self) -> Result<Facts, netlink::Error> {
        Ok(self.facts.lock().clone())
    }

    fn changes(&self) -> watch::Receiver<KernelChanges> {
        self.seen.subscribe()
    }
}

struct RunningLoop {
    handle: Handle,
    host: FakeHost,
    dataplane: FakeDataplane,
    world: FakeWorld,
    compiles: Arc<AtomicUsize>,
    validity: Arc<Mutex<Option<Timestamp>>>,
}

fn start_loop(interval: Option<Duration>) -> RunningLoop {
    let (host, world) = (FakeHost::new(), FakeWorld::new());
    let compiles = Arc::new(AtomicUsize::new(0));
    let validity = Arc::<Mutex<Option<Timestamp>>>::default();
    let (counter, until) = (Arc::clone(&compiles), Arc::clone(&validity));
    let compile = move |_: &Facts, _: Timestamp| {
        let revision = counter.fetch_add(1, Ordering::Relaxed) as u64 + 1;
        Compiled { revision, plan: Plan { valid_until: *until.lock(), ..plan("gw-a", 1) } }
    };
    let begun = tokio::time::Instant::now();
    let clock = move || Timestamp::UNIX_EPOCH + begun.elapsed();
    let dataplane = FakeDataplane { journal: host.journal.clone(), ..FakeDataplane::default() };
    let subsystems = Subsystems::new(host.clone(), dataplane.clone());
    let (handle, _) = start(subsystems, world.clone(), Arc::new(compile), clock, Settings { interval });
    RunningLoop { handle, host, dataplane, world, compiles, validity }
}

impl RunningLoop {
    /// Returns the status after the next run.
    async fn next(&self, seen: &mut watch::Receiver<Arc<Status>>) -> Arc<Status> {
        tokio::time::timeout(Duration::from_secs(3600), seen.changed())
            .await
            .expect("a run in time")
            .unwrap();
        seen.borrow_and_update().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_run_needs_no_reason() {
    let running = start_loop(None);
    let mut status = running.handle.status();
    let first = running.next(&mut status).await;
    assert_eq!((first.run, first.revision, first.reason), (1, 1, Reason::Start));
    assert!(first.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_requested_run_begins_after_the_request() {
    let running = start_loop(None);
    let (one, two) =
        tokio::join!(running.handle.run_now(Reason::Manual), running.handle.run_now(Reason::Apply));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!((one.run, two.run), (2, 2), "asked together, answered by one run");
    assert_eq!(one.reason, Reason::Apply);
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_was_compiled_causes_no_further_run() {
    let running = start_loop(None);
    let mut status = running.handle.status();
    running.next(&mut status).await;
    running.handle.wake_for(1);
    let applied = running.handle.run_for(Reason::Apply, 1).await.unwrap();
    assert_eq!((applied.run, applied.reason), (1, Reason::Start));
    let quiet = tokio::time::timeout(Duration::from_secs(600), status.changed()).await;
    assert!(quiet.is_err(), "revision 1 is enforced");
    running.handle.wake_for(2);
    let second = running.next(&mut status).await;
    assert_eq!((second.revision, second.reason), (2, Reason::Revision));
    let third = running.handle.run_for(Reason::Apply, 3).await.unwrap();
    assert_eq!((third.revision, third.reason), (3, Reason::Apply));
}

#[tokio::test(start_paused = true)]
async fn maps_are_compared_soon_after_a_plan_went_live() {
    let running = start_loop(None);
    let mut status = running.handle.status();
    running.next(&mut status).await;
    running.dataplane.put.store(1, Ordering::Relaxed);
    running.handle.wake_for(2);
    assert_eq!(running.next(&mut status).await.reason, Reason::Revision);
    let begun = tokio::time::Instant::now();
    assert_eq!(running.next(&mut status).await.reason, Reason::Check);
    assert!((1..=2).contains(&begun.elapsed().as_secs()));
    assert_eq!(*running.dataplane.checks.lock(), [Check::Maps, Check::Plan, Check::Maps]);
    // Another program that changes the maps at once does not keep the loop running.
    let quiet = tokio::time::timeout(Duration::from_secs(600), status.changed()).await;
    assert!(quiet.is_err());
}

#[tokio::test(start_paused = true)]
async fn an_apply_after_a_failed_run_begins_another_one() {
    let running = start_loop(None);
    let mut status = running.handle.status();
    running.next(&mut status).await;
    running.host.rules.fail_reading(true);
    let failed = running.handle.run_now(Reason::Manual).await.unwrap();
    assert!(!failed.is_ok());
    running.host.rules.fail_reading(false);
    let applied = running.handle.run_for(Reason::Apply, failed.revision).await.unwrap();
    assert!(applied.is_ok() && applied.run == failed.run + 1, "{applied:?}");
}

#[tokio::test(start_paused = true)]
async fn an_outside_change_is_listed_and_repaired_by_the_periodic_run() {
    let running = start_loop(Some(Duration::from_secs(60)));
    let mut status = running.handle.status();
    running.next(&mut status).await;
    running.host.rules.tamper(|rules| rules.clear());
    let second = running.next(&mut status).await;
    assert_eq!(second.reason, Reason::Interval);
    assert_eq!(second.drift.len(), 3);
    assert!(second.drift.iter().all(|item| item.subsystem == "rules" && item.repaired));
    assert_eq!(running.host.rules.entries().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_ends_is_compiled_again_in_time() {
    let running = start_loop(None);
    *running.validity.lock() = Some(Timestamp::from_second(30).unwrap());
    let mut status = running.handle.status();
    running.next(&mut status).await;
    *running.validity.lock() = None;
    let begun = tokio::time::Instant::now();
    let second = running.next(&mut status).await;
    assert_eq!((second.reason, second.revision), (Reason::Deadline, 2));
    assert!((29..=31).contains(&begun.elapsed().as_secs()));
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_tried_again_without_waiting_for_the_interval() {
    let running = start_loop(None);
    let mut status = running.handle.status();
    running.next(&mut status).await;
    running.host.rules.fail_reading(true);
    let failed = running.handle.run_now(Reason::Manual).await.unwrap();
    assert!(!failed.is_ok());
    status.borrow_and_update();
    running.host.rules.fail_reading(false);
    let repaired = running.next(&mut status).await;
    assert_eq!(repaired.reason, Reason::Retry);
    assert!(repaired.is_ok());
}

#[tokio::test(start_paused = true)]
async fn neighbours_are_a_reason_only_if_the_facts_differ() {
    let running = start_loop(None);
    let mut status = running.handle.status();
    running.next(&mut status).await;
    running.world.seen.send_modify(|seen| seen.neighbours += 1);
    let quiet = tokio::time::timeout(Duration::from_secs(600), status.changed()).await;
    assert!(quiet.is_err(), "nothing has changed");
    let address: IpAddr = "192.168.7.9".parse().unwrap();
    running.world.change(|facts| {
        facts.neighbours.entry([2; 6]).or_default().insert(address);
    });
    running.world.seen.send_modify(|seen| seen.neighbours += 1);
    assert_eq!(running.next(&mut status).await.reason, Reason::Facts);
    assert_eq!(running.compiles.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn a_change_without_new_facts_repairs_without_compiling() {
    let running = start_loop(None);
    let mut status = running.handle.status();
    running.next(&mut status).await;
    running.host.routes.tamper(|routes| routes.clear());
    running.world.seen.send_modify(|seen| seen.structure += 1);
    let second = running.next(&mut status).await;
    assert_eq!((second.reason, second.drift.len()), (Reason::Facts, 2));
    assert_eq!(running.compiles.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_tunnel_that_comes_up_during_a_run_is_planned_for_in_the_same_run() {
    let (host, world) = (FakeHost::new(), FakeWorld::new());
    let begun = tokio::time::Instant::now();
    let inner = world.clone();
    // The first plan makes the tunnel; the facts contain it afterwards.
    let compile = move |facts: &Facts, _: Timestamp| {
        inner.change(|facts| {
            facts.links.insert("gw-a".to_owned(), Link::default());
        });
        Compiled { revision: facts.links.len() as u64, plan: plan("gw-a", 1) }
    };
    let clock = move || Timestamp::UNIX_EPOCH + begun.elapsed();
    let (handle, _) = start(subsystems(&host), world, Arc::new(compile), clock, Settings { interval: None });
    let mut status = handle.status();
    status.changed().await.unwrap();
    let first = status.borrow().clone();
    assert_eq!((first.run, first.revision), (1, 1), "compiled again with the tunnel among the facts");
}

#[tokio::test(start_paused = true)]
async fn the_loop_ends_with_its_last_handle() {
    let (host, world) = (FakeHost::new(), FakeWorld::new());
    let compile = |_: &Facts, _: Timestamp| Compiled::default();
    let (handle, task) = start(
        subsystems(&host),
        world,
        Arc::new(compile),
        || Timestamp::UNIX_EPOCH,
        Settings { interval: None },
    );
    drop(handle);
    tokio::time::timeout(Duration::from_secs(5), task).await.expect("it ends").unwrap();
}
