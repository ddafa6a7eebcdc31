//! A capture from its start to its end: the child's records become files, and the state follows them.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File};
use std::io::{self, BufReader, Write};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gateway_model::Id;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::annotations::Annotations;
use super::captured_interfaces::Claim;
use super::context::{CaptureContext, StartError};
use super::files::{CaptureFiles, CaptureWriter, statistics};
use super::metrics::CaptureTotals;
use super::request::CaptureRequest;
use super::session::{CaptureEnd, CaptureSession, CaptureState, CapturedPacket};
use crate::os::capture::{
    CaptureFailure, CaptureOrder, CaptureProcess, CapturedFrame, ChildEnd, InterfaceCounters, Record,
    RecordReader,
};
use crate::supervise::{blocking, try_blocking};

/// Maximum size of the file of packets.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// Time within which the child has its sockets.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Time within which the child ends when it should.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// Time within which XDP leaves the interfaces.
const XDP_TIMEOUT: Duration = Duration::from_secs(3);
const XDP_POLL_INTERVAL: Duration = Duration::from_millis(20);
const PIPE_BYTES: usize = 1 << 18;
/// Size of the parts of a stream, and the silence after which it shows the state.
const PART_BYTES: usize = 64 << 10;
const HEARTBEAT: Duration = Duration::from_secs(5);

type Records = RecordReader<BufReader<File>>;

/// A capture.
#[derive(Debug)]
pub struct Recording {
    id: Id,
    files: CaptureFiles,
    progress: watch::Sender<Progress>,
    ending: watch::Sender<Ending>,
}

/// State of a capture, and the parts of its files that are complete.
#[derive(Clone, Debug)]
struct Progress {
    session: CaptureSession,
    packet_bytes: u64,
    summary_bytes: u64,
    counters: Vec<InterfaceCounters>,
}

/// Request of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ending {
    None,
    Stop,
    Kill,
}

impl Recording {
    /// Returns a capture of an earlier run of the daemon.
    pub(super) fn ended(session: CaptureSession, files: CaptureFiles) -> Recording {
        let (packet_bytes, summary_bytes) = files.lengths();
        Recording {
            id: session.id,
            files,
            progress: watch::channel(Progress { session, packet_bytes, summary_bytes, counters: Vec::new() })
                .0,
            ending: watch::channel(Ending::None).0,
        }
    }

    pub fn id(&self) -> Id {
        self.id
    }

    pub fn session(&self) -> CaptureSession {
        self.progress.borrow().session.clone()
    }

    pub fn is_running(&self) -> bool {
        self.progress.borrow().session.state == CaptureState::Running
    }

    /// Ends the capture, with all packets that have arrived. Returns when it has ended.
    pub async fn stop(&self) {
        self.end(Ending::Stop).await;
    }

    /// Ends the capture at once.
    pub async fn kill(&self) {
        self.end(Ending::Kill).await;
    }

    async fn end(&self, ending: Ending) {
        let mut progress = self.progress.subscribe();
        self.ending.send_if_modified(|have| std::mem::replace(have, ending.max(*have)) != *have);
        // The task that owns the capture always ends it.
        let _ = progress.wait_for(|progress| progress.session.state != CaptureState::Running).await;
    }

    /// Returns the summaries behind the one with this number.
    pub fn summaries(&self, after: u64, limit: usize) -> io::Result<Vec<CapturedPacket>> {
        let length = self.progress.borrow().summary_bytes;
        self.files.summaries(length, after, limit)
    }

    /// Writes the packets as a file of pcapng.
    pub fn write_packets(&self, out: &mut dyn Write) -> io::Result<()> {
        let progress = self.progress.borrow().clone();
        let ending = match progress.session.state {
            // They are in the file already.
            CaptureState::Done | CaptureState::Stopped | CaptureState::Error => Vec::new(),
            CaptureState::Running => statistics(&progress.counters)?,
        };
        self.files.copy_packets(out, progress.packet_bytes, &ending)
    }

    /// Returns the summaries from the first one on, as they come.
    pub fn packets(self: &Arc<Self>) -> Packets {
        Packets {
            recording: self.clone(),
            progress: self.progress.subscribe(),
            offset: 0,
            is_complete: false,
        }
    }

