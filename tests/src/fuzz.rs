//! Fuzz targets: one function each, which panics if an invariant does not hold.
//!
//! The same functions run under libFuzzer (`tests/fuzz`) and in the test suite, which replays the corpora and mutates
//! them (`tests/tests/fuzz.rs`). They touch neither files nor the kernel.

mod assistant;
mod bytes;
mod captive_answer;
mod captured_packet;
mod client_hello;
mod dhcp4;
mod dhcp6;
mod dhcp_report;
mod dns;
mod federation;
mod federation_bus;
mod flow_record;
mod hostapd_reply;
mod inputs;
mod json;
mod mesh;
pub mod mutation;
mod names;
mod plan;
mod plan_record;
mod pseudonyms;
mod quic_initial;
mod router_advertisement;
mod stun;

use gateway_common::classify::{Classified, IpPacket, Malformed, classify};
use gateway_common::decide::decide;
use gateway_common::guard::{Departure, LocalAddresses, guard};
use gateway_common::maps::Wire;
use gateway_common::packet::{HEADER_WINDOW, Packet};
use gateway_common::recorded_verdict::flow_key;
use gateway_common::verdict::Action;
use gateway_common::wire::{Address, Choice, EgressAllowValue, Fragment, LocalValue, Mark, NAME, PlanValue};
use gateway_core::plan::Dataplane;
use gateway_core::plan_maps::PlanMaps;
use gateway_model::settings::bootstrap;
use gateway_model::{ovpn as openvpn, wgconf};

pub use assistant::assistant;
pub use captive_answer::captive_answer;
pub use captured_packet::captured_packet;
pub use client_hello::client_hello;
pub use dhcp_report::dhcp_report;
pub use dhcp4::dhcp4;
pub use dhcp6::dhcp6;
pub use dns::dns;
pub use federation::federation;
pub use federation_bus::federation_bus;
pub use flow_record::flow_record;
pub use hostapd_reply::hostapd_reply;
pub use json::json;
pub use mesh::mesh;
pub use names::{lists, zone};
pub use plan::plan;
pub use plan_record::plan_record;
pub use pseudonyms::pseudonyms;
pub use quic_initial::quic_initial;
pub use router_advertisement::router_advertisement;
pub use stun::stun;

/// A target: its name, which is also the name of its corpus, its function, and its dictionary.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
    pub words: &'static [&'static [u8]],
}

pub const TARGETS: [Target; 26] = [
    Target { name: "packet", run: packet, words: mutation::PACKET },
    Target { name: "captured_packet", run: captured_packet, words: mutation::CAPTURED_PACKET },
    Target { name: "client_hello", run: client_hello, words: mutation::CLIENT_HELLO },
    Target { name: "quic_initial", run: quic_initial, words: mutation::QUIC_INITIAL },
    Target { name: "router_advertisement", run: router_advertisement, words: mutation::ROUTER_ADVERTISEMENT },
    Target { name: "dhcp6", run: dhcp6, words: mutation::DHCP6 },
    Target { name: "stun", run: stun, words: mutation::STUN },
    Target { name: "mesh", run: mesh, words: mutation::MESH },
    Target { name: "dhcp4", run: dhcp4, words: mutation::DHCP4 },
    Target { name: "dhcp_report", run: dhcp_report, words: mutation::DHCP_REPORT },
    Target { name: "hostapd_reply", run: hostapd_reply, words: mutation::HOSTAPD_REPLY },
    Target { name: "captive_answer", run: captive_answer, words: mutation::CAPTIVE_ANSWER },
    Target { name: "pseudonyms", run: pseudonyms, words: mutation::PSEUDONYMS },
    Target { name: "plan", run: plan, words: mutation::PLAN },
    Target { name: "conf", run: conf, words: mutation::CONF },
    Target { name: "ovpn", run: ovpn, words: mutation::OVPN },
    Target { name: "yaml", run: yaml, words: mutation::YAML },
    Target { name: "json", run: json, words: mutation::JSON },
    Target { name: "flow_record", run: flow_record, words: mutation::FLOW_RECORD },
    Target { name: "federation", run: federation, words: mutation::FEDERATION },
    Target { name: "federation_bus", run: federation_bus, words: mutation::FEDERATION_BUS },
    Target { name: "assistant", run: assistant, words: mutation::ASSISTANT },
    Target { name: "dns", run: dns, words: mutation::DNS },
    Target { name: "lists", run: lists, words: mutation::LISTS },
    Target { name: "zone", run: zone, words: mutation::ZONE },
    Target { name: "plan_record", run: plan_record, words: mutation::PLAN_RECORD },
];

