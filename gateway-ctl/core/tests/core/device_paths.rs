//! Paths of devices and policies, against the dry run and the verdict on the gateway.

use std::collections::BTreeMap;

use gateway_core::evaluate::{Decision, Request, evaluate};
use gateway_core::gateway_verdict::{Observed, PresentHost, Treatment, Word, count, word};
use gateway_core::matrix::per_hop::leak_matrix_per_hop;
use gateway_core::matrix::{Outcome, leak_matrix};
use gateway_core::paths::{DevicePath, Paths, PolicyOrigin, paths};
use gateway_model::id::MacAddr;
use gateway_model::kinds::exception::ExceptionType;
use gateway_model::settings::bootstrap::UnknownHosts;
use serde_json::{Value, json};

use crate::fixture::Fixture;

fn mac(n: usize) -> String {
    format!("02:00:00:{:02x}:{:02x}:{:02x}", n >> 16, n >> 8 & 255, n & 255)
}

fn devices(fixture: &mut Fixture, names: &[&str]) {
    for (n, name) in names.iter().enumerate() {
        fixture.device(name, &mac(n + 1));
    }
}

/// A policy for one device.
fn policy(fixture: &mut Fixture, device: &str, hops: &[(&str, &str)], more: Value) {
    let hops: Vec<Value> =
        hops.iter().map(|(kind, target)| json!({"type": kind, "target": target})).collect();
    let source = fixture.ids[device].to_string();
    let mut policy = json!({"name": format!("for {device}"), "source_type": "device", "source_value": source, "hops": hops});
    policy.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    fixture.policy(policy);
}

/// One device for each treatment.
fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    devices(&mut fixture, &["tv", "laptop", "phone", "printer", "nas", "guest", "office"]);
    fixture.tunnel("a");
    fixture.tunnel("b");
    fixture.set_usable("b", false);
    policy(&mut fixture, "tv", &[("vpn", "a")], json!({}));
    policy(&mut fixture, "laptop", &[("vpn", "b")], json!({}));
    policy(&mut fixture, "phone", &[("vpn", "b")], json!({"fail_policy": "fail-open"}));
    policy(&mut fixture, "nas", &[("vpn", "a")], json!({}));
    policy(&mut fixture, "office", &[("interface", "wan0")], json!({}));
    for (device, kind) in [("nas", "temporary-direct"), ("guest", "quarantine")] {
        let device = fixture.ids[device];
        let input = json!({"type": kind, "device_id": device, "allow_direct": true, "duration_min": 30});
        fixture.create("exception", input).expect("an exception");
    }
    fixture.facts.neighbours.insert([2, 0, 0, 0, 0, 1], ["192.168.1.77".parse().expect("an address")].into());
    fixture.apply();
    fixture
}

/// Returns a host on the LAN for each device.
fn hosts(fixture: &Fixture) -> Vec<PresentHost> {
    let macs = fixture.state.devices.iter().flat_map(|device| device.all_macs());
    macs.map(|mac| host(fixture, mac)).collect()
}

fn host(fixture: &Fixture, mac: MacAddr) -> PresentHost {
    let ips = fixture.facts.neighbours.get(&mac.octets()).into_iter().flatten().copied().collect();
    PresentHost { interface: "lan0".to_owned(), mac, ips }
}

/// Returns a host that is no device.
fn unknown(n: usize) -> PresentHost {
    let mac = format!("06:00:00:00:{:02x}:{:02x}", n >> 8, n & 255).parse().expect("an address");
    PresentHost { interface: "lan0".to_owned(), mac, ips: vec!["192.168.1.200".parse().expect("an address")] }
}

fn all(fixture: &Fixture) -> Paths {
    paths(&fixture.input(), &fixture.compiled(), &hosts(fixture))
}

fn of<'a>(paths: &'a Paths, name: &str) -> &'a DevicePath {
    paths.devices.iter().find(|device| device.name == name).expect("a device")
}

