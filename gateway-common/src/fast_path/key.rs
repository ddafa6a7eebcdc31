//! Key of one direction of a flow.

/// Addresses, ports and protocol of the packets of one direction. Addresses and ports are in memory order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Key<A> {
    pub source: A,
    pub destination: A,
    pub source_port: u16,
    pub destination_port: u16,
    pub protocol: u32,
}

impl<A: Copy> Key<A> {
    /// Both ports as one word.
    #[inline(always)]
    pub fn ports(&self) -> u32 {
        zerocopy::transmute!([self.source_port, self.destination_port])
    }

    /// Becomes the key of the packets that answer those of another key.
    #[inline(always)]
    pub fn set_turned(&mut self, other: &Key<A>) {
        self.source = other.destination;
        self.destination = other.source;
        self.source_port = other.destination_port;
        self.destination_port = other.source_port;
        self.protocol = other.protocol;
    }
}
