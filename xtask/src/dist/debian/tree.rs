//! The folder whose content becomes the package: files with their modes, whatever the umask is.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use flate2::{Compression, write::GzEncoder};

use crate::{paths, process};

pub(super) struct Tree {
    root: PathBuf,
    files: Vec<String>,
}

impl Tree {
    /// Creates an empty folder, in place of an earlier one.
    pub(super) fn create(root: &Path) -> Result<Self> {
        if root.exists() {
            fs::remove_dir_all(root).with_context(|| format!("cannot remove {}", root.display()))?;
        }
        fs::create_dir_all(root).with_context(|| format!("cannot make {}", root.display()))?;
        set_mode(root, 0o755)?;
        Ok(Self { root: root.to_owned(), files: Vec::new() })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn file(&mut self, path: &str, mode: u32, content: &[u8]) -> Result<()> {
        let file = self.prepare(path)?;
        fs::write(&file, content).with_context(|| format!("cannot write {}", file.display()))?;
        set_mode(&file, mode)
    }

    /// Writes a file as `gzip -9n` does: without its name and time.
    pub(super) fn compressed(&mut self, path: &str, content: &[u8]) -> Result<()> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(content).context("cannot compress")?;
        self.file(path, 0o644, &encoder.finish().context("cannot compress")?)
    }

    /// Copies a program without its symbols.
    pub(super) fn program(&mut self, path: &str, from: &Path) -> Result<()> {
        let file = self.prepare(path)?;
        process::run(Command::new("strip").arg("--strip-all").arg("-o").arg(&file).arg(from))?;
        set_mode(&file, 0o755)
    }

    fn prepare(&mut self, path: &str) -> Result<PathBuf> {
        let mut folder = self.root.clone();
        for name in Path::new(path).parent().into_iter().flat_map(Path::components) {
            folder.push(name);
            if !folder.is_dir() {
                fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
                set_mode(&folder, 0o755)?;
            }
        }
        self.files.push(path.to_owned());
        Ok(self.root.join(path))
    }

    /// Returns the size of the files in KiB, each rounded up, with one for each folder (deb-substvars(5)).
    pub(super) fn kibibytes(&self) -> Result<u64> {
        fn of(folder: &Path) -> Result<u64> {
            let mut sum = 1;
            for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
                let entry = entry?;
                let metadata = entry.metadata()?;
                sum += if metadata.is_dir() { of(&entry.path())? } else { metadata.len().div_ceil(1024) };
            }
            Ok(sum)
        }
        of(&self.root)
    }

    /// Returns the checksums of the files written so far but for some, as `md5sum` prints them.
    pub(super) fn checksums(&self, but: &[&str]) -> Result<String> {
        let mut files: Vec<&str> = self.files.iter().map(String::as_str).collect();
        files.retain(|file| !but.contains(file));
        files.sort_unstable();
        process::output(Command::new("md5sum").current_dir(&self.root).args(files))
    }
}

/// Reads a file of the workspace.
pub(super) fn source(path: &str) -> Result<Vec<u8>> {
    fs::read(paths::root().join(path)).with_context(|| format!("cannot read {path}"))
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .with_context(|| format!("cannot set the mode of {}", path.display()))
}
