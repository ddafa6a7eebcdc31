//! `cargo xtask dist`: what is installed elsewhere. A Debian package of the daemon with its dashboard, for machines like
//! this one, and a static client for arm64.

mod client;
mod debian;
mod page;
mod printed;
mod toolchain;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::{paths, process};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Build only this part
    #[arg(value_enum)]
    part: Option<Part>,
    /// Only pack `gatewayd` and `gateway-ctl` of this folder as they are, compressed quickly. For tests
    #[arg(long, value_name = "FOLDER", requires = "into", conflicts_with = "part")]
    programs: Option<PathBuf>,
    /// Write the package of `--programs` into this folder
    #[arg(long, value_name = "FOLDER", requires = "programs")]
    into: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The Debian package of the daemon with its dashboard
    Daemon,
    /// The static client for arm64, as an archive
    Client,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    if let (Some(programs), Some(into)) = (&options.programs, &options.into) {
        println!("{}", debian::pack(programs, into, debian::Compression::Quick)?.display());
        return Ok(());
    }
    let _lock = process::lock("dist")?;
    let dist = paths::dist();
    if dist.exists() {
        fs::remove_dir_all(&dist).with_context(|| format!("cannot remove {}", dist.display()))?;
    }
    fs::create_dir_all(&dist).with_context(|| format!("cannot make {}", dist.display()))?;
    let is_wanted = |part| options.part.is_none_or(|only| only == part);
    let mut results = Vec::new();
    if is_wanted(Part::Daemon) {
        results.push(debian::build(&dist)?);
    }
    if is_wanted(Part::Client) {
        results.push(client::build(&dist)?);
    }
    write_sums(&dist, &results)?;
    for result in results {
        println!("{}", result.display());
    }
    Ok(())
}

fn write_sums(dist: &Path, results: &[PathBuf]) -> Result<()> {
    let names = results.iter().filter_map(|result| result.file_name());
    let sums = process::output(Command::new("sha256sum").current_dir(dist).args(names))?;
    fs::write(dist.join("SHA256SUMS"), sums).context("cannot write SHA256SUMS")
}
