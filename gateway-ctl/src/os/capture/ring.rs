//! Ring of received packets, shared with the kernel (packet(7), TPACKET_V3).

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::{
    c_int, c_void, sockaddr_ll, tpacket_block_desc, tpacket_hdr_v1, tpacket_req3, tpacket_stats_v3,
    tpacket3_hdr,
};
use socket2::{Domain, Protocol, SockFilter, Socket, Type};

use super::record::InterfaceCounters;
use crate::os::egress_tap::{ALL_PROTOCOLS, link_address};

const BLOCK_BYTES: usize = 1 << 20;
/// Nominal frame size. Blocks take packets of any length.
const FRAME_BYTES: usize = 2048;
/// Time after which a block that is not full is handed over, in milliseconds.
const RETIRE_MILLIS: u32 = 60;
const PACKET_OUTGOING: u8 = 4;
const VLAN_TAG: usize = 4;
/// Offset of a VLAN tag in a frame: behind both MAC addresses.
const VLAN_OFFSET: usize = 12;
const ETHERTYPE_VLAN: u16 = 0x8100;

/// A packet in the ring.
#[derive(Debug)]
pub(super) struct RingPacket<'a> {
    pub time_ns: u64,
    /// Length on the wire, with the tag.
    pub length: u32,
    pub outgoing: bool,
    /// Ethernet type, as the socket reports it.
    pub protocol: u16,
    pub bytes: &'a [u8],
}

#[derive(Debug)]
pub(super) struct Ring {
    socket: Socket,
    blocks: NonNull<u8>,
    count: usize,
    next: usize,
    counters: InterfaceCounters,
    /// Frames whose tag the kernel has removed are put together here.
    tagged: Vec<u8>,
}

