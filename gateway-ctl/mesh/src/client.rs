//! The client of a coordinator and of relays, over connections that the caller opens.

mod control;
mod error;
mod relay;
mod upgrade;

pub use control::{ControlSession, MapStream, fetch_key};
pub use error::ClientError;
pub use relay::{RelayClient, RelayedPacket, relay_packets};

/// Version of the protocol that the client speaks. Coordinators write their maps for it.
pub const VERSION: u16 = 113;
