//! Files of a capture: its packets as pcapng, their summaries as lines of JSON, and its state.

use std::borrow::Cow;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gateway_dissect::LinkType;
use gateway_journal::erase::erase_file;
use gateway_model::Id;
use jiff::Timestamp;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::interface_statistics::{InterfaceStatisticsBlock, InterfaceStatisticsOption};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness};

use super::session::{CaptureEnd, CaptureSession, CaptureState, CapturedPacket};
use crate::os::capture::{CaptureOrder, CapturedFrame, Direction, InterfaceCounters};
use crate::os::json_file;

/// Time stamps are nanoseconds.
const NANOSECONDS: u8 = 9;
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// Paths of the files of a capture.
#[derive(Clone, Debug)]
pub(super) struct CaptureFiles {
    state: PathBuf,
    packets: PathBuf,
    summaries: PathBuf,
}

impl CaptureFiles {
    pub(super) fn new(folder: &Path, id: Id) -> CaptureFiles {
        let path = |extension: &str| folder.join(format!("{id}.{extension}"));
        CaptureFiles { state: path("json"), packets: path("pcapng"), summaries: path("ndjson") }
    }

    /// Reads the captures of a folder, the oldest first. One that was running has ended with the daemon.
    pub(super) fn read_all(folder: &Path, now: Timestamp) -> Vec<(CaptureSession, CaptureFiles)> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let states = entries.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
        let mut all: Vec<_> = states
            .filter_map(|path| json_file::read::<Option<CaptureSession>>(&path))
            .map(|mut session| {
                if session.state == CaptureState::Running {
                    session.state = CaptureState::Error;
                    session.end = Some(CaptureEnd::Error);
                    session.ended_at = Some(now);
                    session.error = Some("the daemon ended during the capture".to_owned());
                }
                let files = CaptureFiles::new(folder, session.id);
                (session, files)
            })
            .collect();
        all.sort_by_key(|(session, _)| (session.started_at, session.id));
        all
    }

    pub(super) fn write_state(&self, session: &CaptureSession) -> io::Result<()> {
        json_file::write(&self.state, session)
    }

    pub(super) fn erase(&self) -> io::Result<()> {
        let erased = [&self.packets, &self.summaries].map(|path| erase_file(path));
        erased.into_iter().fold(json_file::erase(&self.state), io::Result::and)
    }

    /// Returns the summaries behind the one with this number, from the first `length` bytes.
    pub(super) fn summaries(&self, length: u64, after: u64, limit: usize) -> io::Result<Vec<CapturedPacket>> {
        let file = match File::open(&self.summaries) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            file => file?,
        };
        let skipped = usize::try_from(after).unwrap_or(usize::MAX);
        let lines = BufReader::new(file.take(length)).lines().skip(skipped).take(limit);
        lines.map(|line| Ok(serde_json::from_str(&line?)?)).collect()
    }

    /// Returns lines of summaries from an offset on, whole ones, at most up to `end`.
    pub(super) fn summary_lines(&self, from: u64, end: u64, most: usize) -> io::Result<Vec<u8>> {
        let mut file = File::open(&self.summaries)?;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(end.saturating_sub(from).min(most as u64)).read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        bytes.truncate(whole);
        Ok(bytes)
    }

    /// Writes the first `length` bytes of the packets, and the statistics of the interfaces.
    pub(super) fn copy_packets(&self, out: &mut dyn Write, length: u64, ending: &[u8]) -> io::Result<()> {
        io::copy(&mut File::open(&self.packets)?.take(length), out)?;
        out.write_all(ending)
    }

    /// Returns the length of both files on disk, of an earlier run of the daemon.
    pub(super) fn lengths(&self) -> (u64, u64) {
        let length = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
        (length(&self.packets), length(&self.summaries))
    }
}

/// Writer of a capture.
pub(super) struct CaptureWriter {
    packets: PcapNgWriter<Counted<BufWriter<File>>>,
    summaries: Counted<BufWriter<File>>,
}

