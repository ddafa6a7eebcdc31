//! One of the two gateways, in a network of its own: its configuration, its hosts, and its load.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use gateway_tests::daemon::Api;
use gateway_tests::dhcp_server::{DhcpServer, Offer};
use gateway_tests::frames::FrameSender;
use gateway_tests::netns::Namespace;
use gateway_tests::testbed::{Testbed, create, policy};
use gateway_tests::topology::Host;
use gateway_tests::wait::{wait_for, wait_ok};
use serde_json::{Value, json};

use super::arrivals::Arrivals;
use super::hosts::{
    self, BOUND, End, FAILOVER, FREE, Flow, HOSTS, KNOWN, LOAD, SEGMENT_MAC, destination, mac, text,
};
use super::traffic::{self, Planned};

pub(super) const SOON: Duration = Duration::from_secs(60);
const GATEWAY_LAN: [u8; 6] = [2, 0, 0, 0x10, 0, 1];
const GATEWAY_SEGMENT: [u8; 6] = [2, 0, 0, 0x20, 0, 1];
const GATEWAY_UPLINK: [u8; 6] = [2, 0, 0, 0x11, 0x30, 2];
pub(super) const NEXT_HOP: [u8; 6] = [2, 0, 0, 0x11, 0x30, 1];
/// Names of the tunnels to exit A and exit B.
pub(super) const TUNNELS: [&str; 2] = ["wg-a", "wg-b"];
/// Time without another change of the kernel after which the daemon has read all of them.
const QUIET: Duration = Duration::from_millis(30);

/// Plan in force, and whether each tunnel works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlanState {
    generation: u64,
    pub tunnels: [bool; 2],
}

pub(super) struct Gateway {
    /// Its fast path is on, unless a fault turns it off.
    pub is_fast: bool,
    pub fast_path_is_on: bool,
    // Field order is drop order: the load and sockets before their namespaces.
    load: Load,
    pub dhcp: DhcpServer,
    pub arrivals: Arrivals,
    senders: BTreeMap<End, FrameSender>,
    pub testbed: Testbed,
    _segment: Host,
    _office: Namespace,
    pub macs: BTreeMap<u8, [u8; 6]>,
    pub next_hop: [u8; 6],
    pub devices: BTreeMap<u8, String>,
    pub policies: BTreeMap<&'static str, String>,
    counted_before: BTreeMap<String, [u64; 2]>,
}

impl Gateway {
    /// Builds a network with a daemon whose fast path is on or off.
    pub(super) fn build(is_fast: bool) -> Gateway {
        let mut testbed = Testbed::prepare().expect("a network");
        let segment = testbed.network.add_segment().expect("a second network of the LAN");
        prepare(&testbed);
        let office = Namespace::create(&testbed.network.prefix, "office").expect("a namespace");
        let link = format!("link add eth4 type veth peer name eth0 netns {}", office.name());
        testbed.network.gateway.ip(&link).expect("a link");
        office.ip("address add 10.44.0.1/24 dev eth0\nlink set eth0 up").expect("a provider");
        let offer = Offer::of("10.44.0.7/24".parse().expect("a network"));
        let dhcp = DhcpServer::start(&office, "eth0", [10, 44, 0, 1].into(), offer).expect("a server");
        let configuration = json!({
            "dataplane": {"fast_path": if is_fast { "on" } else { "off" }},
            "network": {"lan_iface": ["eth1", "eth3"]},
        });
        testbed.daemon.configure(&configuration).expect("configured");
        testbed.daemon.start().expect("a daemon");
        let network = &testbed.network;
        let (mut arrivals, mut senders) = (Arrivals::default(), BTreeMap::new());
        for (end, namespace, interface) in [
            (End::Lan, &network.laptop.namespace, "eth0"),
            (End::Segment, &segment.namespace, "eth0"),
            (End::Uplink, &network.internet, "up0"),
        ] {
            arrivals.open(end, namespace, interface);
            senders.insert(end, FrameSender::open(namespace, interface).expect("a sender"));
        }
        let mut gateway = Gateway {
            is_fast,
            fast_path_is_on: is_fast,
            load: Load::default(),
            dhcp,
            arrivals,
            senders,
            testbed,
            _segment: segment,
            _office: office,
            macs: (0..HOSTS).map(|host| (host, mac(host))).collect(),
            next_hop: NEXT_HOP,
            devices: BTreeMap::new(),
            policies: BTreeMap::new(),
            counted_before: BTreeMap::new(),
        };
        gateway.open_exits();
        gateway.set_neighbours();
        gateway.configure();
        gateway.settle([true; 2]);
        // Before its policy, its packets leave by the uplink.
        gateway.load.start(&gateway.testbed);
        gateway
    }

