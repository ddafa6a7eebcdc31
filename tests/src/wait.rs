//! Waiting for a condition with a deadline. The only part of the harness that sleeps.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::processor_load::Sample;

/// Pause after a probe at least and at most: a twentieth of the time waited so far. What takes long is asked less often, since
/// the questions take processor time of the other tests.
const LEAST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// Factor by which deadlines stretch while other suites keep the processors busy: `cargo xtask test` sets it.
pub const DEADLINE_FACTOR: &str = "GATEWAY_TEST_DEADLINE_FACTOR";
/// Set in a guest, which does not see the load of its host: deadlines stretch there in any case.
pub const HIDDEN_LOAD: &str = "GATEWAY_TEST_HIDDEN_LOAD";
/// Share of the processors' time above which they count as busy: one of two works all the time, such as at the verification
/// of the kernel programs in a guest.
const BUSY: f64 = 0.45;

/// Calls `probe` until it returns a value. The error names the expected condition.
///
/// A deadline that passes while the processors are busy with other work says nothing about the condition: it stretches
/// by the factor of the environment. On idle processors it holds as it is.
pub fn wait_until<T>(deadline: Duration, what: &str, probe: impl FnMut() -> Option<T>) -> Result<T> {
    let before = Sample::take();
    let is_busy = || is_load_hidden() || before.is_some_and(|before| before.busy() >= BUSY);
    wait_stretching(deadline, deadline_factor(), is_busy, what, probe)
}

/// Returns the factor by which deadlines may stretch.
pub fn deadline_factor() -> f64 {
    static OF_ENVIRONMENT: LazyLock<f64> =
        LazyLock::new(|| factor(&std::env::var(DEADLINE_FACTOR).unwrap_or_default()));
    *OF_ENVIRONMENT
}

fn is_load_hidden() -> bool {
    static OF_ENVIRONMENT: LazyLock<bool> = LazyLock::new(|| std::env::var_os(HIDDEN_LOAD).is_some());
    *OF_ENVIRONMENT
}

/// Returns the factor in a text, or 1 if it has none.
fn factor(text: &str) -> f64 {
    text.parse().ok().filter(|factor| (1.0..=10.0).contains(factor)).unwrap_or(1.0)
}

fn wait_stretching<T>(
    deadline: Duration,
    factor: f64,
    is_busy: impl Fn() -> bool,
    what: &str,
    mut probe: impl FnMut() -> Option<T>,
) -> Result<T> {
    let started = Instant::now();
    loop {
        if let Some(found) = probe() {
            return Ok(found);
        }
        let waited = started.elapsed();
        if waited >= deadline && (waited >= deadline.mul_f64(factor) || !is_busy()) {
            bail!("waited {:.1} s in vain for: {what}", waited.as_secs_f64());
        }
        std::thread::sleep((waited / 20).clamp(LEAST_PAUSE, LONGEST_PAUSE));
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
    fn deadline_stretches_by_the_factor_and_only_under_load() {
        const DEADLINE: Duration = Duration::from_millis(30);
        let waited = |factor: f64, is_busy: bool| {
            let started = Instant::now();
            wait_stretching::<()>(DEADLINE, factor, || is_busy, "nothing", || None).expect_err("never");
            started.elapsed()
        };
        assert!(waited(4.0, true) >= DEADLINE * 4);
        // The probe succeeds only in the stretch.
        let started = Instant::now();
        let late = || (started.elapsed() >= DEADLINE * 2).then_some(());
        wait_stretching(DEADLINE, 1_000.0, || true, "later", late).expect("in the stretch");
        let started = Instant::now();
        let never = || (started.elapsed() >= Duration::from_secs(20)).then_some(());
        wait_stretching(DEADLINE, 1_000.0, || false, "later", never).expect_err("no stretch");
    }

    #[test]
    fn factor_is_a_number_from_one_to_ten() {
        let found = ["", "3", "1.5", "0.1", "100", "much"].map(factor);
        assert!(found.iter().zip([1.0, 3.0, 1.5, 1.0, 1.0, 1.0]).all(|(a, b)| (a - b).abs() < 1e-9));
    }

    #[test]
    fn waiting_in_vain_names_what_was_waited_for_and_the_last_reason() {
        let error = wait_ok::<()>(Duration::from_millis(30), "the moon", || bail!("it is cloudy"))
            .expect_err("never comes");
        let text = format!("{error:#}");
        assert!(text.contains("the moon") && text.contains("it is cloudy"), "{text}");
    }
}
