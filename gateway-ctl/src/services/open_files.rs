//! Health of the daemon's file descriptors. Each connection, socket and map takes one; without a free one, nothing
//! opens.

use std::io;

use gateway_core::health::{Check, Finding};

use crate::os::rlimit;
use crate::service::{Health, Service};

/// Share of the limit, in percent, above which the health is degraded.
const HIGH_PERCENT: u64 = 90;

/// Returns the service that reports the number of open descriptors.
pub(crate) fn report() -> Service {
    Service::idle("open_files")
        .reports(|| std::future::ready(count().ok().map(|open| health(open, rlimit::open_files()))))
}

/// Counts the descriptors of this process (proc_pid_fd(5)).
fn count() -> io::Result<u64> {
    // One of them belongs to the folder itself.
    Ok((std::fs::read_dir("/proc/self/fd")?.count() as u64).saturating_sub(1))
}

fn health(open: u64, limit: u64) -> Health {
    let message = format!("{open} of at most {limit} file descriptors are open");
    let finding = match open {
        open if open >= limit => Some(Finding::file_descriptors(message.clone(), true)),
        open if open >= limit / 100 * HIGH_PERCENT => Some(Finding::file_descriptors(message.clone(), false)),
        _ => None,
    };
    Check::of("open_files", finding.into_iter().collect(), message).into()
}

#[cfg(test)]
mod tests {
    use gateway_core::health::CheckState;

    use super::*;

    #[test]
    fn health_degrades_before_descriptors_run_out() {
        let states = [0, 899, 900, 999, 1_000].map(|open| health(open, 1_000).check.state);
        let [ok, degraded, failed] = [CheckState::Ok, CheckState::Degraded, CheckState::Failed];
        assert_eq!(states, [ok, ok, degraded, degraded, failed]);
        assert_eq!(health(7, 1_000).check.message, "7 of at most 1000 file descriptors are open");
    }

    #[test]
    fn descriptors_of_this_process_are_counted() {
        let before = count().expect("a number");
        let opened: Vec<_> = (0..100).map(|_| std::fs::File::open("/dev/null").expect("a file")).collect();
        assert!(count().expect("a number") >= before + 50, "{before} before {} more", opened.len());
    }
}
