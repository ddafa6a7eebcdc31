//! Federation: the messages between gateways, and what one holds of the objects of another.
//!
//! - [`bus`]: the fast path over a hub.
//! - [`message`]: signed messages and their parsers.
//! - [`offer`]: the objects that a gateway owns, by kind, with their hashes; the manifest.
//! - [`replica`]: the state machine of the receiver.
//! - [`rotation`]: replacement of keys.
//!
//! Nothing here signs or verifies, which needs keys; the parsers take what was verified. Decision 0209 says why objects
//! have one owner, and why a receiver takes whole kinds.

pub mod bus;
pub mod message;
pub mod offer;
pub mod replica;
pub mod rotation;
