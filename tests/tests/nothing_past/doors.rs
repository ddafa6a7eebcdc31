//! Input from interfaces that are neither loopback nor LAN, and interference by root.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use aya::programs::{SchedClassifier, TcAttachType};
use gateway_core::plan::Attachment;
use gateway_ctl::os::bpf::Programs;
use gateway_tests::netns::{Namespace, remove_pins};
use gateway_tests::services::HTTP;
use gateway_tests::tap::{Rules, Tap};
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::{Host, LAN_V4, LAN_V6, Topology, WAN_V4, WAN_V6, server};
use gateway_tests::traffic::{Load, ask};
use gateway_tests::wait::{wait_for, wait_ok};
use gateway_tests::wireguard::Exit;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

pub(super) use crate::nothing_past::{assert_nothing_left as assert_nothing_leaked, assert_the_tap_sees};

pub(super) const FAMILIES: [bool; 2] = [false, true];
/// Timeout of a connection that has to fail.
const BLOCKED: Duration = Duration::from_millis(700);
/// Timeout of a repair on a busy machine.
pub(super) const SOON: Duration = Duration::from_secs(15);
/// Port of a service of the gateway's host that listens on all addresses.
const SERVICE: u16 = 9470;
const UNLISTED_V4: [u8; 4] = [203, 0, 115, 2];
const UNLISTED_V6: &str = "2001:db8:115::2";

/// Adds an interface to the gateway that its configuration does not list, eth7. Returns the tap at its remote end.
fn add_unlisted(network: &Topology) -> Tap {
    network
        .gateway
        .ip(&format!(
            "link add eth7 type veth peer name up7 netns {}\naddress add 203.0.115.2/24 dev eth7\n\
             address add 2001:db8:115::2/64 dev eth7 nodad\nlink set eth7 up",
            network.internet.name()
        ))
        .expect("another interface");
    network
        .internet
        .ip("address add 203.0.115.1/24 dev up7\naddress add 2001:db8:115::1/64 dev up7 nodad\nlink set up7 up")
        .expect("its far end");
    let own = [IpAddr::from(UNLISTED_V4), UNLISTED_V6.parse().expect("an address")];
    let exits = [network.exit_a.place, network.exit_b.place];
    Tap::open(&network.internet, "up7", Rules::of_an_uplink(own, exits)).expect("tap")
}

fn reaches(from: &Namespace, to: impl Into<IpAddr>) -> bool {
    let to = SocketAddr::from((to.into(), SERVICE));
    from.within(|| TcpStream::connect_timeout(&to, BLOCKED)).is_ok()
}

/// Returns the gateway's addresses that face the internet.
fn outer() -> [IpAddr; 4] {
    let unlisted: IpAddr = UNLISTED_V6.parse().expect("an address");
    [WAN_V4.into(), WAN_V6.into(), UNLISTED_V4.into(), unlisted]
}

fn assert_doors(network: &Topology) {
    for address in outer() {
        assert!(!reaches(&network.internet, address), "{address} is reached from outside");
    }
    for address in [IpAddr::from(LAN_V4), LAN_V6.into()] {
        assert!(reaches(&network.laptop.namespace, address), "the LAN does not reach {address}");
    }
}

fn serve(gateway: &Namespace) -> TcpListener {
    gateway.within(|| TcpListener::bind(("::", SERVICE))).expect("a service on all addresses")
}

#[test]
fn only_the_lan_reaches_services_of_the_gateway() {
    let mut testbed = Testbed::prepare().expect("scene");
    let _tap = add_unlisted(&testbed.network);
    let _service = serve(&testbed.network.gateway);
    for address in outer() {
        wait_for(SOON, "an open door without the gateway", || reaches(&testbed.network.internet, address))
            .expect("open");
    }
    testbed.daemon.start().expect("daemon");
    assert_doors(&testbed.network);
    // A renamed uplink is an unlisted interface.
    testbed
        .network
        .gateway
        .ip(
            "link set eth0 down\nlink set eth0 name wan9\naddress replace 2001:db8:113::2/64 dev wan9 nodad\n\
             link set wan9 up",
        )
        .expect("renamed");
    assert_doors(&testbed.network);
}

