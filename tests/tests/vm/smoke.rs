//! Prerequisites of the further tests: one boot, many checks.

use std::path::Path;
use std::sync::LazyLock;

use gateway_tests::vm::{Opts, quoted};

use crate::vm::checks::{Checks, this_program};
use crate::vm::guest;

const MODULES: &[&str] =
    &["wireguard", "8021q", "dummy", "veth", "nf_tables", "nft_chain_nat", "nft_masq", "tun"];

/// Shared boot of the tests of this module.
static GUEST: LazyLock<Checks> = LazyLock::new(|| {
    let script = format!(
        "PROGRAM={}\nPIN={}\n{}",
        quoted(&this_program()),
        quoted(Path::new(guest::PIN)),
        include_str!("smoke.sh")
    );
    Checks::of(&script, Opts { modules: MODULES, ..Opts::default() })
});

fn assert_all(names: &[&str]) {
    for name in names {
        GUEST.assert_ok(name);
    }
}

#[test]
fn the_guest_boots_debians_kernel() {
    GUEST.assert_release("6.1.");
    assert_all(&["veth"]);
}

#[test]
fn kernel_wireguard_is_there() {
    assert_all(&["wireguard_device", "wireguard_ping", "wireguard_handshake"]);
}

#[test]
fn vlan_and_dummy_devices_are_there() {
    assert_all(&["vlan_ping", "vlan_numbers_keep_apart", "dummy_device", "dummy_ping"]);
}

#[test]
fn masquerade_is_there() {
    assert_all(&["unmasqueraded_is_unanswered", "masquerade_rules", "masqueraded_is_answered"]);
}

#[test]
fn a_dynamically_linked_program_of_the_host_runs() {
    assert_all(&["program_is_dynamic", "program_runs"]);
}

#[test]
fn bpf_programs_attach_through_clsact() {
    assert_all(&["bpffs", "program_pinned", "clsact", "unclassified_passes", "bpf_filter"]);
    assert_all(&["classified_is_dropped", "bpf_filter_removal", "declassified_passes"]);
}
