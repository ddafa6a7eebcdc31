//! One of the two gateways, in a network of its own: its hosts, the ends at which packets arrive, and its load.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use gateway_ctl::os::egress_tap::{ALL_PROTOCOLS, link_address};
use gateway_tests::dhcp_server::{DhcpServer, Offer};
use gateway_tests::frames::FrameSender;
use gateway_tests::netns::Namespace;
use gateway_tests::packets::{Shown, TCP, UDP};
use gateway_tests::testbed::{Testbed, create, policy};
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};
use socket2::{Domain, Protocol, Socket, Type};

use super::hosts::{self, BOUND, End, FAILOVER, FREE, Flow, HOSTS, KNOWN, LOAD, is_destination, mac, text};
use super::traffic::{self, Planned};

pub const SOON: Duration = Duration::from_secs(60);
pub const GATEWAY_LAN: [u8; 6] = [2, 0, 0, 0x10, 0, 1];
pub const GATEWAY_UPLINK: [u8; 6] = [2, 0, 0, 0x11, 0x30, 2];
pub const NEXT_HOP: [u8; 6] = [2, 0, 0, 0x11, 0x30, 1];
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
const RST: u8 = 0x04;
const BUFFER: usize = 16 << 20;
const MAX_FLOWS: usize = 10_000;

/// A packet that arrived, in the form that is equal for both gateways.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Record {
    end: End,
    bytes: Vec<u8>,
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let content = traffic::content(&self.bytes);
        write!(f, "{:?} {content:?} {:02x?}", self.end, &self.bytes[..self.bytes.len().min(80)])
    }
}

pub struct Gateway {
    /// Its fast path is on, unless a fault turns it off.
    pub is_fast: bool,
    // Field order is drop order: the load and sockets before their namespaces.
    load: Load,
    pub dhcp: DhcpServer,
    ends: BTreeMap<End, Socket>,
    senders: BTreeMap<End, FrameSender>,
    pub testbed: Testbed,
    _office: Namespace,
    /// Packets that arrived since the last comparison.
    pub records: BTreeMap<Record, usize>,
    pub leaks: Vec<String>,
    numbers: BTreeSet<u32>,
    /// Flows of the last packets by their numbers.
    flows: BTreeMap<u32, Flow>,
    /// End and translated source of the last packet of each flow, to which replies go.
    returns: BTreeMap<Flow, (End, SocketAddr)>,
    pub macs: BTreeMap<u8, [u8; 6]>,
    pub next_hop: [u8; 6],
    /// Ends at which packets of a host may arrive.
    pub allowed: BTreeMap<u8, BTreeSet<End>>,
    pub devices: BTreeMap<u8, String>,
    pub policies: BTreeMap<&'static str, String>,
    counted_before: BTreeMap<String, [u64; 2]>,
}

impl Gateway {
    /// Builds a network with a daemon whose fast path is on or off.
    pub fn build(fast_path: &str) -> Gateway {
        let mut testbed = Testbed::prepare().expect("a network");
        prepare(&testbed);
        let office = Namespace::create(&testbed.network.prefix, "office").expect("a namespace");
        let name = office.name().to_owned();
        testbed
            .network
            .gateway
            .ip(&format!("link add eth3 type veth peer name eth0 netns {name}"))
            .expect("a link");
        office.ip("address add 10.44.0.1/24 dev eth0\nlink set eth0 up").expect("a provider");
        let offer = Offer::of("10.44.0.7/24".parse().expect("a network"));
        let dhcp = DhcpServer::start(&office, "eth0", [10, 44, 0, 1].into(), offer).expect("a server");
        testbed.daemon.configure(&json!({"dataplane": {"fast_path": fast_path}})).expect("configured");
        testbed.daemon.start().expect("a daemon");
        let mut senders = BTreeMap::new();
        senders.insert(
            End::Lan,
            FrameSender::open(&testbed.network.laptop.namespace, "eth0").expect("a sender"),
        );
        senders.insert(End::Uplink, FrameSender::open(&testbed.network.internet, "up0").expect("a sender"));
        let mut ends = BTreeMap::new();
        ends.insert(End::Lan, listen(&testbed.network.laptop.namespace, "eth0"));
        ends.insert(End::Uplink, listen(&testbed.network.internet, "up0"));
        let mut gateway = Gateway {
            is_fast: fast_path == "on",
            load: Load::default(),
            dhcp,
            ends,
            senders,
            testbed,
            _office: office,
            records: BTreeMap::new(),
            leaks: Vec::new(),
            numbers: BTreeSet::new(),
            flows: BTreeMap::new(),
            returns: BTreeMap::new(),
            macs: (0..HOSTS).map(|host| (host, mac(host))).collect(),
            next_hop: NEXT_HOP,
            allowed: BTreeMap::new(),
            devices: BTreeMap::new(),
            policies: BTreeMap::new(),
            counted_before: BTreeMap::new(),
        };
        gateway.open_exits();
        gateway.set_neighbours();
        gateway.configure();
        // Before its policy, its packets leave by the uplink.
        gateway.load.start(&gateway.testbed);
        gateway
    }

