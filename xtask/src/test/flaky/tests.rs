//! Generated outcomes, and a test program that fails once.

use std::{
    env,
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use super::*;
use crate::test::supervise::{self, Outcome};

/// A failed test: its suite, whether all failures of the suite have names, and the results of two runs alone.
type Generated = (&'static str, bool, [bool; RERUNS]);

const SUITES: [&str; 2] = ["e2e", STRICT_SUITE];

/// Returns every list of up to `most` failed tests.
fn every_outcome(most: usize) -> Vec<Vec<Generated>> {
    let mut one = Vec::new();
    for suite in SUITES {
        for bits in 0..8_u8 {
            one.push((suite, bits & 1 == 0, [bits & 2 == 0, bits & 4 == 0]));
        }
    }
    let mut lists = vec![Vec::new()];
    let mut longest = lists.clone();
    for _ in 0..most {
        longest = longest
            .iter()
            .flat_map(|list: &Vec<Generated>| {
                one.iter().map(move |test| [list.as_slice(), &[*test]].concat())
            })
            .collect();
        lists.extend(longest.iter().cloned());
    }
    lists
}

/// Returns the verdicts, and the number of runs alone.
fn verdicts_on(tests: &[Generated]) -> (Vec<Verdict>, usize) {
    let names: Vec<String> = (0..tests.len()).map(|n| n.to_string()).collect();
    let failed = |(test, (suite, is_only_cause, _)): (&'static str, &Generated)| FailedTest {
        suite,
        test,
        is_only_cause: *is_only_cause,
    };
    let names = names.into_iter().map(|name| &*name.leak());
    let failed: Vec<_> = names.zip(tests).map(failed).collect();
    let mut runs = vec![0; tests.len()];
    let verdicts = verdicts(&failed, |test| {
        let number: usize = test.test.parse().unwrap();
        runs[number] += 1;
        tests[number].2[runs[number] - 1]
    });
    (verdicts, runs.iter().sum())
}

#[test]
fn run_is_green_if_at_most_two_tests_failed_and_each_passes_twice_alone() {
    for tests in every_outcome(3) {
        let (verdicts, runs) = verdicts_on(&tests);
        let is_green = verdicts.iter().all(|verdict| *verdict == Verdict::Flaky);
        let may_pass = |(suite, is_only_cause, _): &Generated| *is_only_cause && *suite != STRICT_SUITE;
        let want = tests.len() <= MAX_FLAKY
            && tests.iter().all(|test| may_pass(test) && test.2.iter().all(|passes| *passes));
        assert_eq!(is_green, want, "{tests:?}");
        for (test, verdict) in tests.iter().zip(&verdicts) {
            let passes = may_pass(test) && test.2 == [true; RERUNS];
            assert!(passes || *verdict == Verdict::Failed, "{tests:?}");
        }
        assert!(runs <= MAX_FLAKY * RERUNS, "{tests:?}");
    }
}

#[test]
fn failures_that_are_never_excused_do_not_count_against_the_others() {
    let strict = (STRICT_SUITE, true, [true; RERUNS]);
    let other = ("e2e", true, [true; RERUNS]);
    let (verdicts, runs) = verdicts_on(&[strict, other, strict, other]);
    let want = [Verdict::Failed, Verdict::Flaky, Verdict::Failed, Verdict::Flaky];
    assert_eq!((verdicts.as_slice(), runs), (&want[..], 4));
}

/// Tests that the variables FAILS_ONCE, FAILS and DIES select. A file is the memory of the first.
const PROGRAM: &str = r#"
    fn on(name: &str) -> Option<String> { std::env::var(name).ok() }
    mod inner {
        #[test]
        fn passes() {}
        #[test]
        fn fails_once() {
            println!("first line");
            let Some(state) = super::on("FAILS_ONCE") else { return };
            let is_first = std::fs::metadata(&state).is_err();
            std::fs::write(&state, "").unwrap();
            assert!(!is_first, "too early");
        }
    }
    #[test]
    fn fails() { assert!(on("FAILS").is_none(), "never right"); }
    #[test]
    fn dies() { if on("DIES").is_some() { std::process::abort(); } }
"#;

/// A compiled test program in a folder of its own.
struct Fixture {
    folder: PathBuf,
}

impl Fixture {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("flaky-{}-{count}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("program.rs"), PROGRAM).unwrap();
        let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let mut command = Command::new(rustc);
        command.args(["--test", "--edition", "2024", "program.rs"]).current_dir(&folder);
        assert!(command.status().unwrap().success());
        Self { folder }
    }

    fn run(&self, variables: &[&str], arguments: &[&str]) -> Outcome {
        let mut command = Command::new(self.folder.join("program"));
        let state = self.folder.join("state");
        command.args(arguments).envs(variables.iter().map(|name| (name, &state)));
        supervise::run(&mut command, Duration::from_secs(60), "").unwrap()
    }

    /// Runs the program as a suite, and its failed tests again. Returns the report and the tests that ran again.
    fn suite(&self, name: &'static str, variables: &[&str], arguments: &[&str]) -> (Report, Vec<String>) {
        let start = Instant::now();
        let Outcome { counts, failures, is_complete, problem, .. } = self.run(variables, arguments);
        let mut report = Report::default();
        report.add(Row {
            name,
            counts,
            time: start.elapsed(),
            processor: None,
            failures,
            is_complete,
            problem,
        });
        let mut again = Vec::new();
        excuse(&mut report, &self.folder.join("output"), |_, test| {
            again.push(test.to_owned());
            self.run(variables, &["--exact", test]).all_passed()
        });
        (report, again)
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).unwrap();
    }
}

#[test]
fn test_that_fails_once_is_flaky_and_its_output_is_kept() {
    let fixture = Fixture::new();
    for (arguments, number) in [(&[][..], 1), (&["--nocapture", "--test-threads=1"], 2)] {
        let (report, again) = fixture.suite("e2e", &["FAILS_ONCE"], arguments);
        assert!(report.passed(), "{report}");
        assert_eq!(again, ["inner::fails_once"; 2], "{number}");
        let text = report.to_string();
        assert!(text.ends_with("\n4 passed, 0 failed\n"), "{text}");
        let file = fixture.folder.join("output/e2e-inner-fails_once.txt");
        assert!(text.lines().any(|line| line.starts_with("flaky              1 ")), "{text}");
        assert!(text.contains(&format!("its output: {}\n", file.display())), "{text}");
        let output = fs::read_to_string(file).unwrap();
        assert!(output.contains("first line"), "{output}");
        // The panic of an uncaptured test is in the standard error, which is only shown.
        assert_eq!(output.contains("too early"), arguments.is_empty(), "{output}");
        fs::remove_file(fixture.folder.join("state")).unwrap();
    }
}

#[test]
fn test_that_fails_again_stays_failed_beside_a_flaky_one() {
    let (report, again) = Fixture::new().suite("e2e", &["FAILS_ONCE", "FAILS"], &[]);
    assert!(!report.passed());
    assert_eq!(again.len(), 3);
    let text = report.to_string();
    assert!(text.contains("\ne2e: fails failed:\n"), "{text}");
    assert!(text.ends_with("\n3 passed, 1 failed\n"), "{text}");
}

#[test]
fn test_of_the_strict_suite_does_not_run_again() {
    let (report, again) = Fixture::new().suite(STRICT_SUITE, &["FAILS_ONCE"], &[]);
    assert!(!report.passed() && again.is_empty(), "{report}");
}

#[test]
fn program_that_dies_is_not_run_again() {
    let (report, again) = Fixture::new().suite("e2e", &["FAILS_ONCE", "DIES"], &[]);
    assert!(report.rows()[0].problem.is_some() && again.is_empty(), "{report}");
}
