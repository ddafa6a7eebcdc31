//! XDP program that passes all frames. A veth accepts frames that XDP redirects to it while its peer has one.

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use anyhow::{Context as _, Result};

use crate::netns::Namespace;

const PROG_LOAD: libc::c_long = 5;
const LINK_CREATE: libc::c_long = 28;
const PROGRAM_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
const NATIVE: u32 = 1 << 2;
/// `r0 = XDP_PASS; exit`, as `struct bpf_insn`.
const PASS: [u64; 2] = [0x0000_0002_0000_00b7, 0x0000_0000_0000_0095];

/// The program on an interface. Dropping it detaches the program.
#[derive(Debug)]
pub struct XdpPeer(#[expect(dead_code, reason = "held for its drop")] OwnedFd);

#[repr(C)]
struct LoadAttributes {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
}

impl XdpPeer {
    /// Attaches the program to an interface of the namespace, in native mode.
    pub fn attach(namespace: &Namespace, interface: &str) -> Result<XdpPeer> {
        namespace.within(|| {
            let index = nix::net::if_::if_nametoindex(interface).context("an index")?;
            let mut load = LoadAttributes {
                kind: PROGRAM_TYPE_XDP,
                count: u32::try_from(PASS.len()).context("instructions")?,
                instructions: PASS.as_ptr() as u64,
                license: c"GPL".as_ptr() as u64,
            };
            let program = bpf(PROG_LOAD, &mut load).context("load an XDP program")?;
            let number = u32::try_from(program.as_raw_fd()).context("a descriptor")?;
            let mut attach = [number, index, ATTACH_XDP, NATIVE];
            Ok(XdpPeer(bpf(LINK_CREATE, &mut attach).context("attach an XDP program")?))
        })
    }
}

fn bpf<T>(command: libc::c_long, attributes: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: the attributes and what they point to outlive the call, and the kernel reads no more than their size.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes as *mut T, size_of::<T>()) };
    let descriptor = i32::try_from(result).ok().filter(|descriptor| *descriptor >= 0);
    let descriptor = descriptor.ok_or_else(io::Error::last_os_error)?;
    // SAFETY: the kernel has just created this descriptor for the caller.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