    pub(super) fn erase(&self) -> io::Result<()> {
        self.files.erase()
    }

    fn update(&self, change: impl FnOnce(&mut Progress)) {
        self.progress.send_modify(change);
    }
}

/// Summaries of a capture, as lines of JSON.
#[derive(Debug)]
pub struct Packets {
    recording: Arc<Recording>,
    progress: watch::Receiver<Progress>,
    offset: u64,
    is_complete: bool,
}

impl Packets {
    /// Waits for further lines. After each silence there is one with the state, and a last one at the end of the capture.
    /// `None` after that. A reader that is slow reads them later from the file; it holds nothing up.
    pub async fn next(&mut self) -> Option<io::Result<Vec<u8>>> {
        loop {
            let Progress { summary_bytes, session, .. } = self.progress.borrow_and_update().clone();
            if self.offset < summary_bytes {
                let (recording, from) = (self.recording.clone(), self.offset);
                let read =
                    blocking(move || recording.files.summary_lines(from, summary_bytes, PART_BYTES)).await;
                return match read {
                    Ok(lines) if lines.is_empty() => None,
                    Ok(lines) => {
                        self.offset += lines.len() as u64;
                        Some(Ok(lines))
                    }
                    Err(error) => Some(Err(error)),
                };
            }
            if session.state != CaptureState::Running {
                return (!std::mem::replace(&mut self.is_complete, true)).then(|| state_line(&session));
            }
            match timeout(HEARTBEAT, self.progress.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return None,
                Err(_) => return Some(state_line(&session)),
            }
        }
    }
}

fn state_line(session: &CaptureSession) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&serde_json::json!({"session": session}))?;
    line.push(b'\n');
    Ok(line)
}

/// Starts a capture. Returns when all its sockets receive.
pub(super) async fn start(
    context: &CaptureContext,
    folder: &Path,
    request: &CaptureRequest,
    created_by: &str,
) -> Result<Arc<Recording>, StartError> {
    let world = context.worlds.now();
    let order = request.order(&world).map_err(StartError::Invalid)?;
    let id = Id::mint(world.now, 0);
    let layers: BTreeSet<String> =
        order.interfaces.iter().flat_map(|interface| world.facts.layers(&interface.name)).collect();
    let (claim, without_xdp) = claim(context, id, layers).await?;
    let (mut process, output) = CaptureProcess::start(&order).await?;
    let mut records = RecordReader::new(BufReader::with_capacity(PIPE_BYTES, output));
    let first = try_blocking(move || {
        records.read_record().map(|first| first.map(|(record, _)| record)).map(|first| (first, records))
    });
    let (first, records) = match timeout(START_TIMEOUT, first).await {
        Ok(Ok(Ok(read))) => read,
        Ok(Ok(Err(error))) => return Err(error.into()),
        Ok(Err(error)) => return Err(io::Error::other(error).into()),
        Err(_) => {
            process.kill()?;
            return Err(io::Error::other("the process of the capture did not start in time").into());
        }
    };
    match first {
        Some(Record::Ready) => {}
        Some(Record::Failed(failure)) => return Err(failure.into()),
        _ => return Err(io::Error::other(died(process.wait().await?)).into()),
    }
    let session = session(id, request, &order, without_xdp, created_by, world.now);
    let files = CaptureFiles::new(folder, id);
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let created = files.write_state(&session).and_then(|()| CaptureWriter::create(&files, &order));
    let writer = match created {
        Ok(writer) => writer,
        Err(error) => {
            report(files.erase());
            return Err(error.into());
        }
    };
    let (packet_bytes, summary_bytes) = writer.lengths();
    let progress = Progress { session, packet_bytes, summary_bytes, counters: Vec::new() };
    let recording = Arc::new(Recording {
        id,
        files,
        progress: watch::channel(progress).0,
        ending: watch::channel(Ending::None).0,
    });
    context.totals.count_start();
    tokio::spawn(follow(recording.clone(), context.clone(), order, process, records, writer, claim));
    Ok(recording)
}

