//! Copies of broadcast and multicast packets of the LANs.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};

use aya::maps::{MapData, RingBuf};
use gateway_common::wire::LinkFrame;
use zerocopy::FromBytes as _;

use super::Programs;

impl Programs {
    /// Returns descriptors that are readable when there are copies.
    pub fn link_frame_descriptors(&self) -> io::Result<[OwnedFd; 2]> {
        let descriptor = |ring: &RingBuf<MapData>| {
            // SAFETY: the map has the descriptor open for the time of the call.
            unsafe { BorrowedFd::borrow_raw(ring.as_raw_fd()) }.try_clone_to_owned()
        };
        Ok([descriptor(&self.maps.link_messages)?, descriptor(&self.maps.announcements)?])
    }

    /// Returns the copies since the last call, at most `most` of each ring.
    pub fn drain_link_frames(&mut self, most: usize) -> Vec<Box<LinkFrame>> {
        let mut copies = Vec::new();
        for ring in [&mut self.maps.link_messages, &mut self.maps.announcements] {
            for _ in 0..most {
                let Some(item) = ring.next() else { break };
                copies.extend(LinkFrame::read_from_prefix(&item).ok().map(|(copy, _)| Box::new(copy)));
            }
        }
        copies
    }
}
