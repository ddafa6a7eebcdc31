//! Runs of cryptsetup and mkfs.ext4, which end with this process.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use gateway_model::Secret;
use zeroize::Zeroizing;

use super::VolumeError;
use crate::os::required_programs;

/// Longest message of a program that an error repeats, in characters.
const MESSAGE_LENGTH: usize = 300;

/// Exit statuses of cryptsetup.
const NO_PERMISSION: i32 = 2;
const DEVICE_BUSY: i32 = 5;

/// Runs a program with these lines at its standard input. Returns its output.
pub(super) fn run(
    program: &'static str,
    arguments: &[&OsStr],
    lines: &[&Secret],
) -> Result<Vec<u8>, VolumeError> {
    let mut text = Zeroizing::new(String::with_capacity(2048));
    for line in lines {
        text.push_str(line.expose());
        text.push('\n');
    }
    let stdin = if lines.is_empty() { Stdio::null() } else { Stdio::piped() };
    let mut child = spawn(program, arguments, stdin)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends early has closed it, and its status says why.
        let _ = stdin.write_all(text.as_bytes());
    }
    outcome(program, child.wait_with_output().map_err(VolumeError::at("wait for a program"))?)
}

/// Runs a program with this standard input, to its end.
pub(super) fn execute(
    program: &'static str,
    arguments: &[&OsStr],
    stdin: Stdio,
) -> Result<Output, VolumeError> {
    let child = spawn(program, arguments, stdin)?;
    child.wait_with_output().map_err(VolumeError::at("wait for a program"))
}

/// Starts a program. The kernel kills it with this process: a program that goes on after a crash would open what the next
/// start removes.
fn spawn(program: &'static str, arguments: &[&OsStr], stdin: Stdio) -> Result<Child, VolumeError> {
    let path = found(program)?;
    let mut command = Command::new(found("setpriv")?);
    command.args(["--pdeathsig", "KILL"]).arg(path).args(arguments).env("LC_ALL", "C");
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().map_err(VolumeError::at("start a program"))
}

fn found(program: &'static str) -> Result<PathBuf, VolumeError> {
    required_programs::find(program)
        .ok_or_else(|| VolumeError::NotSupported(format!("the program {program}")))
}

pub(super) fn outcome(program: &'static str, output: Output) -> Result<Vec<u8>, VolumeError> {
    if output.status.success() {
        return Ok(output.stdout);
    }
    match output.status.code() {
        Some(NO_PERMISSION) if program == "cryptsetup" => return Err(VolumeError::WrongKey),
        Some(DEVICE_BUSY) if program == "cryptsetup" => return Err(VolumeError::Busy),
        _ => {}
    }
    Err(VolumeError::Program { program, message: message(&output) })
}

/// Returns the last line that a program wrote of its errors, or its status.
pub(super) fn message(output: &Output) -> String {
    let printed = String::from_utf8_lossy(&output.stderr);
    let last = printed.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    match last.trim() {
        "" => output.status.to_string(),
        text => text.chars().take(MESSAGE_LENGTH).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;

    use super::*;

    fn ended(code: i32, stderr: &str) -> Output {
        Output { status: ExitStatus::from_raw(code << 8), stdout: b"out".to_vec(), stderr: stderr.into() }
    }

    #[test]
    fn statuses_and_messages_become_errors() {
        assert_eq!(outcome("cryptsetup", ended(0, "WARNING: x")).expect("ended well"), b"out");
        let error = |program, code, text| outcome(program, ended(code, text)).expect_err("failed");
        assert!(matches!(error("cryptsetup", 2, "No key available"), VolumeError::WrongKey));
        assert!(matches!(error("cryptsetup", 5, "Device x is still in use."), VolumeError::Busy));
        let text = error("mkfs.ext4", 2, "mke2fs 1.47\nno room\n\n").to_string();
        assert_eq!(text, "mkfs.ext4 failed: no room");
        assert_eq!(error("cryptsetup", 4, "").to_string(), "cryptsetup failed: exit status: 4");
    }
}