fn session(
    id: Id,
    request: &CaptureRequest,
    order: &CaptureOrder,
    without_xdp: Vec<String>,
    created_by: &str,
    now: jiff::Timestamp,
) -> CaptureSession {
    CaptureSession {
        id,
        state: CaptureState::Running,
        interface: request.interface.clone(),
        interfaces: order.interfaces.iter().map(|interface| interface.name.clone()).collect(),
        filter: order.filter.clone(),
        preset: request.preset,
        count: order.max_packets,
        duration_sec: order.max_seconds,
        snaplen: order.snaplen,
        promiscuous: order.promiscuous,
        started_at: now,
        ended_at: None,
        end: None,
        packets: 0,
        bytes: 0,
        dropped: 0,
        left_out: 0,
        without_xdp,
        created_by: created_by.to_owned(),
        error: None,
    }
}

/// Makes XDP leave interfaces. Returns those that it has left.
async fn claim(
    context: &CaptureContext,
    id: Id,
    interfaces: BTreeSet<String>,
) -> Result<(Claim, Vec<String>), StartError> {
    let attached = || {
        let stats = context.dataplane.xdp().stats().map_err(io::Error::other)?;
        let attached =
            stats.interfaces.into_iter().filter(|(name, state)| state.attached && interfaces.contains(name));
        Ok::<Vec<String>, io::Error>(attached.map(|(name, _)| name).collect())
    };
    let before = attached()?;
    let claim = context.captured.claim(id, interfaces.clone());
    let gone = async {
        while !attached()?.is_empty() {
            sleep(XDP_POLL_INTERVAL).await;
        }
        Ok::<(), io::Error>(())
    };
    match timeout(XDP_TIMEOUT, gone).await {
        Ok(gone) => gone?,
        Err(_) => return Err(io::Error::other(format!("XDP did not leave {}", before.join(", "))).into()),
    }
    Ok((claim, before))
}

/// Owns a capture until its end.
async fn follow(
    recording: Arc<Recording>,
    context: CaptureContext,
    order: CaptureOrder,
    mut process: CaptureProcess,
    records: Records,
    writer: CaptureWriter,
    claim: Claim,
) {
    let longest = Duration::from_secs(order.max_seconds) + END_TIMEOUT;
    let (reading, clock, totals) = (recording.clone(), context.clock.clone(), context.totals.clone());
    let mut reader = tokio::spawn(try_blocking(move || {
        Reading { recording: reading, order, writer }.run(context, records)
    }));
    let mut ending = recording.ending.subscribe();
    let mut until = longest;
    let outcome = loop {
        tokio::select! {
            outcome = &mut reader => break outcome,
            changed = ending.changed() => {
                let wanted = *ending.borrow_and_update();
                if changed.is_err() || wanted == Ending::Kill {
                    report(process.kill());
                } else {
                    process.stop();
                }
                until = END_TIMEOUT;
            }
            () = sleep(until) => report(process.kill()),
        }
    };
    let outcome = match outcome {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(panic)) | Err(panic) => Err(io::Error::other(panic)),
    };
    if outcome.is_err() || matches!(outcome, Ok(Outcome::Size)) {
        report(process.kill());
    }
    let signal = process.wait().await.unwrap_or_default();
    drop(claim);
    finish(&recording, outcome, signal, clock.now(), &totals);
}

fn report(result: io::Result<()>) {
    if let Err(error) = result {
        tracing::warn!(%error, "failed to end a capture");
    }
}

fn died(signal: Option<i32>) -> String {
    match signal {
        Some(signal) => format!("the process of the capture was ended by signal {signal}"),
        None => "the process of the capture has ended".to_owned(),
    }
}

