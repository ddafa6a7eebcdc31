//! Servers in the internet of the tests. They return the client address that they see.
//!
//! | service | port | answer |
//! |---|---|---|
//! | HTTP | TCP 80, 8080 | `GET /ip`: the client's address |
//! | ident | TCP 7007 | for each line: the client's address; the connection stays |
//! | ident | UDP 7007, 80, 8080 | the client's address, a space, the datagram |
//! | bulk | TCP 7008 | reads a length of eight bytes and that many bytes, and returns as many |
//! | sink | UDP 53 | a DNS response with RCODE REFUSED |

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::netns::Namespace;

pub const HTTP: u16 = 80;
pub const HTTP_OTHER: u16 = 8080;
pub const IDENT: u16 = 7007;
pub const BULK: u16 = 7008;
pub const DNS: u16 = 53;

/// Maximum delay until a service notices that it should end.
const ATTENTION: Duration = Duration::from_millis(100);
const CLIENT_TIMEOUT: Duration = Duration::from_secs(120);
/// Timeout of an HTTP request. Loads connect without one, and each connection takes a thread until then: with a longer
/// time, those of two tests exceed the memory areas that the kernel allows a process (`vm.max_map_count`).
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

type RequestCounts = Arc<Mutex<BTreeMap<(u16, IpAddr), u64>>>;

/// The servers. Dropping them ends them.
#[derive(Debug)]
pub struct Services {
    seen: RequestCounts,
    ending: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Services {
    /// Serves on each of the addresses, so that an answer comes from the queried address.
    pub fn start(namespace: &Namespace, addresses: &[IpAddr]) -> Result<Self> {
        let mut services =
            Self { seen: RequestCounts::default(), ending: Arc::default(), threads: Vec::new() };
        for &address in addresses {
            services.listen(namespace, (address, HTTP).into(), answer_http)?;
            services.listen(namespace, (address, HTTP_OTHER).into(), answer_http)?;
            services.listen(namespace, (address, IDENT).into(), answer_lines)?;
            services.listen(namespace, (address, BULK).into(), move_bulk)?;
            for port in [IDENT, HTTP, HTTP_OTHER] {
                services.receive(namespace, (address, port).into(), |from, datagram| {
                    [format!("{} ", from.ip()).as_bytes(), datagram].concat()
                })?;
            }
            services.receive(namespace, (address, DNS).into(), |_, query| refuse(query))?;
        }
        Ok(services)
    }

    /// Returns the number of connections and datagrams from an address to a port.
    pub fn seen(&self, port: u16, from: IpAddr) -> u64 {
        lock(&self.seen).get(&(port, from)).copied().unwrap_or(0)
    }

    /// Returns the counts of all connections and datagrams by port and source.
    pub fn seen_at_all(&self) -> BTreeMap<(u16, IpAddr), u64> {
        lock(&self.seen).clone()
    }

    fn listen(
        &mut self,
        namespace: &Namespace,
        at: SocketAddr,
        serve: fn(TcpStream, SocketAddr) -> io::Result<()>,
    ) -> Result<()> {
        let listener =
            namespace.within(|| TcpListener::bind(at)).with_context(|| format!("listen on {at}"))?;
        listener.set_nonblocking(true).context("listener")?;
        let (seen, ending) = (self.seen.clone(), self.ending.clone());
        self.threads.push(std::thread::spawn(move || {
            while !ending.load(Ordering::Relaxed) {
                let Ok((stream, from)) = listener.accept() else {
                    wait_readable(&listener);
                    continue;
                };
                count(&seen, at.port(), from.ip());
                std::thread::spawn(move || {
                    // A client that disconnects during the answer is no error of the server.
                    let _ = serve(stream, from);
                });
            }
        }));
        Ok(())
    }

    fn receive(
        &mut self,
        namespace: &Namespace,
        at: SocketAddr,
        answer: fn(SocketAddr, &[u8]) -> Vec<u8>,
    ) -> Result<()> {
        let socket = namespace.within(|| UdpSocket::bind(at)).with_context(|| format!("receive on {at}"))?;
        socket.set_read_timeout(Some(ATTENTION)).context("socket")?;
        let (seen, ending) = (self.seen.clone(), self.ending.clone());
        self.threads.push(std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            while !ending.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
                count(&seen, at.port(), from.ip());
                // The client that waits for the answer reports a lost one.
                let _ = socket.send_to(&answer(from, &buffer[..length]), from);
            }
        }));
        Ok(())
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // The panic was already printed.
            let _ = thread.join();
        }
    }
}

pub(crate) fn wait_readable(listener: &TcpListener) {
    use std::os::fd::AsFd;
    let mut waiting = [nix::poll::PollFd::new(listener.as_fd(), nix::poll::PollFlags::POLLIN)];
    // After a failure the next accept fails as well.
    let _ = nix::poll::poll(&mut waiting, u16::try_from(ATTENTION.as_millis()).unwrap_or(u16::MAX));
}

fn answer_http(stream: TcpStream, from: SocketAddr) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
    let mut reader = BufReader::new(&stream);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let mut header = String::new();
    while reader.read_line(&mut header)? > 2 {
        header.clear();
    }
    let (status, body) = match request.split_whitespace().nth(1) {
        Some("/ip") => ("200 OK", format!("{}\n", from.ip())),
        _ => ("404 Not Found", "ask for /ip\n".to_owned()),
    };
    write!(
        &stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn answer_lines(stream: TcpStream, from: SocketAddr) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(CLIENT_TIMEOUT))?;
    let mut byte = [0];
    loop {
        if (&stream).read(&mut byte)? == 0 {
            return Ok(());
        }
        if byte[0] == b'\n' {
            (&stream).write_all(format!("{}\n", from.ip()).as_bytes())?;
        }
    }
}

fn move_bulk(stream: TcpStream, _: SocketAddr) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(CLIENT_TIMEOUT))?;
    let mut length = [0; 8];
    (&stream).read_exact(&mut length)?;
    let length = u64::from_be_bytes(length);
    io::copy(&mut (&stream).take(length), &mut io::sink())?;
    io::copy(&mut io::repeat(0x47).take(length), &mut &stream)?;
    Ok(())
}

/// Returns the query with the QR bit and RCODE REFUSED set.
fn refuse(query: &[u8]) -> Vec<u8> {
    let mut answer = query.to_vec();
    if let [_, _, flags, code, ..] = answer.as_mut_slice() {
        *flags |= 0x80;
        *code = (*code & 0xf0) | 5;
    }
    answer
}

fn count(seen: &RequestCounts, port: u16, from: IpAddr) {
    *lock(seen).entry((port, from)).or_default() += 1;
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
