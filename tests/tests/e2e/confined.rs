//! The programs of the packaged units, with the capabilities that these leave them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use gateway_tests::daemon::find_program;
use gateway_tests::testbed::{Testbed, policy};

use crate::e2e::{assert_blocked, assert_nothing_leaked, assert_the_tap_sees, assert_through};

#[test]
fn daemon_with_the_capabilities_of_the_unit_carries_traffic() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut testbed = Testbed::prepare().expect("scene");
    testbed.daemon.use_program(confined(folder.path(), "gatewayd.service"));
    testbed.daemon.start().expect("daemon");
    let pid = testbed.daemon.pid().expect("a daemon");
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("status");
    let bounding = status.lines().find_map(|line| line.strip_prefix("CapBnd:")).expect("capabilities");
    let bits = u64::from_str_radix(bounding.trim(), 16).expect("a number").count_ones();
    assert_eq!(bits as usize, capabilities("gatewayd.service").len(), "{bounding}");

    let laptop = testbed.device(&testbed.network.laptop).expect("device");
    testbed.tunnel("wg-a", &testbed.network.exit_a).expect("tunnel");
    testbed.policy(&policy("a", 10, ("device", &laptop), &["wg-a"])).expect("policy");
    testbed.network.tap.reset();
    assert_through(&testbed.network.laptop, &testbed.network.exit_a);
    assert_nothing_leaked(&testbed);
    let health = testbed.api().get("/health").expect("health");
    assert_eq!(health["status"], "ok", "{health}");
}

#[test]
fn guard_with_the_capabilities_of_its_unit_blocks_the_lan() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut testbed = Testbed::prepare().expect("scene");
    testbed.network.forward_plainly().expect("forwarding");
    assert_the_tap_sees(&testbed, &testbed.network.laptop);
    testbed.daemon.use_program(confined(folder.path(), "gatewayd-guard.service"));
    testbed.daemon.run(&["guard"]).expect("the guard");
    assert_blocked(&testbed.network.laptop);
    assert_nothing_leaked(&testbed);
}

/// Returns a program that starts the daemon with the capabilities of a unit.
fn confined(folder: &Path, unit: &str) -> PathBuf {
    let list: Vec<String> = capabilities(unit).iter().map(|name| format!("+{name}")).collect();
    let daemon = find_program().expect("a daemon");
    let script = format!(
        "#!/bin/sh\nexec setpriv --no-new-privs --inh-caps -all --bounding-set -all,{} {} \"$@\"\n",
        list.join(","),
        daemon.display()
    );
    let path = folder.join("confined");
    fs::write(&path, script).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    path
}

/// Returns the capabilities of the unit, as setpriv(1) names them.
fn capabilities(unit: &str) -> Vec<String> {
    let unit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging").join(unit);
    let unit = fs::read_to_string(unit).expect("the unit");
    let lines = unit.lines().filter_map(|line| line.strip_prefix("CapabilityBoundingSet="));
    let names = lines.flat_map(str::split_whitespace);
    names.map(|name| name.trim_start_matches("CAP_").to_lowercase()).collect()
}