#[test]
fn the_block_at_boot_closes_the_doors_and_leaves_the_host_its_own_connections() {
    let testbed = Testbed::prepare().expect("scene");
    let network = &testbed.network;
    let _tap = add_unlisted(network);
    let _service = serve(&network.gateway);
    testbed.daemon.run(&["guard"]).expect("guard");
    assert_doors(network);
    for ipv6 in FAMILIES {
        let to = SocketAddr::from((server(ipv6), HTTP));
        wait_ok(SOON, "the host's own connection", || {
            network.gateway.within(|| TcpStream::connect_timeout(&to, BLOCKED))?;
            Ok(())
        })
        .expect("answers to the host come in");
    }
}

#[test]
fn an_interface_that_appears_with_a_better_route_carries_nothing_from_the_lan() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    assert_the_tap_sees(&testbed, &network.tv);
    let load = Load::start(&network.tv).expect("load");
    load.run_for(50).expect("load");
    let tap = add_unlisted(network);
    network
        .gateway
        .ip("route add default via 203.0.115.1 metric 1\nroute add default via 2001:db8:115::1 metric 1")
        .expect("a better way out");
    load.run_for(200).expect("load");
    wait_for(SOON, "a guard on the interface", || !programs(&network.gateway, "eth7", false).is_empty())
        .expect("guarded");
    // The guard alone is sufficient.
    let pid = stop(&testbed);
    network.gateway.nft("delete table inet gateway\n").expect("outsider");
    load.run_for(200).expect("load");
    kill(pid, Signal::SIGCONT).expect("continue");
    let sent = load.stop();
    assert!(sent.v4 > 400 && sent.v6 > 400, "{sent:?}");
    let counts = tap.counts();
    assert!(counts.leaked.total() == 0 && counts.missed == 0, "{counts}");
}

#[test]
fn rules_tables_and_programs_that_root_removes_in_pairs_come_back_by_themselves() {
    let mut testbed = Testbed::prepare().expect("scene");
    // Disables periodic runs, so that none repairs anything.
    testbed.daemon.configure(&json!({"reconcile": {"enabled": false}})).expect("configuration");
    testbed.daemon.start().expect("daemon");
    bind_laptop(&testbed);
    let network = &testbed.network;
    let load = Load::start(&network.laptop).expect("load");
    let destroy_pins = || remove_pins(testbed.daemon.pin_directory());
    let destroy_table = || network.gateway.nft("delete table inet gateway\n").expect("table deleted");
    for round in 0..4 {
        load.run_for(50).expect("load");
        match round % 2 {
            0 => {
                flush_rules(&network.gateway);
                destroy_pins();
            }
            _ => {
                destroy_pins();
                destroy_table();
            }
        }
        load.run_for(100).expect("load");
        wait_until_whole(&testbed);
    }
    wait_until_through(&network.laptop, &network.exit_a);
    for part in ["\"rules\"", "\"nft\"", "\"dataplane\""] {
        wait_for(SOON, &format!("drift of {part} to be reported"), || {
            testbed.api().get("/drift").is_ok_and(|drift| drift.to_string().contains(part))
        })
        .expect("reported");
    }
    wait_for(SOON, "the gateway to be well", || {
        testbed.api().get("/health").is_ok_and(|health| health["status"] == "ok")
    })
    .expect("well");
    load.stop();
    assert_nothing_leaked(&testbed);
}

