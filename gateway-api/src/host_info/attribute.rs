//! Files of /proc and /sys.

use std::fs;
use std::path::Path;

pub(super) fn read_text(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// Returns the trimmed text of an attribute. `None` if it is empty or cannot be read.
pub(super) fn attribute(path: impl AsRef<Path>) -> Option<String> {
    read_text(path).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}
