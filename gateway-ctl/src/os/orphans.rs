//! Processes that an earlier daemon left behind, identified by their working directory.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Time limit for the end of a killed process.
const TIMEOUT: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Kills every process of a program that works in this folder or in a subfolder, and waits for its end.
pub(super) fn end(program: &str, folder: &Path) {
    let deadline = Instant::now() + TIMEOUT;
    let mut reported = false;
    loop {
        let found = find(program, folder);
        if found.is_empty() {
            return;
        }
        if Instant::now() > deadline {
            return tracing::error!(program, pids = ?found, "process of an earlier daemon does not end");
        }
        for pid in &found {
            if !reported {
                tracing::warn!(program, pid, "killed a process of an earlier daemon");
            }
            // It may have ended meanwhile.
            let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
        }
        reported = true;
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Waits until no process of a program works in this folder, and kills those that do after a time.
pub(super) fn wait(program: &str, folder: &Path, limit: Duration) {
    let deadline = Instant::now() + limit;
    while !find(program, folder).is_empty() && Instant::now() < deadline {
        std::thread::sleep(POLL_INTERVAL);
    }
    end(program, folder);
}

fn find(program: &str, folder: &Path) -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| is_orphan(*pid, program, folder)).collect()
}

fn is_orphan(pid: i32, program: &str, folder: &Path) -> bool {
    let proc = PathBuf::from(format!("/proc/{pid}"));
    // Before it executes the program, the process has the name of its starter.
    let ours = std::fs::read_to_string(proc.join("comm"))
        .is_ok_and(|name| [program, "setpriv"].contains(&name.trim_end()));
    ours && std::fs::read_link(proc.join("cwd")).is_ok_and(|at| at.starts_with(folder))
}
