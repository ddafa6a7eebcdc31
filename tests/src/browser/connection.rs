//! Messages of the DevTools protocol over pipes: JSON objects, each with a zero byte behind it.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader, PipeReader, PipeWriter, Write as _};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// Receivers of messages by session. The browser itself has an empty name.
type Receivers = Arc<Mutex<BTreeMap<String, Sender<Value>>>>;

/// The pipes of a browser, which its sessions share.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    commands: Arc<Mutex<PipeWriter>>,
    receivers: Receivers,
}

impl Connection {
    /// Reads on a thread that ends with the browser.
    pub(super) fn new(commands: PipeWriter, answers: PipeReader) -> Self {
        let receivers = Receivers::default();
        let connection = Self { commands: Arc::new(Mutex::new(commands)), receivers: receivers.clone() };
        std::thread::spawn(move || {
            let parts = BufReader::new(answers).split(0).map_while(Result::ok);
            for message in parts.map_while(|part| serde_json::from_slice::<Value>(&part).ok()) {
                let session = message["sessionId"].as_str().unwrap_or_default();
                if let Some(receiver) = lock(&receivers).get(session) {
                    // A session without a receiver has ended.
                    let _ = receiver.send(message);
                }
            }
            // Nothing more arrives.
            lock(&receivers).clear();
        });
        connection
    }

    /// Returns the session with this name.
    pub(super) fn session(&self, name: &str) -> Session {
        let (sender, messages) = channel();
        lock(&self.receivers).insert(name.to_owned(), sender);
        Session {
            connection: self.clone(),
            name: name.to_owned(),
            messages,
            events: VecDeque::new(),
            last_id: 0,
        }
    }
}

/// Session with the browser itself or with one of its pages.
#[derive(Debug)]
pub(super) struct Session {
    connection: Connection,
    name: String,
    messages: Receiver<Value>,
    /// Events since the last call began.
    events: VecDeque<Value>,
    last_id: u64,
}

impl Session {
    pub(super) fn call(&mut self, method: &str, parameters: &Value, timeout: Duration) -> Result<Value> {
        let deadline = Instant::now() + timeout;
        self.events.clear();
        self.last_id += 1;
        let id = self.last_id;
        let mut command = json!({"id": id, "method": method, "params": parameters});
        if !self.name.is_empty() {
            command["sessionId"] = json!(self.name);
        }
        let mut command = command.to_string().into_bytes();
        command.push(0);
        lock(&self.connection.commands).write_all(&command).with_context(|| format!("call {method}"))?;
        loop {
            let mut message = self.receive(deadline).with_context(|| format!("an answer to {method}"))?;
            if message["id"] == id {
                let error = &message["error"];
                ensure!(error.is_null(), "{method}: {error}");
                return Ok(message["result"].take());
            }
            self.events.push_back(message);
        }
    }

    /// Waits for an event that arrived since the last call began, or arrives before the timeout.
    pub(super) fn wait_for_event(
        &mut self,
        is_expected: impl Fn(&Value) -> bool,
        timeout: Duration,
    ) -> Result<()> {
        let deadline = Instant::now() + timeout;
        loop {
            let event = match self.events.pop_front() {
                Some(event) => event,
                None => self.receive(deadline)?,
            };
            if is_expected(&event) {
                return Ok(());
            }
        }
    }

    fn receive(&self, deadline: Instant) -> Result<Value> {
        let left = deadline.saturating_duration_since(Instant::now());
        self.messages.recv_timeout(left).context("no message of the browser")
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        lock(&self.connection.receivers).remove(&self.name);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
