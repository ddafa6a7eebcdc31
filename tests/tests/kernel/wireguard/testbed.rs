//! Two namespaces joined by a link, each with its own WireGuard engine, like two hosts.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use gateway_ctl::os::wireguard::{
    DeviceConfig, DeviceStatus, Drops, Engine, Error, Key, KeyPair, PeerConfig, WireGuard, generate_keypair,
};
use gateway_tests::netns::{Namespace, Prefix};
use gateway_tests::wait::wait_for;
use tokio::runtime::Runtime;

pub(crate) const DEVICE: &str = "wg0";
pub(crate) const OUTER_PORT: u16 = 51820;
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);
/// Receive timeout of a socket for packets that may not arrive.
const BLINK: Duration = Duration::from_millis(200);

/// One host with its engine.
pub(crate) struct Testbed {
    number: u8,
    pub keys: KeyPair,
    wireguard: WireGuard,
    runtime: Runtime,
    pub namespace: Namespace,
}

pub(crate) struct Pair {
    pub a: Testbed,
    pub b: Testbed,
}

impl Pair {
    /// Returns two hosts with a link between them, without a tunnel.
    pub(crate) fn unconnected(outer_ipv6: bool) -> Self {
        Self::between([Engine::Userspace; 2], outer_ipv6)
    }

    /// Returns two hosts with the engines of A and B, without a tunnel.
    pub(crate) fn between(engines: [Engine; 2], outer_ipv6: bool) -> Self {
        let prefix = Prefix::unique().expect("root");
        let (a, b) = (Testbed::new(&prefix, 1, engines[0]), Testbed::new(&prefix, 2, engines[1]));
        a.namespace
            .ip(&format!("link add eth0 type veth peer name eth0 netns {}", b.namespace.name()))
            .expect("a cable");
        for testbed in [&a, &b] {
            let address = testbed.outer(outer_ipv6).ip();
            let length = if outer_ipv6 { 64 } else { 24 };
            testbed
                .namespace
                .ip(&format!("address add {address}/{length} dev eth0\nlink set eth0 up"))
                .expect("ip");
        }
        Self { a, b }
    }

    /// Returns two hosts with a tunnel, addressed and up.
    pub(crate) fn connected(outer_ipv6: bool) -> Self {
        Self::unconnected(outer_ipv6).connect(outer_ipv6)
    }

    pub(crate) fn connect(self, outer_ipv6: bool) -> Self {
        self.a.apply(&self.a.config(&self.b.keys, self.b.outer(outer_ipv6)));
        self.b.apply(&self.b.config(&self.a.keys, self.a.outer(outer_ipv6)));
        self.address();
        self
    }

    /// Returns the configuration of A towards B over IPv4.
    pub(crate) fn a_config(&self) -> DeviceConfig {
        self.a.config(&self.b.keys, self.b.outer(false))
    }

    pub(crate) fn b_config(&self) -> DeviceConfig {
        self.b.config(&self.a.keys, self.a.outer(false))
    }

    pub(crate) fn address(&self) {
        self.a.address();
        self.b.address();
    }
}

impl Testbed {
    /// Returns a host without a link.
    pub(crate) fn lone() -> Self {
        Self::new(&Prefix::unique().expect("root"), 1, Engine::Userspace)
    }

    fn new(prefix: &Prefix, number: u8, engine: Engine) -> Self {
        let namespace = Namespace::create(prefix, &format!("wg{number}")).expect("a namespace");
        // A thread inside the namespace starts the worker, which therefore is inside too.
        let (runtime, wireguard) = namespace.within(|| {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .expect("a runtime");
            let wireguard = runtime.block_on(WireGuard::with_engine(engine)).expect("the engine");
            (runtime, wireguard)
        });
        Self { number, keys: generate_keypair().expect("random"), wireguard, runtime, namespace }
    }

    pub(crate) fn outer(&self, ipv6: bool) -> SocketAddr {
        let text =
            if ipv6 { format!("2001:db8::{}", self.number) } else { format!("192.0.2.{}", self.number) };
        SocketAddr::new(text.parse().expect("an address"), OUTER_PORT)
    }

