//! Multicast groups of mDNS and SSDP, which the NICs of the LANs must receive (packet(7), PACKET_ADD_MEMBERSHIP).

use std::io;
use std::os::fd::AsRawFd as _;

use socket2::{Domain, Protocol, Socket, Type};

/// Multicast addresses of frames to 224.0.0.251, 239.255.255.250, ff02::fb and ff02::c.
const GROUPS: [[u8; 6]; 4] = [
    [0x01, 0x00, 0x5e, 0x00, 0x00, 0xfb],
    [0x01, 0x00, 0x5e, 0x7f, 0xff, 0xfa],
    [0x33, 0x33, 0, 0, 0, 0xfb],
    [0x33, 0x33, 0, 0, 0, 0x0c],
];

/// Memberships. They end when it is dropped.
pub(crate) struct MulticastGroups(Socket);

impl MulticastGroups {
    pub(crate) fn open() -> io::Result<MulticastGroups> {
        // Without a protocol it receives nothing, and costs no packet.
        Socket::new(Domain::PACKET, Type::DGRAM, Some(Protocol::from(0))).map(MulticastGroups)
    }

    /// Makes the NIC of an interface receive the groups. An interface that has gone is no error.
    pub(crate) fn join(&self, interface: u32) -> io::Result<()> {
        for group in GROUPS {
            let mut request = libc::packet_mreq {
                mr_ifindex: interface.cast_signed(),
                mr_type: libc::PACKET_MR_MULTICAST as u16,
                mr_alen: 6,
                mr_address: [0; 8],
            };
            request.mr_address[..6].copy_from_slice(&group);
            // SAFETY: the pointer is to one structure of this size, which lives through the call.
            let done = unsafe {
                libc::setsockopt(
                    self.0.as_raw_fd(),
                    libc::SOL_PACKET,
                    libc::PACKET_ADD_MEMBERSHIP,
                    (&raw const request).cast(),
                    size_of::<libc::packet_mreq>() as libc::socklen_t,
                )
            };
            if done != 0 {
                let error = io::Error::last_os_error();
                if error.raw_os_error() != Some(libc::ENODEV) {
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}
