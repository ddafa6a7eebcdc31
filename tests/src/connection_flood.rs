//! A large number of concurrent connections: a host that holds them, and a SOCKS5 proxy that answers them itself.
//!
//! Real proxies take two descriptors for a connection, and Dante a process for some. A process may open a limited
//! number. So connections end in this proxy, and either side is a thread with its own descriptor table.

use std::fs;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use nix::sched::{CloneFlags, unshare};
use rustix::net::AddressFamily;
use rustix::net::sockopt::socket_domain;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::netns::{Entrance, Namespace};
use crate::socks::PORT;
use crate::tap::MARK;
use crate::topology::Host;
use crate::wireguard::Exit;

/// Port with an endless response to any request.
pub const ENDLESS: u16 = 7013;
/// Number of connections that are opened or used at a time.
const AT_ONCE: usize = 256;
const TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum delay until the proxy notices that it should end.
const ATTENTION: Duration = Duration::from_millis(100);
const BACKLOG: u32 = 4096;
/// Small receive buffer for clients that do not read.
const SMALL: u32 = 8192;

/// The proxy. Dropping it ends it.
#[derive(Debug)]
pub struct Answering {
    address: IpAddr,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A host with its connections. Dropping it closes them.
#[derive(Debug)]
pub struct ConnectionFlood {
    tasks: Option<Sender<Task>>,
    answers: Receiver<Result<RoundTimes>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
enum Task {
    Open(usize, SocketAddr),
    OpenAndNeverRead(usize, SocketAddr),
    Ask,
}

/// Duration of a round.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundTimes {
    pub connections: usize,
    pub median: Duration,
    pub worst: Duration,
}

impl Answering {
    /// Starts the proxy at an exit's address. The state in the gateway shows when it is up.
    pub fn start(exit: &Exit) -> Self {
        let ending = Arc::new(AtomicBool::new(false));
        let at = SocketAddr::from((exit.place.v4, PORT));
        let seen = ending.clone();
        let thread = apart(&exit.namespace, move |runtime| {
            runtime.block_on(serve(at, &seen)).expect("the proxy listens");
        });
        Self { address: at.ip(), ending, thread: Some(thread) }
    }

    /// The object for `POST /proxies`.
    pub fn object(&self, name: &str) -> Value {
        // The probes of the proxy are not part of the test.
        let check = json!({"interval_sec": 120, "timeout_sec": 20});
        json!({"name": name, "address": self.address, "port": PORT, "health_check": check})
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        join(&mut self.thread);
    }
}

impl ConnectionFlood {
    pub fn at(host: &Host) -> Self {
        let (tasks, todo) = channel();
        let (answer, answers) = channel();
        let thread = apart(&host.namespace, move |runtime| hold(runtime, &todo, &answer));
        Self { tasks: Some(tasks), answers, thread: Some(thread) }
    }

    /// Opens more connections. Each sends one request and gets its answer.
    pub fn open(&self, connections: usize, to: SocketAddr) -> Result<RoundTimes> {
        self.have(Task::Open(connections, to))
    }

    /// Opens more connections that send one request and never read.
    pub fn open_and_never_read(&self, connections: usize, to: SocketAddr) -> Result<RoundTimes> {
        self.have(Task::OpenAndNeverRead(connections, to))
    }

    /// Sends another request on each connection that reads, and waits for its answer.
    pub fn ask(&self) -> Result<RoundTimes> {
        self.have(Task::Ask)
    }

    fn have(&self, task: Task) -> Result<RoundTimes> {
        let tasks = self.tasks.as_ref().context("the crowd is gone")?;
        tasks.send(task).map_err(|_| anyhow!("the crowd has ended"))?;
        self.answers.recv().context("the crowd has ended")?
    }
}

impl Drop for ConnectionFlood {
    fn drop(&mut self) {
        self.tasks = None;
        join(&mut self.thread);
    }
}

impl RoundTimes {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |place: usize| times.get(place).copied().unwrap_or_default();
        Self {
            connections: times.len(),
            median: at(times.len() / 2),
            worst: at(times.len().saturating_sub(1)),
        }
    }
}

fn join(thread: &mut Option<JoinHandle<()>>) {
    if let Some(thread) = thread.take() {
        // The panic was already printed.
        let _ = thread.join();
    }
}

/// Runs work on a thread in a namespace, with its own runtime and its own descriptor table.
fn apart(namespace: &Namespace, work: impl FnOnce(&Runtime) + Send + 'static) -> JoinHandle<()> {
    let entrance = namespace.entrance();
    std::thread::spawn(move || {
        let runtime = enter(entrance).expect("a thread of its own");
        work(&runtime);
    })
}

fn enter(entrance: Entrance) -> Result<Runtime> {
    entrance.enter().context("namespace")?;
    // The thread may hold the last descriptor, which has to be closed where it was opened.
    drop(entrance);
    // Each runtime duplicates one pair of sockets, which the first runtime creates.
    drop(runtime()?);
    unshare(CloneFlags::CLONE_FILES).context("descriptors of its own")?;
    let listed = fs::read_dir("/proc/thread-self/fd").context("descriptors")?;
    let names: Vec<_> = listed.flatten().map(|entry| entry.file_name()).collect();
    let numbers = names.iter().filter_map(|name| name.to_str()?.parse::<i32>().ok());
    for number in numbers.filter(|number| *number > 2 && !is_unix_socket(*number)) {
        // The descriptor of the directory listing is closed already.
        let _ = nix::unistd::close(number);
    }
    runtime()
}

