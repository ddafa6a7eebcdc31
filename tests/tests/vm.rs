//! Features that the running kernel lacks, tested on Debian 12's 6.1 kernel in an emulated machine
//! (`gateway_tests::vm`).
//!
//! Needs root and, the first time, a package mirror. Without them these tests fail; they are not skipped.
//!
//! - `machine`: the machine itself: exit codes, deadlines, crashes.
//! - `smoke`: prerequisites of the further tests, all checked in one boot.
//! - `inside`: tests that run in the guest, by this same test program; ignored elsewhere.
//! - `checks`: reports of several checks by a guest's script.
//!
//! A further subject (the BPF object attached through clsact, the daemon with kernel WireGuard and a VLAN trunk) is a
//! further module beside these. It has its script in a `.sh` file, one boot, one line per check, and one `#[test]` per
//! statement. Programs built on the host run in the guest under their host path: see `checks::this_program`.

mod access_point;
mod checks;
mod daemon;
mod dataplane;
mod encrypted_storage;
mod fast_path;
mod guest;
mod machine;
mod smoke;
mod wireguard;
