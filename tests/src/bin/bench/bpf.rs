//! The part of bpf(2) that aya does not offer: programs assembled from instructions at run time.
//!
//! The generator's packet and the sink's map are known only at run time. As constants in the program they cost nothing
//! per packet.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use anyhow::{Context, Result};

const MAP_CREATE: libc::c_long = 0;
const MAP_LOOKUP: libc::c_long = 1;
const PROG_LOAD: libc::c_long = 5;
const PROG_TEST_RUN: libc::c_long = 10;
const LINK_CREATE: libc::c_long = 28;

const MAP_TYPE_ARRAY: u32 = 2;
const ATTACH_TCX_INGRESS: u32 = 46;
const LIVE_FRAMES: u32 = 2;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Classifier = 3,
    Xdp = 6,
}

/// One instruction (`struct bpf_insn`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// Instructions, named by their effect. Registers are given by index.
pub(crate) mod instruction {
    use super::Instruction;

    const fn make(code: u8, target: u8, source: u8, offset: i16, immediate: i32) -> Instruction {
        Instruction { code, registers: source << 4 | target, offset, immediate }
    }

    pub(crate) const fn copy(target: u8, source: u8) -> Instruction {
        make(0xbf, target, source, 0, 0)
    }

    pub(crate) const fn set(target: u8, value: i32) -> Instruction {
        make(0xb7, target, 0, 0, value)
    }

    pub(crate) const fn add(target: u8, value: i32) -> Instruction {
        make(0x07, target, 0, 0, value)
    }

    pub(crate) const fn subtract(target: u8, source: u8) -> Instruction {
        make(0x1f, target, source, 0, 0)
    }

    pub(crate) const fn and(target: u8, value: i32) -> Instruction {
        make(0x57, target, 0, 0, value)
    }

    pub(crate) const fn add_register(target: u8, source: u8) -> Instruction {
        make(0x0f, target, source, 0, 0)
    }

    pub(crate) const fn divide(target: u8, value: i32) -> Instruction {
        make(0x37, target, 0, 0, value)
    }

    pub(crate) const fn remainder(target: u8, value: i32) -> Instruction {
        make(0x97, target, 0, 0, value)
    }

    pub(crate) const fn shift_right(target: u8, value: i32) -> Instruction {
        make(0x77, target, 0, 0, value)
    }

    /// Converts the low 16 bits to network byte order, and clears the others.
    pub(crate) const fn to_big_endian16(target: u8) -> Instruction {
        make(0xdc, target, 0, 0, 16)
    }

    pub(crate) const fn load16(target: u8, source: u8, offset: i16) -> Instruction {
        make(0x69, target, source, offset, 0)
    }

    pub(crate) const fn load64(target: u8, source: u8, offset: i16) -> Instruction {
        make(0x79, target, source, offset, 0)
    }

    pub(crate) const fn load32(target: u8, source: u8, offset: i16) -> Instruction {
        make(0x61, target, source, offset, 0)
    }

    pub(crate) const fn store8(target: u8, offset: i16, source: u8) -> Instruction {
        make(0x73, target, source, offset, 0)
    }

    pub(crate) const fn store16(target: u8, offset: i16, source: u8) -> Instruction {
        make(0x6b, target, source, offset, 0)
    }

    pub(crate) const fn store32(target: u8, offset: i16, source: u8) -> Instruction {
        make(0x63, target, source, offset, 0)
    }

    pub(crate) const fn store64(target: u8, offset: i16, source: u8) -> Instruction {
        make(0x7b, target, source, offset, 0)
    }

    pub(crate) const fn atomic_add64(target: u8, offset: i16, source: u8) -> Instruction {
        make(0xdb, target, source, offset, 0)
    }

    pub(crate) const fn skip_if_greater(left: u8, right: u8, skipped: i16) -> Instruction {
        make(0x2d, left, right, skipped, 0)
    }

    pub(crate) const fn skip(skipped: i16) -> Instruction {
        make(0x05, 0, 0, skipped, 0)
    }

    /// Skips unless the operands are equal; compares 32 bits.
    pub(crate) const fn skip_unless_equal(left: u8, right: i32, skipped: i16) -> Instruction {
        make(0x56, left, 0, skipped, right)
    }

    /// Helper `bpf_get_prandom_u32`.
    pub(crate) const GET_RANDOM: i32 = 7;
    /// Helper `bpf_redirect`.
    pub(crate) const REDIRECT: i32 = 23;

    pub(crate) const fn call(helper: i32) -> Instruction {
        make(0x85, 0, 0, 0, helper)
    }

    pub(crate) const fn exit() -> Instruction {
        make(0x95, 0, 0, 0, 0)
    }

    pub(crate) const fn set64(target: u8, value: u64) -> [Instruction; 2] {
        wide(target, 0, value as u32 as i32, (value >> 32) as u32 as i32)
    }

    /// Loads the address of an array map's value plus `offset` bytes.
    pub(crate) const fn map_value(target: u8, map: i32, offset: i32) -> [Instruction; 2] {
        wide(target, 2, map, offset)
    }

