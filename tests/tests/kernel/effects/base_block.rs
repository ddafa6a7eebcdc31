//! The default-deny rules: each of the two halves is sufficient alone.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use gateway_core::plan::NftRuleset;
use gateway_ctl::os::nft::Nft;
use gateway_ctl::os::{LastApplied, Outcome, sync};
use gateway_ctl::reconcile::{Existing, install_default_deny};
use gateway_tests::netns::{Namespace, Prefix};
use gateway_tests::wait::wait_for;

use super::{ip, namespace, receiver, within};

const LAN: [&str; 2] = ["lan0", "lan1"];

async fn block(existing: Existing) -> Outcome {
    let outcome = install_default_deny(&LAN.map(str::to_owned), existing).await;
    assert!(outcome.is_ok(), "{outcome:?}");
    outcome
}

async fn install_gateway() {
    let ruleset =
        NftRuleset { lan: vec!["lan0".into()], uplinks: vec!["wan0".into()], ..NftRuleset::default() };
    let nft = Nft::gateway(&ruleset).expect("plain names");
    assert!(sync(&nft, &nft.want(), &mut LastApplied::default()).await.is_ok());
}

#[test]
fn default_deny_is_installed_before_the_interfaces_exist() {
    let ns = namespace("block");
    within(&ns, async || {
        let outcome = block(Existing::Keep).await;
        assert_eq!(outcome.put, 5, "two rules for each of two interfaces, and the table");
        for family in ["-4", "-6"] {
            let rules = ip(&ns, &format!("{family} rule show"));
            assert!(rules.contains("6999:\tfrom all iif lan0 [detached] prohibit proto 71"), "{rules}");
            assert!(rules.contains("6998:\tfrom all iif lan1 [detached] prohibit proto 71"), "{rules}");
        }
        assert!(ns.run("nft", &["list", "table", "inet", "gateway"]).expect("table").contains("policy drop"));
        assert_eq!(block(Existing::Keep).await, Outcome::default());
        assert_eq!(block(Existing::Replace).await, Outcome::default());
    });
}

#[test]
fn existing_rules_are_kept_or_replaced_on_request() {
    let ns = namespace("block2");
    let listing = || ns.run("nft", &["list", "table", "inet", "gateway"]).expect("table");
    within(&ns, async || {
        install_gateway().await;
        let running = listing();
        block(Existing::Keep).await;
        assert_eq!(listing(), running, "it goes on holding");
        ns.nft("add rule inet gateway forward accept\n").expect("outsider");
        block(Existing::Keep).await;
        assert!(!listing().contains("\t\taccept"), "one that was tampered with does not");

        install_gateway().await;
        block(Existing::Replace).await;
        assert!(!listing().contains("\t\taccept"));
    });
}

#[test]
fn each_half_of_default_deny_stops_packets_by_itself() {
    let prefix = Prefix::unique().expect("root");
    let make = |label| Namespace::create(&prefix, label).expect("namespace");
    let (device, gateway, internet) = (make("dev"), make("gate"), make("inet"));
    for (near, net, far) in [("lan0", 1, &device), ("wan0", 2, &internet)] {
        gateway
            .ip(&format!(
                "link add {near} type veth peer name eth0 netns {}\nlink set {near} up\naddr add 10.0.{net}.1/24 dev {near}",
                far.name()
            ))
            .expect("link");
        far.ip(&format!(
            "link set eth0 up\naddr add 10.0.{net}.2/24 dev eth0\nroute add default via 10.0.{net}.1"
        ))
        .expect("far end");
    }
    gateway.forward().expect("forwarding");
    let once = || {
        let receiver = receiver(&internet, (Ipv4Addr::UNSPECIFIED, 9000).into());
        let sender = device.within(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))).expect("sender");
        // A rejection of the gateway may be reported as an error; in both cases the packet did not pass.
        let _ = sender.send_to(b"x", "10.0.2.2:9000");
        receiver.recv_from(&mut [0; 8]).is_ok()
    };
    // A new link is not ready immediately.
    let passes = |why| wait_for(Duration::from_secs(10), why, once).expect(why);
    passes("the network itself works");
    within(&gateway, async || {
        block(Existing::Keep).await;
    });
    assert!(!once());
    gateway.nft("delete table inet gateway\n").expect("outsider");
    assert!(!once(), "the rules stop it");
    gateway.ip("rule del priority 6999").expect("outsider");
    passes("without either it would pass");
    within(&gateway, async || {
        block(Existing::Keep).await;
    });
    gateway.ip("rule del priority 6999").expect("outsider");
    assert!(!once(), "the table stops it");
}