    fn configure(&mut self) {
        for tunnel in TUNNELS {
            self.create_tunnel(tunnel);
        }
        for (host, name) in [(KNOWN, "known"), (BOUND, "bound"), (FAILOVER, "failover"), (LOAD, "load")] {
            let device = json!({"name": name, "mac": text(mac(host))});
            let id = create(self.api(), "/devices", &device).expect("a device");
            self.devices.insert(host, id);
        }
        for (name, priority, host) in [("bound", 10, BOUND), ("failover", 11, FAILOVER), ("load", 12, LOAD)] {
            let id = self.testbed.store_policy(&self.policy(name, priority, host)).expect("a policy");
            self.policies.insert(name, id);
        }
        self.testbed.apply().expect("applied");
        self.api().act("/interfaces/eth4/dhcp/start").expect("a DHCP client");
        for (host, ends) in [
            (FREE, &[End::Uplink][..]),
            (KNOWN, &[End::Uplink]),
            (BOUND, &[End::ExitA]),
            (FAILOVER, &[End::ExitA, End::ExitB]),
            (LOAD, &[End::ExitA]),
        ] {
            self.arrivals.allow(host, ends);
        }
    }

    /// Creates a tunnel and waits until it works.
    pub(super) fn create_tunnel(&self, name: &str) {
        let network = &self.testbed.network;
        let exit = if name == TUNNELS[0] { &network.exit_a } else { &network.exit_b };
        let mut tunnel = exit.tunnel(name);
        tunnel["health_check"] = json!({
            "type": "ping", "target": exit.place.inner_v4, "interval_sec": 1, "timeout_sec": 1, "fail": 3, "success": 1,
        });
        let id = create(self.api(), "/tunnels", &tunnel).expect("a tunnel");
        self.testbed.bring_up(&id).expect("up");
    }

    /// Returns the policy of a host as it is at first.
    pub(super) fn policy(&self, name: &str, priority: u32, host: u8) -> Value {
        let tunnels = if host == FAILOVER { &TUNNELS[..] } else { &TUNNELS[..1] };
        let mut object = policy(name, priority, ("device", &self.devices[&host]), tunnels);
        object["hop_mode"] = json!("failover");
        object
    }

    pub(super) fn api(&self) -> &Api {
        self.testbed.api()
    }

    /// Returns the namespace of the gateway.
    pub(super) fn namespace(&self) -> &Namespace {
        &self.testbed.network.gateway
    }

    /// Returns the plan in force, or `None` without a daemon.
    pub(super) fn plan_state(&self) -> Option<PlanState> {
        self.testbed.daemon.pid()?;
        Some(wait_ok(SOON, "the plan in force", || self.read_plan_state()).expect("a plan"))
    }

    fn read_plan_state(&self) -> Result<PlanState> {
        let generation = self.api().get("/render")?["generation"].as_u64().context("a generation")?;
        let tunnels = self.api().get("/tunnels")?;
        let works = |name| {
            let mut all = tunnels.as_array().into_iter().flatten();
            all.any(|one| one["name"] == name && one["status"] == "up" && one["healthy"] == true)
        };
        Ok(PlanState { generation, tunnels: TUNNELS.map(works) })
    }

    /// Waits until the tunnels are as expected, and plan and kernel agree.
    pub(super) fn settle(&self, tunnels: [bool; 2]) {
        if self.testbed.daemon.pid().is_none() {
            return;
        }
        wait_ok(SOON, "a settled gateway", || {
            let before = self.read_plan_state()?;
            ensure!(before.tunnels == tunnels, "{before:?}");
            self.api().act("/enforce/reconcile")?;
            self.api().act("/enforce/reconcile")?;
            let after = self.read_plan_state()?;
            ensure!(before == after, "{before:?}, {after:?}");
            let status = self.api().get("/status")?;
            ensure!(status["fast_path"]["on"] == self.fast_path_is_on, "{}", status["fast_path"]);
            Ok(())
        })
        .expect("settled");
    }

    /// Waits until both next hops of the uplink answer.
    pub(super) fn wait_for_uplink(&self) {
        for next_hop in ["203.0.113.1", "2001:db8:113::1"] {
            wait_ok(SOON, "the uplink to work", || {
                self.namespace().run("ping", &["-c", "1", "-W", "1", next_hop]).map(drop)
            })
            .expect("an uplink");
        }
    }

