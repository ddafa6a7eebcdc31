//! The same tunnel with wireguard-go at the remote end.

use std::path::PathBuf;
use std::process::Stdio;

use gateway_ctl::os::wireguard::Key;
use gateway_model::wgconf::{WgConf, WgConfPeer, render};
use gateway_tests::netns::Prefix;
use gateway_tests::process::Process;
use gateway_tests::wait::{wait_for, wait_ok};

use super::testbed::{DEVICE, OUTER_PORT, Pair, TIMEOUT};
use super::{FAMILIES, ping, transfers};

/// wireguard-go in B's namespace. Its control socket is in a directory of the whole host. So its device first has a
/// unique name and is then renamed like all others here.
struct Foreign {
    _process: Process,
    control: PathBuf,
}

impl Foreign {
    fn start(pair: &Pair) -> Self {
        let unique = Prefix::unique().expect("root").interface("f");
        let control = PathBuf::from(format!("/var/run/wireguard/{unique}.sock"));
        let mut command = pair.b.namespace.command("wireguard-go");
        command.args(["--foreground", &unique]).env("LOG_LEVEL", "error");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = pair.b.namespace.spawn(command).expect("wireguard-go");
        wait_for(TIMEOUT, "wireguard-go to open its control socket", || control.exists()).expect("ready");
        let foreign = Self { _process: process, control };
        let wanted = pair.b_config();
        // Rendered by the gateway's code: the output is readable by others.
        let conf = WgConf {
            private_key: wanted.private_key,
            addresses: Vec::new(),
            dns: Vec::new(),
            mtu: None,
            listen_port: Some(OUTER_PORT),
            peers: vec![WgConfPeer {
                public_key: wanted.peers[0].public_key,
                preshared_key: wanted.peers[0].preshared_key.clone(),
                endpoint: wanted.peers[0].endpoint.map(|endpoint| endpoint.to_string()),
                allowed_ips: wanted.peers[0].allowed_ips.clone(),
                persistent_keepalive: None,
            }],
            ignored: Vec::new(),
        };
        let text = render(&conf, true);
        wait_ok(TIMEOUT, "wireguard-go to take its configuration", || {
            pair.b.namespace.feed("wg", &["setconf", &unique, "/dev/stdin"], &text)
        })
        .expect("configured");
        pair.b.namespace.ip(&format!("link set {unique} mtu 1420 name {DEVICE}")).expect("ip");
        pair.b.address();
        foreign
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // The name of the socket contains this process's id, so no other process uses it.
        let _ = std::fs::remove_file(&self.control);
    }
}

#[test]
fn wireguard_go_interoperates_as_initiator_and_responder() {
    for we_begin in [true, false] {
        let pair = Pair::unconnected(false);
        let mut config = pair.a_config();
        config.peers[0].persistent_keepalive = None;
        pair.a.apply(&config);
        pair.a.address();
        let _foreign = Foreign::start(&pair);
        let (first, second) = if we_begin { (&pair.a, &pair.b) } else { (&pair.b, &pair.a) };
        for ipv6 in FAMILIES {
            assert!(first.echoes(second, ipv6));
            assert!(ping(second, first.inner(ipv6), "1000"));
            transfers(first, second, ipv6, 1 << 20);
        }
        let peer = &pair.a.status().expect("a device").peers[0];
        assert!(
            peer.last_handshake.is_some() && peer.rx_bytes > 1 << 20 && peer.tx_bytes > 1 << 20,
            "{peer:?}"
        );
    }
}

#[test]
fn wireguard_go_with_another_preshared_key_gets_nothing() {
    let pair = Pair::unconnected(false);
    let mut config = pair.a_config();
    config.peers[0].preshared_key = Some(Key::new([9; 32]));
    pair.a.apply(&config);
    pair.a.address();
    let _foreign = Foreign::start(&pair);
    assert!(super::silent(&pair.a, &pair.b) && super::silent(&pair.b, &pair.a));
    assert_eq!(pair.a.status().expect("a device").peers[0].last_handshake, None);
}
