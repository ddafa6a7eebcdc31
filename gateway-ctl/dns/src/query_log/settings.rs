//! Settings of the query log.

use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Directory of the files. `None`: only memory is used.
    pub directory: Option<PathBuf>,
    /// Retention of files.
    pub keep: Duration,
    /// Bytes that all files may have.
    pub bytes: u64,
    /// So many of the newest records stay in memory.
    pub recent: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        let day = Duration::from_secs(86_400);
        Settings { directory: None, keep: 30 * day, bytes: 1 << 30, recent: 100_000 }
    }
}
