//! Size of the first page: the document with the scripts and styles that it references, compressed.

use std::{fs, io::Write, path::Path};

use anyhow::{Context, Result};
use flate2::{Compression, write::GzEncoder};

/// Maximum, in bytes.
pub(super) const LIMIT: usize = 300_000;

pub(super) fn first_page(dist: &Path) -> Result<usize> {
    let read = |name: &str| {
        let path = dist.join(name);
        fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let index = read("index.html")?;
    let mut total = compressed(&index)?;
    for file in references(&String::from_utf8_lossy(&index)) {
        total += compressed(&read(file)?)?;
    }
    Ok(total)
}

pub(super) fn shown(bytes: usize) -> String {
    format!("{}.{} KB", bytes / 1000, bytes % 1000 / 100)
}

/// Returns the scripts, preloaded modules and styles of a document, as paths below its folder, each once.
fn references(document: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for attribute in ["src=\"/", "href=\"/"] {
        for rest in document.split(attribute).skip(1) {
            let path = rest.split(['"', '?', '#']).next().unwrap_or_default();
            if (path.ends_with(".js") || path.ends_with(".css")) && !found.contains(&path) {
                found.push(path);
            }
        }
    }
    found
}

fn compressed(content: &[u8]) -> Result<usize> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content)?;
    Ok(encoder.finish()?.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_and_styles_count_once_and_other_files_do_not() {
        let document = "<link rel=\"icon\" href=\"/logo.svg\"><script src=\"/theme.js\"></script>\
            <script type=\"module\" crossorigin src=\"/assets/index-a.js\"></script>\
            <link rel=\"modulepreload\" href=\"/assets/react-b.js\"><link href=\"/assets/index-a.js\">\
            <link rel=\"stylesheet\" href=\"/assets/index-c.css?x\"><a href=\"/devices\">";
        let expected = ["theme.js", "assets/index-a.js", "assets/react-b.js", "assets/index-c.css"];
        assert_eq!(references(document), expected);
    }

    #[test]
    fn bytes_are_shown_in_kilobytes() {
        assert_eq!(
            (shown(0), shown(LIMIT), shown(1_990)),
            ("0.0 KB".into(), "300.0 KB".into(), "1.9 KB".into())
        );
    }
}