    /// Changes the kernel by other means than the daemon, and waits until the fast path has followed.
    pub(super) fn change_kernel(&self, cause: &str, work: impl FnOnce(&Namespace)) {
        let before = self.epoch_changes(cause);
        work(self.namespace());
        if !self.fast_path_is_on || self.testbed.daemon.pid().is_none() {
            return;
        }
        wait_for(SOON, "the fast path to follow", || self.epoch_changes(cause) > before).expect("followed");
        wait_for(SOON, "no further change", || {
            let seen = self.epoch_changes(cause);
            sleep(QUIET);
            self.epoch_changes(cause) == seen
        })
        .expect("quiet");
    }

    fn epoch_changes(&self, cause: &str) -> u64 {
        let status = wait_ok(SOON, "the status", || self.api().get("/status")).expect("the status");
        status["fast_path"]["epoch_changes"][cause].as_u64().unwrap_or_default()
    }

    /// Opens the ends behind the exits, whose interfaces end with their process.
    pub(super) fn open_exits(&mut self) {
        let network = &self.testbed.network;
        for (end, exit) in [(End::ExitA, &network.exit_a), (End::ExitB, &network.exit_b)] {
            self.arrivals.open(end, &exit.namespace, exit.interface());
            self.senders.insert(end, FrameSender::open(&exit.namespace, exit.interface()).expect("a sender"));
        }
    }

    /// Sets the MAC addresses of the hosts, which are not there to answer.
    pub(super) fn set_neighbours(&self) {
        let mut lines = String::new();
        for ipv6 in [false, true] {
            for (host, mac) in &self.macs {
                let (address, mac) = (hosts::address(*host, ipv6), text(*mac));
                lines += &format!("neigh replace {address} lladdr {mac} dev eth1 nud permanent\n");
            }
            let (address, mac) = (destination(ipv6, true).ip(), text(SEGMENT_MAC));
            lines += &format!("neigh replace {address} lladdr {mac} dev eth3 nud permanent\n");
        }
        self.namespace().ip(&lines).expect("neighbours");
    }

    /// Reports whether a reply of this flow would find its way: a packet of it has arrived in this state.
    pub(super) fn has_return(&self, flow: &Flow) -> bool {
        self.arrivals.returns.contains_key(flow)
    }

    /// Sends packets of hosts, and replies of the remote ends to where their flows came from.
    pub(super) fn send(&self, packets: &[Planned]) {
        for planned in packets {
            let (end, frame) = if planned.is_reply {
                let Some((end, translated)) = self.arrivals.returns.get(&planned.flow) else { continue };
                let (from, to) = match end {
                    End::Segment => (SEGMENT_MAC, GATEWAY_SEGMENT),
                    _ => (self.next_hop, GATEWAY_UPLINK),
                };
                (*end, planned.reply(*translated, from, to))
            } else {
                let from = planned.claimant.unwrap_or(self.macs[&planned.flow.host]);
                (End::Lan, planned.packet(from, GATEWAY_LAN).frame())
            };
            let bytes = if matches!(end, End::ExitA | End::ExitB) { &frame[14..] } else { &frame[..] };
            // An interface may be down. A packet that is lost on one side only is found by the comparison.
            drop(self.senders[&end].send(bytes));
        }
    }

    /// Sets the zero of the counters.
    pub(super) fn start_counting(&mut self) {
        self.counted_before = self.read_counters();
    }

    /// Returns packets and bytes of the compared hosts since the zero, by policy, and those without a policy.
    pub(super) fn counters(&self) -> BTreeMap<String, [u64; 2]> {
        let mut counters = self.read_counters();
        for (name, [packets, bytes]) in &mut counters {
            let before = self.counted_before.get(name).copied().unwrap_or_default();
            *packets = packets.wrapping_sub(before[0]);
            *bytes = bytes.wrapping_sub(before[1]);
        }
        counters
    }

