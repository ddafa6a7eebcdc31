//! A web server on the host of the gateway that serves lists of blocked domains.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use anyhow::{Context, Result};
use gateway_tests::cores;
use gateway_tests::netns::Namespace;

use super::names::domains;

const AT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8053);

/// Serves lists of these lengths for the duration of the bench: `/N` has the first N domains.
pub(super) fn start(gateway: &Namespace, on: Vec<usize>, counts: &[usize]) -> Result<()> {
    let listener = gateway.within(|| TcpListener::bind(AT)).context("a place for lists")?;
    let lists: BTreeMap<usize, Vec<u8>> = counts.iter().map(|count| (*count, text(*count))).collect();
    std::thread::spawn(move || {
        // Lists come from a remote server, so the resolver's core must not pay for sending them.
        if cores::keep_to(&on).is_err() {
            return;
        }
        for connection in listener.incoming().flatten() {
            // A client that closes the connection has what it needs.
            let _ = serve(connection, &lists);
        }
    });
    Ok(())
}

/// Returns the URL of a list with this number of domains.
pub(super) fn url(count: usize) -> String {
    format!("http://{AT}/{count}")
}

fn serve(mut connection: TcpStream, lists: &BTreeMap<usize, Vec<u8>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let count = first.split(' ').nth(1).and_then(|path| path.trim_start_matches('/').parse::<usize>().ok());
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let Some(body) = count.and_then(|count| lists.get(&count)) else {
        return connection.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    };
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n", body.len());
    connection.write_all(head.as_bytes())?;
    connection.write_all(body)
}

fn text(count: usize) -> Vec<u8> {
    let mut text = Vec::new();
    for name in domains(count) {
        text.extend_from_slice(name.as_bytes());
        text.push(b'\n');
    }
    text
}
