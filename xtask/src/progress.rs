//! Progress of work without its own output: start, periodic messages, and duration.

use std::{
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;

/// Interval between two messages.
const INTERVAL: Duration = Duration::from_secs(10);

/// Runs `work` and reports on it under the name `what`.
pub(crate) fn during<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    during_with(what, INTERVAL, &|line| eprintln!("{line}"), work)
}

fn during_with<T>(
    what: &str,
    interval: Duration,
    report: &(dyn Fn(String) + Sync),
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let start = Instant::now();
    report(format!("=> {what}"));
    let (done, is_done) = mpsc::channel::<()>();
    let result = thread::scope(|scope| {
        scope.spawn(move || {
            while is_done.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                report(format!("   {what}: {} so far", elapsed(start.elapsed())));
            }
        });
        let result = work();
        drop(done);
        result
    });
    let end = if result.is_ok() { "done after" } else { "failed after" };
    report(format!("   {what}: {end} {}", elapsed(start.elapsed())));
    result
}

/// Formats `41 s`, or `12:07 min` for more than a minute.
pub(crate) fn elapsed(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => format!("{}:{:02} min", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use anyhow::bail;

    use super::*;

    #[test]
    fn long_work_gives_signs_of_life() {
        let lines = Mutex::new(Vec::new());
        let (sign, is_seen) = mpsc::channel();
        let report = |line: String| {
            if line.ends_with("so far") {
                sign.send(()).ok();
            }
            lines.lock().unwrap().push(line);
        };
        let waited = during_with("work", Duration::from_millis(1), &report, || {
            Ok(is_seen.recv_timeout(Duration::from_secs(20))?)
        });
        assert!(waited.is_ok());
        let lines = lines.into_inner().unwrap();
        assert_eq!(lines.first().map(String::as_str), Some("=> work"));
        assert!(lines.last().unwrap().starts_with("   work: done after"), "{lines:?}");
    }

    #[test]
    fn failed_work_is_not_called_done() {
        let lines = Mutex::new(Vec::new());
        let report = |line| lines.lock().unwrap().push(line);
        let result: Result<()> = during_with("work", INTERVAL, &report, || bail!("broken"));
        assert!(result.is_err());
        assert!(lines.into_inner().unwrap().last().unwrap().contains("failed after"));
    }

    #[test]
    fn minutes_are_shown_as_minutes() {
        assert_eq!(elapsed(Duration::from_secs(59)), "59 s");
        assert_eq!(elapsed(Duration::from_secs(727)), "12:07 min");
    }
}
