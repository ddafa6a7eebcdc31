//! Fast path on a kernel with clsact in place of tcx, and with kernel WireGuard: packets of established flows pass the
//! IP stack by, or take it where the fast path leaves them to it, and arrive unchanged. One boot, in which this program
//! runs the tests of `in_guest`.

mod flows;

use std::path::PathBuf;
use std::time::Duration;

use gateway_tests::vm::{Opts, quoted};

use crate::vm::checks::{Checks, this_program};

/// As in `vm::daemon`.
const MODULES: &[&str] = &["veth", "tun", "bridge"];
const NAME: &str = "established_flows_arrive_unchanged";
/// Tests of the programs at XDP, which the daemon leaves off on such a kernel, because it does not report what drivers support.
const AT_XDP: [&str; 2] = [
    "xdp::redirected_frames_have_the_same_bytes",
    "xdp_block::first_queries_for_blocked_names_are_answered_in_the_driver_as_at_tcx",
];

#[test]
fn established_flows_arrive_unchanged_without_tcx() {
    let program = quoted(&this_program());
    let daemon = match std::env::var_os("GATEWAYD_BIN") {
        Some(named) => format!("export GATEWAYD_BIN={}\n", quoted(&PathBuf::from(named))),
        None => String::new(),
    };
    // As in `vm::daemon`.
    let links = "ln -s /proc/self/fd /dev/fd\nln -s /proc/self/fd/0 /dev/stdin\n";
    let script = format!(
        "echo \"release $(uname -r)\"\n{links}{daemon}check {NAME} passes {program} vm::fast_path::in_guest::{NAME}\n"
    );
    let at_xdp = AT_XDP.map(|name| format!("check {name} passes {program} kernel::fast_path::{name}\n"));
    let script = script + &at_xdp.concat();
    let guest =
        Checks::of(&script, Opts { modules: MODULES, timeout: Duration::from_secs(480), ..Opts::default() });
    guest.assert_release("6.1.");
    guest.assert_ok(NAME);
    for name in AT_XDP {
        guest.assert_ok(name);
    }
    guest.print_measured();
}

/// Tests that run in the guest.
mod in_guest {
    use std::net::UdpSocket;
    use std::time::{Duration, Instant};

    use gateway_tests::services::{BULK, IDENT};
    use gateway_tests::testbed::{Testbed, policy};
    use gateway_tests::topology::{Host, wan};
    use serde_json::json;

    use super::flows::{Path, Taken, open_flow, status, wait_until};
    use crate::vm::daemon::in_guest::{carry_by_kernel, kind_of_link};

    /// Datagrams in flight, duration of a measurement, and number of measurements of each setting.
    const WINDOW: usize = 16;
    const SPAN: Duration = Duration::from_millis(500);
    const REPEATS: usize = 4;

    /// Starts the daemon between the internet and three LAN interfaces: `br-lan` with the laptop, `br-lan.20` with the
    /// TV, and `eth3.30` with the returned host.
    fn start() -> (Testbed, Host) {
        let mut testbed = Testbed::prepare().expect("a network");
        let lans = json!(["br-lan", "br-lan.20", "eth3.30"]);
        let configuration = json!({"dataplane": {"fast_path": "on"}, "network": {"lan_iface": lans}});
        testbed.daemon.configure(&configuration).expect("configured");
        let network = &testbed.network;
        let guest = network.add_segment().expect("a segment");
        let addresses = |interface: &str, number: u16| {
            format!(
                "address add 192.168.{number}.1/24 dev {interface}\n\
                 address add fd00:{number}::1/64 dev {interface} nodad\nlink set {interface} up\n"
            )
        };
        let lines = [
            "address flush dev eth1\naddress flush dev eth3\n\
             link add br-lan address 02:00:00:10:00:01 type bridge mcast_snooping 0\nlink set eth1 master br-lan\n\
             link add link br-lan name br-lan.20 type vlan id 20\nlink add link eth3 name eth3.30 type vlan id 30\n"
                .to_owned(),
            addresses("br-lan", 10),
            addresses("br-lan.20", 20),
            addresses("eth3.30", 30),
        ];
        network.gateway.ip(&lines.concat()).expect("interfaces of the LAN");
        tag(&network.tv, 20);
        tag(&guest, 30);
        // Counts what the IP stack forwards, independently of the statistics of the fast path.
        let counters = format!(
            "table inet stack {{\n counter there {{ }}\n counter back {{ }}\n chain passing {{\n \
             type filter hook forward priority 0\n th dport {{ {IDENT}, {BULK} }} counter name there\n \
             th sport {{ {IDENT}, {BULK} }} counter name back\n }}\n}}\n"
        );
        network.gateway.nft(&counters).expect("counters");
        carry_by_kernel(&network.exit_a);
        testbed.daemon.start().expect("a daemon");
        wait_until(&testbed, true);
        (testbed, guest)
    }

