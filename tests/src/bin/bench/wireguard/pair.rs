//! Two hosts connected by a link and a tunnel, and the load between them.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use gateway_ctl::os::wireguard::{DeviceConfig, Engine, KeyPair, PeerConfig, WireGuard, generate_keypair};
use gateway_model::wgconf::encode_key;
use gateway_tests::netns::{Namespace, Prefix};
use gateway_tests::process::Process;
use gateway_tests::wait::{wait_for, wait_ok};
use serde_json::Value;
use tokio::runtime::Runtime;

const SECONDS: &str = "3";
const PORT: u16 = 51820;
const SOON: Duration = Duration::from_secs(10);
/// Bytes of a small datagram.
const SMALL: &str = "200";

/// Load on a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// TCP streams in parallel.
    Streams(u8),
    /// A flood of small datagrams.
    Datagrams,
}

impl Load {
    pub(super) fn unit(self) -> &'static str {
        match self {
            Load::Streams(_) => "Gbit/s",
            Load::Datagrams => "1 000 datagrams/s",
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Load::Streams(1) => f.write_str("one TCP stream"),
            Load::Streams(count) => write!(f, "{count} TCP streams"),
            Load::Datagrams => write!(f, "datagrams of {SMALL} bytes"),
        }
    }
}

/// Direction of a load, as the client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Direction::Up => "up",
            Direction::Down => "down",
        })
    }
}

/// Implementation at both ends of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Make {
    Ours,
    /// The program at this path.
    WireguardGo(PathBuf),
}

/// Two hosts connected by a link and a tunnel.
pub(super) struct Pair {
    make: Make,
    // Drop order: servers and engines before the namespaces.
    _server: Process,
    _ends: [End; 2],
    a: Namespace,
    _b: Namespace,
}

enum End {
    Ours(#[expect(dead_code, reason = "held, so that the device lives")] (WireGuard, Runtime)),
    Other(#[expect(dead_code, reason = "held, so that the device lives")] Process),
}

fn outer(number: u8) -> SocketAddr {
    (Ipv4Addr::new(192, 0, 2, number), PORT).into()
}

fn inner(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 0, number)
}

impl Pair {
    pub(super) fn build(make: Make) -> Result<Self> {
        let prefix = Prefix::unique()?;
        let (a, b) = (Namespace::create(&prefix, "a")?, Namespace::create(&prefix, "b")?);
        a.ip(&format!("link add eth0 type veth peer name eth0 netns {}", b.name()))?;
        for (namespace, number) in [(&a, 1), (&b, 2)] {
            namespace.ip(&format!("address add {}/24 dev eth0\nlink set eth0 up", outer(number).ip()))?;
        }
        // wireguard-go names its control sockets by device, in all namespaces.
        let names = [prefix.interface("wga"), prefix.interface("wgb")];
        let keys = [generate_keypair()?, generate_keypair()?];
        let ends = [
            End::start(&make, &a, &device(&names[0], &keys[0], &keys[1], 2))?,
            End::start(&make, &b, &device(&names[1], &keys[1], &keys[0], 1))?,
        ];
        for (namespace, name, number) in [(&a, &names[0], 1), (&b, &names[1], 2)] {
            let lines = format!("address add {}/24 dev {name}\nlink set {name} up mtu 1420", inner(number));
            namespace.ip(&lines)?;
        }
        let mut server = b.command("iperf3");
        server.arg("--server").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = b.spawn(server)?;
        wait_ok(SOON, "the server to be reached through the tunnel", || {
            a.within(|| std::net::TcpStream::connect((inner(2), 5201))).map(drop).context("connect")
        })?;
        Ok(Self { make, _server: server, _ends: ends, a, _b: b })
    }

    pub(super) fn make(&self) -> String {
        match &self.make {
            Make::Ours => "ours".to_owned(),
            Make::WireguardGo(path) => path.display().to_string(),
        }
    }

