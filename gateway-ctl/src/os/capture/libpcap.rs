//! Compilation of filter expressions by libpcap, which is loaded when it is needed: the daemon runs without it.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};

use gateway_dissect::LinkType;
use socket2::SockFilter;

use super::record::CaptureFailure;

const LIBRARIES: [&CStr; 2] = [c"libpcap.so.0.8", c"libpcap.so.1"];
/// Link types of libpcap (`DLT_*`).
const ETHERNET: c_int = 1;
const RAW: c_int = 12;
const NETMASK_UNKNOWN: c_uint = u32::MAX;
const ERROR_BYTES: usize = 256;
/// Size of the ring of the handle for which a filter is compiled; it reads nothing.
const BUFFER_BYTES: c_int = 1 << 17;
/// Maximum number of instructions that the kernel takes (BPF_MAXINSNS).
const MAX_INSTRUCTIONS: usize = 4096;

/// `struct bpf_insn` of pcap/bpf.h.
#[repr(C)]
#[derive(Clone, Copy)]
struct Instruction {
    code: u16,
    jump_true: u8,
    jump_false: u8,
    k: u32,
}

/// `struct bpf_program` of pcap/bpf.h.
#[repr(C)]
struct Program {
    length: c_uint,
    instructions: *mut Instruction,
}

type Pcap = *mut c_void;

/// Functions of the library, which stays loaded until the process ends.
struct Libpcap {
    create: unsafe extern "C" fn(*const c_char, *mut c_char) -> Pcap,
    set_snaplen: unsafe extern "C" fn(Pcap, c_int) -> c_int,
    set_buffer_size: unsafe extern "C" fn(Pcap, c_int) -> c_int,
    activate: unsafe extern "C" fn(Pcap) -> c_int,
    datalink: unsafe extern "C" fn(Pcap) -> c_int,
    open_dead: unsafe extern "C" fn(c_int, c_int) -> Pcap,
    compile: unsafe extern "C" fn(Pcap, *mut Program, *const c_char, c_int, c_uint) -> c_int,
    error: unsafe extern "C" fn(Pcap) -> *const c_char,
    free: unsafe extern "C" fn(*mut Program),
    close: unsafe extern "C" fn(Pcap),
}

/// Compiles an expression for an interface. Its instructions cut packets to the snap length.
pub(super) fn compile(
    expression: &str,
    interface: &str,
    link: LinkType,
    snaplen: u32,
) -> Result<Vec<SockFilter>, CaptureFailure> {
    let library = Libpcap::load().map_err(CaptureFailure::NoLibpcap)?;
    let text = CString::new(expression).map_err(|_| CaptureFailure::Filter("a NUL character".to_owned()))?;
    let snaplen = c_int::try_from(snaplen).unwrap_or(c_int::MAX);
    let kind = if link == LinkType::Ethernet { ETHERNET } else { RAW };
    let handle = library.handle(interface, kind, snaplen)?;
    let compiled = library.compile_with(handle, &text);
    // SAFETY: the handle is one of the library, and is not used after this.
    unsafe { (library.close)(handle) };
    compiled
}

impl Libpcap {
    fn load() -> Result<Libpcap, String> {
        // SAFETY: the names are strings; the library has no initialisers beyond those of C.
        let handle = LIBRARIES.iter().map(|name| unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) });
        let handle = handle.into_iter().find(|handle| !handle.is_null()).ok_or_else(last_error)?;
        // SAFETY: each symbol has the type that pcap.h declares for it.
        unsafe {
            Ok(Libpcap {
                create: symbol(handle, c"pcap_create")?,
                set_snaplen: symbol(handle, c"pcap_set_snaplen")?,
                set_buffer_size: symbol(handle, c"pcap_set_buffer_size")?,
                activate: symbol(handle, c"pcap_activate")?,
                datalink: symbol(handle, c"pcap_datalink")?,
                open_dead: symbol(handle, c"pcap_open_dead")?,
                compile: symbol(handle, c"pcap_compile")?,
                error: symbol(handle, c"pcap_geterr")?,
                free: symbol(handle, c"pcap_freecode")?,
                close: symbol(handle, c"pcap_close")?,
            })
        }
    }

    /// Returns a handle for this link type. That of the interface knows where the kernel keeps VLAN tags; without it,
    /// the keyword `vlan` finds tags in the frame only.
    fn handle(&self, interface: &str, kind: c_int, snaplen: c_int) -> Result<Pcap, CaptureFailure> {
        let failed = |message: &str| CaptureFailure::System(format!("libpcap: {message}"));
        let name = CString::new(interface).map_err(|_| failed("a name with a NUL character"))?;
        let mut error = [0 as c_char; ERROR_BYTES];
        // SAFETY: the pointers are to a string and to a buffer of the size that the library demands.
        let live = unsafe { (self.create)(name.as_ptr(), error.as_mut_ptr()) };
        if !live.is_null() {
            // SAFETY: the handle is a new one of the library.
            let usable = unsafe {
                (self.set_snaplen)(live, snaplen);
                (self.set_buffer_size)(live, BUFFER_BYTES);
                (self.activate)(live) >= 0 && (self.datalink)(live) == kind
            };
            if usable {
                return Ok(live);
            }
            // SAFETY: as above; it is not used after this.
            unsafe { (self.close)(live) };
        }
        // SAFETY: the function takes any numbers.
        let dead = unsafe { (self.open_dead)(kind, snaplen) };
        if dead.is_null() { Err(failed("no memory")) } else { Ok(dead) }
    }

    fn compile_with(&self, handle: Pcap, text: &CStr) -> Result<Vec<SockFilter>, CaptureFailure> {
        let mut program = Program { length: 0, instructions: std::ptr::null_mut() };
        // SAFETY: the handle is open, and the pointers are to a structure and to a string.
        let done = unsafe { (self.compile)(handle, &raw mut program, text.as_ptr(), 1, NETMASK_UNKNOWN) };
        if done != 0 {
            // SAFETY: the library returns a string that lives as long as the handle.
            let message = unsafe { CStr::from_ptr((self.error)(handle)) };
            return Err(CaptureFailure::Filter(message.to_string_lossy().into_owned()));
        }
        let length = program.length as usize;
        let filter = if program.instructions.is_null() || length > MAX_INSTRUCTIONS {
            Err(CaptureFailure::Filter(format!(
                "the filter has {length} instructions, the kernel takes {MAX_INSTRUCTIONS}"
            )))
        } else {
            // SAFETY: the library has made so many instructions.
            let made = unsafe { std::slice::from_raw_parts(program.instructions, length) };
            Ok(made
                .iter()
                .map(|one| SockFilter::new(one.code, one.jump_true, one.jump_false, one.k))
                .collect())
        };
        // SAFETY: the program is one of the library, and is not used after this.
        unsafe { (self.free)(&raw mut program) };
        filter
    }
}

/// Returns a function of the library.
///
/// # Safety
/// `F` is the type of the function pointer.
unsafe fn symbol<F>(handle: *mut c_void, name: &CStr) -> Result<F, String> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: the handle is open, and the name is a string.
    let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
    if found.is_null() {
        return Err(last_error());
    }
    // SAFETY: by the contract of this function.
    Ok(unsafe { std::mem::transmute_copy(&found) })
}

fn last_error() -> String {
    // SAFETY: the function returns a string or nothing.
    let message = unsafe { libc::dlerror() };
    if message.is_null() {
        return "the library was not found".to_owned();
    }
    // SAFETY: as above.
    unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned()
}