    fn read_counters(&self) -> BTreeMap<String, [u64; 2]> {
        let pair = |value: &Value| ["packets", "bytes"].map(|name| value[name].as_u64().unwrap_or_default());
        let policies = self.api().get("/routing/policies").expect("policies");
        let policies = policies.as_array().expect("a list").iter();
        let compared =
            policies.filter(|policy| ["bound", "failover"].map(Value::from).contains(&policy["name"]));
        let mut counters: BTreeMap<_, _> =
            compared.map(|policy| (policy["name"].to_string(), pair(&policy["hits"]))).collect();
        let verdicts = &self.api().get("/render").expect("counters")["counters"]["verdicts"];
        for verdict in ["no_policy", "to_lan"] {
            counters.insert(verdict.to_owned(), pair(&verdicts[verdict]));
        }
        counters
    }

    /// Describes what the kernel and the programs do, for a difference that is not understood yet.
    pub(super) fn description(&self) -> String {
        let kernel = |arguments: &[&str]| {
            self.namespace().run("ip", arguments).unwrap_or_else(|error| format!("{error:#}"))
        };
        let verdicts = self.api().get("/render").map(|render| render["counters"]["verdicts"].to_string());
        let fast_path = self.api().get("/status").map(|status| status["fast_path"].to_string());
        [
            format!("{:?}\n{:?}", verdicts.ok(), fast_path.ok()),
            kernel(&["-6", "rule"]),
            kernel(&["-6", "route", "show", "table", "all"]),
            kernel(&["-4", "rule"]),
            kernel(&["-4", "route", "show", "table", "all"]),
            kernel(&["-s", "link"]),
        ]
        .join("\n")
    }

    /// Returns the packets there and back that passed the IP stack by since the start of the daemon. The load has no replies.
    pub(super) fn fast_packets(&self) -> [u64; 2] {
        let status = self.api().get("/status").expect("the status");
        let number = |name: &str| status["fast_path"][name].as_u64().expect("a number");
        [number("forwarded_packets"), number("replied_packets")]
    }
}

/// Makes both networks alike: no messages of their own, nothing answers the compared packets, and no entry of conntrack
/// ends. With the fast path, conntrack sees a packet in six to seven seconds only, so its entries end at other times.
fn prepare(testbed: &Testbed) {
    let network = &testbed.network;
    let ignore = "table inet ignored {\n chain in {\n type filter hook prerouting priority raw\n \
                  ip daddr 198.18.7.0/24 drop\n ip6 daddr 2001:db8:18:7::/64 drop\n }\n}\n";
    for namespace in [&network.internet, &network.exit_a.namespace, &network.exit_b.namespace] {
        namespace.nft(ignore).expect("rules");
    }
    network.gateway.ip(&format!("link set eth3 address {}", text(GATEWAY_SEGMENT))).expect("an address");
    network.gateway.lift_error_limits();
    for (key, value) in [
        ("net.netfilter.nf_conntrack_tcp_be_liberal", "1"),
        ("net.ipv4.conf.all.send_redirects", "0"),
        ("net.ipv4.conf.all.promote_secondaries", "1"),
        ("net.ipv6.conf.all.keep_addr_on_down", "1"),
        ("net.ipv6.conf.eth0.keep_addr_on_down", "1"),
        ("net.ipv6.conf.eth1.keep_addr_on_down", "1"),
    ] {
        // Some are those of the host.
        let _ = network.gateway.sysctl(key, value);
    }
    for timeout in [
        "udp_timeout",
        "udp_timeout_stream",
        "tcp_timeout_syn_sent",
        "tcp_timeout_syn_recv",
        "tcp_timeout_fin_wait",
        "tcp_timeout_close_wait",
        "tcp_timeout_last_ack",
        "tcp_timeout_time_wait",
        "tcp_timeout_close",
        "tcp_timeout_max_retrans",
        "tcp_timeout_unacknowledged",
    ] {
        let key = format!("net.netfilter.nf_conntrack_{timeout}");
        network.gateway.sysctl(&key, "86400").expect("a timeout");
    }
}

/// Traffic of one host all the time, also while the state changes.
#[derive(Default)]
struct Load {
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Load {
    fn start(&mut self, testbed: &Testbed) {
        let sender = FrameSender::open(&testbed.network.laptop.namespace, "eth0").expect("a sender");
        let ending = self.ending.clone();
        self.thread = Some(std::thread::spawn(move || {
            let frames = [false, true].map(|ipv6| traffic::load(ipv6, mac(LOAD), GATEWAY_LAN).frame());
            while !ending.load(Ordering::Relaxed) {
                for frame in &frames {
                    // A link that is down is one of the changes.
                    drop(sender.send(frame));
                }
                sleep(Duration::from_millis(4));
            }
        }));
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The panic was already printed.
            let _ = thread.join();
        }
    }
}