    fn configure(&mut self) {
        let network = &self.testbed.network;
        let check = json!({"type": "ping", "target": network.exit_a.place.inner_v4, "interval_sec": 1, "timeout_sec": 1, "fail": 2, "success": 1});
        for (name, exit) in [("wg-a", &network.exit_a), ("wg-b", &network.exit_b)] {
            let mut tunnel = exit.tunnel(name);
            tunnel["health_check"] = check.clone();
            tunnel["health_check"]["target"] = json!(exit.place.inner_v4);
            let id = create(self.api(), "/tunnels", &tunnel).expect("a tunnel");
            self.testbed.bring_up(&id).expect("up");
        }
        for (host, name) in [(KNOWN, "known"), (BOUND, "bound"), (FAILOVER, "failover"), (LOAD, "load")] {
            let device = json!({"name": name, "mac": text(mac(host))});
            let id = create(self.api(), "/devices", &device).expect("a device");
            self.devices.insert(host, id);
        }
        for (name, priority, host) in [("bound", 10, BOUND), ("failover", 11, FAILOVER), ("load", 12, LOAD)] {
            let object = self.policy(name, priority, host);
            let id = self.testbed.store_policy(&object).expect("a policy");
            self.policies.insert(name, id);
        }
        self.testbed.apply().expect("applied");
        self.api().act("/interfaces/eth3/dhcp/start").expect("a DHCP client");
        self.allowed = [
            (FREE, [End::Uplink].into()),
            (KNOWN, [End::Uplink].into()),
            (BOUND, [End::ExitA].into()),
            (FAILOVER, [End::ExitA, End::ExitB].into()),
            (LOAD, [End::ExitA].into()),
        ]
        .into();
        self.reconcile();
    }

    /// Returns the policy of a host as it is at first.
    pub fn policy(&self, name: &str, priority: u32, host: u8) -> Value {
        let tunnels: &[&str] = if host == FAILOVER { &["wg-a", "wg-b"] } else { &["wg-a"] };
        let mut object = policy(name, priority, ("device", &self.devices[&host]), tunnels);
        object["hop_mode"] = json!("failover");
        object
    }

    pub fn api(&self) -> &gateway_tests::daemon::Api {
        self.testbed.api()
    }

    /// Waits until the kernel is as the plan wants it.
    pub fn reconcile(&self) {
        wait_ok(SOON, "a reconcile run", || self.api().act("/enforce/reconcile").map(drop))
            .expect("reconciled");
    }

    /// Opens the ends behind the exits, whose interfaces end with their process.
    pub fn open_exits(&mut self) {
        let network = &self.testbed.network;
        for (end, exit) in [(End::ExitA, &network.exit_a), (End::ExitB, &network.exit_b)] {
            self.ends.insert(end, listen(&exit.namespace, exit.interface()));
            self.senders.insert(end, FrameSender::open(&exit.namespace, exit.interface()).expect("a sender"));
        }
    }

    /// Sets the MAC addresses of the hosts, which are not there to answer.
    pub fn set_neighbours(&self) {
        let lines: String = self
            .macs
            .iter()
            .flat_map(|(host, mac)| [false, true].map(|ipv6| (hosts::address(*host, ipv6), text(*mac))))
            .map(|(address, mac)| format!("neigh replace {address} lladdr {mac} dev eth1 nud permanent\n"))
            .collect();
        self.testbed.network.gateway.ip(&lines).expect("neighbours");
    }

