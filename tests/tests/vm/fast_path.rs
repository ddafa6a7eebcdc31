//! Fast path on a kernel with clsact in place of tcx: the same bytes as without it, and entries for flows of a VLAN
//! interface, of a bridge and of kernel WireGuard. One boot, in which this program runs the tests of `in_guest` and some
//! of the suite `kernel`.

use std::path::PathBuf;
use std::sync::LazyLock;

use gateway_tests::vm::{Opts, quoted};

use crate::vm::checks::{Checks, this_program};

/// As in `vm::daemon`.
const MODULES: &[&str] = &["veth", "tun", "bridge"];
const NAMES: [&str; 4] = [
    "flows_of_a_vlan_interface_take_it",
    "flows_of_a_bridge_take_it",
    "flows_of_kernel_wireguard_take_it",
    "flows_between_lans_take_it",
];
/// Tests of the suite `kernel` that compare each byte.
const SAME_BYTES: [&str; 2] = [
    "kernel::fast_path::packets_leave_with_the_same_bytes",
    "kernel::fast_path::between_lans::packets_between_lans_leave_with_the_same_bytes",
];

/// Shared boot of the tests of this module.
static GUEST: LazyLock<Checks> = LazyLock::new(|| {
    let program = quoted(&this_program());
    let daemon = match std::env::var_os("GATEWAYD_BIN") {
        Some(named) => format!("export GATEWAYD_BIN={}\n", quoted(&PathBuf::from(named))),
        None => String::new(),
    };
    let same = SAME_BYTES.map(|name| format!("check {name} runs {program} {name}\n")).concat();
    let checks =
        NAMES.map(|name| format!("check {name} passes {program} vm::fast_path::in_guest::{name}\n")).concat();
    // As in `vm::daemon`. A test that passes has measured something, which is shown.
    let script = format!(
        "echo \"release $(uname -r)\"\nln -s /proc/self/fd /dev/fd\nln -s /proc/self/fd/0 /dev/stdin\n{daemon}\
         runs() {{\n said=$(\"$1\" --exact --test-threads=1 \"$2\" 2>&1) && echo \"$said\" | grep -q '^test result: ok. 1 passed' || {{ echo \"$said\"; false; }}\n}}\n\
         {same}{checks}\
         {program} --ignored --exact --nocapture vm::fast_path::in_guest::ratio_of_kernel_wireguard | grep '^kernel WireGuard'\n"
    );
    let timeout = std::time::Duration::from_secs(900);
    Checks::of(&script, Opts { modules: MODULES, timeout, ..Opts::default() })
});

#[test]
fn fast_path_works_without_tcx() {
    GUEST.assert_release("6.1.");
    for name in SAME_BYTES.iter().chain(&NAMES) {
        GUEST.assert_ok(name);
    }
    GUEST.show("kernel WireGuard");
}

/// Tests that run in the guest.
mod in_guest {
    use std::net::SocketAddr;
    use std::time::Duration;

    use gateway_tests::services::IDENT;
    use gateway_tests::testbed::{Testbed, policy};
    use gateway_tests::topology::{Host, server};
    use gateway_tests::traffic::{TcpFlow, UdpFlow, transfer};
    use gateway_tests::wait::wait_for;
    use serde_json::{Value, json};

    use crate::vm::daemon::in_guest::{carry_by_kernel, kind_of_link};

    /// Timeout for an emulated machine, which is slow.
    const TIMEOUT: Duration = Duration::from_secs(20);
    const BULK: u64 = 4 << 20;
    /// Payload of a segment without segmentation offload.
    const SEGMENT: u64 = 1400;

    fn start(configuration: &Value, prepare: impl Fn(&Testbed)) -> Testbed {
        let mut testbed = Testbed::prepare().expect("a network");
        testbed.daemon.configure(&json!({"dataplane": {"fast_path": "on"}})).expect("configured");
        testbed.daemon.configure(configuration).expect("configured");
        prepare(&testbed);
        testbed.daemon.start().expect("a daemon");
        wait_for(TIMEOUT, "the fast path to be on", || status(&testbed)["on"] == true).expect("on");
        testbed
    }

