//! bpf(2) calls that the library lacks: information about a pinned link, a grace period through a map of maps,
//! many entries of a map at once, and a part of one.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use aya::Pod;

const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const OBJ_PIN: libc::c_int = 6;
const OBJ_GET: libc::c_int = 7;
const OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const MAP_LOOKUP_BATCH: libc::c_int = 24;
const MAP_UPDATE_BATCH: libc::c_int = 26;
const MAP_DELETE_BATCH: libc::c_int = 27;
const LINK_CREATE: libc::c_int = 28;
const LINK_UPDATE: libc::c_int = 29;
const LINK_DETACH: libc::c_int = 34;
/// Attachment type of XDP, and the flag that demands the driver's own support (linux/bpf.h, linux/if_link.h).
const ATTACH_XDP: u32 = 37;
const XDP_NATIVE: u32 = 1 << 2;
const MAP_TYPE_ARRAY: u32 = 2;
const MAP_TYPE_ARRAY_OF_MAPS: u32 = 12;
const WORD_BYTES: u32 = 4;
/// Word of the count in the attributes of a batch command: behind the addresses of two positions, keys and values. The
/// descriptor of the map and two unused flags follow.
const BATCH_COUNT: usize = 8;

/// The beginning of the kernel's `union bpf_attr`. The kernel takes the rest as zero.
#[derive(Default)]
#[repr(C, align(8))]
struct Attributes([u32; 14]);

impl Attributes {
    /// Returns attributes that begin with these words.
    fn new<const N: usize>(words: [u32; N]) -> Self {
        let mut attributes = Self::default();
        attributes.0[..N].copy_from_slice(&words);
        attributes
    }

    /// Returns the attributes of a batch command.
    fn of_batch(map: BorrowedFd<'_>, count: usize) -> Self {
        let mut attributes = Self::default();
        attributes.0[BATCH_COUNT] = u32::try_from(count).unwrap_or(u32::MAX);
        attributes.0[BATCH_COUNT + 1] = word(&map);
        attributes
    }

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
pub(super) struct PinnedTcx {
    link: OwnedFd,
    pub program: u32,
    /// Index of the interface, or 0 if it is gone.
    pub interface: u32,
}

impl PinnedTcx {
    pub(super) fn open(pin: &Path) -> io::Result<Self> {
        let path = CString::new(pin.as_os_str().as_bytes())?;
        let mut attributes = Attributes::default().with_address(0, path.as_ptr() as u64);
        let link = owned(bpf(OBJ_GET, &mut attributes)?);
        // `struct bpf_link_info`: type, id, program, padding, then the interface and the kind of attachment.
        let mut info = [0_u32; 16];
        let mut attributes = Attributes::new([word(&link), size_of_val(&info) as u32])
            .with_address(2, info.as_mut_ptr() as u64);
        bpf(OBJ_GET_INFO_BY_FD, &mut attributes)?;
        Ok(Self { link, program: info[2], interface: info[4] })
    }

    /// Puts another program into the link.
    pub(super) fn replace(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        let mut attributes = Attributes::new([word(&self.link), word(&program)]);
        bpf(LINK_UPDATE, &mut attributes).map(drop)
    }

