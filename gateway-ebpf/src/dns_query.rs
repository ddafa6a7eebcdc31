//! Key of the packet cache for a query, which the programs at tcx and at XDP read alike.

use aya_ebpf::macros::map;
use aya_ebpf::maps::PerCpuArray;
use gateway_common::wire::{Address, DnsCacheKey, Mac, QUESTION};

/// Length of the header of UDP (RFC 768).
pub const HEADER_UDP: usize = 8;
/// Minimum length of a query without its id: header of DNS, name of the root, type and class (RFC 1035, section 4.1).
pub const SHORTEST: u32 = 10 + 1 + 4;
/// Hop limit of answers.
pub const HOPS: u16 = 64;
pub const SECOND: u64 = 1_000_000_000;
const _: () = assert!(QUESTION.is_multiple_of(4));

// Too large for the stack beside the rest.
#[map(name = "gw_dns_key")]
static KEY: PerCpuArray<DnsCacheKey> = PerCpuArray::with_max_entries(1, 0);

/// Returns the key of this processor with these fields and an empty question, into which the caller loads `length` bytes.
#[inline(always)]
pub fn begin_key(
    client: Address,
    server: Address,
    interface: u32,
    host: Mac,
    length: u32,
) -> Option<&'static mut DnsCacheKey> {
    let key = KEY.get_ptr_mut(0)?;
    // SAFETY: a program is not interrupted by itself or by another one that uses the key on one processor.
    let key = unsafe { &mut *key };
    key.client = client;
    key.server = server;
    key.interface = interface;
    key.host = host;
    key.length = length as u16;
    // Word by word, and volatile: else it becomes the call of a function.
    let words = key.question.as_mut_ptr().cast::<u32>();
    for word in 0..QUESTION / 4 {
        // SAFETY: the words are those of the array, which is aligned as the fields before it.
        unsafe { words.add(word).write_volatile(0) };
    }
    Some(key)
}

/// Returns the key that the program before this one began for the same packet.
#[inline(always)]
pub fn current_key() -> Option<&'static DnsCacheKey> {
    // SAFETY: as above.
    KEY.get_ptr(0).map(|key| unsafe { &*key })
}