/// A frame as the kernel passes it: two bytes describe a removed VLAN tag, the rest is the frame.
struct Frame<'a> {
    stripped: Option<u16>,
    bytes: &'a [u8],
    length: u32,
}

impl Packet for Frame<'_> {
    fn read<T: Wire>(&self, offset: usize) -> Option<T> {
        self.bytes.read(offset)
    }

    fn load<T: Wire>(&self, offset: usize) -> Option<T> {
        self.bytes.load(offset)
    }

    fn load_name(&self, offset: usize, length: usize, name: &mut [u8; NAME]) -> bool {
        self.bytes.load_name(offset, length, name)
    }

    fn length(&self) -> u32 {
        self.length
    }

    fn stripped_vlan(&self) -> Option<u16> {
        self.stripped
    }
}

/// Checks that any frame is classified and gets one verdict, for any bytes behind its headers.
pub fn packet(data: &[u8]) {
    let Some((head, bytes)) = data.split_first_chunk::<2>() else { return };
    let tci = u16::from_be_bytes(*head);
    let stripped = (tci != 0).then_some(tci);
    let length = u32::try_from(bytes.len()).expect("fuzzed frames are short");
    let whole = classify(&Frame { stripped, bytes, length }, 1);
    let window = &bytes[..bytes.len().min(HEADER_WINDOW)];
    let cut = classify(&Frame { stripped, bytes: window, length }, 1);
    assert_eq!(whole, cut, "what lies beyond the window changes nothing");
    if let Ok(Classified::Ip(ip)) = &whole {
        sane(ip, length);
    }
    verdicts(&whole);
    let entered = u32::from(head[0]);
    let mark = u32::from_be_bytes(*bytes.first_chunk().unwrap_or(&[0; 4]));
    let Ok(Classified::Ip(ip)) = &whole else { return };
    let no_plan = head[1] & 1 == 1;
    let departure =
        Departure { ingress: entered, mark, ipv6: ip.ipv6, source: Some(ip.source), leg: 0, no_plan };
    let authorised = (mark & 1 == 0).then(EgressAllowValue::default);
    let passes = guard(&departure, authorised, &NoAddresses).is_ok();
    assert!(!passes || entered == 0 || mark & Mark::PREFIX_MASK == Mark::PREFIX, "a foreign mark leaves");
    let ours = mark & Mark::OURS_MASK == Mark::OURS;
    assert!(
        !passes || !ours || authorised.is_some(),
        "a mark of ours leaves by an interface that it does not authorise"
    );
}

/// A plan that knows no address.
struct NoAddresses;

impl LocalAddresses for NoAddresses {
    fn find(&self, _: &Address) -> LocalValue {
        LocalValue::NONE
    }

    fn is_shared(&self, _: u32, _: &Address) -> bool {
        false
    }
}

fn sane(ip: &IpPacket, length: u32) {
    assert_eq!((ip.length, ip.interface), (length, 1));
    assert!(ip.vlan < 4096);
    let mapped = [ip.source, ip.destination].map(|address: Address| address.is_mapped());
    assert_eq!(mapped, [!ip.ipv6; 2], "the families are not mixed up");
    if ip.fragment == Fragment::Later {
        assert_eq!((ip.source_port, ip.destination_port), (0, 0), "later fragments have no ports");
        assert!(!ip.has_ports());
    }
}

fn verdicts(packet: &Result<Classified, Malformed>) {
    let no_plan = decide(packet, &PlanMaps::new(None));
    let mut everywhere = Dataplane {
        header: PlanValue { all: 0, ..PlanValue::default() },
        actions: vec![gateway_common::wire::ActionValue {
            v4: Choice::legs(&[16, 17]),
            v6: Choice::legs(&[18]),
            policy: 1,
            ..Default::default()
        }],
        ..Dataplane::default()
    };
    crate::bpf_run::admit_all(&mut everywhere, 1);
    let environment = PlanMaps::new(Some(&everywhere));
    let (first, again) = (decide(packet, &environment), decide(packet, &environment));
    match packet {
        Err(Malformed) => assert_eq!([no_plan.action, first.action], [Action::Drop; 2]),
        Ok(Classified::Other) => assert_eq!([no_plan.action, first.action], [Action::Pass; 2]),
        Ok(Classified::Ip(ip)) => {
            assert_eq!((no_plan.action, no_plan.mark), (Action::Mark, Mark::BLOCK.0));
            assert_eq!(first.action, Action::Mark);
            assert!(if ip.ipv6 { first.leg == 18 } else { matches!(first.leg, 16 | 17) });
            assert_eq!((again.mark, again.new), (first.mark, false), "the flow keeps its leg");
            assert!(environment.flows.borrow().contains_key(&flow_key(ip)));
        }
    }
}

