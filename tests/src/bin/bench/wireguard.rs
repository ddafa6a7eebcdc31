//! `wireguard_vs_wireguard_go`: one TCP stream through a userspace tunnel with the same implementation at both ends, on
//! all cores. `wireguard_small`: the same with a flood of small datagrams, counted on arrival.

use std::net::{Ipv4Addr, SocketAddr};
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

use crate::row::{Measured, Row, Target, alternate};

const ROUNDS: usize = 3;
const SECONDS: &str = "3";
const PORT: u16 = 51820;
const SOON: Duration = Duration::from_secs(10);

pub fn run() -> Result<Vec<Row>> {
    let mut pairs = [Pair::build(Make::Ours)?, Pair::build(Make::WireguardGo)?];
    let bulk = alternate(&mut pairs, ROUNDS, |pair| pair.bulk())?;
    let small = alternate(&mut pairs, ROUNDS, |pair| pair.small())?;
    let units = ["Gbit/s", "1 000 datagrams/s"];
    for (what, measured) in units.iter().zip([&bulk, &small]) {
        println!("{what}: median (rounds)");
        for (pair, measured) in pairs.iter().zip(measured) {
            println!("  {measured}  {:?}", pair.make);
        }
    }
    let row = |bench, measured: &[Measured], unit, least| Row {
        bench,
        ours: measured[0].median,
        peer: measured[1].median,
        peer_name: "Debian's wireguard-go".to_owned(),
        unit,
        target: Target::RatioAtLeast(least),
    };
    Ok(vec![
        row("wireguard_vs_wireguard_go", &bulk, units[0], 3.0),
        row("wireguard_small", &small, units[1], 1.0),
    ])
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Make {
    Ours,
    WireguardGo,
}

/// Two hosts connected by a link and a tunnel.
struct Pair {
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
    fn build(make: Make) -> Result<Self> {
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
            End::start(make, &a, &device(&names[0], &keys[0], &keys[1], 2))?,
            End::start(make, &b, &device(&names[1], &keys[1], &keys[0], 1))?,
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

    /// Returns the rate of one TCP stream in Gbit/s.
    fn bulk(&self) -> Result<f64> {
        let report = self.iperf(&[])?;
        let bits = report.pointer("/end/sum_received/bits_per_second").and_then(Value::as_f64);
        Ok(bits.context("no throughput in what iperf3 says")? / 1e9)
    }

    /// Returns the arriving datagrams in thousands per second.
    fn small(&self) -> Result<f64> {
        let report = self.iperf(&["--udp", "--bitrate", "0", "--length", "200"])?;
        let sum = |name| report.pointer(&format!("/end/sum/{name}")).and_then(Value::as_f64);
        let sum = |name| sum(name).with_context(|| format!("no {name} in what iperf3 says"));
        Ok((sum("packets")? - sum("lost_packets")?) / sum("seconds")? / 1e3)
    }

    fn iperf(&self, arguments: &[&str]) -> Result<Value> {
        let mut command = self.a.command("iperf3");
        command.args(["--client", &inner(2).to_string(), "--time", SECONDS, "--json"]).args(arguments);
        let output = command.stdin(Stdio::null()).output().context("start iperf3")?;
        let report: Value = serde_json::from_slice(&output.stdout).context("what iperf3 says")?;
        ensure!(report["error"].is_null() && output.status.success(), "iperf3: {}", report["error"]);
        Ok(report)
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
    fn start(make: Make, namespace: &Namespace, device: &DeviceConfig) -> Result<Self> {
        match make {
            Make::Ours => namespace.within(|| {
                // Same number of workers as in the daemon.
                let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
                let wireguard = runtime.block_on(WireGuard::with_engine(Engine::Userspace))?;
                runtime.block_on(wireguard.apply(device))?;
                Ok(End::Ours((wireguard, runtime)))
            }),
            Make::WireguardGo => {
                let mut command = namespace.command("wireguard-go");
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
