//! `binary_size`: size of the daemon as it is installed, without symbols, compared with the file that was built.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use gateway_tests::daemon::find_program;

use crate::row::{Row, Target};

/// Bytes of a megabyte.
const MEGABYTE: f64 = 1e6;

pub(crate) fn run() -> Result<Vec<Row>> {
    let built = find_program()?;
    let folder = tempfile::tempdir().context("a folder")?;
    let installed = folder.path().join("gatewayd");
    // As the Debian package does.
    let status = Command::new("strip").arg("--strip-all").arg("-o").arg(&installed).arg(&built).status();
    ensure!(status.context("strip")?.success(), "strip failed for {}", built.display());
    let [ours, peer] = [&installed, &built].map(|file| {
        let size = fs::metadata(file).with_context(|| file.display().to_string())?.len();
        anyhow::Ok(size as f64 / MEGABYTE)
    });
    Ok(vec![Row {
        bench: "binary_size",
        ours: ours?,
        peer: peer?,
        peer_name: "the same with symbols".to_owned(),
        unit: "MB",
        target: Target::OursBelow(30.0),
    }])
}