fn finish(
    recording: &Recording,
    outcome: io::Result<Outcome>,
    signal: Option<i32>,
    now: jiff::Timestamp,
    totals: &CaptureTotals,
) {
    let (state, end, error) = match outcome {
        Ok(Outcome::Child(ChildEnd::Count)) => (CaptureState::Done, CaptureEnd::Count, None),
        Ok(Outcome::Child(ChildEnd::Duration)) => (CaptureState::Done, CaptureEnd::Duration, None),
        Ok(Outcome::Child(ChildEnd::Stopped)) => (CaptureState::Stopped, CaptureEnd::Stopped, None),
        Ok(Outcome::Size) => (CaptureState::Done, CaptureEnd::Size, None),
        Ok(Outcome::Failed(failure)) => (CaptureState::Error, CaptureEnd::Error, Some(failure.to_string())),
        Ok(Outcome::Gone) => (CaptureState::Error, CaptureEnd::Error, Some(died(signal))),
        Err(error) => (CaptureState::Error, CaptureEnd::Error, Some(error.to_string())),
    };
    if let Some(error) = &error {
        tracing::warn!(capture = %recording.id, %error, "a capture failed");
    }
    let (packet_bytes, summary_bytes) = recording.files.lengths();
    let mut session = recording.session();
    (session.state, session.end, session.error) = (state, Some(end), error);
    session.ended_at = Some(now);
    // Before its end is known: a wipe waits for that, and erases the files.
    if let Err(error) = recording.files.write_state(&session) {
        tracing::warn!(capture = %recording.id, %error, "failed to write the state of a capture");
    }
    totals.count_end(&session.clone(), || {
        recording.update(|progress| {
            progress.session = session;
            (progress.packet_bytes, progress.summary_bytes) = (packet_bytes, summary_bytes);
        });
    });
}

/// End of the records.
enum Outcome {
    Child(ChildEnd),
    Failed(CaptureFailure),
    /// The file has its maximum size.
    Size,
    /// The child has died.
    Gone,
}

/// Reader of the records of a capture.
struct Reading {
    recording: Arc<Recording>,
    order: CaptureOrder,
    writer: CaptureWriter,
}

impl Reading {
    fn run(mut self, context: CaptureContext, mut records: Records) -> io::Result<Outcome> {
        let outcome = self.read(context, &mut records);
        let counters = self.recording.progress.borrow().counters.clone();
        let ended = self.writer.end(&counters);
        let outcome = outcome?;
        ended.map(|()| outcome)
    }

    fn read(&mut self, context: CaptureContext, records: &mut Records) -> io::Result<Outcome> {
        let mut annotations = Annotations::new(context);
        let (mut packets, mut bytes) = (0, 0);
        loop {
            let Some((record, content)) = records.read_record()? else { return Ok(Outcome::Gone) };
            match record {
                Record::Ready => {}
                Record::Failed(failure) => return Ok(Outcome::Failed(failure)),
                Record::Packet(frame) => {
                    packets += 1;
                    bytes += u64::from(frame.length);
                    self.add(&mut annotations, packets, &frame, content)?;
                }
                Record::Counters(counters) => self.count(counters),
                Record::Ended { left_out, end } => {
                    self.publish(packets, bytes)?;
                    self.recording.update(|progress| progress.session.left_out = left_out);
                    return Ok(Outcome::Child(end));
                }
            }
            let is_full = self.writer.lengths().0 >= MAX_FILE_BYTES || packets > self.order.max_packets;
            if is_full || records.get_ref().buffer().is_empty() {
                self.publish(packets, bytes)?;
            }
            if is_full {
                return Ok(Outcome::Size);
            }
        }
    }

    fn add(
        &mut self,
        annotations: &mut Annotations,
        no: u64,
        frame: &CapturedFrame,
        content: &[u8],
    ) -> io::Result<()> {
        let unknown =
            || io::Error::new(io::ErrorKind::InvalidData, "a packet of no interface of the capture");
        let interface = self.order.interfaces.get(frame.interface).ok_or_else(unknown)?;
        let summary = annotations.packet(no, interface, frame);
        self.writer.add(frame, content, &summary)
    }

    fn count(&self, counters: Vec<InterfaceCounters>) {
        self.recording.update(|progress| {
            progress.session.dropped = counters.iter().map(|counters| counters.dropped).sum();
            progress.counters = counters;
        });
    }

    /// Makes what was written readable.
    fn publish(&mut self, packets: u64, bytes: u64) -> io::Result<()> {
        self.writer.flush()?;
        let (packet_bytes, summary_bytes) = self.writer.lengths();
        self.recording.update(|progress| {
            (progress.session.packets, progress.session.bytes) = (packets, bytes);
            (progress.packet_bytes, progress.summary_bytes) = (packet_bytes, summary_bytes);
        });
        Ok(())
    }
}
