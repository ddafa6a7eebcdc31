//! Management session with one process: answers its requests and records its reports.

use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use gateway_common::wire::Mark;
use gateway_core::plan::OpenVpnProcess;
use gateway_outbound::Resolver;
use gateway_outbound::backoff::give_or_take_a_quarter;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader, Lines};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::process::Child;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::super::command as start;
use super::super::log_parser::{self, LogLine};
use super::super::management::{Message, Remote, SecretRequest, State, command};
use super::super::resolve::{resolve, with_random_label};
use super::super::status::{DesiredSession, Stage, StatePublisher, TERMINATION_TIMEOUT};
use super::backoff::{Backoff, ExitReason};
use super::log::Log;

/// Time limit for the first sign of life of a process.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between attempts to resolve a name.
const RESOLVE_AGAIN: Duration = Duration::from_secs(5);
/// Largest number of ignored pushed options that the status shows.
const MAX_PUSHED: usize = 64;

/// A started process with its management session.
pub(super) struct ManagementSession {
    child: Child,
    output: mpsc::Receiver<String>,
    management: Lines<BufReader<OwnedReadHalf>>,
    commands: OwnedWriteHalf,
    log: Log,
    endpoint_names: Resolver,
    /// Fwmark of the outer packets. Queries for server names use it, too.
    mark: Mark,
    randomises_hostname: bool,
    /// The error with the greatest weight, the latest of several.
    error: Option<SessionError>,
    /// Time at which the process may continue.
    release: Option<Instant>,
    /// The server that the process asks for, and the time of the lookup.
    asked: Option<(Remote, Instant)>,
    looking: Option<AddressLookup>,
    /// Counter of the tried addresses.
    turn: usize,
    skipped: usize,
    connected: bool,
}

