//! Replacement of small files of the state folder.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

/// Replaces a file. A crash leaves the old content or the new one.
pub fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let written = path.with_extension("new");
    let mut file = File::create(&written)?;
    file.write_all(content)?;
    file.sync_all()?;
    std::fs::rename(&written, path)
}
