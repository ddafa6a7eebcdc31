//! Hosts that send invalid traffic: mutated messages, truncated messages, abandoned connections.

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use gateway_tests::fuzz::mutation::{DNS, Numbers, mutated};
use gateway_tests::services::DNS as PORT;
use gateway_tests::topology::Host;

/// Datagrams in a burst, followed by a pause for other work on this machine.
const BURST: usize = 32;
const REST: Duration = Duration::from_millis(5);
/// Number of connections that one attack holds open.
const HELD: usize = 40;
const LONGEST: usize = 4096;

/// An attack that continues until it is dropped.
pub(super) struct Attack {
    pub sent: Arc<AtomicU64>,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Attack {
    pub(super) fn udp(host: &Host, resolver: IpAddr, seed: u64) -> Attack {
        let any: SocketAddr =
            if resolver.is_ipv6() { ([0u16; 8], 0).into() } else { ([0, 0, 0, 0], 0).into() };
        let socket = host.namespace.within(|| UdpSocket::bind(any)).expect("a socket");
        socket.connect((resolver, PORT)).expect("the resolver");
        socket.set_nonblocking(true).expect("a socket");
        Attack::start(seed, move |messages| {
            for _ in 0..BURST {
                // A full buffer drops the datagram, as on any path.
                let _ = socket.send(&messages.next());
            }
            while socket.recv(&mut [0; LONGEST]).is_ok() {}
            std::thread::sleep(REST);
            BURST as u64
        })
    }

    pub(super) fn tcp(host: &Host, resolver: IpAddr, seed: u64) -> Attack {
        let entrance = host.namespace.entrance();
        let mut held: Vec<TcpStream> = Vec::new();
        Attack::start(seed, move |messages| {
            let at = SocketAddr::new(resolver, PORT);
            let connect = || TcpStream::connect_timeout(&at, Duration::from_secs(1));
            let Ok(mut stream) = entrance.within(connect) else { return 0 };
            if messages.abuse(&mut stream).is_ok() {
                held.push(stream);
            }
            if held.len() > HELD {
                let left = messages.numbers.below(held.len());
                held.swap_remove(left);
            }
            std::thread::sleep(REST);
            1
        })
    }

    fn start(seed: u64, mut round: impl FnMut(&mut Messages) -> u64 + Send + 'static) -> Attack {
        let (sent, ending) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (counts, ends) = (sent.clone(), ending.clone());
        let thread = std::thread::spawn(move || {
            let mut messages = Messages::new(seed);
            while !ends.load(Ordering::Relaxed) {
                counts.fetch_add(round(&mut messages), Ordering::Relaxed);
            }
        });
        Attack { sent, ending, thread: Some(thread) }
    }
}

impl Drop for Attack {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The panic was already printed.
            let _ = thread.join();
        }
    }
}

/// An endless source of messages.
struct Messages {
    corpus: Vec<Vec<u8>>,
    numbers: Numbers,
}

impl Messages {
    fn new(seed: u64) -> Messages {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/dns");
        let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        // Directory order differs between machines and would change the messages of a seed.
        paths.sort();
        let mut corpus: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).expect("a file")).collect();
        assert!(corpus.len() >= 5, "the corpus {} is nearly empty", folder.display());
        corpus.extend([1, 28, 65, 16, 255, 252, 41, 0].map(|kind| question("www", kind)));
        Messages { corpus, numbers: Numbers::new(seed) }
    }

    /// Returns a message with a new name, a mutated one, or random bytes.
    fn next(&mut self) -> Vec<u8> {
        match self.numbers.below(8) {
            0 | 1 => {
                let kind = [1, 28, 65, 16, 15, 257][self.numbers.below(6)];
                question(&format!("r{:x}", self.numbers.below(1 << 40)), kind)
            }
            2 => {
                let length = self.numbers.below(600);
                (0..length).map(|_| self.numbers.below(256) as u8).collect()
            }
            _ => mutated(&self.corpus, DNS, LONGEST, &mut self.numbers),
        }
    }

    /// Abuses a connection in a random manner. Returns an error when the server closes it.
    fn abuse(&mut self, stream: &mut TcpStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(Duration::from_millis(20)))?;
        stream.set_write_timeout(Some(Duration::from_millis(200)))?;
        let count = 1 + self.numbers.below(12);
        let framed: Vec<u8> = (0..count)
            .flat_map(|_| {
                let message = self.next();
                let length = match self.numbers.below(8) {
                    0 => self.numbers.below(1 << 16) as u16,
                    _ => message.len() as u16,
                };
                [length.to_be_bytes().to_vec(), message].concat()
            })
            .collect();
        let some = self.numbers.below(framed.len() + 1);
        match self.numbers.below(6) {
            // Left open without sending.
            0 => {}
            1 => stream.write_all(&framed[..some])?,
            2 => {
                stream.write_all(&framed[..some])?;
                stream.shutdown(Shutdown::Write)?;
            }
            3 => {
                stream.write_all(&framed)?;
                stream.shutdown(Shutdown::Read)?;
            }
            _ => {
                stream.write_all(&framed)?;
                // A timeout is also an answer.
                let _ = stream.read(&mut [0; LONGEST]);
            }
        }
        Ok(())
    }
}

/// Returns a query for a name that valid clients never query.
fn question(label: &str, kind: u16) -> Vec<u8> {
    let mut message = vec![0x2b, 0xad, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, label.len() as u8];
    message.extend(label.as_bytes());
    message.extend(b"\x04test\0");
    message.extend(kind.to_be_bytes());
    message.extend([0, 1]);
    message
}
