//! What the running kernel lacks, tried on Debian 12's 6.1 kernel in an emulated machine (`gateway_tests::vm`).
//!
//! Needs root and, the first time, a package mirror; without them these tests fail, they are not passed over.
//!
//! - `machine`: the machine itself: exit codes, deadlines, crashes.
//! - `smoke`: what the further tests build on, all checked in one boot.
//! - `inside`: tests that run in the guest, by this same test program; ignored elsewhere.
//! - `checks`: how a guest's script reports several checks.
//!
//! A further subject (the BPF object attached through clsact, the daemon with kernel WireGuard and a VLAN trunk) is a
//! further module beside these: its script in a `.sh` file, one boot, one line per check, one `#[test]` per statement.
//! Programs built on the host run in the guest under their host path: see `checks::this_program`.

mod checks;
mod daemon;
mod dataplane;
mod guest;
mod machine;
mod smoke;
mod wireguard;
