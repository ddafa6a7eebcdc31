//! Copies of Initial packets of QUIC.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};

use gateway_common::wire::QuicInitial;
use zerocopy::FromBytes as _;

use super::Programs;

impl Programs {
    /// Returns a descriptor that is readable when there are copies.
    pub fn initials_descriptor(&self) -> io::Result<OwnedFd> {
        // SAFETY: the map has the descriptor open for the time of the call.
        unsafe { BorrowedFd::borrow_raw(self.maps.initials.as_raw_fd()) }.try_clone_to_owned()
    }

    /// Returns the copies since the last call, at most `most` of them.
    pub fn drain_initials(&mut self, most: usize) -> Vec<Box<QuicInitial>> {
        let mut copies = Vec::new();
        while copies.len() < most {
            let Some(item) = self.maps.initials.next() else { break };
            copies.extend(QuicInitial::read_from_prefix(&item).ok().map(|(copy, _)| Box::new(copy)));
        }
        copies
    }
}
