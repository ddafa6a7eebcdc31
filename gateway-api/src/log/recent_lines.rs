//! The last lines of the log, within a limit of memory.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// Maximum number of lines, and of the bytes of all lines together.
const MAX_LINES: usize = 4_000;
const MAX_BYTES: usize = 1 << 20;
/// Maximum length of a line in bytes. The rest is cut off.
const MAX_LINE_BYTES: usize = 8 << 10;

/// Ring of lines.
#[derive(Debug)]
pub(super) struct RecentLines(Mutex<Lines>);

#[derive(Debug)]
struct Lines {
    lines: VecDeque<String>,
    bytes: usize,
}

impl RecentLines {
    pub(super) const fn new() -> RecentLines {
        RecentLines(Mutex::new(Lines { lines: VecDeque::new(), bytes: 0 }))
    }

    /// Adds a line. The oldest ones give way.
    pub(super) fn push(&self, line: &str) {
        let line = line.trim_end_matches('\n');
        let line = &line[..line.floor_char_boundary(MAX_LINE_BYTES)];
        let mut kept = self.0.lock();
        kept.bytes += line.len();
        kept.lines.push_back(line.to_owned());
        while kept.bytes > MAX_BYTES || kept.lines.len() > MAX_LINES {
            let Some(oldest) = kept.lines.pop_front() else { break };
            kept.bytes -= oldest.len();
        }
    }

    /// Returns the lines, the oldest first.
    pub(super) fn all(&self) -> Vec<String> {
        self.0.lock().lines.iter().cloned().collect()
    }

    pub(super) fn clear(&self) {
        let mut kept = self.0.lock();
        (kept.lines, kept.bytes) = (VecDeque::new(), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_lines_give_way_by_number_and_by_size() {
        let recent = RecentLines::new();
        (0..MAX_LINES + 2).for_each(|number| recent.push(&format!("line {number}\n")));
        let lines = recent.all();
        assert_eq!((lines.len(), lines[0].as_str()), (MAX_LINES, "line 2"));
        let long = "ä".repeat(MAX_LINE_BYTES);
        (0..200).for_each(|_| recent.push(&long));
        let lines = recent.all();
        assert!(lines.iter().map(String::len).sum::<usize>() <= MAX_BYTES);
        assert_eq!(lines.last().map(String::len), Some(MAX_LINE_BYTES));
        recent.clear();
        assert!(recent.all().is_empty());
    }
}
