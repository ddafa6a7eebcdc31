//! Transports of DNS queries to the resolver.

/// Transport by which a query arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Transport {
    Udp = 0,
    Tcp = 1,
    Tls = 2,
    Https = 3,
}