#[test]
fn pins_that_root_removes_are_adopted_by_the_next_start() {
    let mut testbed = Testbed::start().expect("scene");
    bind_laptop(&testbed);
    let load = Load::start(&testbed.network.laptop).expect("load");
    remove_pins(testbed.daemon.pin_directory());
    wait_until_whole(&testbed);
    let before = programs(&testbed.network.gateway, "eth1", true);
    testbed.daemon.kill9().expect("killed");
    load.run_for(100).expect("load");
    assert_eq!(programs(&testbed.network.gateway, "eth1", true), before, "pinned, so it stays");
    testbed.daemon.start().expect("started again");
    wait_until_through(&testbed.network.laptop, &testbed.network.exit_a);
    assert_eq!(programs(&testbed.network.gateway, "eth1", true).len(), 1, "the new one in its place");
    load.stop();
    assert_nothing_leaked(&testbed);
}

#[test]
fn a_program_attached_before_the_gateways_is_detached() {
    let testbed = Testbed::start().expect("scene");
    bind_laptop(&testbed);
    let network = &testbed.network;
    let hooks = [("eth1", Attachment::Ingress, true), ("eth0", Attachment::Guard, false)];
    let ours = hooks.map(|(interface, _, ingress)| programs(&network.gateway, interface, ingress)[0]);
    let pins = network.prefix.pin_directory();
    let pins = pins.with_file_name(network.prefix.name("foreign"));
    let mut foreign = Programs::load(&pins).expect("programs of another");
    let want = hooks.map(|(interface, attachment, _)| (interface.to_owned(), attachment)).into();
    // The call may report a failure if the program is already behind the gateway's; the check below shows its
    // presence.
    let _ = network.gateway.within(|| foreign.attach(&want));
    for ((interface, _, ingress), ours) in hooks.into_iter().zip(ours) {
        wait_for(SOON, "our program to be the first", || {
            let programs = programs(&network.gateway, interface, ingress);
            programs.len() >= 2 && programs[0] == ours
        })
        .unwrap_or_else(|error| {
            remove_pins(&pins);
            panic!("{interface}: {error:#}")
        });
    }
    remove_pins(&pins);
    // The repairing run publishes its outcome at its end.
    wait_for(SOON, "the drift to be reported", || {
        testbed.api().get("/drift").is_ok_and(|drift| drift.to_string().contains("behind 1 other programs"))
    })
    .expect("reported");
}

#[test]
fn a_lan_interface_that_comes_goes_and_changes_its_name_leaks_nothing() {
    let testbed = Testbed::start().expect("scene");
    let network = &testbed.network;
    testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    assert_the_tap_sees(&testbed, &network.laptop);
    testbed.policy(&policy("by-interface", 10, ("interface", "eth1"), &["wg-a"])).expect("policy");
    let addresses = format!(
        "link set eth1 address 02:00:00:10:00:01\naddress replace {LAN_V4}/24 dev eth1\n\
         address replace {LAN_V6}/64 dev eth1 nodad\nlink set eth1 up"
    );
    wait_until_through(&network.laptop, &network.exit_a);
    network.tap.reset();
    let load = Load::start(&network.laptop).expect("load");
    for round in 0..40 {
        match round % 4 {
            0 => {
                network.gateway.ip("link del eth1").expect("deleted");
                network
                    .lan
                    .ip(&format!(
                        "link add to-gateway type veth peer name eth1 netns {}\nlink set to-gateway master br0 up",
                        network.gateway.name()
                    ))
                    .expect("added");
            }
            1 => network
                .gateway
                .ip("link set eth1 down\nlink set eth1 name lan9\nlink set lan9 up")
                .and_then(|()| load.run_for(10))
                .and_then(|()| network.gateway.ip("link set lan9 down\nlink set lan9 name eth1"))
                .expect("renamed and back"),
            2 => {
                let away = format!(
                    "link set eth1 down\nlink set eth1 name lan9\naddress replace {LAN_V4}/24 dev lan9\n\
                    address replace {LAN_V6}/64 dev lan9 nodad\nlink set lan9 up"
                );
                network.gateway.ip(&away).expect("renamed");
                wait_for(SOON, "the interface to be guarded under its new name", || {
                    !programs(&network.gateway, "lan9", false).is_empty()
                })
                .expect("noticed");
                load.run_for(20).expect("load");
                network.gateway.ip("link set lan9 down\nlink set lan9 name eth1").expect("and back");
            }
            _ => network.gateway.ip("link set eth1 down").expect("down"),
        }
        network.gateway.ip(&addresses).expect("LAN");
        load.run_for(15).expect("load");
    }
    wait_until_through(&network.laptop, &network.exit_a);
    load.stop();
    assert_nothing_leaked(&testbed);
}

