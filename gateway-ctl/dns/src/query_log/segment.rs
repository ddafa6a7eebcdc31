//! Files of records: append-only blocks, each with a header that summarises it. The headers are the index. They are
//! read when a file is opened, records only on demand.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gateway_core::dns::NameRef;

use super::Filter;
use super::bloom::{self, BloomSummary};
use super::record::RecordView;
use crate::serve::Status;

/// The first bytes of a block; the last is the version of its head. The first one had no summary.
const MAGIC: [u8; 4] = *b"gdl\x02";
const PLAIN: [u8; 4] = *b"gdl\x01";
const PLAIN_HEAD: usize = 56;
const HEAD_BYTES: usize = PLAIN_HEAD + bloom::LENGTH;

/// Position and summary of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Offset of the block's records, which follow its header.
    pub at: u64,
    pub length: u32,
    pub count: u32,
    pub blocked: u32,
    pub cached: u32,
    pub first: u64,
    /// Nanoseconds since 1970.
    pub oldest: i64,
    pub newest: i64,
    hash: u64,
    summary: BloomSummary,
}

/// A block while records are added to it.
#[derive(Debug)]
pub struct OpenBlock(Block);

impl OpenBlock {
    pub fn new(first: u64) -> OpenBlock {
        OpenBlock(Block {
            at: 0,
            length: 0,
            count: 0,
            blocked: 0,
            cached: 0,
            first,
            oldest: i64::MAX,
            newest: i64::MIN,
            hash: 0,
            summary: BloomSummary::NOTHING,
        })
    }

    /// A record, and the name it is about.
    pub fn add(&mut self, view: &RecordView<'_>, name: Option<NameRef<'_>>) {
        let OpenBlock(block) = self;
        let status = view.status();
        block.count += 1;
        block.blocked += u32::from(status == Some(Status::Blocked));
        block.cached += u32::from(status == Some(Status::Cached));
        block.oldest = block.oldest.min(view.time());
        block.newest = block.newest.max(view.time());
        block.summary.add(view, name, block.first);
    }

    pub fn count(&self) -> u64 {
        self.0.count.into()
    }

    /// Returns the block with all added records.
    pub fn done(self, records: &[u8]) -> Block {
        Block { length: records.len() as u32, hash: hash(records), ..self.0 }
    }
}

impl Block {
    /// False: none of its records matches.
    pub fn may_match(&self, filter: &Filter) -> bool {
        self.summary.may_match(filter, self.first)
    }

    fn head(&self) -> [u8; HEAD_BYTES] {
        let mut head = [0; HEAD_BYTES];
        head[..4].copy_from_slice(&MAGIC);
        for (at, number) in [(4, self.length), (8, self.count), (12, self.blocked), (16, self.cached)] {
            head[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        head[24..32].copy_from_slice(&self.first.to_le_bytes());
        head[32..40].copy_from_slice(&self.oldest.to_le_bytes());
        head[40..48].copy_from_slice(&self.newest.to_le_bytes());
        head[48..PLAIN_HEAD].copy_from_slice(&self.hash.to_le_bytes());
        self.summary.write(&mut head[PLAIN_HEAD..]);
        head
    }

    /// Reads a block header at `start`; `None` if the bytes are not one.
    fn read(head: &[u8], start: u64) -> Option<Block> {
        let (length, summary) = match *head.first_chunk()? {
            MAGIC => (HEAD_BYTES, BloomSummary::read(head.get(PLAIN_HEAD..HEAD_BYTES)?.first_chunk()?)),
            PLAIN => (PLAIN_HEAD, BloomSummary::ANYTHING),
            _ => return None,
        };
        let head = head.get(..length)?;
        let u32_at = |at: usize| head[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let u64_at = |at: usize| head[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        Some(Block {
            at: start + length as u64,
            length: u32_at(4),
            count: u32_at(8),
            blocked: u32_at(12),
            cached: u32_at(16),
            first: u64_at(24),
            oldest: u64_at(32).cast_signed(),
            newest: u64_at(40).cast_signed(),
            hash: u64_at(48),
            summary,
        })
    }
}

fn hash(records: &[u8]) -> u64 {
    // Seed of the checksum. It is the same in every run, because files contain it.
    rapidhash::v3::rapidhash_v3(records)
}

/// One file.
#[derive(Clone, Debug)]
pub struct Segment {
    pub path: PathBuf,
    file: Arc<File>,
    pub blocks: Vec<Block>,
    pub bytes: u64,
}

const SUFFIX: &str = "dnslog";

impl Segment {
    pub fn create(directory: &Path, first: u64) -> io::Result<Segment> {
        let path = directory.join(format!("{first:020}.{SUFFIX}"));
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
        Ok(Segment { path, file: Arc::new(file), blocks: Vec::new(), bytes: 0 })
    }

    /// Reads the heads. What follows the last whole block was being written when the power went: it is cut off.
    fn open(path: PathBuf) -> io::Result<Segment> {
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        let end = file.metadata()?.len();
        let mut segment = Segment { path, file: Arc::new(file), blocks: Vec::new(), bytes: 0 };
        let mut head = [0; HEAD_BYTES];
        let mut before = 0;
        while segment.bytes < end {
            let there = HEAD_BYTES.min(usize::try_from(end - segment.bytes).unwrap_or(HEAD_BYTES));
            segment.file.read_exact_at(&mut head[..there], segment.bytes)?;
            let block = Block::read(&head[..there], segment.bytes);
            let Some(block) = block.filter(|block| block.at + u64::from(block.length) <= end) else { break };
            before = segment.bytes;
            segment.bytes = block.at + u64::from(block.length);
            segment.blocks.push(block);
        }
        if let Some(last) = segment.blocks.last()
            && segment.read(last).is_none()
        {
            segment.bytes = before;
            segment.blocks.pop();
        }
        if segment.bytes < end {
            segment.file.set_len(segment.bytes)?;
        }
        Ok(segment)
    }

    /// All files of a directory, oldest first; those that are not readable are left alone.
    pub fn open_all(directory: &Path) -> io::Result<Vec<Arc<Segment>>> {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(directory)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == SUFFIX))
            .collect();
        paths.sort();
        let open = |path: PathBuf| match Segment::open(path.clone()) {
            Ok(segment) => Some(Arc::new(segment)),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "failed to read a file of the DNS query log");
                None
            }
        };
        Ok(paths.into_iter().filter_map(open).collect())
    }

    pub fn append(&mut self, records: &[u8], block: Block) -> io::Result<()> {
        // The head comes last: without it there is no block. A part that was written before an error is written over by the
        // next one.
        let at = self.bytes + HEAD_BYTES as u64;
        self.file.write_all_at(records, at)?;
        self.file.write_all_at(&block.head(), self.bytes)?;
        self.blocks.push(Block { at, ..block });
        self.bytes = at + records.len() as u64;
        Ok(())
    }

    /// Returns the records of a block. `None` if the checksum does not match.
    pub fn read(&self, block: &Block) -> Option<Vec<u8>> {
        let mut records = vec![0; block.length as usize];
        self.file.read_exact_at(&mut records, block.at).ok()?;
        (hash(&records) == block.hash).then_some(records)
    }

    pub fn newest(&self) -> i64 {
        self.blocks.iter().map(|block| block.newest).max().unwrap_or(i64::MIN)
    }

    pub fn next(&self) -> Option<u64> {
        self.blocks.last().map(|block| block.first + u64::from(block.count))
    }
}
