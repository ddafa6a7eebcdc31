//! Plans of forwarders, zones and the bootstrap file.

use gateway_common::wire::Mark;
use gateway_model::settings::Bootstrap;

use super::*;

fn given<'a>(dns: &'a bootstrap::Dns, rotation: &'a DnsRotation) -> PlanInput<'a> {
    let route: &dyn Fn(&str, Option<&str>) -> QueryEgress = &|egress, proxy| match (egress, proxy) {
        ("auto", None) => QueryEgress::Default,
        ("wg0", None) => QueryEgress::Marked(vec![Mark(7)]),
        (other, _) => QueryEgress::Blocked(other.into()),
    };
    PlanInput { dns, rotation, dnssec: true, route }
}

fn dns(servers: &[&str], mode: UpstreamMode) -> bootstrap::Dns {
    let upstream_servers = servers.iter().map(|text| text.parse().unwrap()).collect();
    bootstrap::Dns { upstream_servers, upstream_mode: mode, ..Bootstrap::default().dns }
}

fn forwarder(domain: &str, upstreams: &[&str], priority: u16) -> DnsForwarder {
    DnsForwarder {
        domain: DomainName::parse_or_root(domain).unwrap(),
        upstreams: upstreams.iter().map(|text| (*text).to_owned()).collect(),
        priority,
        ..DnsForwarder::default()
    }
}

fn state(forwarders: Vec<DnsForwarder>) -> State {
    let mut state = State::new(jiff::Timestamp::UNIX_EPOCH);
    for forwarder in forwarders {
        state.create(forwarder).unwrap();
    }
    state
}

fn shown(plan: &Plan) -> Vec<String> {
    plan.groups
        .iter()
        .map(|group| {
            let servers: Vec<&str> = group.servers.iter().map(|server| server.shown.as_ref()).collect();
            format!("{}: {}", group.domain, servers.join(" "))
        })
        .collect()
}

#[test]
fn the_bootstrap_file_is_for_all_names_until_a_forwarder_is() {
    let (dns, rotation) = (dns(&["192.0.2.1"], UpstreamMode::Plain), DnsRotation::default());
    let plan = Plan::of(&state(vec![forwarder("corp.example", &["10.0.0.1"], 1)]), &given(&dns, &rotation));
    assert_eq!(shown(&plan), ["corp.example: 10.0.0.1", ".: 192.0.2.1"]);
    assert!(plan.groups[1].dnssec && !plan.groups[0].dnssec);
    let plan = Plan::of(&state(vec![forwarder(".", &["10.0.0.1"], 1)]), &given(&dns, &rotation));
    assert_eq!(shown(&plan), [".: 10.0.0.1"]);
    assert!(plan.groups[0].forwarder.is_some());
}

#[test]
fn the_enabled_forwarder_with_the_lowest_priority_is_used() {
    let (dns, rotation) = (dns(&[], UpstreamMode::Plain), DnsRotation::default());
    let off = DnsForwarder { enabled: false, ..forwarder("a.example", &["10.0.0.3"], 1) };
    let all = vec![
        forwarder("a.example", &["10.0.0.1"], 20),
        forwarder("a.example", &["10.0.0.2"], 10),
        off,
        forwarder(".", &["10.0.0.4"], 1),
    ];
    let plan = Plan::of(&state(all), &given(&dns, &rotation));
    assert_eq!(shown(&plan), [".: 10.0.0.4", "a.example: 10.0.0.2"]);
}

#[test]
fn well_known_addresses_have_their_names_and_others_need_one() {
    let rotation = DnsRotation::default();
    let dns = dns(&["9.9.9.9", "192.0.2.1"], UpstreamMode::Dot);
    let plan = Plan::of(&state(Vec::new()), &given(&dns, &rotation));
    let server = &plan.groups[0].servers[0];
    assert_eq!(server.certificate.as_deref(), Some("dns.quad9.net"));
    assert_eq!(server.place, ServerAddress::Address("9.9.9.9:853".parse().unwrap()));
    assert_eq!(plan.groups[0].servers.len(), 1);
    assert_eq!(plan.problems, ["dns.upstream_servers: 192.0.2.1 needs its name in dns.upstream_tls_names"]);
    let names = [("192.0.2.1".parse().unwrap(), "dns.example".to_owned())];
    let dns = bootstrap::Dns { upstream_tls_names: names.into(), upstream_mode: UpstreamMode::Doh, ..dns };
    let plan = Plan::of(&state(Vec::new()), &given(&dns, &rotation));
    let server = &plan.groups[0].servers[1];
    assert_eq!((server.certificate.as_deref(), server.path.as_str()), (Some("dns.example"), "/dns-query"));
    assert_eq!(server.place, ServerAddress::Address("192.0.2.1:443".parse().unwrap()));
}

