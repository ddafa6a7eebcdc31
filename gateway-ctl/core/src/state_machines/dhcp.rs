//! DHCP server for IPv4 (RFC 2131): requests with their times go in; replies, leases to store and addresses to probe
//! come out.
//!
//! An acknowledgement leaves in [`Output::stored_replies`]: the caller sends it after the leases of the same output are
//! durable. Of one address there is never more than one active lease.

mod client_key;
mod datagram;
mod foreign_servers;
mod lease;
mod lease_record;
mod lease_table;
mod message;
mod offers;
mod pool;
mod reply;
mod scope;
mod scopes;
mod server;
mod statistics;

pub use client_key::ClientKey;
pub use datagram::{Datagram, datagram};
pub use foreign_servers::{ForeignServer, ForeignServers};
pub use lease::{Lease, LeaseState, LeaseStatus, host_label};
pub use lease_record::{Recovered, append, recover};
pub use message::{Rejection, Request, RequestKind, ServerReply, discover};
pub use reply::{Destination, Reply};
pub use scope::{Reservation, Scope, ServerConfig};
pub use scopes::{Configured, configured, outside_of_interface};
pub use server::{Output, Probe, Server};
pub use statistics::{Counters, PoolUsage};

/// UDP ports (RFC 2131, section 4.1).
pub const SERVER_PORT: u16 = 67;
pub const CLIENT_PORT: u16 = 68;