impl ManagementSession {
    /// Starts the process and waits for its first sign of life.
    pub(super) async fn open(
        (folder, endpoint_names): (&Path, &Resolver),
        process: &OpenVpnProcess,
    ) -> Result<ManagementSession, ExitReason> {
        let broken =
            |what: &str, error: &dyn std::fmt::Display| ExitReason::Broken(format!("{what}: {error}"));
        let socket = folder.join(start::SOCKET);
        // The socket of the previous process.
        let _ = std::fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket)
            .map_err(|error| broken("the management socket cannot be made", &error))?;
        let mut child =
            start::spawn(process, folder).map_err(|error| ExitReason::Broken(error.to_string()))?;
        let (sender, mut output) = mpsc::channel(256);
        if let Some(stdout) = child.stdout.take() {
            forward(stdout, sender.clone());
        }
        if let Some(stderr) = child.stderr.take() {
            forward(stderr, sender);
        }
        if let Some(mut stdin) = child.stdin.take() {
            let config = process.config.clone();
            tokio::spawn(async move {
                // A process that has ended reads no more. Other code detects its end.
                let _ = stdin.write_all(config.expose().as_bytes()).await;
            });
        }
        let mut log = Log::new(process);
        let mut error = None;
        let pid = child.id();
        let deadline = Instant::now() + START_TIMEOUT;
        let stream = loop {
            tokio::select! {
                accepted = accept(&listener, pid) => break accepted,
                Some(line) = output.recv() => {
                    log.write(&line);
                    note_error(&mut error, &line);
                }
                status = child.wait() => {
                    while let Some(line) = output.recv().await {
                        log.write(&line);
                        note_error(&mut error, &line);
                    }
                    let ended = status.map_or_else(|error| error.to_string(), |status| status.to_string());
                    return Err(ExitReason::Broken(error.map_or(ended, |trouble| trouble.words)));
                }
                () = tokio::time::sleep_until(deadline) => {
                    end(&mut child).await;
                    return Err(ExitReason::Broken("openvpn does not say anything".to_owned()));
                }
            }
        };
        let stream = match stream {
            Ok(stream) => stream,
            Err(error) => {
                end(&mut child).await;
                return Err(broken("the management socket cannot be used", &error));
            }
        };
        let (reader, commands) = stream.into_split();
        let management = BufReader::new(reader).lines();
        Ok(ManagementSession {
            child,
            output,
            management,
            commands,
            log,
            endpoint_names: endpoint_names.clone(),
            mark: process.fwmark,
            randomises_hostname: process.randomises_hostname,
            error,
            release: None,
            asked: None,
            looking: None,
            turn: 0,
            skipped: 0,
            connected: false,
        })
    }

    /// Runs until the process ends or another one is wanted. In the second case it ends the process first.
    pub(super) async fn run(
        mut self,
        process: &OpenVpnProcess,
        wanted: &mut watch::Receiver<DesiredSession>,
        publisher: &StatePublisher,
        backoff: &mut Backoff,
    ) -> ExitReason {
        publisher.update(|status| status.pid = self.child.id());
        self.send(&command::watch()).await;
        loop {
            let pause = self.release.into_iter().chain(self.asked.as_ref().map(|(_, at)| *at)).min();
            tokio::select! {
                line = self.management.next_line() => match line {
                    Ok(Some(line)) => {
                        if let Some(ending) = self.handle_line(&line, process, publisher, backoff).await {
                            end(&mut self.child).await;
                            return ending;
                        }
                    }
                    _ => return self.last(publisher).await,
                },
                Some(line) = self.output.recv() => self.read(&line, publisher),
                () = until(pause) => self.act().await,
                (remote, found) = found(&mut self.looking) => self.found(remote, found, publisher).await,
                changed = wanted.changed() => {
                    let now = wanted.borrow_and_update().clone();
                    if changed.is_err() || now.process.as_deref() != Some(process) {
                        publisher.update(|status| status.stage = Stage::Stopping);
                        end(&mut self.child).await;
                        return ExitReason::Requested;
                    }
                    // The caller asked for an immediate retry.
                    self.release = self.release.map(|_| Instant::now());
                }
            }
        }
    }

    /// Handles a line of the management socket. If it returns an ending, the process is of no more use.
    async fn handle_line(
        &mut self,
        line: &str,
        process: &OpenVpnProcess,
        publisher: &StatePublisher,
        backoff: &mut Backoff,
    ) -> Option<ExitReason> {
        match Message::parse(line) {
            Message::Hold => self.release = Some(Instant::now() + backoff.attempt()),
            Message::State(state) => self.state(state, publisher, backoff),
            Message::Bytes { received, sent } => publisher.count(received, sent),
            Message::Remote(remote) => self.asked = Some((remote, Instant::now())),
            Message::SecretRequest(SecretRequest::Credentials) => {
                if !process.username.is_set() || !process.password.is_set() {
                    return Some(ExitReason::Denied(
                        "the server asks for a user name and a password: set both".into(),
                    ));
                }
                self.send(&command::username(process.username.expose())).await;
                self.send(&command::password("Auth", process.password.expose())).await;
            }
            Message::SecretRequest(SecretRequest::Passphrase) => {
                if !process.key_passphrase.is_set() {
                    return Some(ExitReason::Denied(
                        "the key in the file is encrypted: set key_passphrase".into(),
                    ));
                }
                self.send(&command::password("Private Key", process.key_passphrase.expose())).await;
            }
            Message::SecretRequest(SecretRequest::Code) | Message::Asks => {
                return Some(ExitReason::Denied(
                    "the server asks for a one-time code or a person, which is not supported".into(),
                ));
            }
            Message::SecretRequest(SecretRequest::Else) => {
                return Some(ExitReason::Denied("openvpn asks for something that is not supported".into()));
            }
            Message::Refused(what) => {
                let words = match what.as_str() {
                    "Private Key" => "the passphrase of the key is wrong",
                    _ => "the server refuses the user name, the password or the key (AUTH_FAILED)",
                };
                self.note(ErrorRank::Refusal, words);
            }
            Message::Fatal(words) => {
                let words = self.log.hidden(&words);
                self.note(ErrorRank::Least, &words);
            }
            Message::Other => {}
        }
        None
    }

    fn state(&mut self, state: State, publisher: &StatePublisher, backoff: &mut Backoff) {
        match state.name.as_str() {
            "CONNECTED" => {
                backoff.connected();
                (self.error, self.skipped, self.connected) = (None, 0, true);
                publisher.update(|status| {
                    status.stage = Stage::Connected;
                    status.addresses.clone_from(&state.addresses);
                    status.remote = state.remote;
                    (status.error, status.attempts) = (None, 0);
                });
            }
            "RECONNECTING" => {
                self.turn += 1;
                let words = self.error.take().map(|trouble| trouble.words);
                let words = words.or_else(|| log_parser::reason(&state.detail).map(str::to_owned));
                let lost = self.connected;
                publisher.update(|status| {
                    status.stage = if lost { Stage::Reconnecting } else { Stage::Connecting };
                    status.error = words.or_else(|| status.error.take());
                    status.attempts += 1;
                    status.restarts += u32::from(lost && status.attempts == 1);
                    status.pushed.clear();
                    status.ping_sec = None;
                });
            }
            "EXITING" => {
                if let Some(words) = log_parser::reason(&state.detail) {
                    let denied = state.detail == "auth-failure";
                    self.note(if denied { ErrorRank::Refusal } else { ErrorRank::Least }, words);
                }
            }
            _ => {}
        }
    }

    /// Handles a line of the log.
    fn read(&mut self, line: &str, publisher: &StatePublisher) {
        self.log.write(line);
        match log_parser::reported(line) {
            Some(LogLine::Error(words)) => self.note(ErrorRank::LogLine, &words),
            Some(LogLine::Vague(words)) => self.note(ErrorRank::Least, &words),
            Some(LogLine::Denied(words)) => self.note(ErrorRank::Reason, &words),
            Some(LogLine::Ignored(option)) => publisher.update(|status| {
                if status.pushed.len() < MAX_PUSHED && !status.pushed.contains(&option) {
                    status.pushed.push(option);
                }
            }),
            Some(LogLine::Cipher(cipher)) => publisher.update(|status| status.cipher = Some(cipher)),
            Some(LogLine::Mtu(mtu)) => publisher.update(|status| status.mtu = Some(mtu)),
            Some(LogLine::Ping(seconds)) => publisher.update(|status| status.ping_sec = Some(seconds)),
            None => {}
        }
    }

    fn note(&mut self, weight: ErrorRank, words: &str) {
        note(&mut self.error, weight, words);
    }

    /// Runs postponed actions that are due.
    async fn act(&mut self) {
        let now = Instant::now();
        if self.release.take_if(|at| *at <= now).is_some() {
            self.send(&command::release()).await;
        }
        if let Some((remote, _)) = self.asked.take_if(|(_, at)| *at <= now) {
            let (names, mark, turn) = (self.endpoint_names.clone(), self.mark, self.turn);
            let name =
                if self.randomises_hostname { with_random_label(&remote.host) } else { remote.host.clone() };
            self.looking = Some(Box::pin(async move {
                let found = resolve(&names, mark, &Remote { host: name, ..remote.clone() }, turn).await;
                (remote, found)
            }));
        }
    }

    async fn found(&mut self, remote: Remote, found: Result<SocketAddr, String>, publisher: &StatePublisher) {
        let reason = match found {
            Ok(at) => return self.send(&command::remote(at)).await,
            Err(reason) => reason,
        };
        let words =
            format!("the server's name {} cannot be resolved: {reason}", log_parser::clean(&remote.host));
        publisher.update(|status| status.error = Some(words));
        // Another server may have a resolvable name. After too many skips, the process gives up all servers.
        self.skipped += 1;
        if self.skipped.is_multiple_of(4) {
            self.send(&command::skip()).await;
        } else {
            self.asked = Some((remote, after(RESOLVE_AGAIN)));
        }
    }

    async fn send(&mut self, text: &str) {
        // A process that no longer listens has ended. Other code detects its end.
        let _ = self.commands.write_all(text.as_bytes()).await;
    }

    /// Ends the session after the process has closed its side.
    async fn last(mut self, publisher: &StatePublisher) -> ExitReason {
        let status = tokio::time::timeout(TERMINATION_TIMEOUT, self.child.wait()).await;
        if status.is_err() {
            end(&mut self.child).await;
        }
        while let Some(line) = self.output.recv().await {
            self.read(&line, publisher);
        }
        match self.error {
            Some(SessionError { weight, words }) if weight >= ErrorRank::Refusal => ExitReason::Denied(words),
            Some(SessionError { words, .. }) => ExitReason::Gone(Some(words)),
            None => ExitReason::Gone(match status {
                Ok(Ok(status)) => Some(format!("openvpn ended ({status})")),
                _ => None,
            }),
        }
    }
}