/// Checks that a `.conf` is rejected, or parsed and written without loss. No text shows a key.
pub fn conf(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut conf = match wgconf::parse(&text) {
        Ok(conf) => conf,
        Err(error) => {
            assert!(error.line <= text.lines().count(), "{error}");
            return;
        }
    };
    let secrets: Vec<String> = std::iter::once(&conf.private_key)
        .chain(conf.peers.iter().filter_map(|peer| peer.preshared_key.as_ref()))
        .map(|key| key.to_base64().to_string())
        // A key that is also public is no secret.
        .filter(|key| !conf.peers.iter().any(|peer| wgconf::encode_key(&peer.public_key) == *key))
        .collect();
    let shown = [wgconf::render(&conf, false), format!("{conf:?}")].concat();
    assert!(secrets.iter().all(|secret| !shown.contains(secret)), "a key is shown");
    let again = wgconf::parse(&wgconf::render(&conf, true));
    conf.ignored.clear();
    assert_eq!(again.as_ref(), Ok(&conf), "something is lost on the way");
}

/// Directives that would run a program, read a file or change the host.
const FORBIDDEN: &[&str] = &[
    "up",
    "down",
    "route-up",
    "ipchange",
    "plugin",
    "management",
    "script-security",
    "iproute",
    "tls-verify",
    "config",
    "cd",
    "chroot",
    "log",
    "log-append",
    "status",
    "writepid",
    "daemon",
    "user",
    "group",
    "setenv",
    "engine",
    "providers",
    "route",
    "redirect-gateway",
    "dhcp-option",
    "dns",
    "mark",
    "dev",
    "http-proxy",
    "socks-proxy",
    "ca",
    "cert",
    "key",
    "pkcs12",
    "secret",
    "askpass",
];

/// Checks that an `.ovpn` is rejected with reasons, or parsed and written without loss. No directive that could run a
/// program reaches OpenVPN, and no readable text shows a key.
pub fn ovpn(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let file = match openvpn::parse(&text) {
        Ok(file) => file,
        Err(errors) => {
            assert!(!errors.is_empty(), "a refusal without a reason");
            for error in errors {
                assert!(error.line <= text.lines().count() && !error.problem.is_empty(), "{error}");
            }
            return;
        }
    };
    let mut inside = None;
    for line in openvpn::run_text(&file, openvpn::Run { ping: 10 }).lines() {
        match &inside {
            Some(end) if line == end => inside = None,
            Some(_) => {}
            None => match line.strip_prefix('<') {
                Some(tag) => inside = Some(format!("</{tag}")),
                None => {
                    let word = line.split(' ').next().unwrap_or_default();
                    assert!(!FORBIDDEN.contains(&word), "{line}");
                }
            },
        }
    }
    assert_eq!(inside, None, "a block is not closed");
    let shown = [openvpn::render(&file, false).as_str(), &format!("{file:?}")].concat();
    for block in file.blocks.iter().filter(|block| block.tag.is_secret()) {
        let secret = block.text.expose().trim();
        let alone = secret.len() >= 12 && text.matches(secret).count() == 1;
        assert!(!alone || !shown.contains(secret), "a key is shown");
    }
    let again = openvpn::parse(&openvpn::render(&file, true));
    assert_eq!(again, Ok(openvpn::Ovpn { dropped: Vec::new(), ..file }), "something is lost on the way");
}

/// Checks that a configuration file is parsed, or rejected with at least one position in the file.
pub fn yaml(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let lines = text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count();
    match bootstrap::parse(&text) {
        Ok(settings) => {
            assert_eq!(bootstrap::parse(&text).as_ref(), Ok(&settings), "the file is read one way only");
            assert!(!settings.lans().is_empty() && settings.uplinks().len() == 1);
            assert!(settings.bpf.pin_dir.is_absolute());
            let shown = format!("{settings:?}{}", serde_json::to_string(&settings).expect("plain values"));
            let keys = settings.auth.api_keys.iter().map(|key| key.key.expose());
            for key in keys.filter(|key| text.matches(*key).count() == 1) {
                assert!(!shown.contains(key), "a key of the API is shown");
            }
        }
        Err(errors) => {
            assert!(!errors.is_empty(), "a refusal without a reason");
            for error in errors {
                assert!((1..=lines + 1).contains(&error.line) && error.column >= 1, "{error}");
                assert!(!error.message.is_empty(), "{error}");
            }
        }
    }
}
