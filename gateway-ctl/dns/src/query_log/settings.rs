//! Settings of the query log.

use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Directory of the files; without one, only memory is used.
    pub directory: Option<PathBuf>,
    /// Retention time of files.
    pub keep: Duration,
    /// Maximum size of all files together, in bytes.
    pub bytes: u64,
    /// Number of the newest records kept in memory.
    pub recent: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        let day = Duration::from_secs(86_400);
        Settings { directory: None, keep: 30 * day, bytes: 1 << 30, recent: 100_000 }
    }
}
