//! Interfaces of segments on a kernel with VLANs. One boot, in which this program runs the test of `in_guest`.

use std::path::PathBuf;
use std::time::Duration;

use gateway_tests::vm::{Opts, quoted};

use crate::vm::checks::{Checks, this_program};

const MODULES: &[&str] = &["veth", "tun", "bridge", "8021q"];
const NAME: &str = "interface_of_a_segment_comes_with_it_and_goes_with_it";

#[test]
fn segments_have_interfaces_of_their_own() {
    let program = quoted(&this_program());
    let daemon = match std::env::var_os("GATEWAYD_BIN") {
        Some(named) => format!("export GATEWAYD_BIN={}\n", quoted(&PathBuf::from(named))),
        None => String::new(),
    };
    let links = "ln -s /proc/self/fd /dev/fd\nln -s /proc/self/fd/0 /dev/stdin\n";
    let check = format!("check {NAME} passes {program} vm::segments::in_guest::{NAME}\n");
    let script = format!("echo \"release $(uname -r)\"\n{links}{daemon}{check}");
    let guest =
        Checks::of(&script, Opts { modules: MODULES, timeout: Duration::from_secs(480), ..Opts::default() });
    guest.assert_release("6.1.");
    guest.assert_ok(NAME);
}

/// The test that runs in the guest.
pub(super) mod in_guest {
    use std::net::{IpAddr, UdpSocket};
    use std::time::Duration;

    use gateway_tests::services::HTTP;
    use gateway_tests::testbed::{Testbed, create, policy};
    use gateway_tests::topology::{server, wan};
    use gateway_tests::traffic::ask;
    use gateway_tests::wait::wait_ok;
    use serde_json::{Value, json};

    const SLOW: Duration = Duration::from_secs(60);
    const BLOCKED: Duration = Duration::from_secs(2);
    const LAPTOP: &str = "192.168.10.10";

    fn wait_until_seen_as(testbed: &Testbed, expected: IpAddr) {
        wait_ok(SLOW, &format!("the TV to be seen as {expected}"), || {
            let answer = ask(&testbed.network.tv, (server(false), HTTP).into(), BLOCKED);
            anyhow::ensure!(answer.seen() == Some(expected), "{answer}");
            Ok(())
        })
        .expect("the way");
    }

    fn reaches_laptop(testbed: &Testbed) -> bool {
        testbed.network.tv.namespace.run("busybox", &["ping", "-c", "2", "-W", "2", LAPTOP]).is_ok()
    }

    fn link(testbed: &Testbed) -> Option<Value> {
        let shown =
            testbed.network.gateway.run("ip", &["-j", "-d", "link", "show", "dev", "eth1.30"]).ok()?;
        serde_json::from_str::<Value>(&shown).ok()?.get(0).cloned()
    }

    /// Puts the TV behind the tag of VLAN 30.
    fn tag_tv(testbed: &Testbed) {
        let lines = "link add link eth0 name eth0.30 type vlan id 30\naddress add 192.168.30.20/24 dev eth0.30\n\
             link set eth0.30 up\nroute replace default via 192.168.30.1 dev eth0.30";
        testbed.network.tv.namespace.ip(lines).expect("the TV's end of the VLAN");
    }

    #[test]
    #[ignore = "runs inside the guest"]
    fn interface_of_a_segment_comes_with_it_and_goes_with_it() {
        let mut testbed = Testbed::start().expect("a scene");
        tag_tv(&testbed);
        // The laptop listens, and the TV sends to it all the time: no packet passes before its class holds.
        let laptop =
            testbed.network.laptop.namespace.within(|| UdpSocket::bind((LAPTOP, 9))).expect("a socket");
        laptop.set_nonblocking(true).expect("a socket");
        let sender =
            testbed.network.tv.namespace.within(|| UdpSocket::bind("192.168.30.20:0")).expect("a socket");
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let sending = std::thread::spawn(move || {
            while stopped.recv_timeout(Duration::from_millis(5)).is_err() {
                // Before the gateway has the address, nothing can be sent.
                let _ = sender.send_to(b"hello", (LAPTOP, 9));
            }
        });
        let segment = json!({"name": "guests", "interface": "eth1", "vlan_id": 30, "cidr": "192.168.30.0/24",
            "trust_class": "guest"});
        let id = create(testbed.api(), "/segments", &segment).expect("a segment");
        wait_until_seen_as(&testbed, wan(false));
        let made = link(&testbed).expect("the interface");
        assert_eq!(
            (&made["linkinfo"]["info_kind"], &made["ifalias"]),
            (&json!("vlan"), &json!("made by gatewayd"))
        );
        drop(stop);
        sending.join().expect("sent");
        let mut buffer = [0; 16];
        assert!(laptop.recv_from(&mut buffer).is_err(), "a packet of the segment has passed");
        assert!(!reaches_laptop(&testbed), "the class of the segment keeps it off");

        // A policy of the interface holds, and nothing passes beside it.
        testbed.tunnel("home", &testbed.network.exit_a).expect("a tunnel");
        testbed.policy(&policy("vpn", 10, ("interface", "eth1.30"), &["home"])).expect("a policy");
        wait_until_seen_as(&testbed, testbed.network.exit_a.address(false));

        // Another class is in force at once, and a removed link comes back.
        let open = json!({"name": "guests", "interface": "eth1", "vlan_id": 30, "cidr": "192.168.30.0/24"});
        testbed.api().put(&format!("/segments/{id}"), &open).expect("stored");
        wait_ok(SLOW, "the TV to reach the laptop", || {
            anyhow::ensure!(reaches_laptop(&testbed), "no answer");
            Ok(())
        })
        .expect("reached");
        testbed.network.gateway.ip("link del dev eth1.30").expect("removed");
        wait_until_seen_as(&testbed, testbed.network.exit_a.address(false));

        testbed.api().delete(&format!("/segments/{id}")).expect("deleted");
        testbed.api().act("/enforce/reconcile").expect("reconciled");
        assert_eq!(link(&testbed), None);
        assert!(!reaches_laptop(&testbed));
        testbed.daemon.kill9().expect("killed");
        testbed.daemon.start().expect("the daemon");
        assert_eq!(link(&testbed), None);

        // It is the same after a restart.
        create(testbed.api(), "/segments", &open).expect("a segment");
        testbed.api().act("/enforce/reconcile").expect("reconciled");
        assert!(link(&testbed).is_some());
        testbed.daemon.kill9().expect("killed");
        testbed.daemon.start().expect("the daemon");
        testbed.api().act("/enforce/reconcile").expect("reconciled");
        assert!(link(&testbed).is_some(), "the segment is there");
    }
}