#[test]
fn forwarders_say_all_that_is_needed() {
    let (dns, rotation) = (dns(&[], UpstreamMode::Plain), DnsRotation::default());
    let upstreams =
        ["https://dns.example.net:8443/query?id=7", "https://[2001:db8::1]/dns-query", "dns.example.org"];
    let encrypted = DnsForwarder {
        protocol: DnsProtocol::Https,
        bootstrap: vec!["192.0.2.53".parse().unwrap()],
        egress: "wg0".to_owned(),
        ..forwarder(".", &upstreams, 1)
    };
    let plan = Plan::of(&state(vec![encrypted]), &given(&dns, &rotation));
    let group = &plan.groups[0];
    assert_eq!((group.egress.as_ref(), &group.route), ("wg0", &QueryEgress::Marked(vec![Mark(7)])));
    let name = |text: &str| Name::from(&DomainName::parse(text).unwrap());
    let servers = &group.servers;
    assert_eq!(servers[0].place, ServerAddress::Name(name("dns.example.net"), 8443));
    assert_eq!(servers[0].path, "/query?id=7");
    assert_eq!(servers[0].bootstrap, ["192.0.2.53".parse::<IpAddr>().unwrap()]);
    assert_eq!(servers[1].place, ServerAddress::Address("[2001:db8::1]:443".parse().unwrap()));
    assert_eq!(servers[1].certificate.as_deref(), Some("2001:db8::1"));
    assert!(servers[1].bootstrap.is_empty());
    assert_eq!(servers[2].certificate.as_deref(), Some("dns.example.org"));
}

#[test]
fn zones_of_others_come_before_forwarders() {
    let (dns, rotation) = (dns(&["192.0.2.1"], UpstreamMode::Plain), DnsRotation::default());
    let mut state = state(vec![forwarder("a.example", &["10.0.0.1"], 1)]);
    let zone = |name: &str, r#type: ZoneType, upstreams: &[&str]| DnsZone {
        name: DomainName::parse(name).unwrap(),
        r#type,
        upstreams: upstreams.iter().map(|text| (*text).to_owned()).collect(),
        ..DnsZone::default()
    };
    state.create(zone("a.example", ZoneType::Stub, &["10.0.0.9:5353"])).unwrap();
    state.create(zone("b.example", ZoneType::Forward, &["10.0.0.8"])).unwrap();
    state.create(zone("c.example", ZoneType::Primary, &[])).unwrap();
    let plan = Plan::of(&state, &given(&dns, &rotation));
    assert_eq!(shown(&plan), ["a.example: 10.0.0.9:5353", "b.example: 10.0.0.8", ".: 192.0.2.1"]);
    assert!(!plan.groups[0].recursion && plan.groups[1].recursion);
}

#[test]
fn a_forwarder_without_a_usable_upstream_keeps_its_names_from_all_others() {
    let (dns, rotation) = (dns(&["192.0.2.1"], UpstreamMode::Plain), DnsRotation::default());
    let mut problems = Vec::new();
    let bad = forwarder("corp.example", &["10.0.0"], 1);
    let group = of_forwarder(
        &state(Vec::new()),
        Name::from(&bad.domain),
        &bad,
        &given(&dns, &rotation),
        &mut problems,
    );
    assert!(group.servers.is_empty());
    assert_eq!(problems, ["dns_forwarders corp.example: 10.0.0 is no address of a resolver"]);
}

#[test]
fn a_preset_gives_a_forwarder_its_servers_with_protocol_and_name() {
    let (dns, rotation) = (dns(&[], UpstreamMode::Plain), DnsRotation::default());
    let preset = DnsForwarder { preset: Some("Quad9".into()), ..forwarder(".", &[], 1) };
    let plan = Plan::of(&state(vec![preset]), &given(&dns, &rotation));
    assert_eq!(shown(&plan), [".: 9.9.9.9 149.112.112.112 2620:fe::fe 2620:fe::9"]);
    for server in &plan.groups[0].servers {
        assert_eq!(
            (server.protocol, server.certificate.as_deref()),
            (DnsProtocol::Tls, Some("dns.quad9.net"))
        );
    }
    assert_eq!(plan.groups[0].servers[0].place, ServerAddress::Address("9.9.9.9:853".parse().unwrap()));
}

#[test]
fn a_profile_names_its_servers_or_a_preset() {
    let dns = bootstrap::Dns {
        bootstrap_servers: vec!["192.0.2.1".parse().unwrap()],
        ..dns(&[], UpstreamMode::Plain)
    };
    let state = state(Vec::new());
    let of = |upstreams: &[&str], preset: Option<&str>| {
        let mut profile = Profile::default();
        profile.dns.upstreams = upstreams.iter().map(|text| (*text).to_owned()).collect();
        profile.dns.preset = preset.map(str::to_owned);
        let mut problems = Vec::new();
        let servers = of_profile(&state, &profile, &dns, &mut problems);
        assert_eq!(problems, Vec::<String>::new());
        servers
    };
    let servers = of(&["192.0.2.9:5353", "ns.corp.example", "https://dns.example/q"], None);
    let protocols: Vec<DnsProtocol> = servers.iter().map(|server| server.protocol).collect();
    assert_eq!(protocols, [DnsProtocol::Udp, DnsProtocol::Udp, DnsProtocol::Https]);
    assert_eq!(servers[0], Server::plain("192.0.2.9:5353".parse().unwrap()));
    assert_eq!((servers[1].bootstrap.len(), servers[2].bootstrap.len()), (1, 1));
    assert!(of(&[], Some("Mullvad DNS")).iter().all(|server| server.protocol == DnsProtocol::Tls));
}