    /// Sends packets of hosts, and replies of the remote ends to where their flows came from.
    pub fn send(&mut self, packets: &[Planned]) {
        self.numbers.clear();
        if self.flows.len() > MAX_FLOWS {
            self.flows.clear();
        }
        for planned in packets {
            if !planned.is_reply {
                self.flows.insert(planned.number, planned.flow);
            }
            let sent = if planned.is_reply {
                let Some((end, to)) = self.returns.get(&planned.flow) else { continue };
                let reply = planned.packet(NEXT_HOP, GATEWAY_UPLINK);
                let mut reply = reply.reply_to(*to);
                (reply.from, reply.to) = (self.next_hop, GATEWAY_UPLINK);
                let frame = reply.frame();
                let bytes = if *end == End::Uplink { &frame[..] } else { &frame[14..] };
                self.senders[end].send(bytes)
            } else {
                self.senders[&End::Lan]
                    .send(&planned.packet(self.macs[&planned.flow.host], GATEWAY_LAN).frame())
            };
            // An interface may be down. A packet that is lost on one side only is found by the comparison.
            drop(sent);
        }
    }

    /// Number of the packets of the last [`send`](Self::send) that arrived anywhere, or were answered.
    pub fn seen(&self) -> usize {
        self.numbers.len()
    }

    /// Reads what has arrived at all ends.
    pub fn receive(&mut self) {
        for end in End::ALL {
            while let Some(frame) = self.ends.get(&end).and_then(read) {
                self.record(end, frame);
            }
        }
    }

