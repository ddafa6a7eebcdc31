//! Several checks in one boot: the guest prints a line for each (`checks.sh`), and tests on the host look them up by
//! name.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gateway_tests::vm::{Opts, Output, Vm};
use gateway_tests::wait::{DEADLINE_FACTOR, HIDDEN_LOAD, deadline_factor};

const PRELUDE: &str = include_str!("checks.sh");

/// Report of a guest's script.
#[derive(Debug)]
pub(super) struct Checks {
    results: BTreeMap<String, Result<(), String>>,
    output: Output,
}

impl Checks {
    /// Boots a guest for `script`, which may use the functions of `checks.sh`. Panics unless the script succeeds.
    pub(super) fn of(script: &str, opts: Opts<'_>) -> Self {
        let image = Vm::prepare().expect("the virtual machine can be prepared");
        // Other suites slow down the emulation, and so the guest's tests.
        let factor = deadline_factor();
        let opts = Opts { timeout: opts.timeout.mul_f64(factor), ..opts };
        let script = format!("export {DEADLINE_FACTOR}={factor} {HIDDEN_LOAD}=1\n{PRELUDE}\n{script}");
        let output = image.run(&script, opts).expect("the guest runs its script");
        assert_eq!(output.exit, 0, "the script failed: {output:#?}");
        let results = output.stdout.lines().filter_map(Self::result).collect();
        Self { results, output }
    }

    fn result(line: &str) -> Option<(String, Result<(), String>)> {
        if let Some(name) = line.strip_prefix("ok ") {
            return Some((name.to_owned(), Ok(())));
        }
        let (name, said) = line.strip_prefix("failed ")?.split_once(": ")?;
        Some((name.to_owned(), Err(said.replace('\r', "\n"))))
    }

    /// Panics unless the guest's `uname -r`, which the script prints after the word `release`, starts with `prefix`.
    pub(super) fn assert_release(&self, prefix: &str) {
        let release = self.output.stdout.lines().find_map(|line| line.strip_prefix("release "));
        let release = release.expect("the script prints the kernel's release");
        assert!(release.starts_with(prefix), "the guest runs {release}");
    }

    /// Prints the results of measurements. Panics if there are none.
    pub(super) fn print_measured(&self) {
        let lines: Vec<_> =
            self.output.stdout.lines().filter_map(|line| line.strip_prefix("measured ")).collect();
        assert!(!lines.is_empty(), "nothing was measured in the guest\n{:#?}", self.output);
        println!("{}", lines.join("\n"));
    }

    /// Panics unless the check `name` ran and succeeded.
    pub(super) fn assert_ok(&self, name: &str) {
        match self.results.get(name) {
            Some(Ok(())) => {}
            Some(Err(said)) => {
                let console = &self.output.console;
                panic!("{name} failed in the guest:\n{said}\nconsole:\n{console}")
            }
            None => panic!("{name} was not checked in the guest\n{:#?}", self.output),
        }
    }
}

/// Returns the path of this test program, which the guest can run under the same path. The workspace's binaries of the
/// same profile are one folder up.
pub(super) fn this_program() -> PathBuf {
    std::env::current_exe().expect("a running program has a path")
}