fn runtime() -> Result<Runtime> {
    Builder::new_current_thread().enable_all().build().context("runtime")
}

fn is_unix_socket(number: RawFd) -> bool {
    // SAFETY: no other code of this thread opens or closes descriptors meanwhile; a closed descriptor gives an error.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    socket_domain(descriptor).is_ok_and(|domain| domain == AddressFamily::UNIX)
}

async fn serve(at: SocketAddr, ending: &AtomicBool) -> io::Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(at)?;
    let listener: TcpListener = socket.listen(BACKLOG)?;
    while !ending.load(Ordering::Relaxed) {
        if let Ok(Ok((stream, _))) = tokio::time::timeout(ATTENTION, listener.accept()).await {
            // Errors of a client that disconnects are reported by the client.
            tokio::spawn(answer(stream));
        }
    }
    Ok(())
}

/// Speaks RFC 1928 without authentication, CONNECT only, then echoes the received bytes.
async fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut bytes = [0; 32];
    stream.read_exact(&mut bytes[..2]).await?;
    let methods = usize::from(bytes[1]).min(bytes.len());
    stream.read_exact(&mut bytes[..methods]).await?;
    stream.write_all(&[5, 0]).await?;
    stream.read_exact(&mut bytes[..4]).await?;
    let (command, address) = (bytes[1], if bytes[3] == 4 { 16 } else { 4 });
    stream.read_exact(&mut bytes[..address + 2]).await?;
    let port = u16::from_be_bytes([bytes[address], bytes[address + 1]]);
    let refused = if command == 1 { 0 } else { 7 };
    stream.write_all(&[5, refused, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
    if port == ENDLESS && refused == 0 {
        loop {
            stream.write_all(&[0x47; 16 << 10]).await?;
        }
    }
    loop {
        let length = stream.read(&mut bytes).await?;
        if length == 0 || refused != 0 {
            return Ok(());
        }
        stream.write_all(&bytes[..length]).await?;
    }
}

/// Executes tasks until the channel closes. Nothing runs between tasks: idle connections need no work.
fn hold(runtime: &Runtime, todo: &Receiver<Task>, answer: &Sender<Result<RoundTimes>>) {
    let (mut reading, mut deaf) = (Vec::new(), Vec::new());
    while let Ok(task) = todo.recv() {
        let done = runtime.block_on(async {
            match task {
                Task::Open(connections, to) => all((0..connections).map(|_| open(to)), &mut reading).await,
                Task::OpenAndNeverRead(connections, to) => {
                    all((0..connections).map(|_| never_read(to)), &mut deaf).await
                }
                Task::Ask => all(std::mem::take(&mut reading).into_iter().map(ask), &mut reading).await,
            }
        });
        if answer.send(done).is_err() {
            return;
        }
    }
}

/// Executes futures with limited concurrency.
async fn all<W>(work: impl IntoIterator<Item = W>, streams: &mut Vec<TcpStream>) -> Result<RoundTimes>
where
    W: Future<Output = Result<TcpStream>> + Send + 'static,
{
    let mut work = work.into_iter();
    let (mut running, mut times) = (JoinSet::new(), Vec::new());
    loop {
        while running.len() < AT_ONCE
            && let Some(next) = work.next()
        {
            running.spawn(timed(next));
        }
        let Some(ended) = running.join_next().await else { return Ok(RoundTimes::of(times)) };
        let (stream, time) = ended.context("a panic")?.with_context(|| format!("after {}", times.len()))?;
        streams.push(stream);
        times.push(time);
    }
}

async fn timed(work: impl Future<Output = Result<TcpStream>>) -> Result<(TcpStream, Duration)> {
    let started = Instant::now();
    let stream = tokio::time::timeout(TIMEOUT, work).await.context("no answer in time")??;
    Ok((stream, started.elapsed()))
}

async fn open(to: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(to).await.context("connect")?;
    stream.set_nodelay(true)?;
    ask(stream).await
}

async fn ask(mut stream: TcpStream) -> Result<TcpStream> {
    // Every connection sends a different payload.
    let question = [MARK, &stream.local_addr()?.port().to_be_bytes()].concat();
    stream.write_all(&question).await.context("ask")?;
    let mut answer = vec![0; question.len()];
    stream.read_exact(&mut answer).await.context("the answer")?;
    ensure!(answer == question, "the answer of another: {answer:?}");
    Ok(stream)
}

async fn never_read(to: SocketAddr) -> Result<TcpStream> {
    let socket = if to.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_recv_buffer_size(SMALL)?;
    let mut stream = socket.connect(to).await.context("connect")?;
    stream.write_all(MARK).await.context("ask")?;
    Ok(stream)
}