    const fn wide(target: u8, source: u8, low: i32, high: i32) -> [Instruction; 2] {
        [make(0x18, target, source, 0, low), make(0, 0, 0, 0, high)]
    }
}

/// A loaded program.
#[derive(Debug)]
pub(crate) struct Program(OwnedFd);

/// A program attached to an interface. Dropping it detaches the program.
#[derive(Debug)]
pub(crate) struct Attached(#[expect(dead_code, reason = "held for its drop")] OwnedFd);

/// An array map with one value that consists of `N` integers.
#[derive(Debug)]
pub(crate) struct Numbers<const N: usize>(OwnedFd);

#[repr(C)]
struct LoadAttributes {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
}

#[repr(C)]
#[derive(Default)]
struct RunAttributes {
    program: u32,
    result: u32,
    size_in: u32,
    size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    context_size_in: u32,
    context_size_out: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    processor: u32,
    batch: u32,
    unused: u32,
}

impl Program {
    pub(crate) fn load(kind: Kind, instructions: &[Instruction]) -> Result<Program> {
        let mut log = vec![0u8; 65536];
        let mut attributes = LoadAttributes {
            kind: kind as u32,
            count: u32::try_from(instructions.len()).context("instructions")?,
            instructions: instructions.as_ptr() as u64,
            license: c"GPL".as_ptr() as u64,
            log_level: 1,
            log_size: u32::try_from(log.len()).context("log")?,
            log: log.as_mut_ptr() as u64,
        };
        match descriptor(PROG_LOAD, &mut attributes) {
            Ok(program) => Ok(Program(program)),
            Err(error) => {
                let log = String::from_utf8_lossy(&log);
                Err(error).with_context(|| format!("load a program: {}", log.trim_end_matches('\0')))
            }
        }
    }

    /// Runs an XDP program on a frame that then enters the host through an interface of the current namespace.
    pub(crate) fn send(&self, frame: &[u8], interface: u32, count: u32, batch: u32) -> Result<()> {
        // `struct xdp_md`: data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex.
        let length = u32::try_from(frame.len()).context("frame")?;
        let context: [u32; 6] = [0, length, 0, interface, 0, 0];
        let mut attributes = RunAttributes {
            program: self.number(),
            size_in: length,
            data_in: frame.as_ptr() as u64,
            context_size_in: u32::try_from(size_of_val(&context)).context("context")?,
            context_in: context.as_ptr() as u64,
            repeat: count,
            flags: LIVE_FRAMES,
            batch,
            ..RunAttributes::default()
        };
        system_call(PROG_TEST_RUN, &mut attributes).context("BPF_PROG_TEST_RUN with live frames").map(drop)
    }

    /// Runs the program once on a packet. Returns the duration in nanoseconds as the kernel measured it.
    pub(crate) fn time(&self, packet: &[u8]) -> Result<u32> {
        let mut attributes = RunAttributes {
            program: self.number(),
            size_in: u32::try_from(packet.len()).context("packet")?,
            data_in: packet.as_ptr() as u64,
            repeat: 1,
            ..RunAttributes::default()
        };
        system_call(PROG_TEST_RUN, &mut attributes).context("BPF_PROG_TEST_RUN")?;
        Ok(attributes.duration)
    }

    /// Attaches a classifier to the ingress of an interface of the current namespace.
    pub(crate) fn attach(&self, interface: u32) -> Result<Attached> {
        let mut attributes: [u32; 4] = [self.number(), interface, ATTACH_TCX_INGRESS, 0];
        descriptor(LINK_CREATE, &mut attributes).map(Attached).context("attach a classifier")
    }

    fn number(&self) -> u32 {
        self.0.as_raw_fd().cast_unsigned()
    }
}

impl<const N: usize> Numbers<N> {
    pub(crate) fn new() -> Result<Self> {
        let value = u32::try_from(8 * N).context("numbers")?;
        // Type, key size, value size, entries.
        let mut attributes: [u32; 4] = [MAP_TYPE_ARRAY, 4, value, 1];
        descriptor(MAP_CREATE, &mut attributes).map(Self).context("make a map")
    }

    pub(crate) fn read(&self) -> Result<[u64; N]> {
        let (key, mut value) = (0u32, [0u64; N]);
        let map = u64::from(self.number().cast_unsigned());
        let mut attributes: [u64; 4] = [map, (&raw const key) as u64, (&raw mut value) as u64, 0];
        system_call(MAP_LOOKUP, &mut attributes).context("read a map")?;
        Ok(value)
    }

    /// Returns the file descriptor for [`instruction::map_value`].
    pub(crate) fn number(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

fn descriptor<T>(command: libc::c_long, attributes: &mut T) -> io::Result<OwnedFd> {
    let number = i32::try_from(system_call(command, attributes)?).map_err(io::Error::other)?;
    // SAFETY: these commands return a new descriptor, which has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

fn system_call<T>(command: libc::c_long, attributes: &mut T) -> io::Result<libc::c_long> {
    // SAFETY: the attributes are laid out as the command requires. All pointers in them refer to memory that lives
    // until the end of the call, and the sizes are passed to the kernel.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
