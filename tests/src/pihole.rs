//! Fake of the API of Pi-hole 6, limited to the calls of the gateway: a few session seats and made-up statistics.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

pub const PASSWORD: &str = "correct horse battery";
const ATTENTION: Duration = Duration::from_millis(20);
const TIMEOUT: Duration = Duration::from_secs(5);
const SESSION: &str = "x-ftl-sid";

/// A running fake. Dropping it ends it.
#[derive(Debug)]
pub struct PiHole {
    pub at: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    house: Mutex<House>,
    seats: usize,
    ending: AtomicBool,
}

#[derive(Debug, Default)]
struct House {
    sessions: BTreeSet<String>,
    logins: usize,
}

impl PiHole {
    /// Answers on the listener, with `seats` session seats.
    pub fn start(listener: TcpListener, seats: usize) -> Result<Self> {
        let at = listener.local_addr().context("its address")?;
        listener.set_nonblocking(true).context("listener")?;
        let house = Mutex::default();
        let shared = Arc::new(Shared { house, seats, ending: AtomicBool::new(false) });
        let server = shared.clone();
        let thread = std::thread::spawn(move || server.serve(&listener));
        Ok(Self { at, shared, thread: Some(thread) })
    }

    /// Returns the number of sign-ins.
    pub fn logins(&self) -> usize {
        self.shared.house().logins
    }

    /// Returns the number of occupied session seats.
    pub fn sessions(&self) -> usize {
        self.shared.house().sessions.len()
    }
}

impl Drop for PiHole {
    fn drop(&mut self) {
        self.shared.ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The panic was already printed.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn house(&self) -> MutexGuard<'_, House> {
        self.house.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, listener: &TcpListener) {
        while !self.ending.load(Ordering::Relaxed) {
            match listener.accept() {
                // A client that disconnects does not need the answer.
                Ok((stream, _)) => drop(self.answer(stream)),
                Err(_) => std::thread::sleep(ATTENTION),
            }
        }
    }

    fn answer(&self, mut stream: TcpStream) -> Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let mut words = line.split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (mut length, mut session) = (0, None);
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim().split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse()?,
                SESSION => session = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let (status, answer) = self.house().said(method, path, session.as_deref(), &body, self.seats);
        let answer = answer.to_string();
        let length = answer.len();
        write!(
            stream,
            "HTTP/1.1 {status} -\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{answer}"
        )?;
        Ok(())
    }
}

impl House {
    fn said(
        &mut self,
        method: &str,
        path: &str,
        sid: Option<&str>,
        body: &Value,
        seats: usize,
    ) -> (u16, Value) {
        let session = |valid: bool, sid: Value| json!({"session": {"valid": valid, "sid": sid}});
        let error = |key: &str| json!({"error": {"key": key, "message": key, "hint": null}});
        let known = sid.is_some_and(|sid| self.sessions.contains(sid));
        match (method, path) {
            ("POST", "/api/auth") if body["password"] != PASSWORD => (401, session(false, Value::Null)),
            ("POST", "/api/auth") if self.sessions.len() >= seats => (429, error("api_seats_exceeded")),
            ("POST", "/api/auth") => {
                self.logins += 1;
                let sid = format!("sid-{}+/=", self.logins);
                self.sessions.insert(sid.clone());
                (200, session(true, sid.into()))
            }
            _ if !known => (401, error("unauthorized")),
            ("DELETE", "/api/auth") => {
                self.sessions.remove(sid.unwrap_or_default());
                (200, Value::Null)
            }
            ("GET", "/api/info/version") => {
                (200, json!({"version": {"ftl": {"local": {"version": "v6.2.3"}}}}))
            }
            ("GET", "/api/stats/summary") => (200, json!({"queries": {"total": 1234, "blocked": 56}})),
            ("GET", "/api/dns/blocking") => (200, json!({"blocking": "enabled", "timer": null})),
            _ => (404, error("not_found")),
        }
    }
}
