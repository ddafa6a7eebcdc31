//! `socks_vs_native`: a bulk download of a LAN host without proxy settings, compared with the same download by a client
//! that speaks SOCKS5 itself, through the same proxy. Both pass the gateway; the first one also passes the relay.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use gateway_tests::socks::{PORT, Proxy, Server};
use gateway_tests::testbed::{Testbed, policy};
use gateway_tests::topology::{Host, SERVER_V4};
use serde_json::json;

use crate::row::{Row, Target, alternate};

const ROUNDS: usize = 5;
const SOURCE: u16 = 9000;
/// Size of a download in bytes.
const LENGTH: u64 = 2 << 30;
const PIECE: usize = 64 << 20;

pub(crate) fn run() -> Result<Vec<Row>> {
    let testbed = Testbed::start()?;
    let network = &testbed.network;
    let at = SocketAddr::from((SERVER_V4, SOURCE));
    let listener = network.internet.within(|| TcpListener::bind(at)).context("the source")?;
    std::thread::spawn(move || serve(&listener));
    let laptop = testbed.device(&network.laptop)?;
    let proxy = Proxy::start(&network.exit_a, Server::Dante)?;
    testbed.proxy(&proxy.object("dante"), "up")?;
    let mut by_proxy = policy("dante", 10, ("device", &laptop), &[]);
    by_proxy["hops"] = json!([{"type": "proxy", "target": "dante"}]);
    testbed.policy(&by_proxy)?;
    let native = format!("{}:{PORT}", network.exit_a.place.v4);
    let mut subjects = [(&network.laptop, None), (&network.tv, Some(native))];
    let measured = alternate(&mut subjects, ROUNDS, |(host, through)| download(host, through.as_deref()))?;
    println!("Gbit/s through dante: median (rounds)");
    println!("  {}  through the relay", measured[0]);
    println!("  {}  curl --socks5", measured[1]);
    let relayed = testbed.api().get("/tproxy/status")?["by_proxy"][0]["received_bytes"].as_u64();
    ensure!(relayed.is_some_and(|bytes| bytes >= LENGTH * ROUNDS as u64), "it went another way: {relayed:?}");
    Ok(vec![Row {
        bench: "socks_vs_native",
        ours: measured[0].median,
        peer: measured[1].median,
        peer_name: "curl --socks5 through the same proxy, dante".to_owned(),
        unit: "Gbit/s",
        target: Target::RatioAtLeast(0.9),
    }])
}

/// Sends `LENGTH` bytes to every client, without a copy.
fn serve(listener: &TcpListener) {
    let Ok(file) = tempfile::tempfile() else { return };
    if file.set_len(PIECE as u64).is_err() {
        return;
    }
    for mut stream in listener.incoming().flatten() {
        let mut give = || -> Result<()> {
            ensure!(stream.read(&mut [0; 4096])? > 0, "nothing was asked");
            write!(stream, "HTTP/1.0 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n")?;
            let mut left = LENGTH;
            while left > 0 {
                let (mut offset, end) = (0, left.min(PIECE as u64));
                while offset < end {
                    let count = usize::try_from(end - offset)?;
                    let sent = rustix::fs::sendfile(&stream, &file, Some(&mut offset), count)?;
                    ensure!(sent > 0, "the file ended");
                }
                left -= end;
            }
            Ok(())
        };
        // The client reports an early end of a connection.
        let _ = give();
    }
}

/// Returns the rate of one download in Gbit/s.
fn download(host: &Host, through: Option<&str>) -> Result<f64> {
    let mut command = host.namespace.command("curl");
    command.args([
        "--silent",
        "--show-error",
        "--output",
        "/dev/null",
        "--write-out",
        "%{size_download} %{time_total}",
    ]);
    command.args(through.map(|proxy| ["--socks5", proxy]).into_iter().flatten());
    let url = format!("http://{SERVER_V4}:{SOURCE}/");
    let output = command.arg(url).stdin(Stdio::null()).output().context("start curl")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "curl: {}", String::from_utf8_lossy(&output.stderr));
    let (size, seconds) = said.split_once(' ').context("what curl says")?;
    ensure!(size.parse::<u64>()? == LENGTH, "{size} of {LENGTH} bytes");
    Ok(LENGTH as f64 * 8.0 / seconds.parse::<f64>()? / 1e9)
}
