//! Regression tests of all known defects that bypassed the gateway, outlived an expiry or crashed the daemon: one test
//! each, on real packets and with taps on the uplinks.
//!
//! With the daemon from before the repairs 46 of the first 49 tests fail, 40 of them by their subject. Six fail because
//! that daemon lacks a prerequisite (`handover`, `low_disk`, one of `clocks`). Three pass: an idle tunnel that stays
//! healthy, a reader with an `ETag`, and a hung thread.
//!
//! Needs root, and `gatewayd` beside the test program or in `GATEWAYD_BIN`.

mod attacker;
mod clocks;
mod dead_exit;
mod deadlines;
mod doors;
mod endpoint_names;
mod exhaustion;
mod first_start;
mod full_disk;
mod handover;
mod host_output;
mod life;
mod low_disk;
mod moved_flows;
mod services;
mod sources;
mod traces;
mod traces_of_hosts;

use std::time::Duration;

use gateway_tests::tap::Counts;
use gateway_tests::testbed::Testbed;
use gateway_tests::topology::{Host, server, wan};
use gateway_tests::traffic::ask_server;

const FAMILIES: [bool; 2] = [false, true];
/// Timeout of a blocked connection: far longer than an open egress needs.
const BLOCKED: Duration = Duration::from_millis(700);
/// Timeout for the daemon to apply or to detect a change.
const SOON: Duration = Duration::from_secs(15);

/// Asserts that only tunnels and housekeeping were on the uplink since the tap was reset.
fn assert_nothing_left(testbed: &Testbed) -> Counts {
    testbed.network.settle().expect("silence on the LAN");
    let counts = testbed.network.tap.counts();
    assert!(counts.is_clean(), "{counts}");
    counts
}

/// Asserts that the tap counts direct traffic. Otherwise a clean count would prove nothing.
fn assert_the_tap_sees(testbed: &Testbed, host: &Host) {
    testbed.network.tap.reset();
    for ipv6 in FAMILIES {
        let answer = ask_server(host, server(ipv6));
        assert_eq!(answer.seen(), Some(wan(ipv6)), "{} at the server: {answer}", host.name);
    }
    let counts = testbed.network.tap.counts();
    assert!(counts.leaked.v4 > 0 && counts.leaked.v6 > 0, "{counts}");
    testbed.network.settle().expect("silence on the LAN");
    testbed.network.tap.reset();
}
