//! Files of records: append-only blocks, each with a header that summarises it. The headers are the index. They are
//! read when a file is opened, records only on demand.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::format::{Format, Summary, View};
use crate::seal::SealingKey;

/// Length of a header without its summary.
const HEADER: usize = 56;
/// Flag of a block whose records are sealed.
const SEALED: u32 = 1;
/// Flag of a block whose records are packed.
const PACKED: u32 = 2;

/// Position and summary of a block.
#[derive(Clone, Debug)]
pub struct Block<S> {
    /// Offset of the block's records, which follow its header.
    at: u64,
    length: u32,
    pub count: u32,
    /// Two figures of its records, which the user counts.
    pub figures: [u32; 2],
    flags: u32,
    /// ID of its first record.
    pub first: u64,
    /// Nanoseconds since 1970.
    pub oldest: i64,
    pub newest: i64,
    hash: u64,
    pub summary: S,
}

impl<S: Summary> Block<S> {
    /// Returns a block without records.
    pub(crate) fn new(first: u64) -> Block<S> {
        Block {
            at: 0,
            length: 0,
            count: 0,
            figures: [0; 2],
            flags: 0,
            first,
            oldest: i64::MAX,
            newest: i64::MIN,
            hash: 0,
            summary: S::nothing(),
        }
    }

    /// Counts a record.
    pub(crate) fn add(&mut self, view: &impl View) {
        self.count += 1;
        self.oldest = self.oldest.min(view.time());
        self.newest = self.newest.max(view.time());
    }

    /// Returns the length of its records in a file, packed and sealed.
    pub fn bytes(&self) -> u64 {
        self.length.into()
    }

    pub(crate) fn is_packed(&self) -> bool {
        self.flags & PACKED != 0
    }

    /// Returns the ID of its last record.
    pub fn last(&self) -> u64 {
        self.end().saturating_sub(1)
    }

    /// Returns the ID behind its last record.
    pub(crate) fn end(&self) -> u64 {
        self.first + u64::from(self.count)
    }

