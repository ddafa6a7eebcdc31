//! The daemon's WireGuard module on a kernel with WireGuard: one boot, in which this program runs the tests of
//! `in_guest`.

use std::sync::LazyLock;

use gateway_tests::vm::{Opts, quoted};

use crate::vm::checks::{Checks, this_program};

/// Modules without `wireguard`: the kernel must load that by itself when the daemon requests it.
const MODULES: &[&str] = &["veth", "tun"];
const NAMES: [&str; 7] = [
    "the_engine_of_choice_is_the_kernels",
    "kernel_and_userspace_understand_each_other",
    "kernel_sessions_survive_changes",
    "a_kernel_device_is_known_again_after_a_restart",
    "a_strangers_kernel_device_is_left_alone",
    "thousands_of_networks_reach_the_kernel",
    "a_removed_kernel_device_is_gone",
];

/// Shared boot of the tests of this module.
static GUEST: LazyLock<Checks> = LazyLock::new(|| {
    let program = quoted(&this_program());
    let checks = NAMES.map(|name| {
        format!("check {name} {program} --ignored --exact --test-threads=1 vm::wireguard::in_guest::{name}\n")
    });
    Checks::of(&checks.concat(), Opts { modules: MODULES, ..Opts::default() })
});

#[test]
fn kernel_wireguard_obeys_the_daemon() {
    for name in NAMES {
        GUEST.assert_ok(name);
    }
}

/// Tests that run in the guest. Each would also run on any host whose kernel has WireGuard.
mod in_guest {
    use gateway_ctl::os::wireguard::{Engine, Error, WireGuard, generate_keypair};
    use gateway_tests::wait::wait_until;

    use crate::kernel::wireguard::testbed::{DEVICE, Pair, TIMEOUT, Testbed};

    fn pair(outer_ipv6: bool) -> Pair {
        Pair::between([Engine::Kernel, Engine::Userspace], outer_ipv6).connect(outer_ipv6)
    }

    fn handshake(testbed: &Testbed) -> Option<std::time::SystemTime> {
        testbed.status().expect("a device").peers.iter().find_map(|peer| peer.last_handshake)
    }

    #[test]
    #[ignore = "runs inside the guest"]
    fn the_engine_of_choice_is_the_kernels() {
        let testbed = Testbed::lone();
        assert_eq!(testbed.block_on(async { WireGuard::new().await.engine() }), Engine::Kernel);
    }

    #[test]
    #[ignore = "runs inside the guest"]
    fn kernel_and_userspace_understand_each_other() {
        for outer_ipv6 in [false, true] {
            let pair = pair(outer_ipv6);
            for ipv6 in [false, true] {
                assert!(pair.a.echoes(&pair.b, ipv6) && pair.b.echoes(&pair.a, ipv6));
            }
            let status = pair.a.status().expect("a device");
            assert_eq!(
                (status.engine, status.listen_port),
                (Engine::Kernel, crate::kernel::wireguard::testbed::OUTER_PORT)
            );
            assert_eq!(status.public_key, pair.a.keys.public);
            let (ours, theirs) = (&status.peers[0], &pair.b.status().expect("a device").peers[0]);
            assert_eq!(
                (ours.public_key, ours.endpoint),
                (pair.b.keys.public, Some(pair.b.outer(outer_ipv6)))
            );
            for peer in [ours, theirs] {
                let age = peer.last_handshake.expect("a handshake").elapsed().expect("in the past");
                assert!(age < TIMEOUT * 6, "{age:?}");
            }
            // Both count outer bytes; packets sent before the other side listened are lost.
            assert!(ours.rx_bytes > 0 && ours.rx_bytes <= theirs.tx_bytes, "{ours:?} {theirs:?}");
            assert!(theirs.rx_bytes > 0 && theirs.rx_bytes <= ours.tx_bytes, "{ours:?} {theirs:?}");
        }
    }

