//! Resource use of a process.

use std::fmt;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    /// Resident memory in bytes.
    pub memory: u64,
    /// Open descriptors, except those of the query log, whose number depends on its size limit.
    pub descriptors: usize,
    pub threads: usize,
}

impl Size {
    pub(super) fn of(pid: u32) -> Result<Size> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).context("status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().context("VmRSS")?;
        let entries = |what| fs::read_dir(format!("/proc/{pid}/{what}")).map(Iterator::flatten);
        let of_the_log = |target: &PathBuf| target.extension().is_some_and(|suffix| suffix == "dnslog");
        let files =
            entries("fd").context("descriptors")?.filter_map(|entry| fs::read_link(entry.path()).ok());
        Ok(Size {
            memory: kilobytes << 10,
            descriptors: files.filter(|target| !of_the_log(target)).count(),
            threads: entries("task").context("threads")?.count(),
        })
    }

    /// Returns the maximum of each field.
    pub(super) fn max(self, other: Size) -> Size {
        Size {
            memory: self.memory.max(other.memory),
            descriptors: self.descriptors.max(other.descriptors),
            threads: self.threads.max(other.threads),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Size { memory, descriptors, threads } = self;
        write!(f, "{} MiB, {descriptors} descriptors, {threads} threads", memory >> 20)
    }
}
