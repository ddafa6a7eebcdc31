//! A web server of the tests that answers with what a function returns: a probe server, or a captive portal.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::netns::Namespace;
use crate::services::wait_readable;

const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);

/// A running server. Dropping it ends it.
#[derive(Debug)]
pub struct ProbeServer {
    asked: Arc<AtomicU64>,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ProbeServer {
    /// Serves at an address of the namespace. `answer` gets the lines of a request, and returns the whole answer.
    pub fn start(
        namespace: &Namespace,
        address: SocketAddr,
        answer: impl Fn(&[String]) -> String + Send + 'static,
    ) -> Result<Self> {
        let listener = namespace.within(|| TcpListener::bind(address)).context("probe server")?;
        listener.set_nonblocking(true).context("probe server")?;
        let (asked, ending) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (counter, end) = (asked.clone(), ending.clone());
        let thread = std::thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((connection, _)) => {
                        counter.fetch_add(1, Ordering::Relaxed);
                        // A client that goes away is none of the server's business.
                        let _ = serve(connection, &answer);
                    }
                    Err(_) => wait_readable(&listener),
                }
            }
        });
        Ok(Self { asked, ending, thread: Some(thread) })
    }

    /// Returns the number of connections.
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Drop for ProbeServer {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the server shows as missing answers.
            let _ = thread.join();
        }
    }
}

fn serve(connection: TcpStream, answer: &impl Fn(&[String]) -> String) -> Result<()> {
    connection.set_nonblocking(false)?;
    connection.set_read_timeout(Some(CLIENT_TIMEOUT))?;
    let mut lines = Vec::new();
    for line in BufReader::new(&connection).lines() {
        let line = line?;
        if line.is_empty() {
            break;
        }
        lines.push(line);
    }
    (&connection).write_all(answer(&lines).as_bytes())?;
    Ok(())
}
