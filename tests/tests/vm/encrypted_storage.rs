//! Encrypted storage on a kernel with dm-crypt. Three boots, in which this program runs the tests of the
//! modules: the daemon with its records, set-ups that are killed, and a TPM that opens the storage.

mod daemon;
mod killed;
mod tpm;

use std::path::PathBuf;
use std::time::Duration;

use gateway_tests::vm::{Opts, quoted};

use crate::vm::checks::{Checks, this_program};

const MODULES: &[&str] = &["veth", "tun", "loop", "dm_mod", "dm_crypt", "ext4"];
const TPM_MODULES: &[&str] = &["veth", "tun", "loop", "dm_mod", "dm_crypt", "ext4", "tpm_tis"];
const TIMEOUT: Duration = Duration::from_secs(480);
/// Two hundred set-ups take long in an emulated machine.
const LONG: Duration = Duration::from_secs(1500);

fn assert_passes(module: &str, name: &str, timeout: Duration) {
    let program = quoted(&this_program());
    let daemon = match std::env::var_os("GATEWAYD_BIN") {
        Some(named) => format!("export GATEWAYD_BIN={}\n", quoted(&PathBuf::from(named))),
        None => String::new(),
    };
    let check = format!("check {name} passes {program} vm::encrypted_storage::{module}::{name}\n");
    // `wg setconf` reads its standard input by name, and a guest has no such name by default.
    let links = "ln -s /proc/self/fd /dev/fd\nln -s /proc/self/fd/0 /dev/stdin\n";
    let script = format!("echo \"release $(uname -r)\"\n{links}{daemon}{check}");
    // The key derivation takes 256 MiB.
    let has_tpm2 = module == "tpm";
    let modules = if has_tpm2 { TPM_MODULES } else { MODULES };
    let guest = Checks::of(&script, Opts { memory_mb: 2048, modules, timeout, has_tpm2 });
    guest.assert_release("6.1.");
    guest.assert_ok(name);
    guest.print_measured();
}

#[test]
fn records_of_the_daemon_live_in_the_encrypted_storage() {
    assert_passes("daemon", "records_live_in_the_storage_and_wait_for_its_passphrase", TIMEOUT);
}

#[test]
fn a_set_up_that_is_killed_leaves_nothing_or_a_storage() {
    assert_passes("killed", "two_hundred_kills_leave_nothing_or_a_storage", LONG);
}

#[test]
fn a_tpm_opens_the_storage_at_the_start() {
    assert_passes("tpm", "a_tpm_opens_the_storage_of_an_unchanged_machine_only", TIMEOUT);
}
