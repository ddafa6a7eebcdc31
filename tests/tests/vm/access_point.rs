//! Access point with the virtual radios of `mac80211_hwsim`: hostapd of the daemon, and stations with `wpa_supplicant`. One
//! boot, in which this program runs the test of `guest`.

mod guest;
mod station;

use std::path::PathBuf;
use std::time::Duration;

use gateway_tests::vm::{Opts, quoted};

use crate::vm::checks::{Checks, this_program};

const MODULES: &[&str] = &["veth", "tun", "bridge"];
const NAME: &str = "stations_join_with_the_passphrase_and_have_their_policies";
const TIMEOUT: Duration = Duration::from_secs(600);

#[test]
fn access_point_serves_stations_and_guests() {
    let program = quoted(&this_program());
    let daemon = match std::env::var_os("GATEWAYD_BIN") {
        Some(named) => format!("export GATEWAYD_BIN={}\n", quoted(&PathBuf::from(named))),
        None => String::new(),
    };
    let links = "ln -s /proc/self/fd /dev/fd\nln -s /proc/self/fd/0 /dev/stdin\n";
    let radios = "modprobe mac80211_hwsim radios=4 || exit 3\n";
    let check = format!("check {NAME} passes {program} vm::access_point::guest::{NAME}\n");
    let script = format!("echo \"release $(uname -r)\"\n{links}{radios}{daemon}{check}");
    let guest = Checks::of(&script, Opts { modules: MODULES, timeout: TIMEOUT, ..Opts::default() });
    guest.assert_release("6.1.");
    guest.assert_ok(NAME);
}
