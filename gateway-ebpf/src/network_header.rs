//! Addresses of a packet at an uplink or a tunnel, read from the network header: links without a link-layer header
//! (TUN, PPP) work the same as Ethernet.

use aya_ebpf::EbpfContext as _;
use aya_ebpf::bindings::bpf_hdr_start_off::BPF_HDR_START_NET;
use aya_ebpf::helpers::generated::bpf_skb_load_bytes_relative;
use aya_ebpf::programs::TcContext;
use gateway_common::classify::{ETHERTYPE_IPV4, ETHERTYPE_IPV6};
use gateway_common::guard::LocalAddresses;
use gateway_common::policy_maps::PolicyMaps as _;
use gateway_common::wire::{Address, LocalValue, Prefix4, Prefix6, SharedAddressKey};

use crate::policy_maps::Kernel;

/// Offsets of the addresses (RFC 791, section 3.1; RFC 8200, section 3).
const SOURCE4: u32 = 12;
const DESTINATION4: u32 = 16;
const SOURCE6: u32 = 8;
const DESTINATION6: u32 = 24;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Field {
    Source,
    Destination,
}

/// Returns whether the packet is IPv6, and the address in its header. No address if it is not IP or truncated.
#[inline(always)]
pub fn address(context: &TcContext, field: Field) -> (bool, Option<Address>) {
    // SAFETY: the context pointer is valid for the run of the program.
    let protocol = unsafe { (*context.skb.skb).protocol } as u16;
    if protocol == ETHERTYPE_IPV4.to_be() {
        let offset = if field == Field::Source { SOURCE4 } else { DESTINATION4 };
        let mut word = 0u32;
        return (false, load(context, offset, &mut word).map(|()| Address::v4_word(word)));
    }
    if protocol == ETHERTYPE_IPV6.to_be() {
        let offset = if field == Field::Source { SOURCE6 } else { DESTINATION6 };
        let mut address = Address::default();
        return (true, load(context, offset, &mut address).map(|()| address));
    }
    (false, None)
}

#[inline(always)]
fn load<T>(context: &TcContext, offset: u32, to: &mut T) -> Option<()> {
    let (skb, size) = (context.as_ptr().cast(), size_of::<T>() as u32);
    let to = (to as *mut T).cast();
    // SAFETY: the place is of that size, and all bit patterns are valid for the integers that are read here.
    let failed = unsafe { bpf_skb_load_bytes_relative(skb, offset, to, size, BPF_HDR_START_NET) };
    if failed == 0 { Some(()) } else { None }
}

/// Addresses of the active plan.
pub struct ActivePlan;

impl LocalAddresses for ActivePlan {
    #[inline(always)]
    fn find(&self, address: &Address) -> LocalValue {
        let slot = Kernel.live();
        let found = if address.is_mapped() {
            Kernel.local4(&Prefix4 { slot, address: address.last() })
        } else {
            Kernel.local6(&Prefix6 { slot, address: *address })
        };
        match found {
            Some(found) => found,
            None => LocalValue::NONE,
        }
    }

    #[inline(always)]
    fn is_shared(&self, leg: u32, address: &Address) -> bool {
        Kernel.is_shared(&SharedAddressKey { slot: Kernel.live(), leg, address: *address })
    }
}
