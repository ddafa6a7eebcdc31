//! `api_get_vs_axum`: one object read repeatedly. `api_list_10k`: ten thousand devices in one response. The peer is a
//! bare axum handler in its own process that returns the same bytes. Client and connections are the same for both.

use std::io::{BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::routing::get;
use gateway_tests::daemon::API;
use gateway_tests::netns::Namespace;
use gateway_tests::process::Process;
use gateway_tests::wait::wait_ok;
use serde_json::{Value, json};

use crate::row::{Row, Target, alternate, median};
use crate::topology::{Road, Way};

/// Argument that starts the bench program as the peer. The address and the file with the response follow it.
pub(crate) const BARE: &str = "--bare-axum-handler";

const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8081);
const ANYWHERE: &str = "/api/v1/answer";
const ROUNDS: usize = 7;
const TIME: Duration = Duration::from_secs(2);
const CONNECTIONS: usize = 8;
const DEVICES: usize = 10_000;
const SOON: Duration = Duration::from_secs(10);

pub(crate) fn run() -> Result<Vec<Row>> {
    let road = Road::build(Way::Ours { policies: 10 })?;
    let daemon = road.daemon.as_ref().context("a daemon")?;
    let device = |n: usize| {
        let [.., high, low] = n.to_be_bytes();
        json!({"name": format!("device {n}"), "mac": format!("02:00:00:01:{high:02x}:{low:02x}"), "tags": ["bench"]})
    };
    let plan: Vec<Value> = (0..DEVICES).map(device).collect();
    daemon.api().post("/apply", &json!({"resources": {"devices": plan}}))?;
    let made = daemon.api().get("/devices?name=device%2042")?;
    let one = format!("/api/v1/devices/{}", made[0]["id"].as_str().context("an id")?);

    let place = &road.gateway;
    let rate = {
        let _bare = bare(place, &fetch(place, API, &one)?)?;
        let mut subjects = [(API, one.as_str()), (PEER, ANYWHERE)];
        alternate(&mut subjects, ROUNDS, |(at, path)| requests_per_second(place, *at, path))?
    };
    println!("GET of one device, requests/s: median (rounds)\n  {}  ours\n  {}  axum", rate[0], rate[1]);

    let list = fetch(place, API, "/api/v1/devices")?;
    println!("10 000 devices in one answer: {} bytes", list.len());
    let _bare = bare(place, &list)?;
    let mut subjects = [(API, "/api/v1/devices"), (PEER, ANYWHERE)];
    let time = alternate(&mut subjects, ROUNDS, |(at, path)| milliseconds(place, *at, path))?;
    println!("the list, ms: median (rounds)\n  {}  ours\n  {}  axum", time[0], time[1]);

    let peer_name = "a bare axum handler with the same bytes".to_owned();
    Ok(vec![
        Row {
            bench: "api_get_vs_axum",
            ours: rate[0].median,
            peer: rate[1].median,
            peer_name: peer_name.clone(),
            unit: "requests/s",
            target: Target::RatioAtLeast(0.7),
        },
        Row {
            bench: "api_list_10k",
            ours: time[0].median,
            peer: time[1].median,
            peer_name,
            unit: "ms",
            target: Target::OursBelow(50.0),
        },
    ])
}

/// Starts the peer: another process of this program.
fn bare(place: &Namespace, answer: &[u8]) -> Result<Process> {
    let file = tempfile::NamedTempFile::new().context("a file")?;
    std::fs::write(file.path(), answer).context("the answer")?;
    let mut command = place.command(std::env::current_exe().context("path of this program")?);
    command.args([BARE, &PEER.to_string()]).arg(file.path());
    let process = place.spawn(command)?;
    wait_ok(SOON, "the peer to answer", || {
        let got = fetch(place, PEER, ANYWHERE)?;
        ensure!(got == answer, "it answers with other bytes");
        Ok(())
    })?;
    Ok(process)
}