struct SessionError {
    weight: ErrorRank,
    words: String,
}

/// Explanatory weight of an error. From `Refusal` on, a quick retry is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ErrorRank {
    Least,
    LogLine,
    Refusal,
    /// A refusal in the server's own words.
    Reason,
}

fn note_error(error: &mut Option<SessionError>, line: &str) {
    match log_parser::reported(line) {
        Some(LogLine::Error(words)) => note(error, ErrorRank::LogLine, &words),
        Some(LogLine::Vague(words)) => note(error, ErrorRank::Least, &words),
        Some(LogLine::Denied(words)) => note(error, ErrorRank::Reason, &words),
        _ => {}
    }
}

fn note(error: &mut Option<SessionError>, weight: ErrorRank, words: &str) {
    if error.as_ref().is_none_or(|trouble| trouble.weight <= weight) {
        *error = Some(SessionError { weight, words: words.to_owned() });
    }
}

/// Accepts a connection from exactly this process.
async fn accept(listener: &UnixListener, child: Option<u32>) -> std::io::Result<UnixStream> {
    loop {
        let (stream, _) = listener.accept().await?;
        let peer = stream.peer_cred()?.pid().and_then(|pid| u32::try_from(pid).ok());
        if peer.is_some() && peer == child {
            return Ok(stream);
        }
        tracing::warn!(?peer, "rejected connection to the OpenVPN management socket: unexpected peer");
    }
}