    pub(crate) fn inner(&self, ipv6: bool) -> IpAddr {
        let text = if ipv6 { format!("fd09::{}", self.number) } else { format!("10.9.0.{}", self.number) };
        text.parse().expect("an address")
    }

    pub(crate) fn config(&self, other: &KeyPair, endpoint: SocketAddr) -> DeviceConfig {
        let other_number = 3 - self.number;
        let net = |text: String| text.parse().expect("a network");
        DeviceConfig {
            name: DEVICE.to_owned(),
            private_key: self.keys.private.clone(),
            listen_port: Some(OUTER_PORT),
            fwmark: 0,
            mtu: 1420,
            peers: vec![PeerConfig {
                public_key: other.public,
                preshared_key: Some(Key::new([42; 32])),
                endpoint: Some(endpoint),
                allowed_ips: vec![
                    net(format!("10.9.0.{other_number}/32")),
                    net(format!("fd09::{other_number}/128")),
                ],
                persistent_keepalive: Some(25),
            }],
        }
    }

    /// Assigns the addresses and sets the device up, as the link module would.
    pub(crate) fn address(&self) {
        let lines = format!(
            "address add {}/24 dev {DEVICE}\naddress add {}/64 dev {DEVICE}\nlink set {DEVICE} up",
            self.inner(false),
            self.inner(true)
        );
        self.namespace.ip(&lines).expect("ip");
    }

    pub(crate) fn block_on<T: Send>(&self, future: impl Future<Output = T> + Send) -> T {
        self.namespace.within(|| self.runtime.block_on(future))
    }

    pub(crate) fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.namespace.within(work)
    }

    pub(crate) fn try_apply(&self, config: &DeviceConfig) -> Result<(), Error> {
        self.block_on(self.wireguard.apply(config))
    }

    pub(crate) fn apply(&self, config: &DeviceConfig) {
        self.try_apply(config).expect("the device");
    }

    pub(crate) fn try_remove(&self) -> Result<(), Error> {
        self.block_on(self.wireguard.remove(DEVICE))
    }

    pub(crate) fn remove(&self) {
        self.try_remove().expect("removed");
    }

    pub(crate) fn status(&self) -> Option<DeviceStatus> {
        self.block_on(self.wireguard.status(DEVICE)).expect("a status")
    }

    pub(crate) fn drops(&self) -> Drops {
        self.block_on(self.wireguard.drops(DEVICE)).expect("a device")
    }

    pub(crate) fn list(&self) -> Vec<String> {
        self.block_on(self.wireguard.list()).expect("a list")
    }

    pub(crate) fn has_link(&self, name: &str) -> bool {
        self.namespace.run("ip", &["link", "show", name]).is_ok()
    }

    /// Returns a socket in this namespace with a short timeout.
    pub(crate) fn udp(&self, address: SocketAddr) -> UdpSocket {
        let socket = self.within(|| UdpSocket::bind(address).expect("bind"));
        socket.set_read_timeout(Some(BLINK)).expect("a timeout");
        socket
    }

    /// Sends until an answer arrives, as the first packets may wait for the handshake.
    pub(crate) fn echoes(&self, to: &Testbed, ipv6: bool) -> bool {
        let server = to.udp(SocketAddr::new(to.inner(ipv6), 0));
        let client = self.udp(SocketAddr::new(self.inner(ipv6), 0));
        let address = server.local_addr().expect("an address");
        let mut buffer = [0; 64];
        wait_for(TIMEOUT, "an echo", || {
            client.send_to(b"question", address).is_ok()
                && server
                    .recv_from(&mut buffer)
                    .is_ok_and(|(_, asker)| server.send_to(b"answer", asker).is_ok())
                && client.recv(&mut buffer).is_ok_and(|len| buffer[..len] == *b"answer")
        })
        .is_ok()
    }

    /// Simulates a new process on the same host: a new client of the engine without state.
    pub(crate) fn restart(&mut self) {
        let Self { runtime, namespace, wireguard, .. } = self;
        let engine = wireguard.engine();
        *wireguard =
            namespace.within(|| runtime.block_on(WireGuard::with_engine(engine))).expect("the engine");
    }
}