    /// Returns the rate on arrival, in the unit of the load.
    pub(super) fn rate(&self, load: Load, direction: Direction) -> Result<f64> {
        let streams = match load {
            Load::Streams(count) => count.to_string(),
            Load::Datagrams => "1".to_owned(),
        };
        let mut arguments = vec!["--parallel", &streams];
        if direction == Direction::Down {
            arguments.push("--reverse");
        }
        if load == Load::Datagrams {
            arguments.extend(["--udp", "--bitrate", "0", "--length", SMALL]);
        }
        let report = self.iperf(&arguments)?;
        let number = |path: &str| {
            let value = report.pointer(path).and_then(Value::as_f64);
            value.with_context(|| format!("no {path} in the report of iperf3"))
        };
        match load {
            Load::Streams(_) => Ok(number("/end/sum_received/bits_per_second")? / 1e9),
            Load::Datagrams => {
                let arrived = number("/end/sum/packets")? - number("/end/sum/lost_packets")?;
                Ok(arrived / number("/end/sum/seconds")? / 1e3)
            }
        }
    }

    /// Runs the client. The server accepts the next one only after it has ended the last test.
    fn iperf(&self, arguments: &[&str]) -> Result<Value> {
        wait_ok(SOON, "iperf3 to run", || {
            let mut command = self.a.command("iperf3");
            command.args(["--client", &inner(2).to_string(), "--time", SECONDS, "--json"]).args(arguments);
            let output = command.stdin(Stdio::null()).output().context("start iperf3")?;
            let report: Value = serde_json::from_slice(&output.stdout).context("report of iperf3")?;
            ensure!(report["error"].is_null() && output.status.success(), "iperf3: {}", report["error"]);
            Ok(report)
        })
    }
}

fn device(name: &str, own: &KeyPair, other: &KeyPair, number: u8) -> DeviceConfig {
    DeviceConfig {
        name: name.to_owned(),
        private_key: own.private.clone(),
        listen_port: Some(PORT),
        fwmark: 0,
        mtu: 1420,
        peers: vec![PeerConfig {
            public_key: other.public,
            preshared_key: None,
            endpoint: Some(outer(number)),
            allowed_ips: vec![ipnet::Ipv4Net::new_assert(inner(number), 32).into()],
            persistent_keepalive: None,
        }],
    }
}

impl End {
    fn start(make: &Make, namespace: &Namespace, device: &DeviceConfig) -> Result<Self> {
        match make {
            Make::Ours => namespace.within(|| {
                // Same number of workers as in the daemon.
                let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
                let wireguard = runtime.block_on(WireGuard::with_engine(Engine::Userspace))?;
                runtime.block_on(wireguard.apply(device))?;
                Ok(End::Ours((wireguard, runtime)))
            }),
            Make::WireguardGo(program) => {
                let mut command = namespace.command(program);
                command.args(["--foreground", &device.name]).env("LOG_LEVEL", "error");
                command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                let process = namespace.spawn(command)?;
                let has_link = || namespace.run("ip", &["link", "show", &device.name]).is_ok();
                wait_for(SOON, "wireguard-go to make its link", has_link)?;
                let configuration = setconf(device);
                wait_ok(SOON, "wireguard-go to take its configuration", || {
                    namespace.feed("wg", &["setconf", &device.name, "/dev/stdin"], &configuration)
                })?;
                Ok(End::Other(process))
            }
        }
    }
}

/// Returns the device in the format of `wg setconf` (wg(8)).
fn setconf(device: &DeviceConfig) -> String {
    let peer = &device.peers[0];
    format!(
        "[Interface]\nPrivateKey = {}\nListenPort = {PORT}\n[Peer]\nPublicKey = {}\nEndpoint = {}\nAllowedIPs = {}\n",
        device.private_key.to_base64().as_str(),
        encode_key(&peer.public_key),
        peer.endpoint.map(|at| at.to_string()).unwrap_or_default(),
        peer.allowed_ips[0],
    )
}
