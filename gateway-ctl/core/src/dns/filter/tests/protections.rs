//! Tests of what does not depend on lists and rules, and of the names and addresses of answers.

use super::*;

#[test]
fn certificates_of_dnscrypt_are_kept_from_clients_without_encrypted_dns() {
    for (dot, doh, blocked) in [(false, false, false), (true, false, true), (false, true, true)] {
        let mut world = World::new();
        let blocks = HostBlocks { block_dot: dot, block_doh: doh, ..HostBlocks::default() };
        world.state.set_blocks_at(BlockScope::All, blocks).expect("set");
        let filter = Filter::of_blocks(&world.state, &world.lists, world.options());
        for filter in [filter, world.filter()] {
            for asked in ["2.dnscrypt-cert.example.com", "1.dnscrypt-cert.opendns.com"] {
                let asked = name(asked);
                let question = Question { name: asked.as_ref(), qtype: rtype::TXT };
                let action = filter.decide(&ClientIdentity::default(), question, world.now).action;
                assert_eq!(action == Action::Nxdomain, blocked, "{asked:?}");
            }
            for asked in
                ["3.dnscrypt-cert.example.com", "a.2.dnscrypt-cert.example.com", "dnscrypt-cert.example.com"]
            {
                let asked = name(asked);
                let question = Question { name: asked.as_ref(), qtype: rtype::TXT };
                assert_eq!(filter.decide(&ClientIdentity::default(), question, world.now), Decision::PASS);
            }
        }
    }
}

#[test]
fn public_name_with_a_local_address_is_withheld_unless_it_is_allowed() {
    let mut world = World::new();
    world.rewrite("moved.example", "target.example.org");
    world.allow("allowed.example");
    world.blocklist("@@||excepted.example^\n");
    world.feed(Format::Ip, "10.0.0.0/8\n");
    let rebinding =
        || Some(Rebinding::new(&world.state, &["plex.direct".parse().expect("a name")], std::iter::empty()));
    let inspect = |filter: &Filter, asked: &str, address: &str| {
        let asked = name(asked);
        let question = Question { name: asked.as_ref(), qtype: rtype::A };
        let address = address.parse().expect("an address");
        filter.inspect_address(&ClientIdentity::default(), question, address, world.now)
    };
    let filter = world.filter().with_rebinding(rebinding());
    for asked in ["evil.example", "excepted.example"] {
        let decision = inspect(&filter, asked, "192.168.1.1");
        let because = decision.because.expect("a reason");
        assert_eq!((decision.action, because.cause), (Action::NoData, Cause::Rebinding), "{asked}");
        assert_eq!(because.through.as_deref(), Some("192.168.1.1"));
    }
    assert_eq!(inspect(&filter, "evil.example", "198.51.100.1"), Decision::PASS);
    assert_eq!(inspect(&filter, "evil.example", "10.0.0.1").because.map(|b| b.cause), Some(Cause::Feed));
    for asked in ["allowed.example", "a-b.plex.direct", "moved.example", "nas.lan"] {
        assert_eq!(inspect(&filter, asked, "192.168.1.1"), Decision::PASS, "{asked}");
    }
    assert_eq!(inspect(&world.filter(), "evil.example", "192.168.1.1"), Decision::PASS, "it is off");
    let only_blocks =
        Filter::of_blocks(&world.state, &world.lists, world.options()).with_rebinding(rebinding());
    assert_eq!(inspect(&only_blocks, "evil.example", "192.168.1.1").action, Action::NoData);
}

#[test]
fn local_data_of_a_response_policy_zone_applies_to_each_name_of_a_chain() {
    let mut world = World::new();
    world.feed(
        Format::Rpz,
        "walled.example A 192.0.2.9\nmoved.example CNAME garden.example.\nbad.example CNAME .\n",
    );
    world.rewrite("rewritten.example", "192.0.2.1");
    let filter = world.filter();
    let inspect = |target: &str, qtype: u16| {
        let (asked, target) = (name("www.shop.example"), name(target));
        let question = Question { name: asked.as_ref(), qtype };
        filter.inspect_name(&ClientIdentity::default(), question, target.as_ref(), world.now).action
    };
    let addresses =
        |texts: &[&str]| Action::Addresses(texts.iter().map(|t| t.parse().expect("an address")).collect());
    assert_eq!(inspect("walled.example", rtype::A), addresses(&["192.0.2.9"]));
    assert_eq!(inspect("walled.example", rtype::AAAA), addresses(&[]));
    assert_eq!(inspect("walled.example", rtype::HTTPS), addresses(&[]));
    assert_eq!(inspect("walled.example", rtype::MX), addresses(&[]));
    assert_eq!(inspect("moved.example", rtype::A), Action::Name(name("garden.example")));
    assert_eq!(inspect("bad.example", rtype::A), Action::Nxdomain);
    assert_eq!(inspect("rewritten.example", rtype::A), Action::Pass, "a rewrite is for queries");
}
