//! Waiting for a condition with a deadline. The only part of the harness that sleeps.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

const PAUSE: Duration = Duration::from_millis(10);

/// Calls `probe` until it returns a value. The error names the expected condition.
pub fn wait_until<T>(deadline: Duration, what: &str, mut probe: impl FnMut() -> Option<T>) -> Result<T> {
    let started = Instant::now();
    loop {
        if let Some(found) = probe() {
            return Ok(found);
        }
        if started.elapsed() >= deadline {
            bail!("waited {:.1} s in vain for: {what}", deadline.as_secs_f64());
        }
        std::thread::sleep(PAUSE);
    }
}

/// Like [`wait_until`] for a boolean condition.
pub fn wait_for(deadline: Duration, what: &str, mut holds: impl FnMut() -> bool) -> Result<()> {
    wait_until(deadline, what, || holds().then_some(()))
}

/// Like [`wait_until`] for a probe whose last error explains the failure.
pub fn wait_ok<T>(deadline: Duration, what: &str, mut probe: impl FnMut() -> Result<T>) -> Result<T> {
    let mut last = None;
    let found = wait_until(deadline, what, || match probe() {
        Ok(found) => Some(found),
        Err(error) => {
            last = Some(error);
            None
        }
    });
    match (found, last) {
        (Err(timeout), Some(error)) => Err(error.context(timeout.to_string())),
        (outcome, _) => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_as_soon_as_the_probe_answers() {
        let mut asked = 0;
        let found = wait_until(Duration::from_secs(5), "the third question", || {
            asked += 1;
            (asked == 3).then_some(asked)
        });
        assert_eq!(found.expect("answered"), 3);
    }

    #[test]
    fn waiting_in_vain_names_what_was_waited_for_and_the_last_reason() {
        let error = wait_ok::<()>(Duration::from_millis(30), "the moon", || bail!("it is cloudy"))
            .expect_err("never comes");
        let text = format!("{error:#}");
        assert!(text.contains("the moon") && text.contains("it is cloudy"), "{text}");
    }
}
