//! Frames at XDP and their metadata, and the interfaces that use it.

use core::mem::MaybeUninit;

use aya_ebpf::helpers::generated::{bpf_xdp_adjust_meta, bpf_xdp_load_bytes};
use aya_ebpf::programs::XdpContext;
use gateway_common::maps::Wire;
use gateway_common::packet::{HEADER_WINDOW, Packet};
use gateway_common::wire::{NAME, XdpLink, XdpMetadata, xdp_link_index};

use crate::{maps, words};

const METADATA: usize = size_of::<XdpMetadata>();

/// A frame in the driver.
pub struct Frame<'a>(pub &'a XdpContext);

impl Packet for Frame<'_> {
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
        // SAFETY: as in `Buffer`.
        unsafe {
            words::copy(start as *const T, value.as_mut_ptr());
            Some(value.assume_init())
        }
    }

    #[inline(always)]
    fn load<T: Wire>(&self, offset: usize) -> Option<T> {
        let mut value = MaybeUninit::<T>::uninit();
        let to = value.as_mut_ptr().cast();
        // SAFETY: the place has that size; the helper fills it or fails, and every bit pattern is a T.
        unsafe {
            let failed = bpf_xdp_load_bytes(self.0.ctx, offset as u32, to, size_of::<T>() as u32);
            if failed == 0 { Some(value.assume_init()) } else { None }
        }
    }

    #[inline(always)]
    fn load_name(&self, _: usize, _: usize, _: &mut [u8; NAME]) -> bool {
        false
    }

    #[inline(always)]
    fn length(&self) -> u32 {
        (self.0.data_end() - self.0.data()) as u32
    }
}

/// Returns an interface that XDP uses. The daemon waits for running programs before it gives an element to another one.
#[inline(always)]
pub fn link_of(interface: u32) -> Option<&'static XdpLink> {
    let link = maps::XDP_LINKS.get(xdp_link_index(interface))?;
    if link.interface == interface { Some(link) } else { None }
}

/// Writes metadata before the frame. `None` if the driver has no place for it; the frame is then unchanged.
#[inline(always)]
pub fn set_metadata(context: &XdpContext, metadata: XdpMetadata) -> Option<()> {
    // SAFETY: the context is valid while the program runs.
    if unsafe { bpf_xdp_adjust_meta(context.ctx, -(METADATA as i32)) } != 0 {
        return None;
    }
    let start = context.metadata();
    if start + METADATA > context.data() {
        return None;
    }
    // SAFETY: the comparison keeps the write inside the metadata.
    unsafe { *(start as *mut XdpMetadata) = metadata };
    Some(())
}

/// Takes the metadata from the frame, which the receiver must not see.
#[inline(always)]
pub fn take_metadata(context: &XdpContext) -> Option<XdpMetadata> {
    let start = context.metadata();
    if start + METADATA > context.data() {
        return None;
    }
    // SAFETY: the comparison keeps the read inside the metadata.
    let metadata = unsafe { *(start as *const XdpMetadata) };
    // SAFETY: as above.
    if unsafe { bpf_xdp_adjust_meta(context.ctx, METADATA as i32) } != 0 {
        return None;
    }
    Some(metadata)
}