#[test]
fn each_device_is_where_the_dry_run_and_the_verdict_have_it() {
    let fixture = fixture();
    let (input, compiled) = (fixture.input(), fixture.compiled());
    let paths = all(&fixture);
    assert_eq!(paths.devices.len(), input.state.devices.len());
    for device in &paths.devices {
        let request = Request { device_id: Some(device.device_id), ..Request::default() };
        let evaluation = evaluate(&input, &compiled, &request).expect("an answer");
        assert_eq!((device.decision, &device.sentence), (evaluation.decision, &evaluation.sentence));
        let effective = &evaluation.effective;
        assert_eq!(device.decided_by(), effective.policy.as_ref().map(|policy| policy.id), "{device:?}");
        assert_eq!(device.hop, effective.hop);
    }
    let counts = paths.counts;
    assert_eq!(counts, count(&input, &compiled, &hosts(&fixture)).counts);
    assert_eq!(counts.records_silent, 0);
    assert_eq!((counts.blocked, counts.through_policy, counts.no_policy), (2, 2, 1));
    assert_eq!((counts.direct_by_exception, counts.failed_open), (1, 1));
}

#[test]
fn hosts_count_and_records_without_a_host_do_not() {
    let mut fixture = fixture();
    for n in 0..50 {
        fixture.device(&format!("invented {n}"), &mac(1000 + n));
    }
    fixture.apply();
    let (input, compiled) = (fixture.input(), fixture.compiled());
    let tv = fixture.state.devices.get(fixture.ids["tv"]).expect("a device").mac.expect("an address");
    let treated = count(&input, &compiled, &[]);
    assert_eq!((treated.counts.total(), treated.counts.records_silent), (0, 57));
    assert_eq!(word(&treated, &Observed::default()), Word::Unknown, "no host was seen");
    let on_lan = [host(&fixture, tv), unknown(1), unknown(2)];
    let treated = count(&input, &compiled, &on_lan);
    let counts = treated.counts;
    assert_eq!((counts.through_policy, counts.no_policy, counts.records_silent), (1, 2, 56));
    assert_eq!((counts.share().covered, counts.share().total), (1, 3));
    assert_eq!(word(&treated, &Observed::default()), Word::Ok);
    let paths = paths(&input, &compiled, &on_lan);
    assert_eq!(paths.counts, counts);
    let treatments: Vec<_> =
        paths.hosts.iter().map(|host| (host.device_id.is_some(), host.treatment)).collect();
    let no_policy = (false, Treatment::NoPolicy);
    assert_eq!(treatments, [(true, Treatment::ThroughPolicy), no_policy, no_policy]);
    assert_eq!(paths.hosts[1].uplink.as_deref(), Some("wan0"));
}

#[test]
fn the_setting_keeps_unknown_hosts_off_the_internet_and_devices_not() {
    let with = |setting: UnknownHosts, has_policy: bool| {
        let mut fixture = fixture();
        fixture.network.unknown_hosts = setting;
        if has_policy {
            fixture.policy(
                json!({"name": "all", "source_type": "all", "hops": [{"type": "vpn", "target": "a"}]}),
            );
        }
        fixture.apply();
        fixture
    };
    let decision = |fixture: &Fixture| {
        paths(&fixture.input(), &fixture.compiled(), &[unknown(1)]).hosts.remove(0).decision
    };
    assert_eq!(decision(&with(UnknownHosts::Direct, false)), Decision::Direct);
    assert_eq!(decision(&with(UnknownHosts::Direct, true)), Decision::Tunnel);
    let of_devices = all(&with(UnknownHosts::Direct, true)).counts;
    for setting in [UnknownHosts::Blocked, UnknownHosts::Quarantine] {
        for has_policy in [false, true] {
            assert_eq!(decision(&with(setting, has_policy)), Decision::Block, "{setting} {has_policy}");
        }
        let fixture = with(setting, true);
        assert_eq!(all(&fixture).counts, of_devices, "devices are not concerned");
        let said = |destination: &str| {
            let request = Request {
                mac: Some(unknown(1).mac),
                destination: Some(destination.to_owned()),
                ..Request::default()
            };
            evaluate(&fixture.input(), &fixture.compiled(), &request).expect("an answer").sentence
        };
        assert!(said("203.0.113.7").contains("network.unknown_hosts"), "{}", said("203.0.113.7"));
        assert!(!said("192.168.1.1:53").contains("network.unknown_hosts"), "the resolver answers");
    }
}