    fn header<F: Format<Summary = S>>(&self) -> Vec<u8> {
        let (magic, summary) = newest::<F>();
        let mut header = vec![0; HEADER + summary];
        header[..4].copy_from_slice(&magic);
        let [first, second] = self.figures;
        for (at, number) in [(4, self.length), (8, self.count), (12, first), (16, second), (20, self.flags)] {
            header[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        header[24..32].copy_from_slice(&self.first.to_le_bytes());
        header[32..40].copy_from_slice(&self.oldest.to_le_bytes());
        header[40..48].copy_from_slice(&self.newest.to_le_bytes());
        header[48..HEADER].copy_from_slice(&self.hash.to_le_bytes());
        self.summary.write(&mut header[HEADER..]);
        header
    }

    /// Reads a header at `start`; `None` if the bytes are not one.
    fn read<F: Format<Summary = S>>(header: &[u8], start: u64) -> Option<Block<S>> {
        let magic: [u8; 4] = *header.first_chunk()?;
        let (_, summary) = F::VERSIONS.iter().find(|(version, _)| *version == magic)?;
        let header = header.get(..HEADER + summary)?;
        let u32_at = |at: usize| header[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let u64_at = |at: usize| header[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        Some(Block {
            at: start + header.len() as u64,
            length: u32_at(4),
            count: u32_at(8),
            figures: [u32_at(12), u32_at(16)],
            flags: u32_at(20),
            first: u64_at(24),
            oldest: u64_at(32).cast_signed(),
            newest: u64_at(40).cast_signed(),
            hash: u64_at(48),
            summary: S::read(magic, &header[HEADER..]),
        })
    }
}

/// Returns the version of new blocks.
fn newest<F: Format>() -> ([u8; 4], usize) {
    *F::VERSIONS.last().expect("a format has a version")
}

fn hash(records: &[u8]) -> u64 {
    // Seed of the checksum. It is the same in every run, because files contain it.
    rapidhash::v3::rapidhash_v3(records)
}

/// One file.
#[derive(Debug)]
pub(crate) struct Segment<F: Format> {
    pub path: PathBuf,
    file: Arc<File>,
    pub blocks: Vec<Block<F::Summary>>,
    pub bytes: u64,
}

impl<F: Format> Clone for Segment<F> {
    fn clone(&self) -> Segment<F> {
        let Segment { path, file, blocks, bytes } = self;
        Segment { path: path.clone(), file: file.clone(), blocks: blocks.clone(), bytes: *bytes }
    }
}

impl<F: Format> Segment<F> {
    pub(crate) fn create(directory: &Path, first: u64) -> io::Result<Segment<F>> {
        let path = directory.join(format!("{first:020}.{}", F::SUFFIX));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        Ok(Segment { file: Arc::new(options.open(&path)?), path, blocks: Vec::new(), bytes: 0 })
    }

    /// Reads the headers. What follows the last whole block was being written when the power went: it is cut off.
    fn open(path: PathBuf) -> io::Result<Segment<F>> {
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        let end = file.metadata()?.len();
        let mut segment = Segment { path, file: Arc::new(file), blocks: Vec::new(), bytes: 0 };
        let longest = HEADER + F::VERSIONS.iter().map(|(_, summary)| *summary).max().unwrap_or_default();
        let mut header = vec![0; longest];
        let mut before = 0;
        while segment.bytes < end {
            let there = longest.min(usize::try_from(end - segment.bytes).unwrap_or(longest));
            segment.file.read_exact_at(&mut header[..there], segment.bytes)?;
            let block = Block::read::<F>(&header[..there], segment.bytes);
            let Some(block) = block.filter(|block| block.at + block.bytes() <= end) else { break };
            before = segment.bytes;
            segment.bytes = block.at + block.bytes();
            segment.blocks.push(block);
        }
        if let Some(last) = segment.blocks.last()
            && segment.stored(last).is_none()
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
    pub(crate) fn open_all(directory: &Path) -> io::Result<Vec<Arc<Segment<F>>>> {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(directory)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == F::SUFFIX))
            .collect();
        paths.sort();
        let open = |path: PathBuf| match Segment::open(path.clone()) {
            Ok(segment) => Some(Arc::new(segment)),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "failed to read a file of the {}", F::NAME);
                None
            }
        };
        Ok(paths.into_iter().filter_map(open).collect())
    }

    pub(crate) fn append(
        &mut self,
        records: &[u8],
        mut block: Block<F::Summary>,
        key: Option<&SealingKey>,
    ) -> io::Result<()> {
        let packed = F::pack(records).filter(|packed| packed.len() < records.len());
        let records = packed.as_deref().unwrap_or(records);
        block.flags |= if packed.is_some() { PACKED } else { 0 };
        let sealed;
        let stored = match key {
            Some(key) => {
                block.flags |= SEALED;
                sealed = key.seal(block.first, records)?;
                &sealed[..]
            }
            None => records,
        };
        block.length = u32::try_from(stored.len()).map_err(io::Error::other)?;
        block.hash = hash(stored);
        let header = block.header::<F>();
        // The header comes last: without it there is no block. A part that was written before an error is written over
        // by the next one.
        block.at = self.bytes + header.len() as u64;
        self.file.write_all_at(stored, block.at)?;
        self.file.write_all_at(&header, self.bytes)?;
        self.bytes = block.at + block.bytes();
        self.blocks.push(block);
        Ok(())
    }

    /// Returns the bytes of a block as they are on disk. `None` if the checksum does not match.
    fn stored(&self, block: &Block<F::Summary>) -> Option<Vec<u8>> {
        let mut stored = vec![0; usize::try_from(block.length).ok()?];
        self.file.read_exact_at(&mut stored, block.at).ok()?;
        (hash(&stored) == block.hash).then_some(stored)
    }

    /// Returns the records of a block. `None` if they are damaged.
    pub(crate) fn read(&self, block: &Block<F::Summary>, key: Option<&SealingKey>) -> Option<Vec<u8>> {
        let opened = self.open_block(block, key)?;
        if block.is_packed() { F::unpack(&opened) } else { Some(opened) }
    }

    /// Returns the records of a block, packed if [`Block::is_packed`]. `None` if they are damaged.
    pub(crate) fn open_block(&self, block: &Block<F::Summary>, key: Option<&SealingKey>) -> Option<Vec<u8>> {
        let stored = self.stored(block)?;
        if block.flags & SEALED == 0 { Some(stored) } else { key?.open(block.first, stored) }
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Reports whether a block with records of this time belongs to another file.
    pub(crate) fn is_over(&self, newest: i64) -> bool {
        let oldest = self.blocks.iter().map(|block| block.oldest).min().unwrap_or(newest);
        u128::try_from(i128::from(newest) - i128::from(oldest))
            .is_ok_and(|span| span >= F::MAX_FILE_SPAN.as_nanos())
    }

    pub(crate) fn newest(&self) -> i64 {
        self.blocks.iter().map(|block| block.newest).max().unwrap_or(i64::MIN)
    }

    pub(crate) fn next(&self) -> Option<u64> {
        self.blocks.last().map(Block::end)
    }
}