    /// Detaches the program at once. Removing only the pin would let the kernel detach it later.
    pub(super) fn detach(&self) -> io::Result<()> {
        let mut attributes = Attributes::new([word(&self.link)]);
        bpf(LINK_DETACH, &mut attributes).map(drop)
    }
}

/// Attaches an XDP program to an interface in native mode. The attachment ends with the last descriptor or pin of the
/// link.
pub(super) fn attach_xdp(program: BorrowedFd<'_>, interface: u32) -> io::Result<OwnedFd> {
    let mut attributes = Attributes::new([word(&program), interface, ATTACH_XDP, XDP_NATIVE]);
    bpf(LINK_CREATE, &mut attributes).map(owned)
}

/// Pins an object.
pub(super) fn pin(object: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut attributes = Attributes::new([0, 0, word(&object)]).with_address(0, path.as_ptr() as u64);
    bpf(OBJ_PIN, &mut attributes).map(drop)
}

/// Waits until all running programs have ended. Replacing an entry in a map of maps has this effect. The kernel waits
/// for a grace period before such a call returns, so no program uses the old entry afterwards.
pub(super) fn wait_for_programs() -> io::Result<()> {
    let mut inner = Attributes::new([MAP_TYPE_ARRAY, WORD_BYTES, WORD_BYTES, 1]);
    let inner = owned(bpf(MAP_CREATE, &mut inner)?);
    let mut outer = Attributes::new([MAP_TYPE_ARRAY_OF_MAPS, WORD_BYTES, WORD_BYTES, 1, 0, word(&inner)]);
    let outer = owned(bpf(MAP_CREATE, &mut outer)?);
    let (key, value) = (0_u32, word(&inner));
    replace(outer.as_fd(), &key, &value)
}

fn replace(map: BorrowedFd<'_>, key: &u32, value: &u32) -> io::Result<()> {
    let mut attributes = Attributes::new([word(&map)])
        .with_address(2, std::ptr::from_ref(key) as u64)
        .with_address(4, std::ptr::from_ref(value) as u64);
    bpf(MAP_UPDATE_ELEM, &mut attributes).map(drop)
}

/// Position in a map at which the next call continues: a key, or the number of a bucket.
#[derive(Debug, Default)]
pub(super) struct Position(Option<Vec<u8>>);

impl Position {
    /// Returns the position behind an index of an array.
    pub(super) fn behind(index: u32) -> Self {
        Self(Some(index.to_ne_bytes().to_vec()))
    }
}

/// Reads at most `most` entries from a position on, which then moves behind them. Returns `true` if no entry follows.
///
/// # Safety
///
/// `K` and `V` have the sizes of the keys and values of the map.
pub(super) unsafe fn lookup_batch<K: Pod, V: Pod>(
    map: BorrowedFd<'_>,
    position: &mut Position,
    most: usize,
    found: &mut Vec<(K, V)>,
) -> io::Result<bool> {
    let mut keys: Vec<K> = Vec::with_capacity(most);
    let mut values: Vec<V> = Vec::with_capacity(most);
    let mut next = vec![0_u8; size_of::<K>().max(WORD_BYTES as usize)];
    let from = position.0.as_ref().map_or(0, |from| from.as_ptr() as u64);
    let mut attributes = Attributes::of_batch(map, most)
        .with_address(0, from)
        .with_address(2, next.as_mut_ptr() as u64)
        .with_address(4, keys.as_mut_ptr() as u64)
        .with_address(6, values.as_mut_ptr() as u64);
    let is_last = match bpf(MAP_LOOKUP_BATCH, &mut attributes) {
        Ok(_) => false,
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => true,
        Err(error) => return Err(error),
    };
    let count = (attributes.0[BATCH_COUNT] as usize).min(most);
    // SAFETY: the kernel has written so many keys and values of these sizes, and they fit the capacity.
    unsafe {
        keys.set_len(count);
        values.set_len(count);
    }
    found.extend(keys.into_iter().zip(values));
    position.0 = Some(next);
    Ok(is_last)
}

/// Writes entries. After an error, some of them may be written.
///
/// # Safety
///
/// `K` and `V` have the sizes of the keys and values of the map.
pub(super) unsafe fn update_batch<K: Pod, V: Pod>(
    map: BorrowedFd<'_>,
    entries: impl Iterator<Item = (K, V)>,
) -> io::Result<()> {
    let (keys, values): (Vec<K>, Vec<V>) = entries.unzip();
    let mut attributes = Attributes::of_batch(map, keys.len())
        .with_address(4, keys.as_ptr() as u64)
        .with_address(6, values.as_ptr() as u64);
    bpf(MAP_UPDATE_BATCH, &mut attributes).map(drop)
}

/// Removes entries. After an error, as for a missing entry, some of them may be removed.
///
/// # Safety
///
/// `K` has the size of the keys of the map.
pub(super) unsafe fn delete_batch<K: Pod>(map: BorrowedFd<'_>, keys: &[K]) -> io::Result<()> {
    let mut attributes = Attributes::of_batch(map, keys.len()).with_address(4, keys.as_ptr() as u64);
    bpf(MAP_DELETE_BATCH, &mut attributes).map(drop)
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
