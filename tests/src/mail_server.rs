//! Small mail server with TLS, limited to what one submission needs. It records mails.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;

use crate::certificate::ServerCertificate;

const ACCEPT_INTERVAL: Duration = Duration::from_millis(20);
const TIMEOUT: Duration = Duration::from_secs(5);

/// Beginning of the encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encryption {
    AtOnce,
    Starttls,
    Never,
}

/// Received mail.
#[derive(Clone, Debug, Default)]
pub struct ReceivedMail {
    /// User and password of the sign-in.
    pub login: Option<(String, String)>,
    pub from: String,
    pub to: Vec<String>,
    /// Headers and body.
    pub text: String,
}

/// Running server. Dropping it ends it.
#[derive(Debug)]
pub struct MailServer {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    encryption: Encryption,
    config: Arc<ServerConfig>,
    mails: Mutex<Vec<ReceivedMail>>,
    /// Replies to the next messages instead of an acceptance.
    refusals: Mutex<Vec<&'static str>>,
    is_ending: AtomicBool,
}

impl MailServer {
    /// Starts on a free port of loopback.
    pub fn start(encryption: Encryption, certificate: &ServerCertificate) -> Result<Self> {
        Self::start_at(TcpListener::bind("127.0.0.1:0").context("a port")?, encryption, certificate)
    }

    pub fn start_at(
        listener: TcpListener,
        encryption: Encryption,
        certificate: &ServerCertificate,
    ) -> Result<Self> {
        let key = PrivateKeyDer::from_pem_slice(&fs::read(certificate.key_file())?).context("a key")?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .context("versions of TLS")?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der.clone()], key)
            .context("TLS")?;
        let address = listener.local_addr().context("address")?;
        listener.set_nonblocking(true).context("listener")?;
        let shared = Arc::new(Shared {
            encryption,
            config: Arc::new(config),
            mails: Mutex::default(),
            refusals: Mutex::default(),
            is_ending: AtomicBool::new(false),
        });
        let server = shared.clone();
        let thread = std::thread::spawn(move || server.serve(&listener));
        Ok(Self { address, shared, thread: Some(thread) })
    }

    pub fn mails(&self) -> Vec<ReceivedMail> {
        lock(&self.shared.mails).clone()
    }

    /// Refuses the next message with this reply.
    pub fn refuse_next(&self, reply: &'static str) {
        lock(&self.shared.refusals).push(reply);
    }
}

impl Drop for MailServer {
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
                // A client that disconnects is no error.
                Ok((stream, _)) => drop(self.answer(stream)),
                Err(_) => std::thread::sleep(ACCEPT_INTERVAL),
            }
        }
    }

    fn answer(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        if self.encryption == Encryption::AtOnce {
            let mut session = self.encrypt(stream)?;
            session.write_all(b"220 mail.example ready\r\n")?;
            return self.converse(BufReader::new(session));
        }
        stream.write_all(b"220 mail.example ready\r\n")?;
        let mut reader = BufReader::new(stream.try_clone()?);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            match (line.trim(), self.encryption) {
                (hello, Encryption::Starttls) if hello.starts_with("EHLO") => {
                    stream.write_all(b"250-mail.example\r\n250-STARTTLS\r\n250 8BITMIME\r\n")?;
                }
                (hello, _) if hello.starts_with("EHLO") => stream.write_all(b"250 mail.example\r\n")?,
                ("STARTTLS", Encryption::Starttls) => {
                    stream.write_all(b"220 go ahead\r\n")?;
                    return self.converse(BufReader::new(self.encrypt(stream)?));
                }
                _ => stream.write_all(b"530 encryption is needed\r\n")?,
            }
        }
    }

    fn encrypt(&self, stream: TcpStream) -> io::Result<StreamOwned<ServerConnection, TcpStream>> {
        let connection = ServerConnection::new(self.config.clone()).map_err(io::Error::other)?;
        Ok(StreamOwned::new(connection, stream))
    }

    /// Takes mails over an encrypted connection.
    fn converse<S: Read + Write>(&self, mut stream: BufReader<S>) -> io::Result<()> {
        let mut mail = ReceivedMail::default();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let line = line.trim_end();
            let argument = |prefix: &str| {
                line.strip_prefix(prefix)
                    .map(|rest| rest.split(['<', '>']).nth(1).unwrap_or_default().to_owned())
            };
            let reply = if line.starts_with("EHLO") {
                "250-mail.example\r\n250-8BITMIME\r\n250 AUTH PLAIN LOGIN"
            } else if let Some(login) = line.strip_prefix("AUTH PLAIN ") {
                mail.login = decode(login);
                "235 welcome"
            } else if let Some(from) = argument("MAIL FROM:") {
                mail.from = from;
                "250 ok"
            } else if let Some(to) = argument("RCPT TO:") {
                mail.to.push(to);
                "250 ok"
            } else if line == "DATA" {
                stream.get_mut().write_all(b"354 go ahead\r\n")?;
                mail.text = read_text(&mut stream)?;
                self.take(&mut mail)
            } else {
                stream.get_mut().write_all(b"221 bye\r\n")?;
                return Ok(());
            };
            stream.get_mut().write_all(format!("{reply}\r\n").as_bytes())?;
        }
    }

    fn take(&self, mail: &mut ReceivedMail) -> &'static str {
        let mut refusals = lock(&self.refusals);
        if !refusals.is_empty() {
            return refusals.remove(0);
        }
        lock(&self.mails).push(std::mem::take(mail));
        "250 accepted"
    }
}

fn read_text(stream: &mut impl BufRead) -> io::Result<String> {
    let mut text = String::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 || line == ".\r\n" {
            return Ok(text);
        }
        text.push_str(&line);
    }
}

fn decode(login: &str) -> Option<(String, String)> {
    let bytes = BASE64_STANDARD.decode(login).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let mut parts = text.split('\0').skip(1).map(str::to_owned);
    Some((parts.next()?, parts.next()?))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