    fn status(testbed: &Testbed) -> Value {
        testbed.api().get("/status").expect("the status")["fast_path"].clone()
    }

    fn packets(testbed: &Testbed) -> [u64; 2] {
        let status = status(testbed);
        ["forwarded_packets", "replied_packets"].map(|name| status[name].as_u64().expect(name))
    }

    /// Talks from a host to the server, and asserts that packets in both directions took the fast path.
    fn assert_taken(testbed: &Testbed, host: &Host, seen_as: impl Fn(bool) -> std::net::IpAddr) {
        for ipv6 in [false, true] {
            let flow = UdpFlow::open(host, SocketAddr::from((server(ipv6), IDENT))).expect("a flow");
            wait_for(TIMEOUT, "the first answer", || flow.ask(Duration::from_secs(1)).is_ok())
                .expect("an answer");
            let mut connection = TcpFlow::open(host, server(ipv6)).expect("a connection");
            let before = packets(testbed);
            for _ in 0..10 {
                assert_eq!(flow.ask(TIMEOUT).expect("an answer"), seen_as(ipv6));
                assert_eq!(connection.ask(TIMEOUT).seen(), Some(seen_as(ipv6)));
            }
            let after = packets(testbed);
            let enough = |index: usize| after[index] >= before[index] + 10;
            assert!(enough(0) && enough(1), "{before:?} {after:?}, IPv6: {ipv6}, {}", status(testbed));
        }
    }

    /// Transfers as much in both directions, and asserts that large packets stayed whole.
    fn assert_whole(testbed: &Testbed, host: &Host) {
        let before = packets(testbed);
        transfer(host, server(false), BULK).expect("transferred");
        let after = packets(testbed);
        let sent = after[0] - before[0];
        assert!(sent > 20, "{before:?} {after:?}");
        assert!(sent < BULK / SEGMENT / 2, "{sent} packets for {BULK} bytes: they were segmented");
    }

    /// Puts the TV behind a tag, and sets its addresses.
    fn tag_tv(testbed: &Testbed) {
        testbed
            .network
            .tv
            .namespace
            .ip("link add link eth0 name eth0.30 type vlan id 30\naddress add 192.168.30.20/24 dev eth0.30\n\
                 address add fd00:30::20/64 dev eth0.30 nodad\nlink set eth0.30 up\n\
                 route replace default via 192.168.30.1 dev eth0.30\nroute replace default via fd00:30::1 dev eth0.30")
            .expect("the end of the TV");
    }

    fn add_vlan(testbed: &Testbed) {
        testbed
            .network
            .gateway
            .ip("link add link eth1 name eth1.30 type vlan id 30\naddress add 192.168.30.1/24 dev eth1.30\n\
                 address add fd00:30::1/64 dev eth1.30 nodad\nlink set eth1.30 up")
            .expect("the end of the gateway");
        tag_tv(testbed);
    }

    #[test]
    #[ignore = "runs inside the guest"]
    fn flows_of_a_vlan_interface_take_it() {
        let lans = json!({"network": {"lan_iface": ["eth1", "eth1.30"]}});
        let testbed = start(&lans, add_vlan);
        assert_taken(&testbed, &testbed.network.tv, gateway_tests::topology::wan);
        assert_whole(&testbed, &testbed.network.tv);
    }

    #[test]
    #[ignore = "runs inside the guest"]
    fn flows_of_a_bridge_take_it() {
        let lans = json!({"network": {"lan_iface": "br-lan"}});
        let testbed = start(&lans, |testbed| {
            testbed
                .network
                .gateway
                .ip("address flush dev eth1\nlink add br-lan address 02:00:00:10:00:01 type bridge\n\
                     link set eth1 master br-lan\naddress add 192.168.10.1/24 dev br-lan\n\
                     address add fd00:10::1/64 dev br-lan nodad\nlink set br-lan up")
                .expect("a bridge");
        });
        assert_taken(&testbed, &testbed.network.laptop, gateway_tests::topology::wan);
        assert_whole(&testbed, &testbed.network.laptop);
    }