    fn record(&mut self, end: End, frame: Vec<u8>) {
        let frame = match (end, frame.first().map(|byte| byte >> 4)) {
            (End::Lan | End::Uplink, _) => frame,
            (_, Some(4)) => [&[0; 12][..], &[8, 0], &frame].concat(),
            (_, Some(6)) => [&[0; 12][..], &[0x86, 0xdd], &frame].concat(),
            _ => return,
        };
        let Some(Headers { source, destination, protocol, at }) = Headers::read(&frame) else { return };
        let content = traffic::content(&frame);
        let of_traffic = if end == End::Lan { is_destination(source) } else { is_destination(destination) };
        let is_error = end == End::Lan
            && match protocol {
                // Too long, and hop limit exceeded. The kernel limits the rate of all others.
                ICMP => matches!(frame.get(at..at + 2), Some([3, 4] | [11, _])),
                ICMPV6 => matches!(frame.get(at), Some(2 | 3)),
                _ => false,
            };
        if let Some((host, number)) = content {
            self.numbers.insert(number);
            if end != End::Lan && (protocol == TCP || protocol == UDP) {
                self.check_leak(end, host, source);
            }
            if host == LOAD {
                self.load.arrived.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
        let is_reset = protocol == TCP && frame.get(at + 13).is_some_and(|flags| flags & RST != 0);
        // The daemon sends keepalive probes in connections that have lost their tunnel, at times of its own.
        let of_traffic = of_traffic && (content.is_some() || is_reset || is_later_fragment(&frame));
        if !(of_traffic && (protocol == TCP || protocol == UDP) || is_error) {
            return;
        }
        let Some(shown) = Shown::of(&frame, end != End::Lan) else { return };
        if end != End::Lan
            && shown.source_port != 0
            && let Some((_, number)) = content
            && let Some(flow) = self.flows.get(&number)
        {
            self.returns.insert(*flow, (end, SocketAddr::new(source, shown.source_port)));
        }
        *self.records.entry(Record { end, bytes: shown.bytes }).or_default() += 1;
    }

    fn check_leak(&mut self, end: End, host: u8, source: IpAddr) {
        let is_allowed = self.allowed.get(&host).is_some_and(|ends| ends.contains(&end));
        let of_lan = match source {
            IpAddr::V4(address) => address.octets()[..2] == [192, 168],
            IpAddr::V6(address) => address.segments()[..2] == [0xfd00, 0x10],
        };
        if !is_allowed || of_lan {
            self.leaks.push(format!("{end:?} got a packet of host {host} from {source}"));
        }
    }

    /// Returns the sockets of all ends.
    pub fn ends(&self) -> impl Iterator<Item = &Socket> {
        self.ends.values()
    }

    /// Sets the zero of the counters.
    pub fn start_counting(&mut self) {
        self.counted_before = self.read_counters();
    }

    /// Returns packets and bytes of the compared hosts since the beginning, by policy, and those without a policy.
    pub fn counters(&self) -> BTreeMap<String, [u64; 2]> {
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
        counters.insert("no policy".to_owned(), pair(&verdicts["no_policy"]));
        counters
    }

    /// Returns the packets that passed the IP stack by.
    pub fn fast_packets(&self) -> u64 {
        let status = self.api().get("/status").expect("the status");
        ["forwarded_packets", "replied_packets"]
            .iter()
            .filter_map(|name| status["fast_path"][name].as_u64())
            .sum()
    }

    /// Returns the packets of the load that arrived.
    pub fn load_packets(&self) -> u64 {
        self.load.arrived.load(Ordering::Relaxed)
    }
}

/// Makes both networks alike: no messages of their own, and nothing answers the compared packets.
fn prepare(testbed: &Testbed) {
    let network = &testbed.network;
    let ignore = "table inet ignored {\n chain in {\n type filter hook prerouting priority raw\n \
                  ip daddr 198.18.7.0/24 drop\n ip6 daddr 2001:db8:18:7::/64 drop\n }\n}\n";
    for namespace in [&network.internet, &network.exit_a.namespace, &network.exit_b.namespace] {
        namespace.nft(ignore).expect("rules");
    }
    for (key, value) in [
        ("net.netfilter.nf_conntrack_tcp_be_liberal", "1"),
        ("net.ipv4.icmp_ratelimit", "0"),
        ("net.ipv4.icmp_msgs_per_sec", "100000"),
        ("net.ipv4.icmp_msgs_burst", "100000"),
        ("net.ipv6.icmp.ratelimit", "0"),
        ("net.ipv4.conf.all.send_redirects", "0"),
        ("net.ipv4.conf.all.promote_secondaries", "1"),
        ("net.ipv6.conf.all.keep_addr_on_down", "1"),
        ("net.ipv6.conf.eth0.keep_addr_on_down", "1"),
        ("net.ipv6.conf.eth1.keep_addr_on_down", "1"),
    ] {
        // Some are those of the host.
        let _ = network.gateway.sysctl(key, value);
    }
}

/// Addresses, protocol and offset of the transport header of a frame.
struct Headers {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    at: usize,
}

impl Headers {
    fn read(frame: &[u8]) -> Option<Headers> {
        let four = |at: usize| Some(IpAddr::from(*frame.get(at..)?.first_chunk::<4>()?));
        let six = |at: usize| Some(IpAddr::from(*frame.get(at..)?.first_chunk::<16>()?));
        match frame.get(12..14)? {
            [8, 0] => {
                Some(Headers { source: four(26)?, destination: four(30)?, protocol: *frame.get(23)?, at: 34 })
            }
            [0x86, 0xdd] => {
                Some(Headers { source: six(22)?, destination: six(38)?, protocol: *frame.get(20)?, at: 54 })
            }
            _ => None,
        }
    }
}

fn is_later_fragment(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&[8, 0])
        && frame.get(20..22).is_some_and(|word| (word[0] & 0x1f, word[1]) != (0, 0))
}

/// Opens a socket that gets all packets that arrive by an interface.
fn listen(namespace: &Namespace, interface: &str) -> Socket {
    namespace.within(|| {
        // Bound before it gets packets, so that there are none of other interfaces.
        let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(0))).expect("a socket");
        socket.set_recv_buffer_size(BUFFER).expect("a buffer");
        let on: libc::c_int = 1;
        // SAFETY: the pointer refers to an integer of the given length.
        let failed = unsafe {
            let length = size_of::<libc::c_int>() as libc::socklen_t;
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_PACKET,
                PACKET_IGNORE_OUTGOING,
                (&raw const on).cast(),
                length,
            )
        };
        assert_eq!(failed, 0, "{}", std::io::Error::last_os_error());
        let index = nix::net::if_::if_nametoindex(interface).expect("an index");
        let address = link_address(ALL_PROTOCOLS, index);
        socket.bind(&address.expect("an address")).expect("bound");
        socket.set_nonblocking(true).expect("non-blocking");
        socket
    })
}

/// linux/if_packet.h
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

fn read(socket: &Socket) -> Option<Vec<u8>> {
    let mut buffer = [MaybeUninit::uninit(); 70_000];
    loop {
        match socket.recv(&mut buffer) {
            // SAFETY: the kernel has written this many bytes.
            Ok(length) => {
                return Some(buffer[..length].iter().map(|byte| unsafe { byte.assume_init() }).collect());
            }
            // The first error says that the interface was down.
            Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// Traffic of one host all the time, also while the state changes.
#[derive(Default)]
struct Load {
    ending: Arc<AtomicBool>,
    arrived: Arc<AtomicU64>,
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
                std::thread::sleep(Duration::from_millis(4));
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
