//! Packets of the tc hook: the only code here that touches the context.

use core::hint::black_box;
use core::mem::MaybeUninit;

use aya_ebpf::EbpfContext as _;
use aya_ebpf::helpers::generated::bpf_skb_load_bytes;
use aya_ebpf::programs::TcContext;
use gateway_common::maps::Wire;
use gateway_common::packet::{HEADER_WINDOW, Packet};
use gateway_common::wire::{NAME, ServerNames};

use crate::words;

/// A socket buffer as the decision sees it.
pub struct Buffer<'a>(pub &'a TcContext);

impl Packet for Buffer<'_> {
    #[inline(always)]
    fn read<T: Wire>(&self, offset: usize) -> Option<T> {
        // Bounded for the verifier before it is added to a packet pointer.
        if offset > HEADER_WINDOW - size_of::<T>() {
            return None;
        }
        let start = self.0.data() + offset;
        if start + size_of::<T>() > self.0.data_end() {
            return None;
        }
        let mut value = MaybeUninit::<T>::uninit();
        // SAFETY: the comparison above keeps the read inside the packet, and every bit pattern is a
        // T. The address may be unaligned for T: BPF loads of packets are exempt from alignment where
        // the kernel has efficient unaligned access, and elsewhere the verifier refuses the program.
        unsafe {
            words::copy(start as *const T, value.as_mut_ptr());
            Some(value.assume_init())
        }
    }

    #[inline(always)]
    fn load<T: Wire>(&self, offset: usize) -> Option<T> {
        let mut value = MaybeUninit::<T>::uninit();
        let (skb, to) = (self.0.as_ptr().cast(), value.as_mut_ptr().cast());
        // SAFETY: the place has that size; the helper fills it or fails, and every bit pattern is a T.
        unsafe {
            let failed = bpf_skb_load_bytes(skb, offset as u32, to, size_of::<T>() as u32);
            if failed == 0 { Some(value.assume_init()) } else { None }
        }
    }

    #[inline(always)]
    fn load_name(&self, offset: usize, length: usize, name: &mut [u8; NAME]) -> bool {
        // At least one byte, and no more than there are, as every verifier sees; the compiler may not know it before.
        let length = (black_box(length as u32).wrapping_sub(1) & (NAME as u32 - 1)) + 1;
        let (skb, to) = (self.0.as_ptr().cast(), name.as_mut_ptr().cast());
        // SAFETY: the length is at most that of the place.
        unsafe { bpf_skb_load_bytes(skb, offset as u32, to, length) == 0 }
    }

    #[inline(always)]
    fn read_names(&self, name: &[u8; NAME], length: usize, is_whole: bool, names: &mut ServerNames) {
        gw_read_names(name, length as u32, is_whole as u32, names);
    }

    #[inline(always)]
    fn length(&self) -> u32 {
        self.0.len()
    }

    #[inline(always)]
    fn stripped_vlan(&self) -> Option<u16> {
        // SAFETY: the context pointer is valid for the run of the program.
        let skb = unsafe { &*self.0.skb.skb };
        if skb.vlan_present != 0 { Some(skb.vlan_tci as u16) } else { None }
    }
}

/// [`ServerNames::read`] as a global function, which the verifier follows once. Returns 0 for a pointer that is null, which
/// none is.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn gw_read_names(
    name: *const [u8; NAME],
    length: u32,
    is_whole: u32,
    names: *mut ServerNames,
) -> u32 {
    // SAFETY: the caller has references.
    let (Some(name), Some(names)) = (unsafe { name.as_ref() }, unsafe { names.as_mut() }) else { return 0 };
    names.read(name, length as usize, is_whole != 0);
    1
}

/// Makes the headers readable in place. Usually they are.
#[inline(always)]
pub fn pull_headers(context: &TcContext) {
    let window = if context.len() < HEADER_WINDOW as u32 { context.len() } else { HEADER_WINDOW as u32 };
    if context.data_end() - context.data() < window as usize {
        // What cannot be pulled reads as malformed.
        let _ = context.pull_data(window);
    }
}

/// Interface the packet is at.
#[inline(always)]
pub fn interface(context: &TcContext) -> u32 {
    // SAFETY: the context pointer is valid for the run of the program.
    unsafe { (*context.skb.skb).ifindex }
}

/// Interface the packet entered by; 0 for the host's own.
#[inline(always)]
pub fn ingress_interface(context: &TcContext) -> u32 {
    // SAFETY: as above.
    unsafe { (*context.skb.skb).ingress_ifindex }
}

#[inline(always)]
pub fn mark(context: &TcContext) -> u32 {
    // SAFETY: as above.
    unsafe { (*context.skb.skb).mark }
}