    /// Puts a host behind a tag. The network has the number of the VLAN.
    fn tag(host: &Host, id: u16) {
        let lines = format!(
            "link add link eth0 name eth0.{id} type vlan id {id}\naddress add 192.168.{id}.20/24 dev eth0.{id}\n\
             address add fd00:{id}::20/64 dev eth0.{id} nodad\nlink set eth0.{id} up\n\
             route replace default via 192.168.{id}.1 dev eth0.{id}\n\
             route replace default via fd00:{id}::1 dev eth0.{id}"
        );
        host.namespace.ip(&lines).expect("a VLAN");
    }

    /// Returns the number of datagrams a second that come back from the server.
    fn rate(flow: &UdpSocket) -> f64 {
        let started = Instant::now();
        let (mut answers, mut missing) = (0, WINDOW);
        while started.elapsed() < SPAN {
            for _ in 0..missing {
                flow.send(b"measured").expect("sent");
            }
            // After a loss the window begins again.
            missing = if flow.recv(&mut [0; 64]).is_ok() { 1 } else { WINDOW };
            answers += u32::from(missing == 1);
        }
        let rate = f64::from(answers) / started.elapsed().as_secs_f64();
        // Answers that are under way do not belong to the next call.
        while flow.recv(&mut [0; 64]).is_ok() {}
        rate
    }

    /// Measures one flow with the fast path and without it. Asserts nothing about the result.
    fn measure(testbed: &Testbed, host: &Host) {
        let flow = open_flow(host, false);
        flow.set_read_timeout(Some(SPAN / 2)).expect("a timeout");
        let mut rates = [Vec::new(), Vec::new()];
        let mut shares = [0.0; 2];
        for number in 0..2 * REPEATS {
            let (index, value) = (number % 2, ["on", "off"][number % 2]);
            testbed.api().put("/settings/dataplane.fast_path", &json!({"value": value})).expect("set");
            wait_until(testbed, index == 0);
            // Meanwhile the daemon ends its work for the setting.
            rate(&flow);
            let before = Taken::so_far(testbed);
            rates[index].push(rate(&flow));
            let taken = Taken::so_far(testbed).since(before);
            let (fast, slow) = (taken.fast[0] + taken.fast[1], taken.slow[0] + taken.slow[1]);
            shares[index] = fast as f64 / (fast + slow) as f64;
        }
        // Other work of the host only slows a run down.
        let [on, off] = [0, 1].map(|index| rates[index].iter().copied().fold(0.0, f64::max));
        println!(
            "measured kernel WireGuard, emulated, one flow there and back: at best {on:.0} datagrams/s with the fast path ({:.0} % \
             of the packets take it), {off:.0} without ({:.0} %), ratio {:.2}; all runs {rates:.0?}",
            100.0 * shares[0],
            100.0 * shares[1],
            on / off
        );
    }

    #[test]
    #[ignore = "runs inside the guest"]
    fn established_flows_arrive_unchanged() {
        let (testbed, guest) = start();
        let network = &testbed.network;
        let direct = |host, interface| Path {
            testbed: &testbed,
            host,
            interface,
            remote: (&network.internet, "up0"),
            source: |_, ipv6| wan(ipv6),
            seen: |_, ipv6| wan(ipv6),
        };
        direct(&network.laptop, "eth0").assert_flows(true);
        direct(&guest, "eth0.30").assert_flows(true);
        // A VLAN of a bridge that is a LAN interface too.
        direct(&network.tv, "eth0.20").assert_flows(true);
        let status = status(&testbed);
        assert!(status["share_pct"].as_f64().expect("a share") > 50.0, "{status}");

        let tunnel = testbed.tunnel("home", &network.exit_a).expect("the tunnel");
        let interface = testbed.interface(&tunnel).expect("its interface");
        assert_eq!(kind_of_link(&testbed, &interface), "wireguard", "the kernel carries it");
        let laptop = testbed.device(&network.laptop).expect("the device");
        testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["home"])).expect("the policy");
        let tunnelled = Path {
            remote: (&network.exit_a.namespace, "wg0"),
            source: |testbed, ipv6| {
                let place = testbed.network.exit_a.place;
                if ipv6 { place.client_v6().into() } else { place.client_v4().into() }
            },
            seen: |testbed, ipv6| testbed.network.exit_a.address(ipv6),
            ..direct(&network.laptop, "eth0")
        };
        tunnelled.assert_flows(true);
        measure(&testbed, &network.laptop);
    }
}
