//! The machine itself: results of a guest that succeeds, fails or never ends.

use std::path::Path;
use std::time::{Duration, Instant};

use gateway_tests::vm::{Image, Opts, Vm};

fn image() -> Image {
    Vm::prepare().expect("the virtual machine can be prepared")
}

#[test]
fn a_failing_script_is_seen_as_failing() {
    let output =
        image().run("echo said\necho complained >&2\nexit 7\n", Opts::default()).expect("the guest boots");
    assert_eq!((output.exit, &*output.stdout, &*output.stderr), (7, "said\n", "complained\n"));
}

#[test]
fn a_guest_that_hangs_is_killed_at_the_deadline() {
    let image = image();
    // The kernel is not up by then, so the script never ends.
    let timeout = Duration::from_millis(300);
    let started = Instant::now();
    let error =
        image.run("sleep 1000", Opts { timeout, ..Opts::default() }).expect_err("the guest does not end");
    let said = format!("{error:#}");
    assert!(started.elapsed() >= timeout);
    let (_, after) =
        said.split_once("killed QEMU, process ").unwrap_or_else(|| panic!("another error: {said}"));
    let pid: u32 =
        after.split(';').next().and_then(|pid| pid.parse().ok()).expect("the error names the process");
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "QEMU still runs");
}

#[test]
fn a_crash_of_the_guest_shows_its_console() {
    let script = "echo before\necho c > /proc/sysrq-trigger\nsleep 1000\n";
    let error = image().run(script, Opts::default()).expect_err("the guest does not survive");
    let said = format!("{error:#}");
    assert!(said.contains("Kernel panic") && said.contains("before"), "{said}");
}

#[test]
fn a_module_that_does_not_exist_fails_the_run() {
    let opts = Opts { modules: &["no_such_module"], ..Opts::default() };
    let error = image().run("true", opts).expect_err("the module cannot be loaded");
    assert!(format!("{error:#}").contains("the module no_such_module does not load"), "{error:#}");
}