impl CaptureWriter {
    pub(super) fn create(files: &CaptureFiles, order: &CaptureOrder) -> io::Result<CaptureWriter> {
        let create = |path: &Path| {
            let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
            Ok::<_, io::Error>(Counted { out: BufWriter::with_capacity(1 << 16, file), length: 0 })
        };
        let packets = PcapNgWriter::with_section_header(create(&files.packets)?, section())
            .map_err(io::Error::other)?;
        let mut writer = CaptureWriter { packets, summaries: create(&files.summaries)? };
        for interface in &order.interfaces {
            let linktype =
                if interface.link == LinkType::Ethernet { DataLink::ETHERNET } else { DataLink::RAW };
            let block = InterfaceDescriptionBlock {
                linktype,
                snaplen: order.snaplen,
                options: vec![
                    InterfaceDescriptionOption::IfName(Cow::Borrowed(&interface.name)),
                    InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
                ],
            };
            writer.packets.write_pcapng_block(block).map_err(io::Error::other)?;
        }
        writer.flush()?;
        Ok(writer)
    }

    /// Adds a packet and its summary.
    pub(super) fn add(
        &mut self,
        frame: &CapturedFrame,
        bytes: &[u8],
        summary: &CapturedPacket,
    ) -> io::Result<()> {
        let direction = if frame.direction == Direction::In { INBOUND } else { OUTBOUND };
        let mut options = vec![EnhancedPacketOption::Flags(direction)];
        if let Some(comment) = comment(summary) {
            options.push(EnhancedPacketOption::Comment(Cow::Owned(comment)));
        }
        let block = EnhancedPacketBlock {
            interface_id: u32::try_from(frame.interface).map_err(io::Error::other)?,
            timestamp: Duration::from_nanos(frame.time_ns),
            original_len: frame.length,
            data: Cow::Borrowed(bytes),
            options,
        };
        self.packets.write_pcapng_block(block).map_err(io::Error::other)?;
        serde_json::to_writer(&mut self.summaries, summary)?;
        self.summaries.write_all(b"\n")
    }

    /// Adds the statistics of the interfaces.
    pub(super) fn end(&mut self, counters: &[InterfaceCounters]) -> io::Result<()> {
        let blocks = statistics(counters)?;
        self.packets.get_mut().write_all(&blocks)?;
        self.flush()
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.packets.get_mut().flush()?;
        self.summaries.flush()
    }

    /// Returns the lengths of the packets and of the summaries, in bytes.
    pub(super) fn lengths(&self) -> (u64, u64) {
        (self.packets.get_ref().length, self.summaries.length)
    }
}

/// Returns the decision as a comment of the packet.
fn comment(summary: &CapturedPacket) -> Option<String> {
    let decision = summary.decision.as_ref()?;
    let mut comment = format!("decision={:?} reason={}", decision.decision, decision.reason).to_lowercase();
    let parts = [("device", &summary.device), ("policy", &decision.policy), ("egress", &decision.egress)];
    for (name, value) in parts {
        if let Some(value) = value {
            comment.push_str(&format!(" {name}={value:?}"));
        }
    }
    Some(comment)
}

/// Returns the blocks with the statistics of the interfaces, which end a file.
pub(super) fn statistics(counters: &[InterfaceCounters]) -> io::Result<Vec<u8>> {
    let mut writer = PcapNgWriter::with_section_header(Vec::new(), section()).map_err(io::Error::other)?;
    for _ in counters {
        let block =
            InterfaceDescriptionBlock { linktype: DataLink::ETHERNET, snaplen: 0, options: Vec::new() };
        writer.write_pcapng_block(block).map_err(io::Error::other)?;
    }
    let begin = writer.get_ref().len();
    for (interface, counters) in counters.iter().enumerate() {
        let block = InterfaceStatisticsBlock {
            interface_id: u32::try_from(interface).map_err(io::Error::other)?,
            // The counters are those of the whole capture.
            timestamp: 0,
            options: vec![
                InterfaceStatisticsOption::IsbIfRecv(counters.received),
                InterfaceStatisticsOption::IsbIfDrop(counters.dropped),
            ],
        };
        writer.write_pcapng_block(block).map_err(io::Error::other)?;
    }
    Ok(writer.into_inner().split_off(begin))
}

fn section() -> SectionHeaderBlock<'static> {
    SectionHeaderBlock {
        endianness: Endianness::Little,
        options: vec![SectionHeaderOption::UserApplication(Cow::Borrowed("gatewayd"))],
        ..SectionHeaderBlock::default()
    }
}

/// Writer that counts its bytes.
struct Counted<W> {
    out: W,
    length: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
