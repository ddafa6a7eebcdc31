//! HTTP server that records requests and answers as it is set to.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

const ACCEPT_INTERVAL: Duration = Duration::from_millis(20);
const TIMEOUT: Duration = Duration::from_secs(5);

/// Recorded request.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Recorded {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

/// Answer to a request.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
}

impl From<u16> for Answer {
    fn from(status: u16) -> Answer {
        Answer { status, headers: Vec::new() }
    }
}

/// Running server. Dropping it ends it.
#[derive(Debug)]
pub struct WebhookReceiver {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    requests: Mutex<Vec<Recorded>>,
    /// Answers to the next requests; 200 when there are none.
    answers: Mutex<VecDeque<Answer>>,
    is_ending: AtomicBool,
}

impl WebhookReceiver {
    pub fn start(listener: TcpListener) -> Result<Self> {
        let address = listener.local_addr().context("address")?;
        listener.set_nonblocking(true).context("listener")?;
        let (requests, answers, is_ending) = (Mutex::default(), Mutex::default(), AtomicBool::new(false));
        let shared = Arc::new(Shared { requests, answers, is_ending });
        let server = shared.clone();
        let thread = std::thread::spawn(move || server.serve(&listener));
        Ok(Self { address, shared, thread: Some(thread) })
    }

    /// Starts on a free port of loopback.
    pub fn on_loopback() -> Result<Self> {
        Self::start(TcpListener::bind("127.0.0.1:0").context("a port")?)
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Sets the answer to a later request, after those that were set before.
    pub fn answer_next(&self, answer: impl Into<Answer>) {
        lock(&self.shared.answers).push_back(answer.into());
    }

    pub fn requests(&self) -> Vec<Recorded> {
        lock(&self.shared.requests).clone()
    }
}

impl Drop for WebhookReceiver {
    fn drop(&mut self) {
        self.shared.is_ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The panic was already printed.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn serve(&self, listener: &TcpListener) {
        while !self.is_ending.load(Ordering::Relaxed) {
            match listener.accept() {
                // A client that disconnects does not need the answer.
                Ok((stream, _)) => drop(self.answer(stream)),
                Err(_) => std::thread::sleep(ACCEPT_INTERVAL),
            }
        }
    }

    fn answer(&self, mut stream: TcpStream) -> Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let request = read(BufReader::new(stream.try_clone()?))?;
        lock(&self.requests).push(request);
        let Answer { status, headers } = lock(&self.answers).pop_front().unwrap_or(Answer::from(200));
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        write!(stream, "HTTP/1.1 {status} -\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n")?;
        Ok(())
    }
}

pub(crate) fn read(mut reader: impl BufRead) -> Result<Recorded> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").map(|(_, value)| value.parse());
    let mut body = vec![0; length.transpose()?.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    Ok(Recorded { method, path, headers, body })
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