    #[test]
    #[ignore = "runs inside the guest"]
    fn kernel_sessions_survive_changes() {
        let pair = pair(false);
        assert!(pair.a.echoes(&pair.b, false));
        let before = handshake(&pair.a);
        let mut config = pair.a_config();
        config.listen_port = Some(61000);
        config.mtu = 1300;
        config.fwmark = 0x77;
        config.peers[0].persistent_keepalive = Some(7);
        let mut newcomer = config.peers[0].clone();
        newcomer.public_key = generate_keypair().expect("random").public;
        newcomer.preshared_key = None;
        newcomer.allowed_ips = vec!["10.77.0.0/16".parse().expect("a network")];
        config.peers.push(newcomer);
        pair.a.apply(&config);
        assert!(pair.a.echoes(&pair.b, true));
        assert_eq!(handshake(&pair.a), before, "nobody shook hands again");
        let shown = pair.a.namespace.run("wg", &["show", DEVICE, "dump"]).expect("wg");
        let lines: Vec<_> = shown.lines().collect();
        assert!(lines[0].ends_with("61000\t0x77"), "port and mark");
        assert_eq!(lines.iter().filter(|line| line.ends_with("\t7")).count(), 2, "keepalives");
        assert_eq!(lines.iter().filter(|line| line.contains("10.77.0.0/16")).count(), 1);
        let link = pair.a.namespace.run("ip", &["link", "show", DEVICE]).expect("ip");
        assert!(link.contains("mtu 1300") && link.contains("alias gateway"), "{link}");
        let port = || pair.b.status().expect("a device").peers[0].endpoint.map(|endpoint| endpoint.port());
        assert_eq!(port(), Some(61000), "the other side followed");
        config.peers.truncate(1);
        config.peers[0].preshared_key = None;
        config.fwmark = 0;
        pair.a.apply(&config);
        let shown = pair.a.namespace.run("wg", &["show", DEVICE, "dump"]).expect("wg");
        assert_eq!(shown.lines().count(), 2, "the newcomer is gone");
        assert!(shown.contains("(none)") && shown.contains("\toff\n"), "no preshared key, no mark");
        assert!(pair.a.echoes(&pair.b, true), "the session stays until the next handshake");
    }

    #[test]
    #[ignore = "runs inside the guest"]
    fn a_kernel_device_is_known_again_after_a_restart() {
        let mut pair = pair(false);
        assert!(pair.a.echoes(&pair.b, false));
        let before = pair.a.status();
        pair.a.restart();
        assert_eq!(pair.a.list(), [DEVICE]);
        pair.a.apply(&pair.a_config());
        assert!(pair.a.echoes(&pair.b, false));
        let handshakes = |status: Option<gateway_ctl::os::wireguard::DeviceStatus>| {
            status.expect("a device").peers[0].last_handshake
        };
        assert_eq!(handshakes(pair.a.status()), handshakes(before));
    }

    #[test]
    #[ignore = "runs inside the guest"]
    fn a_strangers_kernel_device_is_left_alone() {
        let pair = Pair::between([Engine::Kernel, Engine::Userspace], false);
        let peer = gateway_ctl::os::wireguard::Key::new(pair.b.keys.public).to_base64();
        pair.a.namespace.ip(&format!("link add {DEVICE} type wireguard")).expect("ip");
        pair.a.namespace.run("wg", &["set", DEVICE, "peer", &peer]).expect("wg");
        let error = pair.a.try_apply(&pair.a_config()).expect_err("the name is taken");
        assert!(matches!(error, Error::NameTaken(_)), "{error}");
        assert_eq!((pair.a.list(), pair.a.status()), (Vec::new(), None));
        let error = pair.a.try_remove().expect_err("not ours");
        assert!(matches!(error, Error::NameTaken(_)) && pair.a.has_link(DEVICE), "{error}");
        // An incomplete device of the daemon has no alias and no peers.
        pair.a.namespace.run("wg", &["set", DEVICE, "peer", &peer, "remove"]).expect("wg");
        let pair = pair.connect(false);
        assert!(pair.a.echoes(&pair.b, false));
        assert_eq!(pair.a.list(), [DEVICE]);
    }

    #[test]
    #[ignore = "runs inside the guest"]
    fn thousands_of_networks_reach_the_kernel() {
        let pair = pair(false);
        let mut config = pair.a_config();
        for i in 0..3000 {
            config.peers[0].allowed_ips.push(format!("fd77:0:0:{i:x}::/64").parse().expect("a network"));
        }
        for i in 0..150 {
            let mut peer = config.peers[0].clone();
            peer.public_key = generate_keypair().expect("random").public;
            peer.allowed_ips = vec![format!("10.88.{i}.0/24").parse().expect("a network")];
            config.peers.push(peer);
        }
        pair.a.apply(&config);
        let networks = || {
            let shown = pair.a.namespace.run("wg", &["show", DEVICE, "allowed-ips"]).expect("wg");
            // Keys contain slashes, but neither dots nor colons.
            shown.split_whitespace().filter(|word| word.contains(['.', ':'])).count()
        };
        assert_eq!(networks(), 3000 + 2 + 150);
        assert_eq!(pair.a.status().expect("a device").peers.len(), 151);
        pair.a.apply(&pair.a_config());
        assert_eq!(networks(), 2);
        assert!(pair.a.echoes(&pair.b, false));
    }

    #[test]
    #[ignore = "runs inside the guest"]
    fn a_removed_kernel_device_is_gone() {
        let pair = pair(false);
        pair.a.remove();
        assert!(!pair.a.has_link(DEVICE), "gone when the call returns");
        assert_eq!((pair.a.list(), pair.a.status()), (Vec::new(), None));
        pair.a.remove();
        pair.a.apply(&pair.a_config());
        pair.a.address();
        assert!(pair.a.echoes(&pair.b, false));
        let shaken = wait_until(TIMEOUT, "a handshake", || handshake(&pair.a));
        shaken.expect("the new device works");
    }
}
