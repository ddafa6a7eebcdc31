//! Time of the next backup, computed from the schedule and the past runs. Pure.

use std::time::Duration;

use gateway_model::settings::groups::BackupConfig;
use gateway_outbound::backoff::Backoff;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::store::{BackupRun, BackupTrigger};

const RETRY: Backoff = Backoff::new(Duration::from_secs(60), Duration::from_secs(3600));

/// Due backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DueBackup {
    pub at: Timestamp,
    pub trigger: BackupTrigger,
}

/// Returns the next backup: a time of the schedule or, if the last run failed, the time of the retry. A time in the
/// past means that one backup is due now, however many were missed. Returns `None` while backups are off.
///
/// `runs` are sorted newest first. `configured` is the time of the last change of the configuration.
pub(super) fn next(
    config: &BackupConfig,
    configured: Timestamp,
    runs: &[BackupRun],
    now: Timestamp,
    zone: &TimeZone,
) -> Option<DueBackup> {
    if !config.enabled {
        return None;
    }
    // A run in the future was recorded with a wrong clock.
    let last = runs.first().map(|run| run.at.min(now));
    let since = last.map_or(configured, |last| last.max(configured)).min(now);
    let scheduled =
        config.next_after(since, zone).map(|at| DueBackup { at, trigger: BackupTrigger::Schedule });
    let retry = last.filter(|_| runs.first().is_some_and(|run| !run.is_ok())).map(|last| {
        // A changed configuration may fix the failure, so it is tried at once.
        let failures = runs.iter().take_while(|run| !run.is_ok() && run.at >= configured).count();
        let at = last.checked_add(wait(failures)).unwrap_or(Timestamp::MAX);
        DueBackup { at, trigger: BackupTrigger::Retry }
    });
    scheduled.into_iter().chain(retry).min_by_key(|due| due.at)
}

/// Returns the pause after some number of failures.
fn wait(failures: usize) -> SignedDuration {
    if failures == 0 {
        return SignedDuration::ZERO;
    }
    let wait = RETRY.after(u32::try_from(failures).unwrap_or(u32::MAX));
    SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::BackupOutcome;

    fn at(text: &str) -> Timestamp {
        format!("2026-11-{text}Z").parse().unwrap()
    }

    fn run(text: &str, result: BackupOutcome) -> BackupRun {
        BackupRun {
            at: at(text),
            finished_at: at(text),
            trigger: BackupTrigger::Schedule,
            result,
            size: None,
            name: String::new(),
            target: String::new(),
            error: None,
            warning: None,
        }
    }

    fn ok(text: &str) -> BackupRun {
        run(text, BackupOutcome::Ok)
    }

    fn failed(text: &str) -> BackupRun {
        run(text, BackupOutcome::Failed)
    }

    fn due(runs: &[BackupRun], now: &str) -> (String, BackupTrigger) {
        let config = BackupConfig { enabled: true, ..BackupConfig::default() };
        let due = next(&config, at("01T12:00:00"), runs, at(now), &TimeZone::UTC).unwrap();
        (due.at.to_string(), due.trigger)
    }

    const SCHEDULE: BackupTrigger = BackupTrigger::Schedule;
    const RETRY: BackupTrigger = BackupTrigger::Retry;

    #[test]
    fn the_schedule_counts_from_the_last_run_or_the_configuration() {
        assert_eq!(due(&[], "01T13:00:00"), ("2026-11-02T03:00:00Z".into(), SCHEDULE));
        assert_eq!(due(&[ok("02T03:00:05")], "02T04:00:00"), ("2026-11-03T03:00:00Z".into(), SCHEDULE));
        // A manual backup in between does not replace the one at night.
        assert_eq!(due(&[ok("02T14:00:00")], "02T15:00:00"), ("2026-11-03T03:00:00Z".into(), SCHEDULE));
        let off = BackupConfig::default();
        assert_eq!(next(&off, at("01T12:00:00"), &[], at("09T00:00:00"), &TimeZone::UTC), None);
    }

    #[test]
    fn a_missed_backup_is_due_once() {
        let (at, trigger) = due(&[ok("02T03:00:00")], "09T10:00:00");
        assert_eq!((at.as_str(), trigger), ("2026-11-03T03:00:00Z", SCHEDULE));
        assert_eq!(due(&[ok("09T10:00:00")], "09T10:00:01"), ("2026-11-10T03:00:00Z".into(), SCHEDULE));
    }

    #[test]
    fn failures_are_tried_again_at_growing_intervals() {
        let mut runs = vec![failed("02T03:00:00"), ok("01T13:00:00")];
        let mut minutes = Vec::new();
        for _ in 0..9 {
            let (next, trigger) = due(&runs, "02T03:00:00");
            assert_eq!(trigger, RETRY);
            let next: Timestamp = next.parse().unwrap();
            minutes.push(next.duration_since(at("02T03:00:00")).as_mins());
            runs.insert(0, failed("02T03:00:00"));
        }
        assert_eq!(minutes, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        // A retry never comes later than the schedule says.
        runs[0].at = at("03T02:30:00");
        assert_eq!(due(&runs, "03T02:31:00"), ("2026-11-03T03:00:00Z".into(), SCHEDULE));
    }

    #[test]
    fn another_configuration_is_tried_at_once_after_a_failure() {
        let config = BackupConfig { enabled: true, ..BackupConfig::default() };
        let now = at("02T12:00:30");
        let due = next(&config, at("02T12:00:00"), &[failed("02T11:59:00")], now, &TimeZone::UTC).unwrap();
        assert!(due.at <= now && due.trigger == RETRY, "{due:?}");
        let due = next(&config, at("02T12:00:00"), &[failed("02T12:00:10")], now, &TimeZone::UTC).unwrap();
        assert_eq!(due.at, at("02T12:01:10"));
    }

    #[test]
    fn a_clock_that_was_wrong_keeps_no_backup_from_being_made() {
        let (next, _) = due(&[ok("28T03:00:00")], "05T12:00:00");
        assert_eq!(next, "2026-11-06T03:00:00Z");
        let (next, trigger) = due(&[failed("28T03:00:00")], "05T12:00:00");
        assert_eq!((next.as_str(), trigger), ("2026-11-05T12:01:00Z", RETRY));
    }
}