/// Binds the laptop to exit A and verifies the tap.
pub(super) fn bind_laptop(testbed: &Testbed) {
    let network = &testbed.network;
    let laptop = testbed.device(&network.laptop).expect("device");
    testbed.tunnel("wg-a", &network.exit_a).expect("tunnel");
    assert_the_tap_sees(testbed, &network.tv);
    testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    wait_until_through(&network.laptop, &network.exit_a);
}

/// Returns the ids of the programs at a hook in their order.
pub(super) fn programs(namespace: &Namespace, interface: &str, ingress: bool) -> Vec<u32> {
    let kind = if ingress { TcAttachType::Ingress } else { TcAttachType::Egress };
    let query = || SchedClassifier::query_tcx(interface, kind);
    let listed = namespace.within(query).map(|(_, programs)| programs).unwrap_or_default();
    listed.iter().map(|program| program.id()).collect()
}

/// Waits until rules, table, programs and pins exist.
pub(super) fn wait_until_whole(testbed: &Testbed) {
    let gateway = &testbed.network.gateway;
    wait_ok(SOON, "everything to be restored", || {
        let rules = gateway.run("ip", &["-6", "rule"])?;
        anyhow::ensure!(rules.contains("iif eth1 prohibit"), "{rules}");
        gateway.run("nft", &["list", "chain", "inet", "gateway", "forward"])?;
        for (interface, ingress) in [("eth1", true), ("eth0", false)] {
            anyhow::ensure!(!programs(gateway, interface, ingress).is_empty(), "no program on {interface}");
        }
        let versions: Vec<_> = std::fs::read_dir(testbed.daemon.pin_directory())?.flatten().collect();
        anyhow::ensure!(versions.len() == 1, "{versions:?}");
        let links = std::fs::read_dir(versions[0].path().join("links"))?.count();
        anyhow::ensure!(links >= 2, "{links} links are pinned");
        anyhow::ensure!(
            versions[0].path().join("maps").join("gw_active_slot").exists(),
            "no maps are pinned"
        );
        Ok(())
    })
    .unwrap_or_else(|error| panic!("{error:#}\n{}", testbed.daemon.last_words()));
}

/// Removes all ip rules except the default ones.
fn flush_rules(gateway: &Namespace) {
    for family in ["-4", "-6"] {
        gateway.run("ip", &[family, "rule", "flush"]).expect("rules flushed");
        gateway.run("ip", &[family, "rule", "add", "priority", "32766", "table", "main"]).expect("main rule");
    }
}

/// Stops the daemon's process with SIGSTOP, so that it can be continued.
fn stop(testbed: &Testbed) -> Pid {
    let pid = testbed.daemon.pid().and_then(|pid| i32::try_from(pid).ok()).expect("the daemon runs");
    kill(Pid::from_raw(pid), Signal::SIGSTOP).expect("stop");
    Pid::from_raw(pid)
}

pub(super) fn wait_until_through(host: &Host, exit: &Exit) {
    for ipv6 in FAMILIES {
        wait_ok(SOON, &format!("{} to get through {}", host.name, exit.place.label), || {
            let answer = ask(host, (server(ipv6), HTTP).into(), BLOCKED);
            anyhow::ensure!(answer.seen() == Some(exit.address(ipv6)), "{answer}");
            Ok(())
        })
        .expect("restored");
    }
}