#[test]
fn a_path_names_policy_hop_egress_and_uplink() {
    let fixture = fixture();
    let paths = all(&fixture);
    let tv = of(&paths, "tv");
    assert_eq!((tv.via.as_deref(), tv.egress.as_slice()), (Some("vpn:a"), &["a".to_owned()][..]));
    assert_eq!((tv.uplink.as_deref(), tv.decision), (Some("wan0"), Decision::Tunnel));
    assert_eq!((tv.families.ipv4, tv.families.ipv6), (Some(Decision::Tunnel), Some(Decision::Tunnel)));
    assert_eq!(tv.addresses, ["192.168.1.77".parse::<std::net::IpAddr>().expect("an address")]);
    let laptop = of(&paths, "laptop");
    assert_eq!((laptop.via.as_deref(), laptop.uplink.as_deref(), &laptop.hop), (None, None, &None));
    let printer = of(&paths, "printer");
    assert_eq!((&printer.policy, printer.via.as_deref()), (&None, Some("default")));
    assert_eq!(printer.uplink.as_deref(), Some("wan0"));
    assert_eq!(of(&paths, "office").uplink.as_deref(), Some("wan0"));
    let kind = |name| of(&paths, name).exception.as_ref().map(|exception| exception.r#type);
    assert_eq!(kind("nas"), Some(ExceptionType::TemporaryDirect));
    assert_eq!(kind("guest"), Some(ExceptionType::Quarantine));
    assert_eq!((kind("tv"), &of(&paths, "nas").policy), (None, &None));
}

#[test]
fn policies_count_their_devices_and_show_their_egress_now() {
    let paths = all(&fixture());
    let shown: BTreeMap<&str, (usize, Decision, Option<&str>)> = paths
        .policies
        .iter()
        .map(|policy| (policy.name.as_str(), (policy.devices, policy.decision, policy.via.as_deref())))
        .collect();
    assert_eq!(shown["for tv"], (1, Decision::Tunnel, Some("a")));
    assert_eq!(shown["for laptop"], (1, Decision::Block, None));
    assert_eq!(shown["for phone"], (1, Decision::Direct, Some("default")));
    assert_eq!(shown["for nas"], (0, Decision::Tunnel, Some("a")), "an exception comes first");
    assert_eq!(shown["temporary-direct of nas"], (1, Decision::Direct, Some("default")));
    assert_eq!(shown["for office"], (1, Decision::Direct, Some("wan0")));
    let origin = |name: &str| paths.policies.iter().find(|policy| policy.name == name).map(|p| p.origin);
    assert_eq!(origin("for tv"), Some(PolicyOrigin::Policy));
    assert_eq!(origin("temporary-direct of nas"), Some(PolicyOrigin::Exception));
}

#[test]
fn a_lan_of_one_family_has_no_decision_for_the_other() {
    let mut fixture = fixture();
    fixture.facts.addresses.insert("lan0".into(), ["192.168.1.1/24".parse().expect("a network")].into());
    let paths = all(&fixture);
    let tv = of(&paths, "tv");
    assert_eq!((tv.families.ipv4, tv.families.ipv6), (Some(Decision::Tunnel), None));
    fixture.facts.addresses.remove("lan0");
    assert_eq!(all(&fixture).devices.len(), paths.devices.len(), "each device is listed nevertheless");
}

#[test]
fn an_inner_tunnel_leaves_by_the_uplink_of_the_outer_one() {
    let mut fixture = Fixture::new();
    devices(&mut fixture, &["tv"]);
    fixture.tunnel("a");
    fixture.tunnel("b");
    policy(&mut fixture, "tv", &[("vpn", "a"), ("vpn", "b")], json!({}));
    fixture.apply();
    let paths = all(&fixture);
    assert_eq!(of(&paths, "tv").via.as_deref(), Some("vpn:b"));
    assert_eq!(of(&paths, "tv").uplink.as_deref(), Some("wan0"));
    assert_eq!(paths.uplinks.values().filter(|uplink| *uplink == "wan0").count(), paths.uplinks.len());
}

#[test]
fn ten_thousand_devices_have_paths() {
    let mut fixture = Fixture::new();
    fixture.tunnel("a");
    let mut members = Vec::new();
    for n in 0..10_000 {
        members.push(fixture.device(&format!("d{n:05}"), &mac(n)).to_string());
        let address = std::net::Ipv4Addr::from_bits(0xc0a8_0000 + 2 + u32::try_from(n).expect("small"));
        let octets = n.to_be_bytes();
        fixture.facts.neighbours.insert([2, 0, 0, octets[5], octets[6], octets[7]], [address.into()].into());
    }
    fixture.facts.addresses.insert("lan0".into(), ["192.168.0.1/16".parse().expect("a network")].into());
    let group = json!({"name": "all", "members": members});
    let group = fixture.create("device_group", group).expect("a group").to_string();
    fixture.policy(json!({"name": "p", "source_type": "device_group", "source_value": group, "hops": [{"type": "vpn", "target": "a"}]}));
    fixture.apply();
    let compiled = fixture.compiled();
    let start = std::time::Instant::now();
    let paths = paths(&fixture.input(), &compiled, &hosts(&fixture));
    println!("paths of 10 000 devices: {:?}", start.elapsed());
    assert_eq!(paths.policies[0].devices, 10_000);
    assert!(
        paths.devices.iter().all(|device| device.decision == Decision::Tunnel && device.group_ids.len() == 1)
    );
}

#[test]
fn leak_matrix_counts_the_hosts_of_each_row_and_those_without_a_record() {
    let fixture = fixture();
    let (input, compiled) = (fixture.input(), fixture.compiled());
    let mut on_lan = hosts(&fixture);
    on_lan.extend([unknown(1), unknown(2)]);
    let mut matrix = leak_matrix(&input);
    matrix.count_hosts(&input, &compiled, &on_lan);
    let of = |name: &str| matrix.rows.iter().find(|row| row.name == name).map(|row| row.hosts);
    assert_eq!(["for tv", "for laptop"].map(of), [Some(1), Some(1)]);
    assert_eq!(of("for nas"), Some(0), "an exception decides on it");
    let without = matrix.without_record;
    assert_eq!((without.total(), without.no_policy, without.records_silent), (2, 2, 0));
    let [row] = &matrix.unrecorded[..] else { panic!("{:?}", matrix.unrecorded) };
    assert_eq!((row.treatment, &row.policy, row.hosts), (Treatment::NoPolicy, &None, 2));
    for cell in [&row.cells.up, &row.cells.degraded, &row.cells.down, &row.cells.daemon_down] {
        assert_eq!(
            (cell.outcome, cell.dns, cell.leak),
            (Outcome::Direct, Outcome::Direct, false),
            "{cell:?}"
        );
    }
    assert_eq!(row.cells.boot.outcome, Outcome::Blocked);
    matrix.count_hosts(&input, &compiled, &[]);
    assert!(matrix.rows.iter().all(|row| row.hosts == 0) && matrix.without_record.total() == 0);
    assert!(matrix.unrecorded.is_empty());
}

#[test]
fn hosts_without_a_record_have_the_cells_of_the_policy_that_decides_on_them() {
    let mut fixture = fixture();
    fixture.policy(json!({"name": "rest", "source_type": "all", "hops": [{"type": "vpn", "target": "a"}]}));
    fixture.apply();
    let on_lan = [unknown(1)];
    let count = |fixture: &Fixture| {
        let (input, compiled) = (fixture.input(), fixture.compiled());
        let mut matrix = leak_matrix_per_hop(&input);
        matrix.count_hosts(&input, &compiled, &on_lan);
        matrix
    };
    let matrix = count(&fixture);
    let rest = matrix.rows.iter().find(|row| row.name == "rest").expect("the row");
    let [row] = &matrix.unrecorded[..] else { panic!("{:?}", matrix.unrecorded) };
    assert_eq!((row.treatment, row.hosts, &row.cells), (Treatment::ThroughPolicy, 1, &rest.cells));
    assert_eq!(row.policy.as_ref().map(|policy| policy.name.as_str()), Some("rest"));

    fixture.network.unknown_hosts = UnknownHosts::Blocked;
    let matrix = count(&fixture);
    let [row] = &matrix.unrecorded[..] else { panic!("{:?}", matrix.unrecorded) };
    assert_eq!((row.treatment, &row.policy), (Treatment::Blocked, &None));
    assert_eq!(row.cells.hops.len(), matrix.hops.len());
    let cells = [&row.cells.up, &row.cells.down].into_iter().chain(row.cells.hops.values());
    for cell in cells {
        assert_eq!(
            (cell.outcome, cell.ipv6, cell.dns),
            (Outcome::Blocked, Outcome::Blocked, Outcome::Blocked)
        );
    }
}