/// Sends SIGTERM, waits for a grace period, then sends SIGKILL. Returns when the process is gone.
async fn end(child: &mut Child) {
    if let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok()) {
        // It may have ended already.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGTERM);
    }
    if tokio::time::timeout(TERMINATION_TIMEOUT, child.wait()).await.is_err()
        && let Err(error) = child.kill().await
    {
        tracing::error!(%error, "failed to kill openvpn");
    }
}

type AddressLookup = Pin<Box<dyn Future<Output = (Remote, Result<SocketAddr, String>)> + Send>>;

async fn found(looking: &mut Option<AddressLookup>) -> (Remote, Result<SocketAddr, String>) {
    match looking {
        Some(future) => {
            let found = future.await;
            *looking = None;
            found
        }
        None => std::future::pending().await,
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn forward(stream: impl AsyncRead + Unpin + Send + 'static, into: mpsc::Sender<String>) {
    tokio::spawn(async move {
        let mut reader = BufReader::new(stream);
        while let Some(line) = next_line(&mut reader).await {
            if into.send(line).await.is_err() {
                break;
            }
        }
    });
}

/// Returns the next line, whatever its bytes.
async fn next_line(reader: &mut (impl AsyncBufRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    match reader.read_until(b'\n', &mut bytes).await {
        Ok(length) if length > 0 => Some(String::from_utf8_lossy(&bytes).trim_end().to_owned()),
        _ => None,
    }
}

fn after(pause: Duration) -> Instant {
    Instant::now() + give_or_take_a_quarter(pause)
}
