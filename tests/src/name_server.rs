//! A name server of the tests' internet that can be silenced and whose answer can change.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::netns::Namespace;
use crate::services::DNS;

/// Address of the server.
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 53);
const ATTENTION: Duration = Duration::from_millis(100);

/// Name server that answers every A query with one address, and all other queries with an empty answer.
#[derive(Debug)]
pub struct NameServer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    answer: Mutex<Option<Ipv4Addr>>,
    asked: AtomicU64,
    /// Question sections, in wire format.
    questions: Mutex<BTreeSet<Vec<u8>>>,
    ending: AtomicBool,
}

impl NameServer {
    pub fn start(internet: &Namespace, answer: Ipv4Addr) -> Result<Self> {
        internet.ip(&format!("address add {ADDRESS}/32 dev lo"))?;
        let socket = internet.within(|| UdpSocket::bind((ADDRESS, DNS))).context("name server")?;
        socket.set_read_timeout(Some(ATTENTION)).context("name server")?;
        let shared = Arc::new(Shared {
            answer: Mutex::new(Some(answer)),
            asked: AtomicU64::new(0),
            questions: Mutex::default(),
            ending: AtomicBool::new(false),
        });
        let server = shared.clone();
        let thread = std::thread::spawn(move || server.serve(&socket));
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Sets the answer. `None` silences the server.
    pub fn answer(&self, address: Option<Ipv4Addr>) {
        *self.shared.answer.lock().unwrap_or_else(PoisonError::into_inner) = address;
    }

    /// Returns the number of received queries.
    pub fn asked(&self) -> u64 {
        self.shared.asked.load(Ordering::Relaxed)
    }

    /// Returns true if there was a query for this name.
    pub fn was_asked_for(&self, name: &str) -> bool {
        let labels =
            name.split('.').flat_map(|label| std::iter::once(label.len() as u8).chain(label.bytes()));
        let wire: Vec<u8> = labels.chain([0]).collect();
        let questions = self.shared.questions.lock().unwrap_or_else(PoisonError::into_inner);
        questions.iter().any(|question| question.to_ascii_lowercase().starts_with(&wire))
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.shared.ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The panic was already printed.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn serve(&self, socket: &UdpSocket) {
        let mut buffer = [0; 512];
        while !self.ending.load(Ordering::Relaxed) {
            let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
            self.asked.fetch_add(1, Ordering::Relaxed);
            let question = buffer.get(12..length).unwrap_or_default().to_vec();
            self.questions.lock().unwrap_or_else(PoisonError::into_inner).insert(question);
            let answer = *self.answer.lock().unwrap_or_else(PoisonError::into_inner);
            if let (Some(address), Some(reply)) = (answer, buffer.get(..length)) {
                // The client that waits for the answer reports a lost one.
                let _ = socket.send_to(&reply_to(reply, address), from);
            }
        }
    }
}

fn reply_to(question: &[u8], address: Ipv4Addr) -> Vec<u8> {
    let mut reply = question.to_vec();
    let for_an_address = question.ends_with(&[0, 1, 0, 1]);
    if let Some(flags) = reply.get_mut(2..4) {
        flags.copy_from_slice(&[0x81, 0x80]);
    }
    if for_an_address {
        reply[7] = 1;
        reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        reply.extend(address.octets());
    }
    reply
}