/// Runs as the peer until it is killed.
pub(crate) fn be_bare(address: &str, file: &Path) -> Result<()> {
    let answer = axum::body::Bytes::from(std::fs::read(file).context("the answer")?);
    let handler = move || {
        let answer = answer.clone();
        async move { ([(http::header::CONTENT_TYPE, "application/json")], answer) }
    };
    let router = Router::new().route(ANYWHERE, get(handler));
    let runtime = tokio::runtime::Runtime::new().context("a runtime")?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(address).await.context("listen")?;
        axum::serve(listener, router).await.context("serve")
    })
}

/// A persistent connection and the request that is sent over it.
pub(crate) struct Client {
    connection: BufReader<TcpStream>,
    request: Vec<u8>,
    body: Vec<u8>,
}

impl Client {
    fn open(place: &Namespace, at: SocketAddr, path: &str) -> Result<Client> {
        Client::of_request(place, at, format!("GET {path} HTTP/1.1\r\nHost: {at}\r\n\r\n"))
    }

    /// Opens a connection for a whole request.
    pub(crate) fn of_request(place: &Namespace, at: SocketAddr, request: String) -> Result<Client> {
        let stream = place.within(|| TcpStream::connect(at)).context("connect")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SOON))?;
        let connection = BufReader::with_capacity(1 << 16, stream);
        Ok(Client { connection, request: request.into_bytes(), body: Vec::new() })
    }

    /// Sends the request and returns after the first byte of the response. The connection is of no further use.
    pub(crate) fn first_byte(&mut self) -> Result<()> {
        self.connection.get_mut().write_all(&self.request).context("send")?;
        let begun = std::io::BufRead::fill_buf(&mut self.connection).context("the response")?;
        ensure!(begun.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(begun));
        Ok(())
    }

    pub(crate) fn ask(&mut self) -> Result<&[u8]> {
        self.connection.get_mut().write_all(&self.request).context("send")?;
        let mut head = Vec::with_capacity(1024);
        while !head.ends_with(b"\r\n\r\n") {
            let read =
                std::io::BufRead::read_until(&mut self.connection, b'\n', &mut head).context("headers")?;
            ensure!(read > 0, "the connection ended");
        }
        let head = std::str::from_utf8(&head).context("headers")?.to_ascii_lowercase();
        ensure!(head.starts_with("http/1.1 200"), "{head}");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.context("no length")?.trim().parse().context("a length")?;
        self.body.resize(length, 0);
        self.connection.read_exact(&mut self.body).context("body")?;
        Ok(&self.body)
    }
}

fn fetch(place: &Namespace, at: SocketAddr, path: &str) -> Result<Vec<u8>> {
    Ok(Client::open(place, at, path)?.ask()?.to_vec())
}

fn requests_per_second(place: &Namespace, at: SocketAddr, path: &str) -> Result<f64> {
    let clients: Result<Vec<Client>> = (0..CONNECTIONS).map(|_| Client::open(place, at, path)).collect();
    let started = Instant::now();
    let counts = std::thread::scope(|scope| {
        let threads: Vec<_> = clients?
            .into_iter()
            .map(|mut client| {
                scope.spawn(move || -> Result<u32> {
                    let mut count = 0;
                    while started.elapsed() < TIME {
                        client.ask()?;
                        count += 1;
                    }
                    Ok(count)
                })
            })
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join().expect("a client that does not panic"));
        joined.collect::<Result<Vec<u32>>>()
    })?;
    Ok(f64::from(counts.iter().sum::<u32>()) / started.elapsed().as_secs_f64())
}

/// Returns the median duration of a few sequential requests, in milliseconds.
fn milliseconds(place: &Namespace, at: SocketAddr, path: &str) -> Result<f64> {
    let mut client = Client::open(place, at, path)?;
    let mut times = Vec::new();
    for _ in 0..5 {
        let started = Instant::now();
        client.ask()?;
        times.push(started.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(median(&times))
}