    #[test]
    #[ignore = "runs inside the guest"]
    fn flows_between_lans_take_it() {
        let lans = json!({"network": {"lan_iface": ["eth1", "eth1.30"]}});
        let testbed = start(&lans, add_vlan);
        let (laptop, tv) = (&testbed.network.laptop, &testbed.network.tv);
        let at: SocketAddr = "192.168.30.20:7777".parse().expect("an address");
        let server = tv.namespace.within(|| std::net::UdpSocket::bind(at)).expect("a server");
        server.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        let client = laptop.namespace.within(|| std::net::UdpSocket::bind("0.0.0.0:0")).expect("a client");
        client.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        let before = packets(&testbed)[0];
        for number in 0..20_u8 {
            client.send_to(&[number; 50], at).expect("sent");
            let mut buffer = [0; 100];
            let (length, from) = server.recv_from(&mut buffer).expect("received");
            assert_eq!(buffer[..length], [number; 50]);
            server.send_to(&buffer[..length], from).expect("sent");
            assert_eq!(client.recv(&mut buffer).expect("an answer"), 50);
        }
        let after = packets(&testbed)[0];
        assert!(after >= before + 20, "{before} {after}");
    }

    fn through_wireguard() -> Testbed {
        let testbed = start(&json!({}), |testbed| carry_by_kernel(&testbed.network.exit_a));
        let tunnel = testbed.tunnel("home", &testbed.network.exit_a).expect("the tunnel");
        let interface = testbed.interface(&tunnel).expect("its interface");
        assert_eq!(kind_of_link(&testbed, &interface), "wireguard", "the kernel carries it");
        let laptop = testbed.device(&testbed.network.laptop).expect("the device");
        testbed.policy(&policy("vpn-only", 10, ("device", &laptop), &["home"])).expect("the policy");
        testbed
    }

    #[test]
    #[ignore = "runs inside the guest"]
    fn flows_of_kernel_wireguard_take_it() {
        let testbed = through_wireguard();
        let exit = &testbed.network.exit_a;
        assert_taken(&testbed, &testbed.network.laptop, |ipv6| exit.address(ipv6));
        assert_whole(&testbed, &testbed.network.laptop);
    }

    /// A measurement, which asserts nothing about its result.
    #[test]
    #[ignore = "runs inside the guest"]
    fn ratio_of_kernel_wireguard() {
        let testbed = through_wireguard();
        let laptop = &testbed.network.laptop;
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..6 {
            let is_on = round % 2 == 0;
            let value = if is_on { "on" } else { "off" };
            testbed.api().put("/settings/dataplane.fast_path", &json!({"value": value})).expect("set");
            wait_for(TIMEOUT, value, || status(&testbed)["on"] == is_on).expect(value);
            let flow = UdpFlow::open(laptop, SocketAddr::from((server(false), IDENT))).expect("a flow");
            flow.ask(TIMEOUT).expect("an answer");
            let started = std::time::Instant::now();
            for _ in 0..300 {
                flow.ask(TIMEOUT).expect("an answer");
            }
            let small = started.elapsed();
            let bulk = transfer(laptop, server(false), BULK).expect("transferred");
            times[usize::from(!is_on)].push((small, bulk));
        }
        let median = |times: &[(Duration, Duration)]| {
            let mut small: Vec<_> = times.iter().map(|time| time.0).collect();
            let mut bulk: Vec<_> = times.iter().map(|time| time.1).collect();
            small.sort();
            bulk.sort();
            [small[small.len() / 2], bulk[bulk.len() / 2]].map(|time| time.as_secs_f64())
        };
        let [on, off] = times.map(|times| median(&times));
        println!(
            "kernel WireGuard, emulated, speed with the fast path against without: datagrams there and back {:.2}, bulk {:.2}",
            off[0] / on[0],
            off[1] / on[1]
        );
    }
}
