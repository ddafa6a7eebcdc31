//! Durations of the suites in their last successful run, for the progress display.

use std::{collections::BTreeMap, fs, time::Duration};

use anyhow::{Context, Result};

use crate::paths;

#[derive(Debug, Default)]
pub(super) struct Durations(BTreeMap<String, Duration>);

impl Durations {
    /// Reads the durations of earlier runs. Without a file or a valid line they are unknown.
    pub(super) fn read() -> Self {
        Self::parse(&fs::read_to_string(paths::durations()).unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let line = |line: &str| {
            let (name, seconds) = line.split_once(' ')?;
            Some((name.to_owned(), Duration::from_secs(seconds.parse().ok()?)))
        };
        Self(text.lines().filter_map(line).collect())
    }

    pub(super) fn of(&self, suite: &str) -> Option<Duration> {
        self.0.get(suite).copied()
    }

    /// Records the duration of a successful suite.
    pub(super) fn record(&mut self, suite: &str, duration: Duration) {
        self.0.insert(suite.to_owned(), duration);
    }

    pub(super) fn write(&self) -> Result<()> {
        let path = paths::durations();
        let lines: String = self.0.iter().map(|(name, d)| format!("{name} {}\n", d.as_secs())).collect();
        fs::write(&path, lines).with_context(|| format!("cannot write {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_cannot_be_read_are_unknown_durations() {
        let durations = Durations::parse("e2e 1200\nunit soon\n\nnoise");
        assert_eq!(durations.of("e2e"), Some(Duration::from_secs(1200)));
        assert_eq!(durations.of("unit"), None);
    }
}