impl Ring {
    /// Opens a ring for the interface with this index. It receives packets from then on. `cooked` packets begin with
    /// their network header.
    pub(super) fn open(
        index: u32,
        cooked: bool,
        filter: &[SockFilter],
        blocks: usize,
        promiscuous: bool,
    ) -> io::Result<Ring> {
        let kind = if cooked { Type::DGRAM } else { Type::RAW };
        // Without a protocol, it receives nothing until filter and interface are set.
        let socket = Socket::new(Domain::PACKET, kind, Some(Protocol::from(0)))?;
        if !filter.is_empty() {
            socket.attach_filter(filter)?;
        }
        set(&socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V3 as c_int))?;
        let unsigned = |size: usize| u32::try_from(size).map_err(io::Error::other);
        let request = tpacket_req3 {
            tp_block_size: unsigned(BLOCK_BYTES)?,
            tp_block_nr: unsigned(blocks)?,
            tp_frame_size: unsigned(FRAME_BYTES)?,
            tp_frame_nr: unsigned(BLOCK_BYTES / FRAME_BYTES * blocks)?,
            tp_retire_blk_tov: RETIRE_MILLIS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set(&socket, libc::PACKET_RX_RING, &request)?;
        let memory = map(&socket, blocks * BLOCK_BYTES)?;
        let ring = Ring {
            socket,
            blocks: memory,
            count: blocks,
            next: 0,
            counters: InterfaceCounters::default(),
            tagged: Vec::new(),
        };
        ring.socket.bind(&link_address(ALL_PROTOCOLS, index)?)?;
        if promiscuous {
            let membership = libc::packet_mreq {
                mr_ifindex: index.cast_signed(),
                mr_type: libc::PACKET_MR_PROMISC as u16,
                mr_alen: 0,
                mr_address: [0; 8],
            };
            set(&ring.socket, libc::PACKET_ADD_MEMBERSHIP, &membership)?;
        }
        Ok(ring)
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Calls `take` for each packet of the next block that is ready, until it returns false. Returns false if no block is
    /// ready.
    pub(super) fn read_block(
        &mut self,
        take: &mut dyn FnMut(RingPacket<'_>) -> io::Result<bool>,
    ) -> io::Result<bool> {
        // SAFETY: the offset is within the mapping.
        let block = unsafe { self.blocks.add(self.next * BLOCK_BYTES) };
        let status_offset = offset_of!(tpacket_block_desc, hdr) + offset_of!(tpacket_hdr_v1, block_status);
        // SAFETY: the field is aligned, within the block, and shared with the kernel by atomic accesses.
        let status = unsafe { AtomicU32::from_ptr(block.add(status_offset).cast::<u32>().as_ptr()) };
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return Ok(false);
        }
        // SAFETY: the kernel has handed the block over, so that it does not change until it is given back below.
        let bytes = unsafe { std::slice::from_raw_parts(block.as_ptr(), BLOCK_BYTES) };
        let outcome = read_packets(bytes, &mut self.tagged, take);
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.count;
        outcome.map(|()| true)
    }

    /// Returns the counters since the start.
    pub(super) fn counters(&mut self) -> io::Result<InterfaceCounters> {
        // SAFETY: zeroes are a valid value.
        let mut stats: tpacket_stats_v3 = unsafe { std::mem::zeroed() };
        let mut length = size_of::<tpacket_stats_v3>() as libc::socklen_t;
        // SAFETY: the pointers are to a structure of that length and to its length.
        let done = unsafe {
            libc::getsockopt(
                self.descriptor(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut stats).cast::<c_void>(),
                &raw mut length,
            )
        };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
        // The kernel counts from the last call on, and includes what it dropped in the first number.
        self.counters.received += u64::from(stats.tp_packets);
        self.counters.dropped += u64::from(stats.tp_drops);
        Ok(self.counters)
    }
}

/// Reads the packets of a block. The kernel's offsets are checked, too.
fn read_packets(
    block: &[u8],
    tagged: &mut Vec<u8>,
    take: &mut dyn FnMut(RingPacket<'_>) -> io::Result<bool>,
) -> io::Result<()> {
    let header = offset_of!(tpacket_block_desc, hdr);
    let packets = number(block, header + offset_of!(tpacket_hdr_v1, num_pkts));
    let mut at = number(block, header + offset_of!(tpacket_hdr_v1, offset_to_first_pkt)) as usize;
    for _ in 0..packets {
        let Some(packet) = block.get(at..) else { return Ok(()) };
        let field = |offset: usize| number(packet, offset);
        let mac = usize::from(short(packet, offset_of!(tpacket3_hdr, tp_mac)));
        let captured = field(offset_of!(tpacket3_hdr, tp_snaplen)) as usize;
        let Some(mut bytes) = packet.get(mac..mac + captured) else { return Ok(()) };
        let address = size_of::<tpacket3_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);
        let mut length = field(offset_of!(tpacket3_hdr, tp_len));
        let status = field(offset_of!(tpacket3_hdr, tp_status));
        if status & libc::TP_STATUS_VLAN_VALID != 0 && bytes.len() >= VLAN_OFFSET {
            let variant = offset_of!(tpacket3_hdr, hv1);
            let tci = field(variant + offset_of!(libc::tpacket_hdr_variant1, tp_vlan_tci));
            let tpid = short(packet, variant + offset_of!(libc::tpacket_hdr_variant1, tp_vlan_tpid));
            let tpid = if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 { tpid } else { ETHERTYPE_VLAN };
            tagged.clear();
            tagged.extend_from_slice(&bytes[..VLAN_OFFSET]);
            tagged.extend_from_slice(&tpid.to_be_bytes());
            tagged.extend_from_slice(&(tci as u16).to_be_bytes());
            tagged.extend_from_slice(&bytes[VLAN_OFFSET..]);
            bytes = tagged;
            length += VLAN_TAG as u32;
        }
        let seconds = u64::from(field(offset_of!(tpacket3_hdr, tp_sec)));
        let goes_on = take(RingPacket {
            time_ns: seconds * 1_000_000_000 + u64::from(field(offset_of!(tpacket3_hdr, tp_nsec))),
            length,
            outgoing: packet.get(address + offset_of!(sockaddr_ll, sll_pkttype)) == Some(&PACKET_OUTGOING),
            protocol: u16::from_be(short(packet, address + offset_of!(sockaddr_ll, sll_protocol))),
            bytes,
        })?;
        match field(offset_of!(tpacket3_hdr, tp_next_offset)) {
            0 => return Ok(()),
            _ if !goes_on => return Ok(()),
            next => at += next as usize,
        }
    }
    Ok(())
}

fn number(bytes: &[u8], offset: usize) -> u32 {
    bytes.get(offset..).and_then(<[u8]>::first_chunk).map_or(0, |four| u32::from_ne_bytes(*four))
}

fn short(bytes: &[u8], offset: usize) -> u16 {
    bytes.get(offset..).and_then(<[u8]>::first_chunk).map_or(0, |two| u16::from_ne_bytes(*two))
}

fn set<T>(socket: &Socket, option: c_int, value: &T) -> io::Result<()> {
    // SAFETY: the pointer is to a value of that length, of the type of the option.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            option,
            std::ptr::from_ref(value).cast::<c_void>(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn map(socket: &Socket, length: usize) -> io::Result<NonNull<u8>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping of the ring, which stays until the process ends.
    let at = unsafe {
        libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_SHARED, socket.as_raw_fd(), 0)
    };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(at.cast()).ok_or_else(|| io::Error::other("the ring has no address"))
}
