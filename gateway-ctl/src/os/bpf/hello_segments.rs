//! Copies of TCP segments with a ClientHello.

use gateway_common::wire::HelloSegment;
use zerocopy::FromBytes as _;

use super::Programs;

impl Programs {
    /// Returns the copies since the last call, at most `most` of them.
    pub fn drain_hello_segments(&mut self, most: usize) -> Vec<Box<HelloSegment>> {
        let mut copies = Vec::new();
        while copies.len() < most {
            let Some(item) = self.maps.hello_segments.next() else { break };
            copies.extend(HelloSegment::read_from_prefix(&item).ok().map(|(copy, _)| Box::new(copy)));
        }
        copies
    }
}
