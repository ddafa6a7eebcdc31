//! Tests that run in the guest: its scripts call this program with `--ignored --exact vm::inside::NAME`. On other
//! kernels they fail.

use std::ffi::CString;
use std::io;
use std::mem::size_of_val;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// Pin path of the program of `a_program_that_drops_is_loaded_and_pinned`.
pub(super) const PIN: &str = "/sys/fs/bpf/drop_all";

const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_OBJ_PIN: libc::c_long = 6;
const BPF_PROG_TYPE_SCHED_CLS: u32 = 3;
/// `r0 = 2 (TC_ACT_SHOT); exit`
const DROP_ALL: [u64; 2] = [0x0000_0002_0000_00b7, 0x0000_0000_0000_0095];

fn assert_in_guest() {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    assert!(release.starts_with("6.1."), "runs in the virtual machine only, not on Linux {release}");
}

/// Calls bpf(2) with the leading fields of its attributes, in eight-byte words.
fn bpf(command: libc::c_long, attributes: &[u64]) -> io::Result<i64> {
    // SAFETY: the kernel reads as many bytes as the size says; every address among them comes from a live object of the
    // caller and is only read.
    let answer =
        unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_ptr(), size_of_val(attributes)) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

#[test]
#[ignore = "runs inside the guest, called by smoke.sh"]
fn a_program_that_drops_is_loaded_and_pinned() {
    assert_in_guest();
    let load = [
        u64::from(BPF_PROG_TYPE_SCHED_CLS) | (DROP_ALL.len() as u64) << 32,
        DROP_ALL.as_ptr() as u64,
        c"GPL".as_ptr() as u64,
    ];
    let descriptor = bpf(BPF_PROG_LOAD, &load).expect("the kernel accepts the program");
    let descriptor = i32::try_from(descriptor).expect("a descriptor is small");
    // SAFETY: the kernel has just returned this new descriptor.
    let program = unsafe { OwnedFd::from_raw_fd(descriptor) };

    let path = CString::new(PIN).expect("no zero in the path");
    let pin = [path.as_ptr() as u64, u64::from(program.as_raw_fd().unsigned_abs())];
    bpf(BPF_OBJ_PIN, &pin).expect("bpffs takes the pin");
}
