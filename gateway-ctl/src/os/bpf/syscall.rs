//! bpf(2) calls that the library lacks: information about a pinned link, and a grace period through a map of maps.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const OBJ_PIN: libc::c_int = 6;
const OBJ_GET: libc::c_int = 7;
const OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const LINK_CREATE: libc::c_int = 28;
const LINK_UPDATE: libc::c_int = 29;
const LINK_DETACH: libc::c_int = 34;
/// Attachment type of XDP, and the flag that demands the driver's own support (linux/bpf.h, linux/if_link.h).
const ATTACH_XDP: u32 = 37;
const XDP_NATIVE: u32 = 1 << 2;
const MAP_TYPE_ARRAY: u32 = 2;
const MAP_TYPE_ARRAY_OF_MAPS: u32 = 12;
const WORD_BYTES: u32 = 4;

/// The beginning of the kernel's `union bpf_attr`. The kernel takes the rest as zero.
#[derive(Default)]
#[repr(C, align(8))]
struct Attributes([u32; 8]);

impl Attributes {
    fn with_address(mut self, word: usize, address: u64) -> Self {
        let bytes = address.to_ne_bytes();
        let half = |from: usize| {
            u32::from_ne_bytes([bytes[from], bytes[from + 1], bytes[from + 2], bytes[from + 3]])
        };
        self.0[word] = half(0);
        self.0[word + 1] = half(4);
        self
    }
}

fn bpf(command: libc::c_int, attributes: &mut Attributes) -> io::Result<libc::c_int> {
    let size = size_of::<Attributes>();
    // SAFETY: the attributes outlive the call, and callers keep the memory that the attributes point to alive as
    // long.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes as *mut Attributes, size) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as libc::c_int) }
}

fn owned(descriptor: libc::c_int) -> OwnedFd {
    // SAFETY: the kernel has just created this descriptor for the caller.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

fn word(descriptor: &impl AsRawFd) -> u32 {
    descriptor.as_raw_fd().cast_unsigned()
}

/// A link between a program and an interface.
#[derive(Debug)]
pub struct PinnedTcx {
    link: OwnedFd,
    pub program: u32,
    /// Index of the interface, or 0 if it is gone.
    pub interface: u32,
}

impl PinnedTcx {
    pub fn open(pin: &Path) -> io::Result<Self> {
        let path = CString::new(pin.as_os_str().as_bytes())?;
        let mut attributes = Attributes::default().with_address(0, path.as_ptr() as u64);
        let link = owned(bpf(OBJ_GET, &mut attributes)?);
        // `struct bpf_link_info`: type, id, program, padding, then the interface and the kind of attachment.
        let mut info = [0_u32; 16];
        let mut attributes = Attributes([word(&link), size_of_val(&info) as u32, 0, 0, 0, 0, 0, 0])
            .with_address(2, info.as_mut_ptr() as u64);
        bpf(OBJ_GET_INFO_BY_FD, &mut attributes)?;
        Ok(Self { link, program: info[2], interface: info[4] })
    }

    /// Puts another program into the link.
    pub fn replace(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        let mut attributes = Attributes([word(&self.link), word(&program), 0, 0, 0, 0, 0, 0]);
        bpf(LINK_UPDATE, &mut attributes).map(drop)
    }

    /// Detaches the program at once. Removing only the pin would let the kernel detach it later.
    pub fn detach(&self) -> io::Result<()> {
        let mut attributes = Attributes([word(&self.link), 0, 0, 0, 0, 0, 0, 0]);
        bpf(LINK_DETACH, &mut attributes).map(drop)
    }
}

/// Attaches an XDP program to an interface in native mode. The attachment ends with the last descriptor or pin of the
/// link.
pub fn attach_xdp(program: BorrowedFd<'_>, interface: u32) -> io::Result<OwnedFd> {
    let mut attributes = Attributes([word(&program), interface, ATTACH_XDP, XDP_NATIVE, 0, 0, 0, 0]);
    bpf(LINK_CREATE, &mut attributes).map(owned)
}

/// Pins an object.
pub fn pin(object: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut attributes =
        Attributes([0, 0, word(&object), 0, 0, 0, 0, 0]).with_address(0, path.as_ptr() as u64);
    bpf(OBJ_PIN, &mut attributes).map(drop)
}

/// Waits until all running programs have ended. Replacing an entry in a map of maps has this effect. The kernel waits
/// for a grace period before such a call returns, so no program uses the old entry afterwards.
pub fn wait_for_programs() -> io::Result<()> {
    let mut inner = Attributes([MAP_TYPE_ARRAY, WORD_BYTES, WORD_BYTES, 1, 0, 0, 0, 0]);
    let inner = owned(bpf(MAP_CREATE, &mut inner)?);
    let mut outer = Attributes([MAP_TYPE_ARRAY_OF_MAPS, WORD_BYTES, WORD_BYTES, 1, 0, word(&inner), 0, 0]);
    let outer = owned(bpf(MAP_CREATE, &mut outer)?);
    let (key, value) = (0_u32, word(&inner));
    replace(outer.as_fd(), &key, &value)
}

fn replace(map: BorrowedFd<'_>, key: &u32, value: &u32) -> io::Result<()> {
    let mut attributes = Attributes([word(&map), 0, 0, 0, 0, 0, 0, 0])
        .with_address(2, std::ptr::from_ref(key) as u64)
        .with_address(4, std::ptr::from_ref(value) as u64);
    bpf(MAP_UPDATE_ELEM, &mut attributes).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_that_is_not_there_is_an_error() {
        let error = PinnedTcx::open(Path::new("/sys/fs/bpf/no/such/pin")).unwrap_err();
        assert!(matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied), "{error}");
    }
}
